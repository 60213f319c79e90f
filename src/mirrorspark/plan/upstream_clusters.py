"""What the names of a cluster's topics tell about the clusters before it, as MirrorMaker 2's ``MirrorClient`` reports it.

Status and REST ask with the topics of one cluster and the policy that named them. ``checkpoint_topics`` and the rest take
names only: nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterable

from mirrorspark.plan.replication_policy import HOPS_MAX, ReplicationPolicy, is_heartbeats

__all__ = [
    "UNREACHABLE",
    "checkpoint_topics",
    "count_hops",
    "heartbeat_topics",
    "remote_topics",
    "replication_hops",
    "upstream_clusters",
]

UNREACHABLE = -1
"""Hops to a cluster from which nothing comes; MirrorMaker 2's number for it."""


def heartbeat_topics(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    return frozenset(topic for topic in topics if is_heartbeats(policy, topic))


def checkpoint_topics(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    return frozenset(topic for topic in topics if policy.is_checkpoints(topic))


def remote_topics(policy: ReplicationPolicy, topics: Iterable[str], source: str | None = None) -> frozenset[str]:
    """Mirrored topics: all, or those from one cluster directly. With identical names every topic counts as mirrored."""
    found = {topic: policy.source_of(topic) for topic in topics if not policy.is_internal(topic)}
    return frozenset(topic for topic, origin in found.items() if origin is not None and source in (None, origin))


def upstream_clusters(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    """All clusters whose heartbeats arrive here, directly or over others."""
    return frozenset(alias for topic in heartbeat_topics(policy, topics) for alias in _way(policy, topic))


def replication_hops(policy: ReplicationPolicy, topics: Iterable[str], cluster: str) -> int:
    """Mirrors on the shortest way from that cluster to here; UNREACHABLE if its heartbeats do not arrive."""
    hops = [count_hops(policy, topic, cluster) for topic in heartbeat_topics(policy, topics)]
    return min((count for count in hops if count != UNREACHABLE), default=UNREACHABLE)


def count_hops(policy: ReplicationPolicy, topic: str, cluster: str) -> int:
    """Mirrors between that cluster and this topic, by its name."""
    way = _way(policy, topic)
    return way.index(cluster) + 1 if cluster in way else UNREACHABLE


def _way(policy: ReplicationPolicy, topic: str) -> list[str]:
    """The clusters that a topic came over, the nearest first; it ends where one would come again."""
    way: list[str] = []
    for _ in range(HOPS_MAX):
        source, before = policy.source_of(topic), policy.upstream(topic)
        if source is None or source in way:
            break
        way.append(source)
        if before is None:
            break
        topic = before
    return way
