"""Who writes: producer ids and epochs, the fence that shuts out an older writer, and transactions.

The fence (docs/decisions/0005, tried on Kafka 4.3.1): InitProducerId with a transactional id gives the same producer id
a higher epoch; an empty transaction that is aborted puts one marker with that epoch into each partition; from then on the
broker refuses the older epoch there. The data itself stays non-transactional.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kafka.protocol.admin import DescribeTransactionsRequest, ListTransactionsRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error, is_retriable
from mirrorspark.cluster.cluster_client import COORDINATOR_GROUP, COORDINATOR_TRANSACTION, ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.errors import ClusterError
from mirrorspark.names import TopicPartition
from mirrorspark.settings import TRANSACTION_TIMEOUT_MS_ANYWHERE

__all__ = [
    "Writer",
    "add_partitions",
    "commit_positions_in_transaction",
    "current_writer",
    "end_transaction",
    "fence",
    "find_transactional_id",
    "find_transactional_ids",
    "obtain_writer",
]


log = logging.getLogger("mirrorspark.cluster")


@dataclass(frozen=True, slots=True)
class Writer:
    """One holder of a transactional id: what the broker knows it by."""

    transactional_id: str
    producer_id: int
    epoch: int


async def obtain_writer(
    client: ClusterClient, transactional_id: str | None, *, transaction_timeout_ms: int, deadline: Deadline
) -> Writer:
    """A new epoch for this id (None: a producer id that nobody can fence).

    Ends (aborts) whatever transaction an earlier holder left open."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=transaction_timeout_ms,
        producer_id=-1,
        producer_epoch=-1,
    )
    if transactional_id is None:
        answer = await client.request(request)
        # A broker that has just started has no ids to give yet.
        while is_retriable(answer.error_code) and not deadline.passed:
            await asyncio.sleep(0.1)
            answer = await client.request(request)
    else:
        answer = await client.request_coordinator(request, COORDINATOR_TRANSACTION, transactional_id, deadline)
    if (
        answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        and transaction_timeout_ms > TRANSACTION_TIMEOUT_MS_ANYWHERE
    ):
        log.warning(
            "cluster %s: transaction.timeout.ms=%d is more than its transaction.max.timeout.ms allows; going on with %d",
            client.alias, transaction_timeout_ms, TRANSACTION_TIMEOUT_MS_ANYWHERE,
        )  # fmt: skip
        return await obtain_writer(
            client, transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS_ANYWHERE, deadline=deadline
        )
    if answer.error_code:
        raise broker_error(answer.error_code, "InitProducerId", f"transactional id {transactional_id}")
    return Writer(transactional_id or "", answer.producer_id, answer.producer_epoch)


async def add_partitions(
    client: ClusterClient, writer: Writer, partitions: Iterable[TopicPartition], deadline: Deadline
) -> None:
    """Put partitions into the writer's transaction (begins one if none is open)."""
    topics: dict[str, list[int]] = {}
    for at in partitions:
        topics.setdefault(at.topic, []).append(at.partition)
    listed = [
        AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=numbers)
        for topic, numbers in topics.items()
    ]
    while True:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=writer.transactional_id,
            v3_and_below_producer_id=writer.producer_id,
            v3_and_below_producer_epoch=writer.epoch,
            v3_and_below_topics=listed,
        )
        answer = await client.request_coordinator(request, COORDINATOR_TRANSACTION, writer.transactional_id, deadline)
        code, about = 0, ""
        for topic in answer.results_by_topic_v3_and_below:
            for part in topic.results_by_partition:
                # OPERATION_NOT_ATTEMPTED (55) only says that another partition of the request was refused
                if part.partition_error_code and (code in (0, 55)):
                    code, about = part.partition_error_code, f"{topic.name}-{part.partition_index}"
        if code == 0:
            return
        if not is_retriable(code) or deadline.passed:
            raise broker_error(code, "AddPartitionsToTxn", about)
        await asyncio.sleep(0.02)


async def end_transaction(client: ClusterClient, writer: Writer, *, commit: bool, deadline: Deadline) -> None:
    request = EndTxnRequest(
        transactional_id=writer.transactional_id,
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        committed=commit,
    )
    answer = await client.request_coordinator(request, COORDINATOR_TRANSACTION, writer.transactional_id, deadline)
    if answer.error_code:
        raise broker_error(answer.error_code, "EndTxn", f"transactional id {writer.transactional_id}")


