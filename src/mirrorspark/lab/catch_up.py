"""Wait until a copy has caught up with its original.

Called by journeys and the demo before the checker reads, once nothing more is written to the source. Offsets differ
between the clusters (markers, holes, filler), so the last record of each partition is compared, not the end offset.
"""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from mirrorspark.errors import LabError
from mirrorspark.lab.clients import consumer, end_offsets, topic_partitions
from mirrorspark.lab.records import digest

__all__ = ["last_record_digests", "wait_until_caught_up"]

CATCH_UP_DEADLINE_S = 180.0
POLL_EVERY_S = 0.1
READ_TIMEOUT_S = 10.0


def wait_until_caught_up(
    source: str, target: str, topic: str, remote_topic: str, deadline_s: float = CATCH_UP_DEADLINE_S
) -> None:
    """Until each partition's last visible record is the same on both clusters, which are named by their bootstrap."""
    end = time.monotonic() + deadline_s
    while True:
        behind = _behind(source, target, topic, remote_topic)
        if not behind:
            return
        if time.monotonic() >= end:
            raise LabError(
                f"{remote_topic} on {target} did not catch up with {topic} on {source} within {deadline_s:.0f} s; "
                f"behind are partitions {behind}: source {end_offsets(source, topic)}, "
                f"target {_offsets_or_none(target, remote_topic)}",
                partitions=behind,
            )
        time.sleep(POLL_EVERY_S)


def _behind(source: str, target: str, topic: str, remote_topic: str) -> list[int]:
    ends, committed_ends = end_offsets(source, topic), end_offsets(source, topic, committed=True)
    # A transaction's end is answered before its markers are written: until then the last record is not known.
    undecided = sorted(number for number in ends if ends[number] != committed_ends[number])
    if undecided or topic_partitions(target, remote_topic) < len(ends):
        return undecided or sorted(ends)
    have = last_record_digests(target, remote_topic)
    return sorted(number for number, last in last_record_digests(source, topic).items() if have.get(number) != last)


def last_record_digests(bootstrap: str, topic: str) -> dict[int, bytes | None]:
    """The digest of each partition's last committed record; None for a partition without one."""
    # A fetch that waits for more would hold up the next partition's: there is one on its way per broker.
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True, "fetch.wait.max.ms": 10}
    reader = consumer(bootstrap, settings)
    try:
        offsets = end_offsets(bootstrap, topic, committed=True)
        return {number: _last(reader, topic, number, first, end) for number, (first, end) in offsets.items()}
    finally:
        reader.close()


def _last(reader: Any, topic: str, partition: int, first: int, end: int) -> bytes | None:
    """Look at the last offset, then further and further back: the end may be markers, holes or aborted data."""
    back = 1
    while first < end:
        start = max(first, end - back)
        found = _read_to_end(reader, topic, partition, start, end)
        if found is not None or start == first:
            return found
        back *= 16
    return None


def _read_to_end(reader: Any, topic: str, partition: int, start: int, end: int) -> bytes | None:
    reader.assign([TopicPartition(topic, partition, start)])
    last: bytes | None = None
    give_up = time.monotonic() + READ_TIMEOUT_S
    while time.monotonic() < give_up:
        message = reader.poll(0.5)
        if message is None:
            continue
        error = message.error()
        if error is None:
            last = digest(message.key(), message.value(), message.headers(), message.timestamp()[1])
            if message.offset() + 1 >= end:
                break
        elif error.code() == KafkaError._PARTITION_EOF:
            break
        elif not error.retriable():
            raise LabError(f"{topic}-{partition} cannot be read: {error}")
    reader.unassign()
    return last


def _offsets_or_none(bootstrap: str, topic: str) -> dict[int, tuple[int, int]] | None:
    return end_offsets(bootstrap, topic) if topic_partitions(bootstrap, topic) else None
