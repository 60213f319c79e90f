"""Reading one partition's log by plain fetches, outside any session: offsets, and batches from a given offset on.

For recoveries and small internal topics; the carrying loop uses ``fetch_session``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error, is_retriable, is_stale_metadata
from mirrorspark.cluster.cluster_client import ClusterClient, PartitionLeader
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.errors import BrokerError, ClusterError
from mirrorspark.names import TopicPartition
from mirrorspark.wire.messages.fetch import (
    FETCH_API_KEY,
    FETCH_VERSION_BY_NAME_MAX,
    FETCH_VERSION_MIN,
    FetchLimits,
    FetchPartition,
    decode_fetch,
    encode_fetch,
)
from mirrorspark.wire.record_batch import Batch, split_batches

__all__ = ["EARLIEST", "LATEST", "LogSlice", "list_offset", "list_offsets", "read_log"]

EARLIEST = -2
LATEST = -1
RETRY_PAUSE_S = 0.1
MISSING_TOPIC_S_MAX = 10.0
"""A topic that is new may be missing from a broker's list for a moment; after so long it is not there."""


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Whole batches from one answer, and where the log stood. Aborted: (producer id, first offset)."""

    batches: list[Batch]
    log_start: int
    high_watermark: int
    last_stable: int
    aborted: tuple[tuple[int, int], ...]


async def read_log(
    client: ClusterClient,
    at: TopicPartition,
    offset: int,
    *,
    deadline: Deadline,
    wait_ms: int = 100,
    bytes_max: int = 4 * 1024 * 1024,
    read_committed: bool = False,
    purpose: str = "walk",
) -> LogSlice:
    """One fetch at ``offset``; follows the leader and retries what passes until the deadline. May return no batch."""
    limits = FetchLimits(wait_ms, 1, bytes_max, bytes_max, read_committed)
    patience = Deadline(MISSING_TOPIC_S_MAX)
    while True:
        try:
            leader = await _leader(client, at, "Fetch")
            link = await client.connection(leader.node, purpose)
            version = link.version(FETCH_API_KEY, FETCH_VERSION_MIN, FETCH_VERSION_BY_NAME_MAX, "Fetch")
            body = encode_fetch(version, limits, {at.topic: [FetchPartition(at.partition, offset)]})
            future = link.send_raw(FETCH_API_KEY, version, False, [body])
            async with asyncio.timeout(client.request_timeout_s):
                answer = await future
        except TimeoutError:
            link.close()
            code = ErrorCode.REQUEST_TIMED_OUT
        except ClusterError as error:
            if not error.retriable or deadline.passed or _is_gone(error, patience):
                raise
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        else:
            decoded = decode_fetch(version, answer.view)
            code = decoded.error_code or decoded.partitions[0].error_code
            if code == 0:
                part = decoded.partitions[0]
                batches = split_batches(part.records, at.topic, at.partition)
                return LogSlice(
                    batches, part.log_start_offset, part.high_watermark, part.last_stable_offset, part.aborted
                )
        if not is_retriable(code) or deadline.passed:
            raise broker_error(code, "Fetch", f"{at} at offset {offset}", topic=at.topic, partition=at.partition)
        await _recover(client, at, code)


async def list_offset(client: ClusterClient, at: TopicPartition, which: int, deadline: Deadline) -> int:
    """The log's EARLIEST or LATEST offset, or the first offset at a timestamp (ms)."""
    return (await list_offsets(client, [at], which, deadline))[at]


async def list_offsets(
    client: ClusterClient,
    wanted: Iterable[TopicPartition],
    which: int,
    deadline: Deadline,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int]:
    """The same for many partitions: one request per leader, repeated for those whose leader moved. ``read_committed``: the
    LATEST offset ends before the first transaction that is still open."""
    found: dict[TopicPartition, int] = {}
    missing = list(wanted)
    patience = Deadline(MISSING_TOPIC_S_MAX)
    while missing:
        code, about = 0, missing[0]
        by_node: dict[int, list[TopicPartition]] = {}
        try:
            for at in missing:
                by_node.setdefault((await _leader(client, at, "ListOffsets")).node, []).append(at)
            for node, some in by_node.items():
                answer = await client.request(_list_offsets_request(some, which, read_committed), node=node)
                for topic in answer.topics:
                    for part in topic.partitions:
                        at = TopicPartition(topic.name, part.partition_index)
                        if part.error_code == 0:
                            found[at] = int(part.offset)
                        else:
                            code, about = part.error_code, at
        except ClusterError as error:
            if not error.retriable or deadline.passed or _is_gone(error, patience):
                raise
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        missing = [at for at in missing if at not in found]
        if missing:
            if not is_retriable(code) or deadline.passed:
                raise broker_error(code, "ListOffsets", str(about), topic=about.topic, partition=about.partition)
            await _recover(client, about, code)
    return found


def _list_offsets_request(partitions: list[TopicPartition], which: int, read_committed: bool) -> Any:
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    topics: dict[str, list[Any]] = {}
    for at in partitions:
        topics.setdefault(at.topic, []).append(
            topic_class.ListOffsetsPartition(partition_index=at.partition, current_leader_epoch=-1, timestamp=which)
        )
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=1 if read_committed else 0,
        topics=[topic_class(name=topic, partitions=parts) for topic, parts in topics.items()],
    )


async def _leader(client: ClusterClient, at: TopicPartition, asked_for: str) -> PartitionLeader:
    leader = client.leader(at)
    if leader is None:
        await client.refresh([at.topic])
        leader = client.leader(at)
    if leader is None:
        problem = client.no_leader(at, asked_for)
        if problem.retriable and at.topic not in client.topics:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise broker_error(
                code, "Metadata", f"{at} on cluster {client.alias}", topic=at.topic, partition=at.partition
            )
        raise problem
    return leader


def _is_gone(error: ClusterError, patience: Deadline) -> bool:
    """Whether the cluster says that there is no such topic, and has had the time to know of it."""
    is_missing = isinstance(error, BrokerError) and error.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return is_missing and patience.passed


async def _recover(client: ClusterClient, at: TopicPartition, code: int) -> None:
    await asyncio.sleep(RETRY_PAUSE_S)
    if is_stale_metadata(code):
        try:
            await client.refresh([at.topic])
        except ClusterError as error:
            if not error.retriable:
                raise