async def fence(
    client: ClusterClient, writer: Writer, partitions: Iterable[TopicPartition], deadline: Deadline
) -> None:
    """Ask for one abort marker with ``writer``'s epoch in each partition.

    The markers arrive a little after this returns: whoever needs the proof reads the log until it sees them.
    """
    await add_partitions(client, writer, partitions, deadline)
    await end_transaction(client, writer, commit=False, deadline=deadline)


async def commit_positions_in_transaction(
    client: ClusterClient,
    writer: Writer,
    group: str,
    positions: dict[TopicPartition, tuple[int, str]],
    deadline: Deadline,
) -> None:
    """Group positions (offset, metadata) that become true with the writer's open transaction."""
    added = await client.request_coordinator(
        AddOffsetsToTxnRequest(
            transactional_id=writer.transactional_id,
            producer_id=writer.producer_id,
            producer_epoch=writer.epoch,
            group_id=group,
        ),
        COORDINATOR_TRANSACTION,
        writer.transactional_id,
        deadline,
    )
    if added.error_code:
        raise broker_error(added.error_code, "AddOffsetsToTxn", f"group {group}")
    topic_class = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    topics: dict[str, list[object]] = {}
    for at, (offset, metadata) in positions.items():
        topics.setdefault(at.topic, []).append(
            topic_class.TxnOffsetCommitRequestPartition(
                partition_index=at.partition,
                committed_offset=offset,
                committed_leader_epoch=-1,
                committed_metadata=metadata,
            )
        )
    answer = await client.request_coordinator(
        TxnOffsetCommitRequest(
            transactional_id=writer.transactional_id,
            group_id=group,
            producer_id=writer.producer_id,
            producer_epoch=writer.epoch,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[topic_class(name=topic, partitions=parts) for topic, parts in topics.items()],
        ),
        COORDINATOR_GROUP,
        group,
        deadline,
    )
    for topic in answer.topics:
        for part in topic.partitions:
            if part.error_code:
                raise broker_error(part.error_code, "TxnOffsetCommit", f"{topic.name}-{part.partition_index}")


async def current_writer(client: ClusterClient, transactional_id: str, deadline: Deadline) -> Writer:
    """Who holds this transactional id now, by its coordinator. Brokers since 3.0."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    answer = await client.request_coordinator(request, COORDINATOR_TRANSACTION, transactional_id, deadline)
    (state,) = answer.transaction_states
    if state.error_code:
        raise broker_error(state.error_code, "DescribeTransactions", f"transactional id {transactional_id}")
    return Writer(transactional_id, state.producer_id, state.producer_epoch)


async def is_newest(client: ClusterClient, writer: Writer, deadline: Deadline) -> bool:
    """Whether nobody has obtained a newer epoch of its transactional id."""
    now = await current_writer(client, writer.transactional_id, deadline)
    return (now.producer_id, now.epoch) <= (writer.producer_id, writer.epoch)


async def find_transactional_id(client: ClusterClient, producer_id: int) -> str | None:
    """Whose producer id this is, if it belongs to a transactional id at all. None where brokers are too old to say."""
    return (await find_transactional_ids(client, {producer_id})).get(producer_id)


async def find_transactional_ids(client: ClusterClient, producer_ids: Collection[int]) -> dict[int, str]:
    """The transactional ids behind these producer ids, where there are any that we may describe.

    Each broker knows those that it coordinates, so all are asked. Raises where one cannot say now; finds nothing where
    brokers are too old to be asked.
    """
    found: dict[int, str] = {}
    for node in client.nodes:
        try:
            answer = await client.request(
                ListTransactionsRequest(state_filters=[], producer_id_filters=sorted(producer_ids)), node=node
            )
        except ClusterError as error:
            if error.retriable:
                raise
            return {}  # the API came with Kafka 3.0
        if is_retriable(answer.error_code):
            raise broker_error(answer.error_code, "ListTransactions", f"broker {node}")
        if answer.error_code == ErrorCode.NONE:
            found |= {
                state.producer_id: str(state.transactional_id)
                for state in answer.transaction_states
                if state.producer_id in producer_ids
            }
    return found
