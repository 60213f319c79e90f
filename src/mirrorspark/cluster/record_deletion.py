"""DeleteRecords: a partition's log begins later from now on. Called by ``pipeline.start_level``."""

from __future__ import annotations

import asyncio

from kafka.protocol.admin import DeleteRecordsRequest

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error, is_retriable
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.errors import ClusterError
from mirrorspark.names import TopicPartition

__all__ = ["delete_records_before"]

RETRY_PAUSE_S = 0.1
BROKER_TIMEOUT_MS = 30_000


async def delete_records_before(client: ClusterClient, at: TopicPartition, offset: int, deadline: Deadline) -> int:
    """The partition begins at ``offset`` afterwards, or later if it did so before; returns where."""
    topic_class = DeleteRecordsRequest.DeleteRecordsTopic
    part = topic_class.DeleteRecordsPartition(partition_index=at.partition, offset=offset)
    request = DeleteRecordsRequest(topics=[topic_class(name=at.topic, partitions=[part])], timeout_ms=BROKER_TIMEOUT_MS)
    while True:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        try:
            leader = client.leader(at)
            if leader is not None:
                answer = await client.request(request, node=leader.node)
                (result,) = answer.topics[0].partitions
                if result.error_code == 0:
                    return int(result.low_watermark)
                code = result.error_code
        except ClusterError as error:
            if not error.retriable or deadline.passed:
                raise
        if not is_retriable(code) or deadline.passed:
            raise broker_error(code, "DeleteRecords", str(at), topic=at.topic, partition=at.partition)
        await asyncio.sleep(RETRY_PAUSE_S)
        await client.refresh([at.topic], deadline)
