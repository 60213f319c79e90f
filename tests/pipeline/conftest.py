"""What recovery's tests share: a source and a target log of one partition each, filled batch by batch by hand."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.writer import Writer, add_partitions, fence, obtain_writer
from mirrorspark.lab.clients import create_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.raw_log import read_partition
from mirrorspark.names import TopicPartition
from mirrorspark.wire.record_batch import Batch, split_batches, stamp
from mirrorspark.wire.records import Record, encode_batch

DEADLINE_S = 60.0


class TwoLogs:
    """``at`` on the source, ``remote`` on the target; what is appended where, and under which name, is up to the test."""

    def __init__(
        self, source: ClusterClient, target: ClusterClient, at: TopicPartition, remote: TopicPartition
    ) -> None:
        self.source, self.target, self.at, self.remote = source, target, at, remote
        self._numbers = itertools.count()

    def records(self, count: int, size: int = 20) -> list[Record]:
        now = int(time.time() * 1000)
        numbers = itertools.islice(self._numbers, count)
        return [Record(i, now + n, b"key", (b"%d " % n).ljust(size, b"x")) for i, n in enumerate(numbers)]

    async def write(self, count: int, codec: int = 0, size: int = 20) -> Batch:
        """One batch of new records on the source, as it lies there."""
        end = len(await read_partition(self.source, self.at))
        await self.append(self.source, self.at, encode_batch(self.records(count, size), codec=codec))
        return (await read_partition(self.source, self.at))[end]

    async def append(self, client: ClusterClient, at: TopicPartition, raw: bytearray, name: str | None = None) -> None:
        await client.refresh([at.topic])
        await KeyedTopic(client, at.topic).append_batch(at.partition, raw, Deadline(DEADLINE_S), transactional_id=name)

    async def carry(
        self, batch: Batch | bytearray, writer: Writer, sequence: int, *, transactional: bool = False
    ) -> None:
        """A batch to the target, as a lane would under this writer. Raises what the broker refuses."""
        raw = bytearray(batch.buffer) if isinstance(batch, Batch) else batch
        (copy,) = split_batches(memoryview(raw), *self.remote)
        stamp(
            copy,
            producer_id=writer.producer_id,
            producer_epoch=writer.epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        if transactional:
            await add_partitions(self.target, writer, [self.remote], Deadline(DEADLINE_S))
        await self.append(self.target, self.remote, raw, writer.transactional_id if transactional else None)

    async def obtain(self, name: str = "") -> Writer:
        """A writer of this name, or one that nobody knows."""
        name = name or f"__{self.at.topic}-nobody-{next(self._numbers)}"
        return await obtain_writer(self.target, name, transaction_timeout_ms=60_000, deadline=Deadline(DEADLINE_S))

    async def fence(self, writer: Writer) -> None:
        await fence(self.target, writer, [self.remote], Deadline(DEADLINE_S))

    async def target_batches(self) -> list[Batch]:
        return await read_partition(self.target, self.remote)


@pytest.fixture
def two_logs(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
) -> TwoLogs:
    create_topic(source_cluster.bootstrap, topic_name, 1)
    create_topic(target_cluster.bootstrap, f"east.{topic_name}", 1)
    at, remote = TopicPartition(topic_name, 0), TopicPartition(f"east.{topic_name}", 0)
    logs = TwoLogs(connect(source_cluster), connect(target_cluster), at, remote)
    in_loop(logs.source.refresh([at.topic]))
    in_loop(logs.target.refresh([remote.topic]))
    return logs
