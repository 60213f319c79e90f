"""A few plain records in and out of a topic by ordinary clients, for journeys that look at single partitions.

What must be accounted for by the thousand comes from ``lab/workload.py`` and goes to ``lab/checker.py``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, KafkaError, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from mirrorspark.errors import LabError
from mirrorspark.lab.clients import admin, consumer, end_offsets, producer

__all__ = ["PlainRecord", "alter_topic", "one_batch", "read_records", "write_values"]

FLUSH_S = 60.0
SILENCE_MAX_S = 60
CONFIG_S = 30.0
NO_TIMESTAMP = -1
"""Of a record in format v0, which has none; what the library fills in means nothing."""


class PlainRecord(NamedTuple):
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def write_values(
    bootstrap: str,
    topic: str,
    values: Sequence[bytes],
    *,
    partition: int = 0,
    key: bytes | None = None,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """In order, acknowledged when this returns."""
    failures: list[KafkaError] = []

    def settled(error: KafkaError | None, _: Any) -> None:
        if error is not None:
            failures.append(error)

    client = producer(bootstrap, {"enable.idempotence": True, **(settings or {})})
    for value in values:
        client.produce(topic, value, key, partition=partition, on_delivery=settled)
    if client.flush(FLUSH_S) or failures:
        raise LabError(f"{topic}-{partition}: not all records were written: {failures[:1]}")


def one_batch(records_bytes: int) -> dict[str, Any]:
    """Producer settings with which that many bytes go out as one batch."""
    return {
        "linger.ms": 500,
        "batch.size": 2 * records_bytes,
        "batch.num.messages": 1_000_000,
        "message.max.bytes": 2 * records_bytes,
    }


def read_records(bootstrap: str, topic: str, *, isolation: str = "read_committed") -> dict[int, list[PlainRecord]]:
    """All records of each partition from its start to its present end, as a consumer sees them."""
    ends = end_offsets(bootstrap, topic, committed=isolation == "read_committed")
    found: dict[int, list[PlainRecord]] = {number: [] for number in ends}
    left = {number: end for number, (first, end) in ends.items() if end > first}
    reader = consumer(bootstrap, {"isolation.level": isolation, "enable.partition.eof": True})
    try:
        reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
        heard_at = time.monotonic()
        while left:
            messages = reader.consume(1_000, timeout=0.05)
            if messages:
                heard_at = time.monotonic()
            if time.monotonic() - heard_at >= SILENCE_MAX_S:
                raise LabError(f"{topic}: no record for {SILENCE_MAX_S} s, but {left} are not read to their end")
            for message in messages:
                number, error = message.partition(), message.error()
                if number not in left:
                    continue
                if error is None:
                    headers = tuple(message.headers() or ())
                    kind, stamp = message.timestamp()
                    stamp = NO_TIMESTAMP if kind == TIMESTAMP_NOT_AVAILABLE else stamp
                    found[number].append(PlainRecord(message.offset(), stamp, message.key(), message.value(), headers))
                    if message.offset() + 1 >= left[number]:
                        del left[number]
                elif error.code() == KafkaError._PARTITION_EOF:
                    # The last offsets may be markers, which no consumer is given.
                    if message.offset() >= left[number]:
                        del left[number]
                elif not error.retriable():
                    raise LabError(f"{topic}-{number} cannot be read: {error}")
    finally:
        reader.close()
    return found


def alter_topic(bootstrap: str, topic: str, settings: Mapping[str, str]) -> None:
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    client = admin(bootstrap)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for answer in client.incremental_alter_configs([resource], request_timeout=CONFIG_S).values():
        answer.result(CONFIG_S + 5)
