"""Fetch answers as brokers send them, written by kafka-python, for tests of this room and of ``cluster``."""

from __future__ import annotations

import uuid
from typing import Any

from kafka.protocol.consumer import FetchResponse

from mirrorspark.wire.messages.fetch import FetchAnswer, FetchedPartition, uses_topic_ids


def fetched_part(index: int = 0, **changes: Any) -> FetchedPartition:
    part = FetchedPartition("orders", index, 0, 120, 110, 5, (), -1, memoryview(b"the batches"), -1, -1)
    return part._replace(**changes)


def answer_bytes(version: int, answer: FetchAnswer, *, null_lists: bool = False) -> bytes:
    """As kafka-python writes it, header included. ``null_lists`` writes empty lists and records as null."""
    topics: dict[str | bytes, list[Any]] = {}
    for part in answer.partitions:
        tags = {}
        if part.diverging_end >= 0 and uses_topic_ids(version):
            diverging = FetchResponse.FetchableTopicResponse.PartitionData.EpochEndOffset
            tags["diverging_epoch"] = diverging(epoch=part.diverging_epoch, end_offset=part.diverging_end)
        aborted = [
            FetchResponse.FetchableTopicResponse.PartitionData.AbortedTransaction(producer_id=one, first_offset=first)
            for one, first in part.aborted
        ]
        topics.setdefault(part.topic, []).append(
            FetchResponse.FetchableTopicResponse.PartitionData(
                partition_index=part.partition,
                error_code=part.error_code,
                high_watermark=part.high_watermark,
                last_stable_offset=part.last_stable_offset,
                log_start_offset=part.log_start_offset,
                aborted_transactions=None if null_lists and not aborted else aborted,
                preferred_read_replica=part.preferred_replica,
                records=None if null_lists and not part.records else bytes(part.records),
                **tags,
            )
        )
    listed = [
        FetchResponse.FetchableTopicResponse(
            **({"topic_id": uuid.UUID(bytes=topic)} if isinstance(topic, bytes) else {"topic": topic}),
            partitions=partitions,
        )
        for topic, partitions in topics.items()
    ]
    response = FetchResponse(
        version=version,
        throttle_time_ms=answer.throttle_ms,
        error_code=answer.error_code,
        session_id=answer.session_id,
        responses=listed,
    )
    response.with_header(correlation_id=99)
    return bytes(response.encode(header=True))
