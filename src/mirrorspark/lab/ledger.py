"""The book of what a workload got acknowledged: per partition which records, in which order, with which contents.

Written by ``lab/workload.py``, read by ``lab/checker.py``. Holds 32 bytes a record, never the records themselves.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mirrorspark.lab.records import DIGEST_BYTES

__all__ = ["Ledger", "PartitionBook"]


@dataclass(slots=True)
class PartitionBook:
    """One partition's entries, in the order in which acknowledgements came (the offsets tell the order of the log).

    ``in_doubt`` are records whose fate the producer never learned: each may be there once, or not at all.
    """

    offsets: array[int] = field(default_factory=lambda: array("q"))
    sequences: array[int] = field(default_factory=lambda: array("q"))
    digests: bytearray = field(default_factory=bytearray)
    in_doubt: dict[int, bytes] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets)

    def in_log_order(self) -> Iterator[tuple[int, int, bytes]]:
        """Offset on the source, sequence and digest of each acknowledged record."""
        for entry in np.argsort(np.frombuffer(self.offsets, dtype=np.int64), kind="stable").tolist():
            start = entry * DIGEST_BYTES
            yield self.offsets[entry], self.sequences[entry], bytes(self.digests[start : start + DIGEST_BYTES])


class Ledger:
    """All partitions of one topic. Safe to write from one thread while another reads counts."""

    def __init__(self, topic: str, partitions: int) -> None:
        self.topic = topic
        self.books = [PartitionBook() for _ in range(partitions)]
        self._lock = threading.Lock()

    @property
    def partitions(self) -> int:
        return len(self.books)

    @property
    def acknowledged(self) -> int:
        return sum(len(book) for book in self.books)

    @property
    def in_doubt(self) -> int:
        return sum(len(book.in_doubt) for book in self.books)

    def acknowledge(self, partition: int, sequence: int, offset: int, digest: bytes) -> None:
        assert len(digest) == DIGEST_BYTES, "a digest has 16 bytes"
        with self._lock:
            book = self.books[partition]
            book.offsets.append(offset)
            book.sequences.append(sequence)
            book.digests += digest

    def doubt(self, partition: int, sequence: int, digest: bytes) -> None:
        with self._lock:
            self.books[partition].in_doubt[sequence] = digest

    def save(self, path: Path) -> None:
        columns: dict[str, Any] = {"topic": np.array(self.topic), "partitions": np.array(self.partitions)}
        with self._lock:
            for number, book in enumerate(self.books):
                columns[f"offsets_{number}"] = np.array(book.offsets, dtype=np.int64)
                columns[f"sequences_{number}"] = np.array(book.sequences, dtype=np.int64)
                columns[f"digests_{number}"] = np.frombuffer(bytes(book.digests), dtype=np.uint8)
                columns[f"doubted_{number}"] = np.array(list(book.in_doubt), dtype=np.int64)
                columns[f"doubted_digests_{number}"] = np.frombuffer(b"".join(book.in_doubt.values()), dtype=np.uint8)
        part = path.with_name(f"{path.name}.part")
        with part.open("wb") as file:
            np.savez(file, **columns)
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> Ledger:
        with np.load(path, allow_pickle=False) as columns:
            ledger = cls(str(columns["topic"]), int(columns["partitions"]))
            for number, book in enumerate(ledger.books):
                book.offsets.frombytes(columns[f"offsets_{number}"].tobytes())
                book.sequences.frombytes(columns[f"sequences_{number}"].tobytes())
                book.digests += columns[f"digests_{number}"].tobytes()
                digests = columns[f"doubted_digests_{number}"].tobytes()
                for entry, sequence in enumerate(columns[f"doubted_{number}"].tolist()):
                    book.in_doubt[sequence] = digests[entry * DIGEST_BYTES : (entry + 1) * DIGEST_BYTES]
        return ledger
