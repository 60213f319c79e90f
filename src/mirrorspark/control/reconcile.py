"""Making the target ready: internal topics, remote topics with the source's settings and partition counts.

Wanted state comes from ``plan``; this file reads both clusters and carries out what is missing. A topic that a cluster
refuses is an event of its own; the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mirrorspark.cluster.cluster_admin import NewTopic, create_topics, explicit_configs, grow_topics
from mirrorspark.cluster.cluster_client import ClusterClient, TopicMetadata
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.errors import BrokerError, ClusterError
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.internal_topics import (
    PROGRESS_PARTITIONS,
    ledger_topic,
    plan_topic,
    progress_topic,
    status_topic,
)
from mirrorspark.plan.lanes import Assignment
from mirrorspark.plan.topic_filter import TopicFilter
from mirrorspark.plan.topic_naming import TopicNaming
from mirrorspark.settings import FlowSettings

__all__ = ["Reconciled", "ensure_internal_topics", "reconcile_topics"]

NOT_COPIED = frozenset(
    {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
        "min.insync.replicas",
    }
)
"""MirrorMaker 2's config.properties.exclude."""


VISIBLE_TIMEOUT_S = 5.0
VISIBLE_POLL_S = 0.05
COMPACT = {"cleanup.policy": "compact"}
COMPACT_SOON = {**COMPACT, "segment.bytes": "16777216", "segment.ms": "600000", "min.cleanable.dirty.ratio": "0.1"}
"""Lanes report every second and only the newest report counts: a log that is compacted late would be long to read."""


