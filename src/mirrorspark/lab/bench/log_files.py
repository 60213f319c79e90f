"""What a broker holds of a topic, counted in its log files: records, batches, bytes.

Used to tell how large the source's batches really are and to prove that a copy is complete. Offsets would not do: markers
take some too. Only headers are touched, so a gigabyte of large batches takes milliseconds.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mirrorspark.wire.record_batch import HEADER

__all__ = ["Stored", "is_being_deleted", "stored"]

_LENGTH_FROM = 12  # the length field counts what follows itself
_CONTROL = 0x20


@dataclass(frozen=True, slots=True)
class Stored:
    """``records`` of each partition, without control records; batches and bytes of all."""

    records: dict[int, int]
    batches: int
    bytes: int

    @property
    def total(self) -> int:
        return sum(self.records.values())


def stored(data: Path, topic: str) -> Stored:
    """``data`` is a broker's log folder."""
    records: dict[int, int] = {}
    batches = size = 0
    for folder in data.iterdir():
        match = re.fullmatch(rf"{re.escape(topic)}-(\d+)", folder.name)
        if match is None:
            continue
        partition = int(match.group(1))
        records.setdefault(partition, 0)
        for segment in folder.glob("*.log"):
            for count, batch_bytes in _batches(segment):
                records[partition] += count
                batches += 1
                size += batch_bytes
    return Stored(records, batches, size)


def is_being_deleted(data: Path) -> bool:
    """Whether files of deleted topics still take room."""
    return any(folder.name.endswith("-delete") for folder in data.iterdir())


def _batches(segment: Path) -> Iterator[tuple[int, int]]:
    """Records and bytes of each whole batch that is no marker."""
    with segment.open("rb") as file:
        end = segment.stat().st_size
        if end < HEADER.size:
            return
        with mmap.mmap(file.fileno(), end, access=mmap.ACCESS_READ) as view:
            at = 0
            while at + HEADER.size <= end:
                fields = HEADER.unpack_from(view, at)
                batch_bytes, attributes, count = fields[1] + _LENGTH_FROM, fields[5], fields[12]
                if batch_bytes < HEADER.size or at + batch_bytes > end:
                    return  # still being written
                if not attributes & _CONTROL:
                    yield count, batch_bytes
                at += batch_bytes
