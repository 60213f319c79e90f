"""Ordinary Kafka clients for the lab, quiet ones: confluent-kafka, which shares no code with ours.

Used by brokers (are you ready?), workloads, checkers and tests. librdkafka prints each refused connection; a lab that
kills brokers on purpose has no use for that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from mirrorspark.errors import LabError

__all__ = [
    "admin",
    "consumer",
    "create_topic",
    "delete_topic",
    "end_offsets",
    "producer",
    "topic_partitions",
    "wait_for",
]

REQUEST_TIMEOUT_S = 30.0
TOPIC_DEADLINE_S = 60.0

_QUIET: dict[str, Any] = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 500}


def admin(bootstrap: str, settings: Mapping[str, Any] | None = None) -> Any:
    return AdminClient({"bootstrap.servers": bootstrap, **_QUIET, **(settings or {})})


def producer(bootstrap: str, settings: Mapping[str, Any] | None = None) -> Any:
    return Producer({"bootstrap.servers": bootstrap, **_QUIET, **(settings or {})})


def consumer(bootstrap: str, settings: Mapping[str, Any] | None = None) -> Any:
    """A consumer for ``assign``: it commits nothing and joins no group unless the settings say so."""
    alone = {"group.id": "mirrorspark-lab", "enable.auto.commit": False, "auto.offset.reset": "error"}
    return Consumer({"bootstrap.servers": bootstrap, **_QUIET, **alone, **(settings or {})})


def create_topic(
    bootstrap: str,
    topic: str,
    partitions: int = 1,
    replication_factor: int = 1,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Create a topic and return when each of its partitions has a leader that clients can see."""
    client = admin(bootstrap)
    wanted = NewTopic(topic, partitions, replication_factor, config=dict(settings or {}))
    try:
        client.create_topics([wanted], operation_timeout=REQUEST_TIMEOUT_S)[topic].result(REQUEST_TIMEOUT_S)
    except KafkaException as error:
        raise LabError(f"topic {topic} could not be created on {bootstrap}: {error}", topic=topic) from error
    wait_for(lambda: topic_partitions(bootstrap, topic, client) == partitions, f"leaders of {topic}", TOPIC_DEADLINE_S)
    # Brokers name a leader a moment before that leader knows of it.
    end_offsets(bootstrap, topic, client=client)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic and return when the brokers no longer list it."""
    client = admin(bootstrap)
    try:
        client.delete_topics([topic], operation_timeout=REQUEST_TIMEOUT_S)[topic].result(REQUEST_TIMEOUT_S)
    except KafkaException as error:
        raise LabError(f"topic {topic} could not be deleted on {bootstrap}: {error}", topic=topic) from error
    wait_for(lambda: topic_partitions(bootstrap, topic, client) == 0, f"the end of {topic}", TOPIC_DEADLINE_S)


def topic_partitions(bootstrap: str, topic: str, client: Any | None = None) -> int:
    """How many partitions with a leader the topic has; 0 when there is no such topic."""
    asked = client or admin(bootstrap)
    listed = asked.list_topics(topic, timeout=REQUEST_TIMEOUT_S).topics.get(topic)
    if listed is None or listed.error is not None:
        return 0
    return sum(1 for partition in listed.partitions.values() if partition.leader >= 0)


def end_offsets(
    bootstrap: str, topic: str, *, committed: bool = False, client: Any | None = None
) -> dict[int, tuple[int, int]]:
    """First and end offset of each partition; with ``committed`` the end is where no transaction is open yet.

    Asks again while a leader is being chosen or has not taken up its partition yet.
    """
    asked = client or admin(bootstrap)
    answers: list[dict[int, tuple[int, int]]] = []

    def answered() -> bool:
        listed = asked.list_topics(topic, timeout=REQUEST_TIMEOUT_S).topics[topic]
        partitions = sorted(listed.partitions)
        firsts = _list_offsets(asked, topic, partitions, OffsetSpec.earliest(), committed)
        ends = _list_offsets(asked, topic, partitions, OffsetSpec.latest(), committed)
        answers.append({number: (firsts[number], ends[number]) for number in partitions})
        return len(partitions) > 0

    wait_for(answered, f"the offsets of {topic}", TOPIC_DEADLINE_S)
    return answers[-1]


def _list_offsets(client: Any, topic: str, partitions: list[int], spec: Any, committed: bool) -> dict[int, int]:
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    asked = {TopicPartition(topic, number): spec for number in partitions}
    answers = client.list_offsets(asked, isolation_level=level, request_timeout=REQUEST_TIMEOUT_S)
    return {asked.partition: answer.result(REQUEST_TIMEOUT_S).offset for asked, answer in answers.items()}


def wait_for(is_so: Callable[[], bool], what: str, deadline_s: float, every_s: float = 0.05) -> None:
    """Ask again and again until it is so; a LabError that names what was waited for when time is up."""
    end = time.monotonic() + deadline_s
    while True:
        failure: Exception | None = None
        try:
            if is_so():
                return
        except KafkaException as error:
            failure = error
        if time.monotonic() >= end:
            raise LabError(f"waited {deadline_s:.0f} s in vain for {what}" + (f": {failure}" if failure else ""))
        time.sleep(every_s)
