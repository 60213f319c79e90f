"""Hops and upstream clusters from topic names, as MirrorMaker 2's client reports them (reference 2.12 and 1.6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.plan.topic_filter import TopicFilter
from mirrorspark.plan.topic_naming import DefaultNaming, IdentityNaming, NamingFacts, SameNaming
from mirrorspark.plan.upstream_clusters import (
    UNREACHABLE,
    checkpoint_topics,
    count_hops,
    heartbeat_topics,
    remote_topics,
    replication_hops,
    upstream_clusters,
)

FACTS = NamingFacts("source", "target")
DEFAULT = DefaultNaming(FACTS)
IDENTITY = IdentityNaming(FACTS)
SAME = SameNaming(FACTS)
TOPICS = [
    "orders",
    "source1.orders",
    "source2.source1.orders",
    "heartbeats",
    "source1.heartbeats",
    "source2.source1.heartbeats",
    "source3.heartbeats",
    "source1.checkpoints.internal",
    "mm2-offset-syncs.x.internal",
    "__consumer_offsets",
]


@pytest.mark.parametrize("naming", [DefaultNaming, IdentityNaming, SameNaming])
@pytest.mark.parametrize(
    ("on_a", "on_b"), [("heartbeats", "A.heartbeats"), ("C.heartbeats", "A.C.heartbeats"), ("B.heartbeats", "")]
)
def test_2_12_3_a_flow_brings_its_sources_heartbeats(naming: type[DefaultNaming], on_a: str, on_b: str) -> None:
    """What B->A writes on A arrives on B by A->B, whatever ``topics`` says; what came from B does not come back."""
    policy = naming(NamingFacts("A", "B"))
    wanted = TopicFilter("nothing", ".*", policy, target="B").refusal(on_a) is None
    assert wanted is bool(on_b)
    if on_b:
        assert policy.remote(on_a) == on_b


@pytest.mark.parametrize(
    ("topics", "cluster", "hops"),
    [
        (["A.heartbeats"], "A", 1),
        (["B.A.heartbeats", "B.heartbeats"], "A", 2),
        (["B.A.heartbeats", "B.heartbeats"], "B", 1),
        (["B.A.heartbeats", "A.heartbeats"], "A", 1),  # the shortest way
        (["C.B.A.heartbeats"], "A", 3),
        (["heartbeats"], "A", UNREACHABLE),
        (["A.orders"], "A", UNREACHABLE),  # only heartbeats count
        ([], "A", UNREACHABLE),
        (["X.X.X.heartbeats"], "A", UNREACHABLE),  # misconfigured aliases
        (["X.X.X.heartbeats"], "X", 1),
    ],
)
@pytest.mark.parametrize("policy", [DEFAULT, IDENTITY, SAME])
def test_2_12_4_replication_hops(policy: DefaultNaming, topics: list[str], cluster: str, hops: int) -> None:
    assert replication_hops(policy, topics, cluster) == hops


@pytest.mark.parametrize(
    ("topic", "cluster", "hops"),
    [
        ("source1.topic", "source1", 1),
        ("source2.source1.topic", "source1", 2),
        ("source2.source1.topic", "source2", 1),
        ("topic", "source1", UNREACHABLE),
        ("source1.topic", "source9", UNREACHABLE),
    ],
)
def test_2_12_4_count_hops(topic: str, cluster: str, hops: int) -> None:
    assert count_hops(DEFAULT, topic, cluster) == hops


def test_2_12_4_upstream_clusters() -> None:
    assert upstream_clusters(DEFAULT, TOPICS) == {"source1", "source2", "source3"}
    assert upstream_clusters(DEFAULT, ["A.heartbeats"]) == {"A"}
    assert upstream_clusters(DEFAULT, ["orders", "A.orders", "heartbeats"]) == frozenset()


@pytest.mark.parametrize("policy", [IDENTITY, SAME])
def test_2_12_5_with_identical_names_upstream_clusters_come_from_heartbeats(policy: DefaultNaming) -> None:
    assert upstream_clusters(policy, TOPICS) == {"source1", "source2", "source3"}
    assert upstream_clusters(policy, ["backup.orders", "heartbeats"]) == frozenset()
    assert policy.remote("heartbeats") == "source.heartbeats"


def test_1_6_heartbeat_topics() -> None:
    expected = {"heartbeats", "source1.heartbeats", "source2.source1.heartbeats", "source3.heartbeats"}
    for policy in (DEFAULT, IDENTITY, SAME):
        assert heartbeat_topics(policy, TOPICS) == expected


def test_1_6_checkpoint_topics() -> None:
    assert checkpoint_topics(DEFAULT, TOPICS) == {"source1.checkpoints.internal"}


def test_1_6_remote_topics() -> None:
    orders = {"source1.orders", "source2.source1.orders"}
    beats = {"source1.heartbeats", "source2.source1.heartbeats", "source3.heartbeats"}
    assert remote_topics(DEFAULT, TOPICS) == orders | beats
    assert remote_topics(DEFAULT, TOPICS, "source1") == {"source1.orders", "source1.heartbeats"}
    assert remote_topics(DEFAULT, TOPICS, "source2") == {"source2.source1.orders", "source2.source1.heartbeats"}
    assert remote_topics(DEFAULT, TOPICS, "source9") == frozenset()


def test_2_3_identity_lists_every_topic_that_is_not_internal_as_remote() -> None:
    internal = {"source1.checkpoints.internal", "mm2-offset-syncs.x.internal", "__consumer_offsets"}
    assert remote_topics(IDENTITY, TOPICS) == set(TOPICS) - internal - {"heartbeats"}


def test_same_names_tell_of_no_origin() -> None:
    assert remote_topics(SAME, ["orders", "source1.orders"]) == frozenset()


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True))
def test_heartbeats_along_a_chain_tell_every_hop(chain: list[str]) -> None:
    """``chain`` in the order in which heartbeats travel; the last cluster has them all."""
    topic = "heartbeats"
    for alias in chain:
        topic = DefaultNaming(NamingFacts(alias, "end")).remote(topic)
    assert [replication_hops(DEFAULT, [topic], alias) for alias in reversed(chain)] == list(range(1, len(chain) + 1))
    assert upstream_clusters(DEFAULT, [topic]) == set(chain)
