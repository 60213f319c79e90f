"""A small compacted topic on a real broker: append, fold to the newest, follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic, partition_of
from mirrorspark.lab.clients import consumer, create_topic, end_offsets
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers

DEADLINE_S = 60.0


def _topic(cluster: ClusterOfBrokers, client: ClusterClient, name: str, partitions: int = 1) -> KeyedTopic:
    create_topic(cluster.bootstrap, name, partitions, settings={"cleanup.policy": "compact"})
    return KeyedTopic(client, name, partitions)


def test_the_newest_value_of_each_key_is_read_and_later_ones_are_followed(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    client = connect(target_cluster)
    topic = _topic(target_cluster, client, topic_name)
    assert in_loop(topic.read_all(Deadline(DEADLINE_S))) == {}
    in_loop(topic.append([(b"a", b"1"), (b"b", b"2")], Deadline(DEADLINE_S)))
    in_loop(topic.append([(b"a", b"3"), (b"b", None)], Deadline(DEADLINE_S)))
    assert in_loop(topic.read_all(Deadline(DEADLINE_S))) == {b"a": b"3", b"b": None}

    assert in_loop(topic.follow(Deadline(DEADLINE_S), 50)) == []
    in_loop(topic.append([(b"c", b"4")], Deadline(DEADLINE_S)))
    assert in_loop(topic.follow(Deadline(DEADLINE_S), 5_000)) == [(b"c", b"4")]
    assert in_loop(topic.follow(Deadline(DEADLINE_S), 50)) == []

    late = KeyedTopic(client, topic_name)
    assert in_loop(late.read_all(Deadline(DEADLINE_S))) == {b"a": b"3", b"b": None, b"c": b"4"}


def test_a_value_larger_than_a_message_may_be_goes_compressed(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    topic = _topic(target_cluster, connect(target_cluster), topic_name)
    large = b'["a partition of a large plan"]' * 100_000
    in_loop(topic.append([(b"plan", large)], Deadline(DEADLINE_S)))
    assert in_loop(topic.read_all(Deadline(DEADLINE_S))) == {b"plan": large}


def test_entries_lie_where_javas_partitioner_puts_them(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    partitions = 5
    topic = _topic(target_cluster, connect(target_cluster), topic_name, partitions)
    entries = {b"key-%d" % number: b"%d" % number for number in range(40)}
    in_loop(topic.append(list(entries.items()), Deadline(DEADLINE_S)))
    assert in_loop(topic.read_all(Deadline(DEADLINE_S))) == entries
    ends = {number: end for number, (_, end) in end_offsets(target_cluster.bootstrap, topic_name).items()}
    expected = dict.fromkeys(range(partitions), 0)
    for key in entries:
        expected[partition_of(key, partitions)] += 1
    assert ends == expected
    assert min(ends.values()) > 0


def test_what_is_appended_is_plain_to_ordinary_clients(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    topic = _topic(target_cluster, connect(target_cluster), topic_name)
    in_loop(topic.append([(b"k", b"v"), (b"gone", None)], Deadline(DEADLINE_S)))
    reader = consumer(target_cluster.bootstrap, {"auto.offset.reset": "earliest", "group.id": topic_name})
    try:
        reader.subscribe([topic_name])
        seen: list[tuple[bytes, bytes | None]] = []
        for _ in range(120):
            seen += [(message.key(), message.value()) for message in reader.consume(10, 0.5) if message.error() is None]
            if len(seen) >= 2:
                break
    finally:
        reader.close()
    assert seen == [(b"k", b"v"), (b"gone", None)]
