"""Records that are on the source and never arrived: which offsets of which partitions. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mirrorspark.control.flow_lag import FlowLag
from mirrorspark.names import OffsetRange

__all__ = ["PARTITIONS_TOLD_MAX", "Stranded", "StrandedPartition", "find_stranded"]

PARTITIONS_TOLD_MAX = 1_000
"""Ranges that are written down and listed; the count is of all."""


@dataclass(frozen=True, slots=True)
class StrandedPartition:
    topic: str
    partition: int
    first: int
    last: int | None
    """None if the source cannot be asked: whatever it has from ``first`` on."""

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.topic}-{self.partition}: whatever the source has from offset {self.first} on"
        span = OffsetRange(self.first, self.last)
        return f"{self.topic}-{self.partition}: offsets {span} ({len(span)})"


@dataclass(frozen=True, slots=True)
class Stranded:
    partitions: tuple[StrandedPartition, ...] = ()
    is_known: bool = True
    count: int = 0
    """Partitions, also those beyond what is listed."""
    records: int = 0

    def to_facts(self) -> dict[str, Any]:
        return {
            "known": self.is_known,
            "records": self.records if self.is_known else None,
            "partitions": self.count,
            "ranges": [[one.topic, one.partition, one.first, one.last] for one in self.partitions],
        }

    @property
    def words(self) -> str:
        if not self.is_known:
            return "how many records were left behind is not known: the source cannot be asked"
        if not self.count:
            return "nothing was left behind on the source"
        return f"{self.records} records in {self.count} partitions were left behind on the source"


def find_stranded(lag: FlowLag) -> Stranded:
    is_known = not lag.source_error
    found = []
    for one in lag.behind:
        start = one.next or 0
        if is_known and one.source_end is not None:
            found.append(StrandedPartition(one.topic, one.partition, start, one.source_end - 1))
        elif one.source_end is None:
            found.append(StrandedPartition(one.topic, one.partition, start, None))
    records = sum(one.last - one.first + 1 for one in found if one.last is not None)
    return Stranded(tuple(found[:PARTITIONS_TOLD_MAX]), is_known, len(found), records)
