"""Waiting for a copy: done when the last records are the same, whatever offsets they have; told when they never are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mirrorspark.errors import LabError
from mirrorspark.lab.catch_up import last_record_digests, wait_until_caught_up
from mirrorspark.lab.clients import create_topic, producer, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.records import digest


def _write(bootstrap: str, topic: str, values: list[bytes], transactional_id: str | None = None) -> None:
    client = producer(bootstrap, {"transactional.id": transactional_id} if transactional_id else None)
    if transactional_id:
        client.init_transactions(60)
        client.begin_transaction()
    for value in values:
        client.produce(topic, value, partition=0, timestamp=1000)
    assert client.flush(60) == 0
    if transactional_id:
        client.commit_transaction(60)


def test_markers_at_the_end_do_not_hide_the_last_record(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, new_topic_name: Callable[[], str]
) -> None:
    topic, copy = new_topic_name(), new_topic_name()
    create_topic(source_cluster.bootstrap, topic, 2)
    create_topic(target_cluster.bootstrap, copy, 2)
    _write(source_cluster.bootstrap, topic, [b"one", b"two"], transactional_id=topic)
    wanted = {0: digest(None, b"two", [], 1000), 1: None}
    wait_for(lambda: last_record_digests(source_cluster.bootstrap, topic) == wanted, "the last committed record", 60)

    _write(target_cluster.bootstrap, copy, [b"one"])
    with pytest.raises(LabError, match=r"behind are partitions \[0\]"):
        wait_until_caught_up(source_cluster.bootstrap, target_cluster.bootstrap, topic, copy, deadline_s=1)

    _write(target_cluster.bootstrap, copy, [b"two"])
    wait_until_caught_up(source_cluster.bootstrap, target_cluster.bootstrap, topic, copy)


def test_copy_that_is_not_there_is_told(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1)
    with pytest.raises(LabError, match="did not catch up"):
        wait_until_caught_up(source_cluster.bootstrap, target_cluster.bootstrap, topic_name, "nowhere", deadline_s=1)
