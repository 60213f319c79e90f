"""What shall become of every topic: create, grow, carry, leave out, keep or delete its copy, each with a named reason.

Snapshots of both clusters in, one action for every topic out. The reconciler carries the actions out; the dry run prints
the same ones. Settings and ACLs have rules of their own (``config_rules``, ``acl_rules``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mirrorspark.plan.config_rules import ConfigRules
from mirrorspark.plan.lanes import Assignment
from mirrorspark.plan.replication_policy import ReplicationPolicy, policy_for
from mirrorspark.plan.topic_filter import TopicFilter
from mirrorspark.settings import FlowSettings, Policies

__all__ = ["Action", "ActionKind", "Reason", "SeenTopic", "TopicRules", "after_deletion", "desired_topics"]

NAME_CHARS_MAX = 249
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


class ActionKind(StrEnum):
    CREATE = "create"
    GROW = "grow"
    CARRY = "carry"  # it is there as it should be
    WAIT = "wait"  # nothing is done in this pass
    SKIP = "skip"
    KEEP = "keep"  # the copy of a topic that is gone
    DELETE = "delete"


class Reason(StrEnum):
    MISSING_ON_TARGET = "missing.on.target"
    FEWER_PARTITIONS = "fewer.partitions.on.target"
    IN_STEP = "in.step"
    MORE_PARTITIONS = "more.partitions.on.target"
    NOT_READY_ON_SOURCE = "not.ready.on.source"
    NOT_READY_ON_TARGET = "not.ready.on.target"
    TARGET_TOPIC_DELETED = "target.topic.deleted"
    TARGET_TOPIC_RECREATED = "target.topic.recreated"
    KAFKA_INTERNAL = "kafka.internal"
    REMOTE_NAME_TAKEN = "remote.name.taken"
    REMOTE_NAME_INVALID = "remote.name.invalid"
    SOURCE_TOPIC_DELETED = "source.topic.deleted"
    TOO_MANY_DELETIONS = "too.many.deletions"
    SOURCE_LIST_EMPTY = "source.list.empty"


@dataclass(frozen=True, slots=True)
class SeenTopic:
    """A topic as a cluster lists it. ``topic_id`` is hex, "" where there are none."""

    name: str
    partitions: int
    topic_id: str = ""
    internal: bool = False
    error_code: int = 0

    @property
    def is_ready(self) -> bool:
        return self.error_code == 0 and self.partitions > 0


@dataclass(frozen=True, slots=True)
class Action:
    """``partitions`` is how many there shall be on the target, ``partitions_now`` how many there are."""

    kind: ActionKind
    topic: str
    remote: str
    reason: str
    text: str = ""
    partitions: int = 0
    partitions_now: int = 0

    @property
    def changes_target(self) -> bool:
        is_made_in_next_pass = self.reason == Reason.TARGET_TOPIC_DELETED
        return self.kind in (ActionKind.CREATE, ActionKind.GROW, ActionKind.DELETE) or is_made_in_next_pass


@dataclass(frozen=True)
class TopicRules:
    """A flow's filter, names and policies. Raises SettingsError for what is wrong with them."""

    settings: FlowSettings
    inflows: frozenset[str] = frozenset()
    """Clusters that are known to be mirrored into the source: topics named after them are what they look like."""
    policy: ReplicationPolicy = field(init=False)
    chosen: TopicFilter = field(init=False)
    configs: ConfigRules = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", policy_for(self.settings))
        object.__setattr__(self, "chosen", TopicFilter.of(self.settings, self.policy, self.inflows))
        object.__setattr__(self, "configs", ConfigRules(self.settings.topic_sync))

    def wants(self, topic: str) -> bool:
        return self.chosen.refusal(topic) is None


def desired_topics(
    source: Mapping[str, SeenTopic],
    target: Mapping[str, SeenTopic],
    rules: TopicRules,
    carried: Iterable[Assignment] = (),
) -> list[Action]:
    """One action for each topic of the source, by name; then one for each carried topic that is gone from it."""
    before = {one.source.topic: one for one in carried}
    taken: dict[str, str] = {}
    actions = []
    for name in sorted(source):
        action = _of_source_topic(source[name], target, rules, before.get(name))
        if action.kind is not ActionKind.SKIP:
            first = taken.setdefault(action.remote, name)
            if first != name:
                text = f"{first} has this name on the target already; change the replication policy or leave one out"
                action = Action(ActionKind.SKIP, name, action.remote, Reason.REMOTE_NAME_TAKEN, text)
        actions.append(action)
    return actions + _of_gone_topics(source, rules, before, taken)


