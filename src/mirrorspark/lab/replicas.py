"""Where a cluster's partitions lie, and moving them: reassignment, leaders, and waiting until all replicas are in sync.

Used by broker faults and journeys, through a cluster's plain listener. What confluent-kafka cannot ask (reassignment) goes
through our own client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import confluent_kafka
from confluent_kafka import ElectionType
from kafka.protocol.admin import AlterPartitionReassignmentsRequest

from mirrorspark.errors import LabError
from mirrorspark.lab.clients import admin, wait_for
from mirrorspark.lab.raw_log import cluster_client
from mirrorspark.names import TopicPartition

__all__ = ["Placement", "lead_from", "place", "placements", "wait_all_in_sync", "wait_led"]

REQUEST_TIMEOUT_S = 30.0
IN_SYNC_DEADLINE_S = 180.0


@dataclass(frozen=True, slots=True)
class Placement:
    """Node ids. The first replica is the preferred leader."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]

    @property
    def is_whole(self) -> bool:
        return self.leader >= 0 and self.in_sync == frozenset(self.replicas)


def placements(bootstrap: str, topic: str | None = None) -> dict[TopicPartition, Placement]:
    """Of one topic, or of all, internal ones included."""
    listed = admin(bootstrap).list_topics(topic, timeout=REQUEST_TIMEOUT_S).topics
    return {
        TopicPartition(name, number): Placement(found.leader, tuple(found.replicas), frozenset(found.isrs))
        for name, known in listed.items()
        for number, found in known.partitions.items()
    }


def place(bootstrap: str, wanted: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Give each partition these replicas, and return when they have them and are in sync."""

    async def ask() -> None:
        client = cluster_client(bootstrap)
        try:
            await client.start()
            answer = await client.request_controller(_reassignment(wanted))
        finally:
            client.close()
        codes = {part.error_code for topic in answer.responses for part in topic.partitions} | {answer.error_code}
        if codes - {0}:
            raise LabError(f"the reassignment on {bootstrap} was refused: {answer}")

    asyncio.run(ask())

    def is_done() -> bool:
        now = placements(bootstrap)
        return all(now[at].is_whole and now[at].replicas == tuple(nodes) for at, nodes in wanted.items())

    wait_for(is_done, f"the reassignment of {len(wanted)} partitions on {bootstrap}", IN_SYNC_DEADLINE_S, 0.2)


def _reassignment(wanted: Mapping[TopicPartition, Sequence[int]]) -> AlterPartitionReassignmentsRequest:
    topic_class = AlterPartitionReassignmentsRequest.ReassignableTopic
    topics: dict[str, list[object]] = {}
    for at, nodes in wanted.items():
        one = topic_class.ReassignablePartition(partition_index=at.partition, replicas=list(nodes))
        topics.setdefault(at.topic, []).append(one)
    return AlterPartitionReassignmentsRequest(
        timeout_ms=int(REQUEST_TIMEOUT_S * 1000),
        topics=[topic_class(name=topic, partitions=parts) for topic, parts in topics.items()],
    )


def lead_from(bootstrap: str, wanted: Mapping[TopicPartition, int]) -> None:
    """Make this replica the preferred leader of each partition, then elect it."""
    now = placements(bootstrap)
    place(
        bootstrap,
        {at: (node, *(other for other in now[at].replicas if other != node)) for at, node in wanted.items()},
    )
    partitions = [confluent_kafka.TopicPartition(at.topic, at.partition) for at in wanted]
    client = admin(bootstrap)
    client.elect_leaders(ElectionType.PREFERRED, partitions).result(REQUEST_TIMEOUT_S)
    wait_led(bootstrap, wanted)


def wait_led(bootstrap: str, wanted: Mapping[TopicPartition, int]) -> None:
    def is_so() -> bool:
        now = placements(bootstrap)
        return all(now[at].leader == node for at, node in wanted.items())

    wait_for(is_so, f"leaders {dict(wanted)} on {bootstrap}", IN_SYNC_DEADLINE_S, 0.1)


def wait_all_in_sync(bootstrap: str, topics: Collection[str] = ()) -> None:
    """Until every replica of every partition (of these topics, or of all) is in sync."""

    def is_so() -> bool:
        return all(one.is_whole for at, one in placements(bootstrap).items() if not topics or at.topic in topics)

    wait_for(is_so, f"all replicas on {bootstrap} to be in sync", IN_SYNC_DEADLINE_S, 0.2)
