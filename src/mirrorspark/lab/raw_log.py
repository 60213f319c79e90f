"""A topic's log as it lies on the broker: batches with their headers, markers and holes, which no ordinary client shows.

Used by tests that compare source and target batch by batch. Reads with our own ``cluster.log_reader``; what records look
like to consumers is the checker's business.
"""

from __future__ import annotations

import asyncio

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offset, read_log
from mirrorspark.names import TopicPartition
from mirrorspark.settings import ClusterSettings, parse_bootstrap
from mirrorspark.wire.record_batch import Batch

__all__ = ["cluster_client", "raw_batches", "read_partition"]

READ_DEADLINE_S = 60.0


def cluster_client(bootstrap: str, alias: str = "lab") -> ClusterClient:
    """Our own client on a lab cluster; ``await start()`` it, ``close()`` it."""
    return ClusterClient(ClusterSettings(alias, parse_bootstrap(bootstrap, "bootstrap.servers")), "mirrorspark-lab")


def raw_batches(bootstrap: str, topic: str, *, controls: bool = False) -> dict[int, list[Batch]]:
    """All whole batches of each partition, in log order; markers only if asked for."""

    async def read_all() -> dict[int, list[Batch]]:
        client = cluster_client(bootstrap)
        try:
            await client.start()
            await client.refresh([topic])
            known = client.topics.get(topic)
            numbers = sorted(known.partitions) if known is not None else []
            return {number: await read_partition(client, TopicPartition(topic, number)) for number in numbers}
        finally:
            client.close()

    found = asyncio.run(read_all())
    return {number: [one for one in batches if controls or not one.is_control] for number, batches in found.items()}


async def read_partition(client: ClusterClient, at: TopicPartition, start: int | None = None) -> list[Batch]:
    """From ``start`` (or the log's start) to its end as of now, markers included."""
    deadline = Deadline(READ_DEADLINE_S)
    offset = await list_offset(client, at, EARLIEST, deadline) if start is None else start
    end = await list_offset(client, at, LATEST, deadline)
    batches: list[Batch] = []
    while offset < end:
        found = await read_log(client, at, offset, deadline=deadline)
        batches += [batch for batch in found.batches if batch.next_offset > offset]
        if batches:
            offset = max(offset, batches[-1].next_offset)
    return batches
