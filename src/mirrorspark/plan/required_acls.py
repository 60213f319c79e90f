"""The ACLs that a flow's users need on both clusters, no more: one for each thing that the flow does, with the reason.

Settings and names in, values out. Kafka's implications are used: Read, Write, Alter and Delete include Describe, and
AlterConfigs includes DescribeConfigs, so those stand only where nothing else includes them. IdempotentWrite is not among
them: brokers since 2.8 ask for it of nobody who may write to a topic. Called by ``control.acl_list``; the journey
``test_required_acls`` holds that the list is enough, and that nothing can be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from mirrorspark.plan.acl_rules import put_before
from mirrorspark.plan.name_list import NameList
from mirrorspark.plan.name_patterns import ALL, LITERAL, PREFIXED, NamePattern, patterns_of, without_covered
from mirrorspark.plan.replication_policy import policy_for
from mirrorspark.plan.topic_naming import HEARTBEATS
from mirrorspark.settings import FlowSettings

__all__ = ["CLUSTER_NAME", "OwnNames", "RequiredAcl", "Resource", "for_heartbeats", "required_acls", "without_included"]

CLUSTER_NAME = "kafka-cluster"
"""What Kafka calls the one resource of the kind cluster."""
CONSUMER_OFFSETS = "__consumer_offsets"
INCLUDED = {
    **dict.fromkeys(("Read", "Write", "Alter", "Delete"), frozenset({"Describe"})),
    "AlterConfigs": frozenset({"DescribeConfigs"}),
}
"""By operation: what Kafka's authorizers allow with it."""


class Resource(StrEnum):
    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"
    TRANSACTIONAL_ID = "transactional-id"


@dataclass(frozen=True, slots=True)
class OwnNames:
    """What the flow's own things are called, on the target unless it is said."""

    plan: str
    status: str
    ledger: str
    progress: str
    writers: str
    """On the source too, where topics keep their names."""
    dead_letters: str
    positions_group: str
    transactional_ids: str
    """With which they begin."""
    mirror_maker_group: str
    mirror_maker_status: str
    positions_group_back: str
    """Of the flow in the other direction, on the source; as the next two."""
    plan_back: str
    status_back: str


@dataclass(frozen=True, slots=True)
class RequiredAcl:
    """One ACL to grant. ``operation`` as Kafka's tools write it. ``without``: what is lost where the flow goes on without
    it; empty where it does not. ``is_wide``: covers more than the flow wants, since ACLs know no regular expressions."""

    cluster: str
    resource: Resource
    pattern: str
    name: str
    operation: str
    why: str
    without: str = ""
    is_wide: bool = False

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """Two of them that grant the same."""
        return self.cluster, self.resource.value, self.pattern, self.name, self.operation

    def includes(self, other: RequiredAcl) -> bool:
        if (self.cluster, self.resource) != (other.cluster, other.resource):
            return False
        if self.operation != other.operation and other.operation not in INCLUDED.get(self.operation, ()):
            return False
        return NamePattern(self.pattern, self.name).covers(NamePattern(other.pattern, other.name))

    def __str__(self) -> str:
        name = f"{self.name}*" if self.pattern == PREFIXED else self.name
        return f"{self.operation} on {self.resource} {name} of {self.cluster}"


def required_acls(
    settings: FlowSettings,
    names: OwnNames,
    *,
    listed: Collection[str] | None = None,
    heartbeats: Collection[str] = (),
    with_failover: bool = False,
    with_takeover: bool = False,
) -> list[RequiredAcl]:
    """``listed``: the source's topics that the flow wants, to write them out rather than a pattern that covers more.
    ``heartbeats``: topics of heartbeats that are known to be on the source. ``with_takeover``: from a MirrorMaker 2 that
    carried the flow before."""
    need = _Need(settings, names, listed, heartbeats)
    found = [*need.on_source(), *need.on_target()]
    if with_takeover:
        found += need.of_takeover()
    if with_failover:
        found += need.of_failover()
    return without_included(found)


def without_included(acls: Iterable[RequiredAcl]) -> list[RequiredAcl]:
    """Each once, and only those that no other one of the same user on the same cluster includes."""
    unique: dict[tuple[str, str, str, str, str], RequiredAcl] = {}
    for one in acls:
        known = unique.setdefault(one.key, one)
        if known.without and not one.without:
            unique[one.key] = one  # somebody cannot go on without it
    found = list(unique.values())
    return [one for one in found if not any(other.includes(one) for other in found if other is not one)]


def for_heartbeats(settings: FlowSettings) -> list[RequiredAcl]:
    """Of a pair of clusters that writes heartbeats, whether it carries anything else or not."""
    if not settings.heartbeats.emitted:
        return []
    why = "heartbeats of this pair of clusters (emit.heartbeats.enabled)"
    return list(_own_topic(settings.flow.target, HEARTBEATS, why, "Create", "Write"))


