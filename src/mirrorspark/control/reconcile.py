"""Making the target ready: internal topics, remote topics with the source's settings and partition counts.

Wanted state comes from ``plan``; this file reads both clusters and carries out what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mirrorspark.cluster.cluster_admin import NewTopic, create_topics, explicit_configs, grow_topics
from mirrorspark.cluster.cluster_client import ClusterClient, TopicMetadata
from mirrorspark.errors import ClusterError
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


@dataclass
class Reconciled:
    """Partitions that exist on both sides, and what could not be made ready."""

    assignments: list[Assignment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


async def ensure_internal_topics(target: ClusterClient, settings: FlowSettings) -> None:
    """The flow's own topics; their replication factor is what the cluster has brokers for, at most."""
    source = settings.flow.source
    factor = min(settings.internal_replication_factor, max(1, len(target.nodes)))
    compact = {"cleanup.policy": "compact"}
    wanted = [
        NewTopic(plan_topic(source), 1, factor, compact),
        NewTopic(status_topic(source), 1, factor, compact),
        NewTopic(ledger_topic(source), 1, factor, compact),
        NewTopic(progress_topic(source), PROGRESS_PARTITIONS, factor, compact),
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


async def reconcile_topics(source: ClusterClient, target: ClusterClient, settings: FlowSettings) -> Reconciled:
    """Create and grow remote topics; list what can be carried."""
    naming = TopicNaming(settings.flow.source, settings.separator, settings.identity_names)
    chosen = TopicFilter(settings.topics, settings.topics_exclude, naming, target=settings.flow.target)
    wanted = [
        topic
        for topic in await source.refresh(None)
        if topic.error_code == 0 and not topic.internal and topic.partitions and chosen.refusal(topic.name) is None
    ]
    result = Reconciled()
    remote = {topic.name: topic for topic in await target.refresh(None)}
    changed = await _create_missing(source, target, settings, naming, wanted, remote, result)
    changed |= await _grow(target, naming, wanted, remote, result)
    if changed:
        remote = {topic.name: topic for topic in await target.refresh(None)}
    for topic in wanted:
        there = remote.get(naming.remote(topic.name))
        if there is not None:
            topic_id = topic.topic_id.hex() if any(topic.topic_id) else ""
            result.assignments += [
                Assignment(TopicPartition(topic.name, number), there.name, topic_id)
                for number in sorted(topic.partitions)
                if number in there.partitions
            ]
    return result


async def _create_missing(
    source: ClusterClient,
    target: ClusterClient,
    settings: FlowSettings,
    naming: TopicNaming,
    wanted: list[TopicMetadata],
    remote: dict[str, TopicMetadata],
    result: Reconciled,
) -> bool:
    missing = [topic for topic in wanted if naming.remote(topic.name) not in remote]
    if not missing:
        return False
    configs = await explicit_configs(source, [topic.name for topic in missing])
    refused = await create_topics(
        target,
        [
            NewTopic(
                naming.remote(topic.name),
                len(topic.partitions),
                settings.replication_factor,
                {name: value for name, value in configs[topic.name].items() if name not in NOT_COPIED},
            )
            for topic in missing
        ],
    )
    _tell(refused, result)
    return True


async def _grow(
    target: ClusterClient,
    naming: TopicNaming,
    wanted: list[TopicMetadata],
    remote: dict[str, TopicMetadata],
    result: Reconciled,
) -> bool:
    counts = {
        naming.remote(topic.name): len(topic.partitions)
        for topic in wanted
        if naming.remote(topic.name) in remote
        and len(remote[naming.remote(topic.name)].partitions) < len(topic.partitions)
    }
    if not counts:
        return False
    _tell(await grow_topics(target, counts), result)
    return True


def _tell(refused: dict[str, str], result: Reconciled) -> None:
    result.events += [Event(EventKind.TOPIC_REFUSED, why, topic=topic) for topic, why in sorted(refused.items())]
