"""Topics created, grown and deleted on a real broker: in portions, within quotas, each refusal with its own code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin import AlterClientQuotasRequest

from mirrorspark.cluster import cluster_admin
from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_admin import NewTopic, create_topics, delete_topics, grow_topics, in_portions
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.lab.clients import topic_partitions, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers

INVALID_TOPIC, INVALID_REPLICATION_FACTOR, INVALID_CONFIG = 17, 38, 40
SEEN_S = 30.0

InLoop = Callable[..., Any]
Connect = Callable[[ClusterOfBrokers], ClusterClient]


@given(st.lists(st.integers(1, 20)), st.integers(1, 5), st.integers(1, 30))
def test_portions_are_short_light_and_complete(weights: list[int], items_max: int, weight_max: int) -> None:
    found = list(in_portions(weights, lambda one: one, items_max=items_max, weight_max=weight_max))
    assert [one for some in found for one in some] == weights
    assert all(len(some) <= items_max for some in found)
    assert all(sum(some) <= weight_max or len(some) == 1 for some in found)


def test_each_refused_topic_has_its_code_and_the_others_are_made(
    in_loop: InLoop, connect: Connect, target_cluster: ClusterOfBrokers, new_topic_name: Callable[[], str]
) -> None:
    client = connect(target_cluster)
    good, factor, config, name = (new_topic_name() for _ in range(4))
    wanted = [
        NewTopic(good, 2, 1, {"retention.ms": "5"}),
        NewTopic(factor, 1, 30),
        NewTopic(config, 1, 1, {"retention.ms": "never"}),
        NewTopic(f"{name}/", 1, 1),
    ]
    refused = in_loop(create_topics(client, wanted))
    assert {topic: error.error_code for topic, error in refused.items()} == {
        factor: INVALID_REPLICATION_FACTOR,
        config: INVALID_CONFIG,
        f"{name}/": INVALID_TOPIC,
    }
    assert "never" in str(refused[config])
    assert not any(error.retriable for error in refused.values())
    assert in_loop(create_topics(client, wanted[:1])) == {}, "it is there already"

    missing = new_topic_name()
    refused = in_loop(grow_topics(client, {good: 3, missing: 2}))
    assert {topic: error.error_code for topic, error in refused.items()} == {
        missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }
    assert in_loop(grow_topics(client, {good: 3})) == {}, "it is as large already"
    wait_for(lambda: topic_partitions(target_cluster.bootstrap, good) == 3, "three partitions", SEEN_S)
    assert in_loop(delete_topics(client, [good, missing])) == {}
    wait_for(lambda: topic_partitions(target_cluster.bootstrap, good) == 0, "no partitions", SEEN_S)


def test_a_quota_is_waited_for_and_what_is_left_is_told(
    in_loop: InLoop,
    connect: Connect,
    target_cluster: ClusterOfBrokers,
    new_topic_name: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KIP-599: a controller lets a client change so many partitions a second, and says how long to wait."""
    monkeypatch.setattr(cluster_admin, "TOPICS_PER_REQUEST_MAX", 4)
    client = connect(target_cluster)
    names = [new_topic_name() for _ in range(40)]
    in_loop(_limit_mutations(client, 2.0))
    try:
        topics = [NewTopic(name, 1, 1) for name in names]
        refused = in_loop(create_topics(client, topics, timeout_s=0.0))
        assert refused, "the quota did not show"
        assert all(error.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED for error in refused.values())
        assert all(error.retriable for error in refused.values())
        few = [topic for topic in topics if topic.name in refused][:4]
        assert in_loop(create_topics(client, few, timeout_s=60.0)) == {}
    finally:
        in_loop(_limit_mutations(client, None))


async def _limit_mutations(client: ClusterClient, per_second: float | None) -> None:
    entry = AlterClientQuotasRequest.EntryData
    remove = per_second is None
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="client-id", entity_name="mirrorspark-lab")],
                ops=[entry.OpData(key="controller_mutation_rate", value=per_second or 0.0, remove=remove)],
            )
        ],
        validate_only=False,
    )
    answer = await client.request_controller(request)
    assert [one.error_code for one in answer.entries] == [0]