def _own_topic(cluster: str, topic: str, why: str, *operations: str) -> Iterator[RequiredAcl]:
    for operation in operations:
        yield RequiredAcl(cluster, Resource.TOPIC, LITERAL, topic, operation, _WORDS[operation].format(why))


_WORDS = {
    "Create": "is made if it is missing: {}",
    "Read": "is read: {}",
    "Write": "is written: {}",
}


class _Need:
    def __init__(
        self, settings: FlowSettings, names: OwnNames, listed: Collection[str] | None, heartbeats: Collection[str]
    ) -> None:
        self._settings = settings
        self._names = names
        self._policy = policy_for(settings)
        self._source, self._target = settings.flow.source, settings.flow.target
        self._topics = self._wanted_topics(listed, heartbeats)
        self._groups = patterns_of(NameList.read(settings.group_sync.groups, "groups"))

    def _wanted_topics(self, listed: Collection[str] | None, heartbeats: Collection[str]) -> list[NamePattern]:
        settings = self._settings
        wanted = patterns_of(NameList.read(settings.topics, "topics"))
        if listed is not None and not all(one.is_exact for one in wanted):
            exact = [one for one in wanted if one.is_exact]
            wanted = [*exact, *(NamePattern(LITERAL, name) for name in listed)]
        if settings.heartbeats.replicated:
            wanted += [NamePattern(LITERAL, name) for name in heartbeats]
        return without_covered(wanted)

    @property
    def _handles_groups(self) -> bool:
        return self._settings.group_sync.checkpoints_enabled or self._settings.group_sync.offsets_enabled

    # -- the source -------------------------------------------------------------------------------------------------

    def on_source(self) -> Iterator[RequiredAcl]:
        settings, names = self._settings, self._names
        yield from self._on(self._source, self._topics, "Read", "records are fetched")
        why = "remote topics are made, and kept, with the settings of their source topics"
        yield from self._on(self._source, self._topics, "DescribeConfigs", why)
        if self._policy.needs_origin_check:
            why = "who wrote a record, where topics keep their names"
            yield from _own_topic(self._source, names.writers, why, "Create", "Read")
        if settings.topic_sync.acls_enabled:
            yield self._on_cluster(self._source, "Describe", "ACLs on topics are listed (sync.topic.acls.enabled)")
        if self._handles_groups:
            why = "what groups have committed is read (emit.checkpoints.enabled, sync.group.offsets.enabled)"
            yield from self._on(self._source, self._groups, "Describe", why, Resource.GROUP)
            yield RequiredAcl(
                *(self._source, Resource.TOPIC, LITERAL, CONSUMER_OFFSETS, "Read"),
                "commits are followed as they are made",
                without="groups are asked every few seconds instead (groups.polled)",
            )
        if not settings.group_sync.offset_syncs_on_target:
            yield from self._offset_syncs(self._source)

    # -- the target -------------------------------------------------------------------------------------------------

    def on_target(self) -> Iterator[RequiredAcl]:
        settings, names, target = self._settings, self._names, self._target
        remotes = self._remotes()
        for operation, why in self._on_remote_topics():
            yield from self._on(target, remotes, operation, why)
        for topic, why in (
            (names.plan, "who leads the flow, and which lane carries what"),
            (names.status, "what lanes report, and events"),
            (names.ledger, "where every record went"),
            (names.progress, "how far the flow has come, where MirrorMaker 2 keeps it"),
            (names.writers, "which producer ids are a mirror's"),
        ):
            yield from _own_topic(target, topic, why, "Create", "Read", "Write")
        if settings.policies.on_record_too_large == "dead-letter":
            why = "records that are too large (on.record.too.large)"
            yield from _own_topic(target, names.dead_letters, why, "Create", "Write")
        why = "positions of the flow are committed and read"
        yield RequiredAcl(target, Resource.GROUP, LITERAL, names.positions_group, "Read", why)
        yield RequiredAcl(
            *(target, Resource.TRANSACTIONAL_ID, PREFIXED, names.transactional_ids, "Write"),
            "lanes get producer epochs, fence those that were cut off, and write transactions",
            without="exactly once becomes at least once (fence.unavailable)" if not settings.transactions else "",
        )
        yield RequiredAcl(
            *(target, Resource.GROUP, LITERAL, names.mirror_maker_group, "Describe"),
            "whether a MirrorMaker 2 carries the flow already",
            without="one that runs beside this mirror is not noticed, which the log says",
        )
        yield from for_heartbeats(settings)
        if settings.topic_sync.acls_enabled:
            why = (
                "ACLs are granted on remote topics (sync.topic.acls.enabled); whoever has it can grant everything, to "
                "themselves as well"
            )
            yield self._on_cluster(target, "Alter", why)
        if self._handles_groups:
            yield from self._groups_on_target()
        if settings.group_sync.offset_syncs_on_target:
            yield from self._offset_syncs(target)

    def _on_remote_topics(self) -> Iterator[tuple[str, str]]:
        """What is done to them, and why."""
        settings = self._settings
        policies = settings.policies
        yield "Create", "remote topics are made"
        yield "Write", "records are appended"
        yield "Read", "positions are committed for them, and their ends are read after a kill"
        yield "Alter", "they grow with their source topics"
        if settings.topic_sync.configs_enabled:
            yield "AlterConfigs", "their settings are compared and kept in step (sync.topic.configs.enabled)"
        elif settings.identical_offsets or policies.on_record_too_large != "stop":
            yield "DescribeConfigs", "their size limit and cleanup policy are asked for"
        if policies.on_source_topic_deleted == "delete":
            yield "Delete", "they are deleted with their source topics (on.source.topic.deleted)"
        elif settings.identical_offsets:
            yield "Delete", "filler is deleted by which they begin at the source's offset (offsets=identical)"

    def _groups_on_target(self) -> Iterator[RequiredAcl]:
        sync, target = self._settings.group_sync, self._target
        operations = ("Create", "Read", "Write") if sync.checkpoints_enabled else ("Create", "Read")
        topic = self._policy.checkpoints_topic(self._source)
        yield from _own_topic(target, topic, "checkpoints of groups, in MirrorMaker 2's format", *operations)
        if sync.offsets_enabled:
            yield from self._group_writing("sync.group.offsets.enabled")

    def _group_writing(self, asked_by: str) -> Iterator[RequiredAcl]:
        why = f"translated offsets are committed for groups ({asked_by})"
        yield from self._on(self._target, self._groups, "Read", why, Resource.GROUP)
        yield RequiredAcl(
            *(self._target, Resource.TOPIC, LITERAL, CONSUMER_OFFSETS, "Read"),
            f"a commit that somebody makes at the moment of a sync is noticed and put back ({asked_by})",
            without="such a commit is overwritten, which the log says",
        )

    # -- what is asked for ------------------------------------------------------------------------------------------

    def of_takeover(self) -> Iterator[RequiredAcl]:
        sync = self._settings.group_sync
        where = self._target if sync.offset_syncs_on_target else self._source
        topic = self._policy.offset_syncs_topic(self._source if sync.offset_syncs_on_target else self._target)
        why = "MirrorMaker 2's offset syncs: how far it came, and where groups stand that lag behind"
        yield from _own_topic(where, topic, why, "Read")
        why = "what its workers are doing"
        yield from _own_topic(self._target, self._names.mirror_maker_status, why, "Read")

    def of_failover(self) -> Iterator[RequiredAcl]:
        """``mirrorspark failover``: groups move to the target, and the flow back is given its start."""
        yield from self._on(self._source, self._groups, "Describe", "groups are translated (failover)", Resource.GROUP)
        yield from self._group_writing("failover")
        for topic in (self._names.plan_back, self._names.status_back):
            yield from _own_topic(self._source, topic, "whether a mirror runs the flow back (failover)", "Read")
        if self._settings.naming.policy != "default":  # there, names tell the flow back what it is not to carry
            why = "start positions of the flow back are committed (failover)"
            yield RequiredAcl(self._source, Resource.GROUP, LITERAL, self._names.positions_group_back, "Read", why)

    # -- pieces -----------------------------------------------------------------------------------------------------

    def _offset_syncs(self, cluster: str) -> Iterator[RequiredAcl]:
        if self._settings.group_sync.offset_syncs_enabled:
            other = self._source if cluster == self._target else self._target
            why = "offset syncs, for a MirrorMaker 2 that may take the flow back (emit.offset-syncs.enabled)"
            yield from _own_topic(cluster, self._policy.offset_syncs_topic(other), why, "Create", "Write")

    def _on_cluster(self, cluster: str, operation: str, why: str) -> RequiredAcl:
        return RequiredAcl(cluster, Resource.CLUSTER, LITERAL, CLUSTER_NAME, operation, why)

    def _on(
        self,
        cluster: str,
        patterns: Iterable[NamePattern],
        operation: str,
        why: str,
        resource: Resource = Resource.TOPIC,
    ) -> Iterator[RequiredAcl]:
        for one in patterns:
            yield RequiredAcl(cluster, resource, one.pattern, one.name, operation, why, is_wide=not one.is_exact)

    def _remotes(self) -> list[NamePattern]:
        """The topics' patterns as they are on the target."""
        before = put_before(self._policy.remote)
        return without_covered(_remote(one, self._policy.remote, before) for one in self._topics)


def _remote(topics: NamePattern, remote: Callable[[str], str], before: str | None) -> NamePattern:
    if topics.pattern == LITERAL and not topics.is_all:
        return NamePattern(LITERAL, remote(topics.name), topics.is_exact)
    if before is None:
        return NamePattern(LITERAL, ALL, is_exact=False)
    if topics.is_all:
        return NamePattern(PREFIXED, before, topics.is_exact) if before else topics
    return NamePattern(PREFIXED, f"{before}{topics.name}", topics.is_exact)
