"""Fetch sessions on a real broker: idle partitions cost nothing, wishes change from request to request, loss is mended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.buffer_pool import BufferPool
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.fetch_session import FetchSession
from mirrorspark.errors import ClusterError
from mirrorspark.lab.clients import create_topic, delete_topic, producer
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.names import TopicPartition
from mirrorspark.wire.messages.fetch import FetchAnswer, FetchLimits
from mirrorspark.wire.record_batch import split_batches

LIMITS = FetchLimits(wait_ms_max=200, bytes_min=1, bytes_max=1 << 20, partition_bytes_max=1 << 20, read_committed=False)
PARTITIONS = 5


class _Asking:
    """A session and what came of its last request, by partition."""

    def __init__(self, client: ClusterClient, topic: str) -> None:
        self.session = FetchSession(client, 1, BufferPool(1 << 20, 2))
        self._client = client
        self.topic = topic

    def want(self, partition: int, offset: int) -> None:
        topic_id = self._client.topics[self.topic].topic_id
        self.session.want(TopicPartition(self.topic, partition), topic_id, offset, -1, -1)

    async def ask(self) -> dict[int, tuple[int, int]]:
        """{partition: (error code, records)} of the answer."""
        answer, buffer = await self.session.answer(await self.session.ask(LIMITS))
        try:
            assert isinstance(answer, FetchAnswer)
            assert answer.error_code == 0
            assert len({part.partition for part in answer.partitions}) == len(answer.partitions), answer.partitions
            return {
                part.partition: (
                    part.error_code,
                    sum(batch.record_count for batch in split_batches(part.records, self.topic, part.partition)),
                )
                for part in answer.partitions
            }
        finally:
            buffer.release()


def _write(cluster: ClusterOfBrokers, topic: str, partition: int, records: int = 1) -> None:
    client = producer(cluster.bootstrap)
    for number in range(records):
        client.produce(topic, b"%d" % number, partition=partition)
    assert client.flush(60) == 0


def test_only_partitions_with_news_are_in_an_answer(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    source_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, PARTITIONS)
    client = connect(source_cluster)
    in_loop(client.refresh([topic_name]))
    asking = _Asking(client, topic_name)
    for partition in range(PARTITIONS):
        asking.want(partition, 0)
    assert set(in_loop(asking.ask())) == set(range(PARTITIONS))  # the first, full answer names all
    assert in_loop(asking.ask()) == {}  # idle: nothing at all

    _write(source_cluster, topic_name, 2, 3)
    assert in_loop(asking.ask()) == {2: (0, 3)}
    assert in_loop(asking.ask()) == {2: (0, 3)}  # the position did not move, so the same comes again
    asking.want(2, 3)
    assert {number: found for number, found in in_loop(asking.ask()).items() if found[1]} == {}

    asking.session.forget(TopicPartition(topic_name, 2))
    assert len(asking.session) == PARTITIONS - 1
    in_loop(asking.ask())
    _write(source_cluster, topic_name, 2)
    _write(source_cluster, topic_name, 4)
    assert in_loop(asking.ask()) == {4: (0, 1)}  # nobody wants the other one now
    asking.want(2, 3)
    assert not asking.session.is_current(TopicPartition(topic_name, 2))  # not asked for yet
    assert in_loop(asking.ask())[2] == (0, 1)
    assert asking.session.is_current(TopicPartition(topic_name, 2))


def test_a_session_lost_by_a_restart_is_built_anew(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    own_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    create_topic(own_cluster.bootstrap, topic_name, PARTITIONS)
    _write(own_cluster, topic_name, 0, 2)
    client = connect(own_cluster)
    in_loop(client.refresh([topic_name]))
    asking = _Asking(client, topic_name)
    for partition in range(PARTITIONS):
        asking.want(partition, 0)
    assert in_loop(asking.ask())[0] == (0, 2)
    asking.want(0, 2)
    in_loop(asking.ask())
    assert in_loop(asking.ask()) == {}

    own_cluster.broker(1).kill()
    own_cluster.broker(1).start()
    _write(own_cluster, topic_name, 3, 4)

    async def ask_until_answered() -> dict[int, tuple[int, int]]:
        while True:
            try:
                return await asking.ask()
            except ClusterError:  # the old connection's end
                await client.refresh([topic_name])

    found = in_loop(ask_until_answered())
    assert set(found) == set(range(PARTITIONS))  # a full answer: the whole list was sent again
    assert found[3] == (0, 4)
    assert found[0] == (0, 0)  # from where it stood, not from the beginning
    asking.want(3, 4)
    in_loop(asking.ask())
    assert in_loop(asking.ask()) == {}


def test_one_partition_that_is_out_of_range_does_not_spoil_the_others(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    source_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 2)
    _write(source_cluster, topic_name, 1, 2)
    client = connect(source_cluster)
    in_loop(client.refresh([topic_name]))
    asking = _Asking(client, topic_name)
    asking.want(0, 77)
    asking.want(1, 0)
    assert in_loop(asking.ask()) == {0: (1, 0), 1: (0, 2)}


def test_a_topic_made_anew_is_asked_for_by_its_new_id_alone(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    source_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    """Else the broker answers each request at once with errors for the old one, for ever."""
    create_topic(source_cluster.bootstrap, topic_name, 2)
    client = connect(source_cluster)
    in_loop(client.refresh([topic_name]))
    asking = _Asking(client, topic_name)
    for partition in range(2):
        asking.want(partition, 0)
    in_loop(asking.ask())
    assert in_loop(asking.ask()) == {}

    delete_topic(source_cluster.bootstrap, topic_name)
    assert {code for code, _ in in_loop(asking.ask()).values()} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    for partition in range(2):
        asking.session.forget(TopicPartition(topic_name, partition))  # nothing is left to ask for meanwhile
    create_topic(source_cluster.bootstrap, topic_name, 2)
    _write(source_cluster, topic_name, 1, 3)
    in_loop(client.refresh([topic_name]))
    for partition in range(2):
        asking.want(partition, 0)
    assert in_loop(asking.ask())[1] == (0, 3)
    asking.want(1, 3)
    in_loop(asking.ask())
    assert in_loop(asking.ask()) == {}
