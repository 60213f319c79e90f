"""Large batches of several partitions go to a broker by two connections at a time, those of one partition by one."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from tests.cluster.single_batches import single_batch

from mirrorspark.cluster.batch_appender import LARGE_BATCH_BYTES, AppendQueue, BatchAppender, Outgoing
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.lab.clients import create_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.names import TopicPartition
from mirrorspark.wire.messages.produce import Appended

PARTITIONS, BATCHES = 3, 12
PATIENCE_S = 60.0


@pytest.mark.parametrize(("size", "lines"), [(LARGE_BATCH_BYTES, 2), (1_000, 1)], ids=["large", "small"])
def test_every_partition_keeps_its_order_and_large_batches_use_both_lines(
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    size: int,
    lines: int,
) -> None:
    create_topic(target_cluster.bootstrap, topic_name, PARTITIONS)
    client = connect(target_cluster)
    in_loop(client.refresh([topic_name]))
    places = [TopicPartition(topic_name, number) for number in range(PARTITIONS)]
    sent = {at: [single_batch(at, size) for _ in range(BATCHES)] for at in places}
    arrived: dict[TopicPartition, list[tuple[Outgoing, int]]] = defaultdict(list)

    def appended(queue: AppendQueue, batch: Outgoing, offset: int) -> None:
        queue.forgotten = False
        arrived[queue.at].append((batch, offset))

    def failed(queue: AppendQueue, why: Appended | str) -> None:
        raise AssertionError(why)

    async def main() -> None:
        appender = BatchAppender(
            client,
            request_bytes_max=size * 2,
            requests_in_flight_max=5,
            timeout_ms=30_000,
            on_appended=appended,
            on_refused=failed,
            on_doubt=failed,
        )
        for at in places:
            queue = AppendQueue(at)
            queue.waiting.extend(sent[at])
            appender.offer(queue)
        appender.pump()
        async with asyncio.timeout(PATIENCE_S):
            while sum(map(len, arrived.values())) < PARTITIONS * BATCHES:
                await asyncio.sleep(0.02)
        appender.close()

    in_loop(main())
    for at in places:
        assert [batch for batch, _ in arrived[at]] == sent[at]
        assert [offset for _, offset in arrived[at]] == list(range(BATCHES))
    used = [purpose for (_, purpose), _ in client.traffic.items() if purpose.startswith("produce-")]
    assert len(used) == lines