@dataclass
class Reconciled:
    """Partitions that exist on both sides, what could not be made ready, and how many source topics are wanted."""

    assignments: list[Assignment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    matched: int = 0


async def ensure_internal_topics(target: ClusterClient, settings: FlowSettings) -> None:
    """The flow's own topics; their replication factor is what the cluster has brokers for, at most."""
    source = settings.flow.source
    factor = min(settings.internal_replication_factor, max(1, len(target.nodes)))
    wanted = [
        NewTopic(plan_topic(source), 1, factor, COMPACT_SOON),
        NewTopic(status_topic(source), 1, factor, COMPACT_SOON),
        NewTopic(ledger_topic(source), 1, factor, COMPACT),
        NewTopic(progress_topic(source), PROGRESS_PARTITIONS, factor, COMPACT),
    ]
    names = [topic.name for topic in wanted]
    known = {topic.name for topic in await target.refresh(names) if topic.error_code == 0}
    missing = [topic for topic in wanted if topic.name not in known]
    if missing:
        refused = await create_topics(target, missing)
        if refused:
            raise ClusterError(
                f"cluster {target.alias}: internal topics cannot be made: " + "; ".join(refused.values()), **refused
            )
        await target.refresh(names)


async def reconcile_topics(
    source: ClusterClient, target: ClusterClient, settings: FlowSettings, carried: Iterable[Assignment] = ()
) -> Reconciled:
    """Create and grow remote topics; list what can be carried. ``carried`` is what the last plan held."""
    naming = TopicNaming(settings.flow.source, settings.naming.separator, settings.keeps_names)
    chosen = TopicFilter(settings.topics, settings.topics_exclude, naming, target=settings.flow.target)
    there = {topic.name: topic for topic in await source.refresh(None)}
    matching = [topic for topic in there.values() if not topic.internal and chosen.refusal(topic.name) is None]
    wanted = [topic for topic in matching if topic.error_code == 0 and topic.partitions]
    result = Reconciled(matched=len(matching))
    remote = {topic.name: topic for topic in await target.refresh(None)}
    changed = await _create_missing(source, target, settings, naming, wanted, remote, result)
    changed |= await _grow(target, naming, wanted, remote, result)
    remote |= await _await_visible(target, changed)
    for topic in wanted:
        result.assignments += _assignments(topic, remote.get(naming.remote(topic.name)))
    still_wanted = [one for one in carried if chosen.refusal(one.source.topic) is None]
    _keep_unsure(still_wanted, {topic.name for topic in matching} - {topic.name for topic in wanted}, result)
    _tell_deleted(still_wanted, there, settings, result)
    return result


async def _await_visible(target: ClusterClient, counts: Mapping[str, int]) -> dict[str, TopicMetadata]:
    """Brokers list a topic a moment after it was made: wait for that moment rather than for the next refresh."""
    found: dict[str, TopicMetadata] = {}
    deadline = Deadline(VISIBLE_TIMEOUT_S)
    while missing := sorted(counts.keys() - found.keys()):
        for topic in await target.refresh(missing):
            if topic.error_code == 0 and len(topic.partitions) >= counts[topic.name]:
                found[topic.name] = topic
        if deadline.passed:
            break
        if len(found) < len(counts):
            await asyncio.sleep(VISIBLE_POLL_S)
    return found


def _assignments(topic: TopicMetadata, remote: TopicMetadata | None) -> list[Assignment]:
    if remote is None:
        return []
    topic_id = topic.topic_id.hex() if any(topic.topic_id) else ""
    numbers = sorted(number for number in topic.partitions if number in remote.partitions)
    return [Assignment(TopicPartition(topic.name, number), remote.name, topic_id) for number in numbers]


def _keep_unsure(carried: Iterable[Assignment], unsure: set[str], result: Reconciled) -> None:
    """A topic that the source lists with an error just now (no leader yet) stays with its lane."""
    result.assignments += [one for one in carried if one.source.topic in unsure]


def _tell_deleted(
    carried: Iterable[Assignment], there: Mapping[str, TopicMetadata], settings: FlowSettings, result: Reconciled
) -> None:
    gone = {one.source.topic: one.remote_topic for one in carried if one.source.topic not in there}
    result.events += [
        Event(
            EventKind.SOURCE_TOPIC_DELETED,
            f"is gone from {settings.flow.source}: deleted, or no longer allowed to be seen. It is no longer carried; "
            f"its copy {remote} stays on {settings.flow.target}",
            topic=topic,
        )
        for topic, remote in sorted(gone.items())
    ]


async def _create_missing(
    source: ClusterClient,
    target: ClusterClient,
    settings: FlowSettings,
    naming: TopicNaming,
    wanted: list[TopicMetadata],
    remote: Mapping[str, TopicMetadata],
    result: Reconciled,
) -> dict[str, int]:
    """Returns the partition counts of what was created."""
    missing = [topic for topic in wanted if naming.remote(topic.name) not in remote]
    if not missing:
        return {}
    refused: dict[str, str] = {}
    configs = await _configs(source, [topic.name for topic in missing], refused)
    _tell({naming.remote(topic): f"on the source: {why}" for topic, why in refused.items()}, result)
    ready = [topic for topic in missing if topic.name in configs]
    if not ready:
        return {}
    refused = await create_topics(
        target,
        [
            NewTopic(
                naming.remote(topic.name),
                len(topic.partitions),
                settings.replication_factor,
                {name: value for name, value in configs[topic.name].items() if name not in NOT_COPIED},
            )
            for topic in ready
        ],
    )
    _tell(refused, result)
    counts = {naming.remote(topic.name): len(topic.partitions) for topic in ready}
    return {name: count for name, count in counts.items() if name not in refused}


async def _configs(source: ClusterClient, topics: list[str], refused: dict[str, str]) -> dict[str, dict[str, str]]:
    """Settings by topic. One refused topic fails a request for many: halve until it is alone."""
    try:
        return await explicit_configs(source, topics)
    except BrokerError as error:
        if error.retriable:
            raise
        if len(topics) == 1:
            refused[topics[0]] = str(error)
            return {}
    middle = len(topics) // 2
    return {
        **await _configs(source, topics[:middle], refused),
        **await _configs(source, topics[middle:], refused),
    }


async def _grow(
    target: ClusterClient,
    naming: TopicNaming,
    wanted: list[TopicMetadata],
    remote: Mapping[str, TopicMetadata],
    result: Reconciled,
) -> dict[str, int]:
    """Returns the partition counts of what was grown."""
    counts = {
        naming.remote(topic.name): len(topic.partitions)
        for topic in wanted
        if naming.remote(topic.name) in remote
        and len(remote[naming.remote(topic.name)].partitions) < len(topic.partitions)
    }
    if not counts:
        return {}
    refused = await grow_topics(target, counts)
    _tell(refused, result)
    return {name: count for name, count in counts.items() if name not in refused}


def _tell(refused: Mapping[str, str], result: Reconciled) -> None:
    result.events += [Event(EventKind.TOPIC_REFUSED, why, topic=topic) for topic, why in sorted(refused.items())]
