"""A topic of numbered records, and where each number lies: for whoever asks which record a consumer would read next.

One partition; the value is the number. Three kinds of source: plain, compacted (most keys are replaced later), and written
in transactions of which some are aborted. Written and read by ordinary clients only.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition

from mirrorspark.errors import LabError
from mirrorspark.lab.clients import consumer, create_topic, end_offsets, producer, wait_for
from mirrorspark.lab.raw_log import raw_batches

__all__ = ["KINDS", "NumberedLog", "NumberedTopic"]

KINDS = ("plain", "compacted", "transactional")
TRANSACTION_RECORDS = 100
ABORTED_EVERY = 10
HOT_KEYS = 5
COMPACTED_S = 120.0
SILENCE_MAX_S = 60.0
_COMPACTED_SETTINGS = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
}


@dataclass
class NumberedLog:
    """What a read_committed consumer is given: numbers and their offsets, both ascending."""

    numbers: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("q"))

    def records_before(self, offset: int) -> int:
        return bisect_left(self.offsets, offset)

    @classmethod
    def read(cls, bootstrap: str, topic: str) -> NumberedLog:
        first, end = end_offsets(bootstrap, topic, committed=True)[0]
        found = cls()
        reader = consumer(bootstrap, {"isolation.level": "read_committed", "enable.partition.eof": True})
        try:
            reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            heard_at = time.monotonic()
            at_end = first == end
            while not at_end:
                messages = reader.consume(10_000, timeout=0.1)
                heard_at = time.monotonic() if messages else heard_at
                if time.monotonic() - heard_at > SILENCE_MAX_S:
                    raise LabError(f"{topic}: nothing for {SILENCE_MAX_S:.0f} s, before its end at {end}")
                for message in messages:
                    if message.error() is None:
                        found.numbers.append(int(message.value()))
                        found.offsets.append(message.offset())
                    elif message.error().code() != KafkaError._PARTITION_EOF:
                        raise LabError(f"{topic} cannot be read: {message.error()}")
                    elif message.offset() >= end:
                        at_end = True
        finally:
            reader.close()
        return found


class NumberedTopic:
    """``write`` goes on where the last one ended; numbers begin at nought."""

    def __init__(self, bootstrap: str, topic: str, kind: str) -> None:
        assert kind in KINDS, kind
        self.bootstrap = bootstrap
        self.topic = topic
        self.kind = kind
        self.next = 0
        create_topic(bootstrap, topic, 1, settings=_COMPACTED_SETTINGS if kind == "compacted" else None)
        settings: dict[str, Any] = {
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
        }
        if kind == "transactional":
            settings["transactional.id"] = f"numbers-{topic}"
        self._producer = producer(bootstrap, settings)
        if kind == "transactional":
            self._producer.init_transactions(60)

    def write(self, count: int) -> None:
        if self.kind == "transactional":
            self._write_transactions(count)
        else:
            self._produce(count)
        if self._producer.flush(60):
            raise LabError(f"{self.topic}: not all numbers were written")

    def _write_transactions(self, count: int) -> None:
        written = 0
        while written < count:
            some = min(TRANSACTION_RECORDS, count - written)
            self._producer.begin_transaction()
            self._produce(some)
            written += some
            # Never the last one: the log ends with a record that is seen.
            is_aborted = (self.next // TRANSACTION_RECORDS) % ABORTED_EVERY == 0 and written < count
            if is_aborted:
                self._producer.flush(60)  # what was never sent would leave no aborted data behind
                self._producer.abort_transaction(60)
            else:
                self._producer.commit_transaction(60)

    def _produce(self, count: int) -> None:
        for number in range(self.next, self.next + count):
            key = None
            if self.kind == "compacted":
                key = b"%d" % number if number % 3 == 0 else b"hot-%d" % (number % HOT_KEYS)
            while True:
                try:
                    self._producer.produce(self.topic, b"%d" % number, key, partition=0)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self.next += count

    def wait_until_compacted(self, tell: Callable[[str], None] = lambda text: None) -> None:
        """Until the cleaner has left holes in most of the log; the segments of its end it never touches."""
        assert self.kind == "compacted"

        def has_holes() -> bool:
            self.write(1)  # a segment is rolled, and with it comes into the cleaner's reach, only by an append
            batches = raw_batches(self.bootstrap, self.topic)[0]
            left = sum(batch.record_count for batch in batches)
            return left < self.next * 0.6

        wait_for(has_holes, f"the cleaner to work on {self.topic}", COMPACTED_S, 0.3)
        tell(f"{self.topic}: compacted")
