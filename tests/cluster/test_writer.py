"""The facts that exactly once stands on, tried on a real broker: the fence, repeats, gaps, and what brokers remember."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.writer import (
    Writer,
    add_partitions,
    end_transaction,
    fence,
    find_transactional_id,
    obtain_writer,
)
from mirrorspark.errors import BrokerError
from mirrorspark.lab.clients import create_topic, end_offsets
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.raw_log import read_partition
from mirrorspark.names import TopicPartition
from mirrorspark.wire.messages.produce import (
    PRODUCE_API_KEY,
    PRODUCE_VERSION_MAX,
    PRODUCE_VERSION_MIN,
    Appended,
    decode_produce,
    encode_produce,
)
from mirrorspark.wire.record_batch import split_batches, stamp
from mirrorspark.wire.records import Record, encode_batch

DEADLINE_S = 60.0


async def obtain(client: ClusterClient, transactional_id: str | None) -> Writer:
    return await obtain_writer(client, transactional_id, transaction_timeout_ms=60_000, deadline=Deadline(DEADLINE_S))


async def append(
    client: ClusterClient,
    at: TopicPartition,
    writer: Writer,
    sequence: int,
    *,
    records: int = 1,
    in_transaction: bool = False,
) -> Appended:
    """One batch under this writer; the broker's own answer."""
    now = int(time.time() * 1000)
    raw = memoryview(encode_batch([Record(i, now, None, b"%d" % (sequence + i)) for i in range(records)]))
    (batch,) = split_batches(raw, *at)
    stamp(
        batch,
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        base_sequence=sequence,
        transactional=in_transaction,
    )
    await client.refresh([at.topic])
    leader = client.leader(at)
    assert leader is not None
    link = await client.connection(leader.node)
    version = link.version(PRODUCE_API_KEY, PRODUCE_VERSION_MIN, PRODUCE_VERSION_MAX)
    transactional_id = writer.transactional_id if in_transaction else None
    body = encode_produce({at.topic: [(at.partition, [raw])]}, timeout_ms=10_000, transactional_id=transactional_id)
    answer = await asyncio.wait_for(link.send_raw(PRODUCE_API_KEY, version, False, body), DEADLINE_S)
    ((result,), _) = decode_produce(version, answer.view)
    return result


async def fence_and_see(client: ClusterClient, writer: Writer, at: TopicPartition) -> None:
    """The marker arrives a little after the fence was asked for."""
    await fence(client, writer, [at], Deadline(DEADLINE_S))
    while not any(batch.is_control for batch in await read_partition(client, at)):
        await asyncio.sleep(0.02)


@pytest.fixture
def place(target_cluster: ClusterOfBrokers, topic_name: str) -> TopicPartition:
    create_topic(target_cluster.bootstrap, topic_name, 2)
    return TopicPartition(topic_name, 0)


def test_a_fenced_writer_is_refused_with_47_and_the_new_one_starts_at_0(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    place: TopicPartition,
) -> None:
    client = connect(target_cluster)

    async def walk() -> None:
        old = await obtain(client, f"__{place.topic}-0")
        assert (await append(client, place, old, 0, records=3)).base_offset == 0
        new = await obtain(client, f"__{place.topic}-0")
        assert new.producer_id == old.producer_id
        assert new.epoch > old.epoch
        # The epoch alone shuts nobody out: data outside transactions is judged by what the partition has seen.
        assert (await append(client, place, old, 3)).error_code == ErrorCode.NONE
        await fence_and_see(client, new, place)
        zombie = await append(client, place, old, 4)
        assert zombie.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        first = await append(client, place, new, 0, records=2)
        assert (first.error_code, first.base_offset) == (0, 5)  # four records and the marker lie before
        marker = [batch for batch in await read_partition(client, place) if batch.is_control]
        assert [(one.base_offset, one.producer_id, one.producer_epoch) for one in marker] == [
            (4, new.producer_id, new.epoch)
        ]

    in_loop(walk())


