"""The words everybody shares: values without behaviour that waits.

All are frozen and picklable, since they cross from the driver to Spark's executors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Flow", "OffsetRange", "TopicPartition"]


class TopicPartition(NamedTuple):
    """One partition of one topic, on whichever cluster the context says."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Flow:
    """A directed pair of cluster aliases, written ``source->target`` as MirrorMaker 2 writes it."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets ``first`` to ``last``, both inclusive."""

    first: int
    last: int

    def __post_init__(self) -> None:
        assert self.first <= self.last, f"empty range {self.first}..{self.last}"

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"
