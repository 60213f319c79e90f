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
    "delete_records",
    "delete_topic",
    "end_offsets",
    "producer",
    "topic_partitions",
    "total_records",
    "wait_for",
]

REQUEST_TIMEOUT_S = 30.0
TOPIC_DEADLINE_S = 60.0
ASKING_PAUSE = 3.0
"""Times as long as a question took: asking takes a quarter of the time at most."""
ASKING_PAUSE_S_MAX = 1.0

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
    *,
    client: Any | None = None,
) -> None:
    """Create a topic and return when each of its partitions has a leader that clients can see.

    ``client`` is an admin client to use instead of a plain one, for a cluster that asks who we are.
    """
    client = client if client is not None else admin(bootstrap)
    wanted = NewTopic(topic, partitions, replication_factor, config=dict(settings or {}))
    try:
        client.create_topics([wanted], operation_timeout=REQUEST_TIMEOUT_S)[topic].result(REQUEST_TIMEOUT_S)
    except KafkaException as error:
        raise LabError(f"topic {topic} could not be created on {bootstrap}: {error}", topic=topic) from error
    wait_for(lambda: topic_partitions(bootstrap, topic, client) == partitions, f"leaders of {topic}", TOPIC_DEADLINE_S)
    # Brokers name a leader a moment before that leader knows of it.
    end_offsets(bootstrap, topic, client=client)


def delete_topic(bootstrap: str, topic: str, *, client: Any | None = None) -> None:
    """Delete a topic and return when the brokers no longer list it."""
    client = client if client is not None else admin(bootstrap)
    try:
        client.delete_topics([topic], operation_timeout=REQUEST_TIMEOUT_S)[topic].result(REQUEST_TIMEOUT_S)
    except KafkaException as error:
        raise LabError(f"topic {topic} could not be deleted on {bootstrap}: {error}", topic=topic) from error
    wait_for(lambda: topic_partitions(bootstrap, topic, client) == 0, f"the end of {topic}", TOPIC_DEADLINE_S)


def delete_records(bootstrap: str, topic: str, before: Mapping[int, int]) -> None:
    """Make each partition begin at the offset given for it, as retention would."""
    client = admin(bootstrap)
    places = [TopicPartition(topic, number, offset) for number, offset in before.items()]
    for answer in client.delete_records(places, request_timeout=REQUEST_TIMEOUT_S).values():
        answer.result(REQUEST_TIMEOUT_S + 5)


def topic_partitions(bootstrap: str, topic: str, client: Any | None = None) -> int:
    """How many partitions with a leader the topic has; 0 when there is no such topic."""
    asked = client if client is not None else admin(bootstrap)
    listed = asked.list_topics(topic, timeout=REQUEST_TIMEOUT_S).topics.get(topic)
    if listed is None or listed.error is not None:
        return 0
    return sum(1 for partition in listed.partitions.values() if partition.leader >= 0)


def end_offsets(
    bootstrap: str,
    topic: str,
    *,
    committed: bool = False,
    deadline_s: float = TOPIC_DEADLINE_S,
    client: Any | None = None,
) -> dict[int, tuple[int, int]]:
    """First and end offset of each partition; with ``committed`` the end is where no transaction is open yet.

    Asks again while a leader is being chosen or has not taken up its partition yet.
    """
    asked = client if client is not None else admin(bootstrap)
    timeout_s = min(REQUEST_TIMEOUT_S, deadline_s)
    offsets: dict[int, tuple[int, int]] = {}

    def answered() -> bool:
        listed = asked.list_topics(topic, timeout=timeout_s).topics.get(topic)
        partitions = sorted(listed.partitions) if listed is not None else []
        firsts = _list_offsets(asked, topic, partitions, OffsetSpec.earliest(), committed, timeout_s)
        ends = _list_offsets(asked, topic, partitions, OffsetSpec.latest(), committed, timeout_s)
        offsets.update({number: (firsts[number], ends[number]) for number in partitions})
        return len(partitions) > 0

    wait_for(answered, f"the offsets of {topic}", deadline_s)
    return offsets


def total_records(bootstrap: str, topic: str, *, deadline_s: float = TOPIC_DEADLINE_S) -> int:
    """How many offsets lie between first and end, over all partitions; markers and holes count too."""
    return sum(end - first for first, end in end_offsets(bootstrap, topic, deadline_s=deadline_s).values())


def _list_offsets(
    client: Any, topic: str, partitions: list[int], spec: Any, committed: bool, timeout_s: float
) -> dict[int, int]:
    if not partitions:
        return {}
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    asked = {TopicPartition(topic, number): spec for number in partitions}
    answers = client.list_offsets(asked, isolation_level=level, request_timeout=timeout_s)
    # The library gives up by itself; waiting a little longer lets its own error come through.
    return {one.partition: answer.result(timeout_s + 5).offset for one, answer in answers.items()}


def wait_for(is_so: Callable[[], bool], what: str, deadline_s: float, every_s: float = 0.05) -> None:
    """Ask again and again until it is so; a LabError that names what was waited for when time is up.

    What takes long to find out is asked less often: whoever waits must not use up the machine that the others work on.
    """
    end = time.monotonic() + deadline_s
    while True:
        failure: Exception | None = None
        began = time.monotonic()
        try:
            if is_so():
                return
        except KafkaException as error:
            failure = error
        if time.monotonic() >= end:
            raise LabError(f"waited {deadline_s:.0f} s in vain for {what}" + (f": {failure}" if failure else ""))
        took_s = time.monotonic() - began
        time.sleep(max(every_s, min(took_s * ASKING_PAUSE, ASKING_PAUSE_S_MAX)))
