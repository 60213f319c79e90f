"""Positions with a real group coordinator: what is committed is fetched, text and all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mirrorspark.cluster import group_positions
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.lab.clients import create_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.position import LastWriter, Position

DEADLINE_S = 60.0


def test_what_is_committed_is_fetched_again(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_topic(target_cluster.bootstrap, topic_name, 6)
    monkeypatch.setattr(group_positions, "COMMIT_PARTITIONS_MAX", 4)  # two requests for six partitions
    positions = GroupPositions(connect(target_cluster), f"__{topic_name}->west")
    places = [TopicPartition(topic_name, number) for number in range(6)]
    assert in_loop(positions.fetch(places, Deadline(DEADLINE_S))) == {}
    assert in_loop(positions.fetch_all(Deadline(DEADLINE_S))) == {}

    writer = LastWriter(f"__{topic_name}->west-0", 4711, 3, 9, clean=False)
    committed = {at: Position(10 + at.partition, 20, "ab" * 16, 7, writer).to_commit() for at in places}
    in_loop(positions.commit(committed, Deadline(DEADLINE_S)))
    assert in_loop(positions.fetch(places, Deadline(DEADLINE_S))) == committed
    assert in_loop(positions.fetch_all(Deadline(DEADLINE_S))) == committed
    assert in_loop(positions.fetch(places[:2], Deadline(DEADLINE_S))) == {at: committed[at] for at in places[:2]}
    assert Position.from_commit(*committed[places[3]]) == Position(13, 20, "ab" * 16, 7, writer)

    later = Position(99, 120, "ab" * 16, 8, None).to_commit()
    in_loop(positions.commit({places[0]: later}, Deadline(DEADLINE_S)))
    assert in_loop(positions.fetch_all(Deadline(DEADLINE_S))) == {**committed, places[0]: later}


def test_groups_do_not_see_each_other(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    create_topic(target_cluster.bootstrap, topic_name, 1)
    client = connect(target_cluster)
    at = TopicPartition(topic_name, 0)
    one, other = GroupPositions(client, f"__{topic_name}-one"), GroupPositions(client, f"__{topic_name}-other")
    in_loop(one.commit({at: (5, "text with ümlauts")}, Deadline(DEADLINE_S)))
    assert in_loop(other.fetch_all(Deadline(DEADLINE_S))) == {}
    assert in_loop(one.fetch_all(Deadline(DEADLINE_S))) == {at: (5, "text with ümlauts")}
