"""Offset syncs as MirrorMaker 2 writes them: single pairs of offsets that name the same record on both sides.

Extra here: our own translation asks the ledger. They are for MirrorMaker 2 itself, should it take the flow back, and for
people's tools. ``OffsetSyncs`` decides by its rule which pairs are worth a record; lanes feed it from receipts and write
what it gives (``pipeline.sync_writing``). Key: source topic, partition. Value: upstream, downstream. No version.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.mm2_bytes import string_bytes, take_string

__all__ = ["OffsetSync", "OffsetSyncs"]

_PARTITION = struct.Struct(">i")
_VALUE = struct.Struct(">qq")


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """``at`` is the source partition; both offsets are of one record, not of the next."""

    at: TopicPartition
    upstream: int
    downstream: int

    @property
    def key(self) -> bytes:
        return string_bytes(self.at.topic) + _PARTITION.pack(self.at.partition)

    @property
    def value(self) -> bytes:
        return _VALUE.pack(self.upstream, self.downstream)

    @classmethod
    def from_record(cls, key: bytes | None, value: bytes | None) -> OffsetSync | None:
        """None for what is no offset sync."""
        try:
            topic, rest = take_string(key or b"")
            (partition,) = _PARTITION.unpack(rest)
            upstream, downstream = _VALUE.unpack(value or b"")
        except (struct.error, ValueError):
            return None
        return cls(TopicPartition(topic, partition), upstream, downstream)


class OffsetSyncs:
    """One partition's. ``see`` receives dense stretches as they are appended; ``take`` gives what is to be written.

    As in MirrorMaker 2 a newer sync takes the place of one that was not written yet.
    """

    __slots__ = ("_at", "_due", "_lag_max", "_last", "_previous", "_seen")

    def __init__(self, at: TopicPartition, lag_max: int) -> None:
        self._at = at
        self._lag_max = lag_max
        self._last = -1  # downstream offset of the last sync
        self._previous = (-1, -1)
        self._due: tuple[int, int] | None = None
        self._seen: tuple[int, int] | None = None  # the newest record, for which no sync was due

    def update(self, upstream: int, downstream: int) -> bool:
        """One record, by MirrorMaker 2's rule; whether it is worth a sync at once."""
        before_upstream, before_downstream = self._previous
        is_first = self._last == -1
        is_too_stale = downstream - (self._last + 1) >= self._lag_max
        skipped_upstream = before_upstream + 1 != upstream
        truncated_downstream = downstream < before_downstream
        self._previous = upstream, downstream
        due = is_first or is_too_stale or skipped_upstream or truncated_downstream
        if due:
            self._last = downstream
            self._due = upstream, downstream
            self._seen = None
        else:
            self._seen = upstream, downstream
        return due

    def see(self, first: int, last: int, downstream: int) -> None:
        """All records of a dense stretch, without looking at each: in between only the rule of staleness can bite."""
        self.update(first, downstream)
        if last == first:
            return
        downstream_last = downstream + last - first
        step = max(1, self._lag_max + 1)
        stale = self._last + step * ((downstream_last - self._last) // step)  # the newest that would be due
        if stale > self._last:
            self._previous = first + stale - downstream - 1, stale - 1
            self.update(first + stale - downstream, stale)
        if stale < downstream_last:
            self._previous = last - 1, downstream_last - 1
            self.update(last, downstream_last)

    def take(self, *, delayed: bool) -> OffsetSync | None:
        """What is due; with ``delayed`` else the newest record, as MirrorMaker 2 does at each of its commits."""
        pair = self._due
        if delayed and self._seen is not None:
            pair = self._seen
            self._seen = None
        self._due = None
        return OffsetSync(self._at, *pair) if pair else None