def _of_source_topic(
    topic: SeenTopic, target: Mapping[str, SeenTopic], rules: TopicRules, before: Assignment | None
) -> Action:
    def action(kind: ActionKind, reason: str, text: str = "", count: int = 0, now: int = 0) -> Action:
        return Action(kind, topic.name, remote, reason, text, count, now)

    remote = ""
    if topic.internal:
        return action(ActionKind.SKIP, Reason.KAFKA_INTERNAL, "Kafka's own topic")
    refusal = rules.chosen.refusal(topic.name)
    if refusal is not None:
        return action(ActionKind.SKIP, refusal.reason, refusal.text)
    remote = rules.policy.remote(topic.name)
    if len(remote) > NAME_CHARS_MAX or not _NAME.fullmatch(remote) or remote in (".", ".."):
        why = f"'{remote}' cannot be a topic's name: at most {NAME_CHARS_MAX} of a-z, A-Z, 0-9, '.', '_' and '-'"
        return action(ActionKind.SKIP, Reason.REMOTE_NAME_INVALID, why)
    if not topic.is_ready:
        return action(ActionKind.WAIT, Reason.NOT_READY_ON_SOURCE, f"the source lists it with error {topic.error_code}")
    there = target.get(remote)
    was_there = before is not None and before.remote_topic == remote
    then = after_deletion(rules.settings.policies)
    if there is None:
        if was_there:
            return action(ActionKind.WAIT, Reason.TARGET_TOPIC_DELETED, then, topic.partitions)
        return action(ActionKind.CREATE, Reason.MISSING_ON_TARGET, "", topic.partitions)
    if not there.is_ready:
        why = f"the target lists it with error {there.error_code}"
        return action(ActionKind.WAIT, Reason.NOT_READY_ON_TARGET, why, topic.partitions)
    counts = topic.partitions, there.partitions
    has_fewer = there.partitions < topic.partitions
    if was_there and before is not None and before.remote_id and there.topic_id not in ("", before.remote_id):
        kind = ActionKind.GROW if has_fewer else ActionKind.CARRY
        return action(kind, Reason.TARGET_TOPIC_RECREATED, then, *counts)
    if has_fewer:
        return action(ActionKind.GROW, Reason.FEWER_PARTITIONS, "", *counts)
    if there.partitions > topic.partitions:
        why = f"{there.partitions - topic.partitions} partitions of the target stay empty"
        return action(ActionKind.CARRY, Reason.MORE_PARTITIONS, why, *counts)
    return action(ActionKind.CARRY, Reason.IN_STEP, "", *counts)


def after_deletion(policies: Policies) -> str:
    """What becomes of a remote topic that was deleted, in words."""
    policy = policies.on_target_topic_deleted
    then = {
        "recreate": "it goes on where the flow stands, what was there before is not copied again",
        "remirror": "all that the source has is copied again",
    }[policy]
    return f"the remote topic was deleted; made anew, {then} (on.target.topic.deleted={policy})"


def _of_gone_topics(
    source: Mapping[str, SeenTopic], rules: TopicRules, before: Mapping[str, Assignment], taken: Mapping[str, str]
) -> list[Action]:
    """Topics that were carried, are still wanted, and are gone. Their copies stay unless the user wants otherwise."""
    flow, policies = rules.settings.flow, rules.settings.policies
    gone = [
        one
        for topic, one in sorted(before.items())
        if topic not in source and rules.wants(topic) and one.remote_topic not in taken
    ]
    kind, reason, text = ActionKind.KEEP, Reason.SOURCE_TOPIC_DELETED, f"its copy stays on {flow.target}"
    if policies.on_source_topic_deleted == "delete":
        most = rules.settings.limits.topic_deletions_max
        if not source:
            reason, text = Reason.SOURCE_LIST_EMPTY, f"{flow.source} lists no topic at all: nothing is deleted"
        elif len(gone) > most:
            reason = Reason.TOO_MANY_DELETIONS
            text = f"{len(gone)} copies would be deleted at once, more than topic.deletions.max={most}: none is"
        else:
            kind, text = ActionKind.DELETE, "on.source.topic.deleted=delete"
    return [Action(kind, one.source.topic, one.remote_topic, reason, text) for one in gone]
