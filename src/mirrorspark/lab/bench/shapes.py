"""What is carried: the two shapes of records that the comparison uses.

Read by every other file of the benchmark. A shape's topic is preloaded once and carried by each party in each round.
"""

from __future__ import annotations

from dataclasses import dataclass

from mirrorspark.lab import preload

__all__ = ["PARTITIONS", "SHAPES", "Load", "Shape"]

PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """``stored_bytes`` is what a record takes on the source, as an estimate for the room that a run needs."""

    key: str
    label: str
    record_bytes: int
    codec: str
    content: preload.Shape
    stored_bytes: int

    @property
    def topic(self) -> str:
        return f"bench-{self.key}"

    @property
    def room_bytes(self) -> int:
        """For a record on both clusters; on the target uncompressed, as MirrorMaker 2 writes it unless told otherwise."""
        return self.stored_bytes + self.record_bytes + 16


SHAPES = {
    shape.key: shape
    for shape in (
        Shape("1k", "1 KB uncompressed", 1_000, "none", "random", 1_016),
        Shape("200b", "200 B JSON lz4", 200, "lz4", "json", 90),
    )
}


@dataclass(frozen=True, slots=True)
class Load:
    """A shape and how many records of it."""

    shape: Shape
    records: int

    @property
    def value_bytes(self) -> int:
        """Before compression: what MB/s are counted in."""
        return self.records * self.shape.record_bytes

    @property
    def room_bytes(self) -> int:
        return self.records * self.shape.room_bytes

    def scaled(self, factor: float) -> Load:
        return Load(self.shape, max(PARTITIONS, int(self.records * factor)))
