"""Read a copy with an ordinary consumer and say what is wrong with it, counted, with examples.

Called by journeys, the demo and fault runs after a workload has ended and the mirror has caught up. Knows nothing of
how the copy was made: it compares with the workload's ledger. Memory is a few bytes a record, however large they are.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition

from mirrorspark.errors import LabError
from mirrorspark.lab.clients import consumer, end_offsets
from mirrorspark.lab.ledger import Ledger, PartitionBook
from mirrorspark.lab.records import DIGEST_BYTES, Headers, digest, identity_of

__all__ = ["Checker", "Verdict", "check_copy"]

Isolation = Literal["read_committed", "read_uncommitted"]

EXAMPLES_MAX = 5
SILENCE_MAX_S = 60.0
FETCH_RECORDS = 2_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many records are lost, there twice, out of order, changed, or not ours; and the first of each."""

    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    corrupted: int = 0
    extra: int = 0
    read: int = 0
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        return self.lost == self.duplicated == self.reordered == self.corrupted == self.extra == 0

    def __str__(self) -> str:
        return (
            f"lost={self.lost} duplicated={self.duplicated} reordered={self.reordered} "
            f"corrupted={self.corrupted} extra={self.extra}"
        )

    def report(self) -> str:
        """The counts, then the examples, one a line."""
        lines = [f"  {kind}: {example}" for kind, examples in self.examples.items() for example in examples]
        return "\n".join([f"{self} ({self.read} records read)", *lines])


class _PartitionCheck:
    """One partition: which of its records were seen, and how far in the source's order."""

    def __init__(self, book: PartitionBook) -> None:
        entries = list(book.in_log_order())
        self.offsets = np.array([offset for offset, _, _ in entries], dtype=np.int64)
        self.digests = b"".join(content for _, _, content in entries)
        self.in_doubt = book.in_doubt
        self.places = np.full(max((sequence for _, sequence, _ in entries), default=-1) + 1, -1, dtype=np.int64)
        for place, (_, sequence, _) in enumerate(entries):
            self.places[sequence] = place
        self.seen = np.zeros(len(entries), dtype=np.bool_)
        self.doubted_seen: set[int] = set()
        self.place_last = -1

    def place_of(self, sequence: int) -> int:
        return int(self.places[sequence]) if sequence < len(self.places) else -1

    def digest_at(self, place: int) -> bytes:
        return self.digests[place * DIGEST_BYTES : (place + 1) * DIGEST_BYTES]


class Checker:
    """Takes the copy's records one by one, in the order of each partition's log, and gives the verdict at the end."""

    def __init__(self, ledger: Ledger, topic: str) -> None:
        self._topic = topic
        self._checks = [_PartitionCheck(book) for book in ledger.books]
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._examples: defaultdict[str, list[str]] = defaultdict(list)
        self._read = 0

    def see(
        self,
        partition: int,
        offset: int,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        timestamp_ms: int,
    ) -> None:
        self._read += 1
        where = f"{self._topic}-{partition}@{offset}"
        identity = identity_of(headers)
        if identity is None:
            return self._count("extra", f"{where} has no identity")
        if identity[0] != partition or partition >= len(self._checks):
            return self._count("extra", f"{where} is record {identity[1]} of partition {identity[0]}")
        content = digest(key, value, headers, timestamp_ms)
        check, sequence = self._checks[partition], identity[1]
        place = check.place_of(sequence)
        if place >= 0:
            self._see_acknowledged(check, place, content, f"{where} (record {sequence})")
        elif sequence in check.in_doubt:
            self._see_doubted(check, sequence, content, f"{where} (record {sequence}, in doubt)")
        else:
            self._count("extra", f"{where} is record {sequence}, which was never sent")

    def verdict(self) -> Verdict:
        """What was seen so far, against all that was acknowledged."""
        lost = 0
        for partition, check in enumerate(self._checks):
            missing = np.flatnonzero(~check.seen)
            lost += len(missing)
            for place in missing[:EXAMPLES_MAX].tolist():
                if len(self._examples["lost"]) < EXAMPLES_MAX:
                    self._examples["lost"].append(
                        f"{self._topic}-{partition}: nothing of source offset {check.offsets[place]}"
                    )
        examples = {kind: list(listed) for kind, listed in self._examples.items() if listed}
        return Verdict(**{**self._counts, "lost": lost}, read=self._read, examples=examples)

    def _see_acknowledged(self, check: _PartitionCheck, place: int, content: bytes, what: str) -> None:
        if content != check.digest_at(place):
            self._count("corrupted", f"{what} differs in key, value, headers or timestamp")
        if check.seen[place]:
            return self._count("duplicated", f"{what} was there before")
        check.seen[place] = True
        if place < check.place_last:
            self._count("reordered", f"{what} comes after a later one")
        check.place_last = max(check.place_last, place)

    def _see_doubted(self, check: _PartitionCheck, sequence: int, content: bytes, what: str) -> None:
        if content != check.in_doubt[sequence]:
            self._count("corrupted", f"{what} differs in key, value, headers or timestamp")
        if sequence in check.doubted_seen:
            self._count("duplicated", f"{what} was there before")
        check.doubted_seen.add(sequence)

    def _count(self, kind: str, example: str) -> None:
        self._counts[kind] += 1
        if len(self._examples[kind]) < EXAMPLES_MAX:
            self._examples[kind].append(example)


def check_copy(bootstrap: str, topic: str, ledger: Ledger, *, isolation: Isolation = "read_committed") -> Verdict:
    """Read the copy from its start to its present end and compare it with the ledger."""
    checker = Checker(ledger, topic)
    ends = end_offsets(bootstrap, topic, committed=isolation == "read_committed")
    settings = {"isolation.level": isolation, "enable.partition.eof": True, "fetch.message.max.bytes": 4 * 1024 * 1024}
    reader = consumer(bootstrap, settings)
    try:
        reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in ends])
        _read_all(reader, topic, {number: end for number, (first, end) in ends.items() if end > first}, checker)
    finally:
        reader.close()
    return checker.verdict()


def _read_all(reader: Any, topic: str, open_ends: dict[int, int], checker: Checker) -> None:
    silent_s = 0.0
    while open_ends:
        messages = reader.consume(FETCH_RECORDS, timeout=1.0)
        silent_s = 0.0 if messages else silent_s + 1.0
        if silent_s >= SILENCE_MAX_S:
            raise LabError(f"{topic}: no record came for {SILENCE_MAX_S:.0f} s, but {open_ends} are not reached")
        for message in messages:
            number, error = message.partition(), message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    # Its offset is the end even where the last offsets are markers, which no consumer is given.
                    if message.offset() >= open_ends.get(number, 0):
                        open_ends.pop(number, None)
                elif not error.retriable():
                    raise LabError(f"{topic}-{number} cannot be read: {error}")
                continue
            if number not in open_ends:
                continue
            checker.see(
                number,
                message.offset(),
                key=message.key(),
                value=message.value(),
                headers=message.headers(),
                timestamp_ms=message.timestamp()[1],
            )
            if message.offset() + 1 >= open_ends[number]:
                del open_ends[number]