def test_a_fence_works_on_the_named_partitions_only(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    place: TopicPartition,
) -> None:
    other = TopicPartition(place.topic, 1)
    client = connect(target_cluster)

    async def walk() -> None:
        old = await obtain(client, f"__{place.topic}-0")
        assert (await append(client, place, old, 0)).error_code == 0
        assert (await append(client, other, old, 0)).error_code == 0
        new = await obtain(client, f"__{place.topic}-0")
        await fence_and_see(client, new, place)
        assert (await append(client, place, old, 1)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert (await append(client, other, old, 1)).error_code == ErrorCode.NONE

    in_loop(walk())


def test_a_repeat_is_answered_with_its_first_offset_and_not_appended(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    place: TopicPartition,
) -> None:
    client = connect(target_cluster)

    async def walk() -> None:
        writer = await obtain(client, f"__{place.topic}-0")
        for sequence in range(5):
            assert (await append(client, place, writer, 2 * sequence, records=2)).base_offset == 2 * sequence
        for sequence in range(5):  # the broker remembers five batches
            again = await append(client, place, writer, 2 * sequence, records=2)
            assert (again.error_code, again.base_offset) == (0, 2 * sequence)
        assert (await append(client, place, writer, 10)).base_offset == 10
        forgotten = await append(client, place, writer, 0, records=2)
        assert forgotten.error_code in (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    in_loop(walk())
    assert end_offsets(target_cluster.bootstrap, place.topic)[0] == (0, 11)


def test_a_gap_in_the_sequence_is_refused_with_45(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    place: TopicPartition,
) -> None:
    client = connect(target_cluster)

    async def walk() -> None:
        writer = await obtain(client, f"__{place.topic}-0")
        assert (await append(client, place, writer, 0)).error_code == 0
        assert (await append(client, place, writer, 2)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert (await append(client, place, writer, 1)).error_code == 0

    in_loop(walk())
    assert end_offsets(target_cluster.bootstrap, place.topic)[0] == (0, 2)


def test_the_same_epoch_taken_up_again_at_sequence_0_is_no_fresh_start(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    place: TopicPartition,
) -> None:
    """Why a partition that comes back to a lane needs a new epoch: its old numbers would pass for repeats."""
    client = connect(target_cluster)

    async def walk() -> None:
        writer = await obtain(client, f"__{place.topic}-0")
        assert (await append(client, place, writer, 0, records=2)).base_offset == 0
        await fence_and_see(client, writer, place)
        taken_for_a_repeat = await append(client, place, writer, 0, records=2)
        assert (taken_for_a_repeat.error_code, taken_for_a_repeat.base_offset) == (0, 0)

    in_loop(walk())


def test_a_committed_transaction_is_visible_and_an_older_epoch_cannot_end_it(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    place: TopicPartition,
) -> None:
    client = connect(target_cluster)

    async def walk() -> None:
        writer = await obtain(client, f"__{place.topic}-0")
        await add_partitions(client, writer, [place], Deadline(DEADLINE_S))
        assert (await append(client, place, writer, 0, in_transaction=True)).error_code == 0
        assert end_offsets(target_cluster.bootstrap, place.topic, committed=True)[0] == (0, 0)
        await end_transaction(client, writer, commit=True, deadline=Deadline(DEADLINE_S))
        newer = await obtain(client, f"__{place.topic}-0")
        assert newer.epoch > writer.epoch
        with pytest.raises(BrokerError) as refused:
            await add_partitions(client, writer, [place], Deadline(DEADLINE_S))
        assert refused.value.error_code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
        assert not refused.value.retriable

    in_loop(walk())
    ends = end_offsets(target_cluster.bootstrap, place.topic, committed=True)
    assert ends[0] == (0, 2)  # the record and the marker


def test_a_producer_id_leads_back_to_its_transactional_id(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    place: TopicPartition,
) -> None:
    client = connect(target_cluster)
    writer = in_loop(obtain(client, f"__{place.topic}-0"))
    nameless = in_loop(obtain(client, None))
    assert nameless.transactional_id == ""
    assert in_loop(find_transactional_id(client, writer.producer_id)) == f"__{place.topic}-0"
    assert in_loop(find_transactional_id(client, nameless.producer_id)) is None


def test_a_timeout_beyond_what_the_cluster_allows_is_told_and_a_shorter_one_taken(
    in_loop: Callable[..., Any],
    connect: Callable[[ClusterOfBrokers], ClusterClient],
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    far_too_long_ms = 86_400_000  # brokers allow a quarter of an hour unless told
    work = obtain_writer(
        connect(target_cluster), topic_name, transaction_timeout_ms=far_too_long_ms, deadline=Deadline(DEADLINE_S)
    )
    assert in_loop(work).producer_id >= 0
    assert "transaction.timeout.ms=86400000 is more than its transaction.max.timeout.ms allows" in caplog.text
