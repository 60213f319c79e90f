"""The target's side of a carry, seen by an ordinary client: how much has arrived, and making room again afterwards.

Used by the throughput and the latency phase.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from mirrorspark.lab.bench.log_files import is_being_deleted
from mirrorspark.lab.clients import admin, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers

__all__ = ["Gauge", "delete_topics"]

REQUEST_TIMEOUT_S = 10.0
DELETE_DEADLINE_S = 120.0


class Gauge:
    """Sums up a topic's end offsets, in one request; 0 while there is no such topic."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._client: Any = admin(bootstrap, {"topic.metadata.refresh.interval.ms": 1_000})
        self._topic = topic
        self._asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
        self._exists = False

    def offsets(self) -> int:
        try:
            if not self._exists:
                listed = self._client.list_topics(self._topic, timeout=REQUEST_TIMEOUT_S).topics.get(self._topic)
                self._exists = listed is not None and len(listed.partitions) >= len(self._asked)
            if not self._exists:
                return 0
            answers = self._client.list_offsets(self._asked, request_timeout=REQUEST_TIMEOUT_S)
            return sum(answer.result(REQUEST_TIMEOUT_S + 5).offset for answer in answers.values())
        except (KafkaException, TimeoutError):
            return 0  # its leaders are being chosen, or the broker is busy


def delete_topics(cluster: ClusterOfBrokers, part: str) -> None:
    """All topics in whose name ``part`` stands alone between dots; returns when their files are gone."""
    client = admin(cluster.bootstrap)
    doomed = [name for name in client.list_topics(timeout=REQUEST_TIMEOUT_S).topics if part in name.split(".")]
    if doomed:
        for answer in client.delete_topics(doomed, operation_timeout=REQUEST_TIMEOUT_S).values():
            answer.result(REQUEST_TIMEOUT_S + 5)

    def are_gone() -> bool:
        left = client.list_topics(timeout=REQUEST_TIMEOUT_S).topics
        return not any(name in left for name in doomed) and not any(
            is_being_deleted(broker.data) for broker in cluster.brokers
        )

    wait_for(are_gone, f"the end of the topics of {part}", DELETE_DEADLINE_S, every_s=0.2)
