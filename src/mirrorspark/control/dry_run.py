"""What a flow would do to its target if it ran now: the same decisions as the running flow's, carried out by nobody.

Reads both clusters (topics, settings, ACLs) and what the flow last published on its plan and status topics; writes nothing.
The command ``plan`` shows the result.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Container, Coroutine
from dataclasses import dataclass, field
from typing import Any

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.topic_configs import describe_configs
from mirrorspark.control.acl_sync import ACLS_KEY, AclLook, look_at_acls, parse_granted
from mirrorspark.control.cluster_snapshot import inflows_of, seen
from mirrorspark.control.config_sync import Drift, differences
from mirrorspark.control.ending import end_tasks
from mirrorspark.control.flow_runtime import reach_cluster
from mirrorspark.control.plan_record import read_plan
from mirrorspark.names import TopicAcl
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.offsets.internal_topics import PLAN_KEY, plan_topic, status_topic
from mirrorspark.plan.config_rules import SettingChange
from mirrorspark.plan.desired_topics import Action, ActionKind, TopicRules, desired_topics
from mirrorspark.plan.lanes import Assignment
from mirrorspark.settings import FlowSettings

__all__ = ["DryRun", "TopicVerdict", "dry_run"]

READ_TIMEOUT_S = 30.0
IN_PLACE = (ActionKind.CARRY, ActionKind.GROW)
CHANGE = "change"
"""What is shown for a topic that is carried as it is but for its settings."""


@dataclass(frozen=True, slots=True)
class TopicVerdict:
    """What becomes of one topic: the action, the settings that would change, those that it would be created with."""

    action: Action
    changes: tuple[SettingChange, ...] = ()
    created_with: tuple[tuple[str, str], ...] = ()

    @property
    def word(self) -> str:
        is_in_step = self.action.kind is ActionKind.CARRY and not self.sent
        return self.action.kind.value if is_in_step or self.action.kind is not ActionKind.CARRY else CHANGE

    @property
    def sent(self) -> tuple[SettingChange, ...]:
        return tuple(one for one in self.changes if one.is_sent)

    @property
    def is_pending(self) -> bool:
        return self.action.changes_target or bool(self.sent)


@dataclass
class DryRun:
    """``notices`` are what keeps the picture from being whole, each with its reason."""

    flow: str
    verdicts: list[TopicVerdict] = field(default_factory=list)
    acls: AclLook = field(default_factory=AclLook)
    notices: list[str] = field(default_factory=list)
    skipped_by_origin: dict[str, dict[str, int]] = field(default_factory=dict)
    """As ``FlowStatus``, of the flow's newest run; empty where names are not kept."""

    @property
    def is_pending(self) -> bool:
        return bool(self.acls.changes) or any(one.is_pending for one in self.verdicts)

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(one.word for one in self.verdicts))


@dataclass(frozen=True)
class _Published:
    """What an earlier run of the flow left on the plan topic."""

    carried: tuple[Assignment, ...] = ()
    granted: frozenset[TopicAcl] = frozenset()
    generation: int | None = None


async def dry_run(settings: FlowSettings) -> DryRun:
    """Raises what keeps a cluster from being reached or read."""
    source = ClusterClient(settings.source, f"mirrorspark|{settings.flow}|plan")
    target = ClusterClient(settings.target, f"mirrorspark|{settings.flow}|plan")
    try:
        await _reach(source, target)
        return await _look(settings, source, target)
    finally:
        source.close()
        target.close()


async def _reach(*clients: ClusterClient) -> None:
    await _side_by_side(*(reach_cluster(client) for client in clients))


async def _side_by_side(*works: Coroutine[Any, Any, Any]) -> list[Any]:
    """The first one that fails is enough, and none goes on after it."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await end_tasks(tasks)


async def _look(settings: FlowSettings, source: ClusterClient, target: ClusterClient) -> DryRun:
    result = DryRun(str(settings.flow))
    listed, remote = map(seen, await _side_by_side(source.refresh(None), target.refresh(None)))
    rules = TopicRules(settings, inflows_of(listed, settings))
    published = await _published(target, settings, remote)
    actions = desired_topics(listed, remote, rules, published.carried)
    remote_names = {one.topic: one.remote for one in actions if one.kind in IN_PLACE}
    missing = [one for one in actions if one.kind is ActionKind.CREATE]
    drift, created, _ = await _side_by_side(
        _drift(settings, source, target, rules, remote_names, result),
        _created_with(source, rules, missing, result),
        _look_at_origins(target, rules, remote, published, result),
    )
    result.verdicts = [
        TopicVerdict(one, tuple(drift.changes.get(one.remote, ())), tuple(created.get(one.topic, {}).items()))
        for one in actions
    ]
    if not settings.topic_sync.acls_enabled:
        result.notices.append("ACLs are not synced: sync.topic.acls.enabled=false")
    else:
        mirrored = [one.topic for one in actions if one.kind in (*IN_PLACE, ActionKind.CREATE)]
        result.acls = await look_at_acls(source, target, rules, mirrored, published.granted)
        result.notices += [result.acls.notice] if result.acls.notice else []
        result.notices += [f"cluster {who} does not show its ACLs: {why}" for who, why in result.acls.refused.items()]
    if not settings.topic_sync.refresh_enabled:
        result.notices.append("new topics and partitions are found at a start only: refresh.topics.enabled=false")
    return result


async def _published(target: ClusterClient, settings: FlowSettings, names: Container[str]) -> _Published:
    topic = plan_topic(settings.flow.books)
    if topic not in names:
        return _Published()
    newest = await KeyedTopic(target, topic).read_all(Deadline(READ_TIMEOUT_S))
    plan = read_plan(raw) if (raw := newest.get(PLAN_KEY)) else None
    carried = tuple(one for lane in plan.lanes for one in lane) if plan else ()
    return _Published(carried, parse_granted(newest.get(ACLS_KEY)), plan.owner.generation if plan else None)


async def _look_at_origins(
    target: ClusterClient, rules: TopicRules, names: Container[str], published: _Published, result: DryRun
) -> None:
    """Where names are kept: what was left out since a mirror had written it on the source."""
    settings = rules.settings
    if not rules.policy.needs_origin_check:
        return
    result.notices.append(
        f"names are kept without loops: what a mirror wrote on {settings.flow.source} is skipped, batch by batch"
    )
    topic = status_topic(settings.flow.books)
    if topic not in names or published.generation is None:
        return
    status = FlowStatus(str(settings.flow), generation=published.generation)
    for key, value in (await KeyedTopic(target, topic).read_all(Deadline(READ_TIMEOUT_S))).items():
        status.fold(key, value, fresh=False)
    result.skipped_by_origin = status.skipped_by_origin


async def _drift(
    settings: FlowSettings,
    source: ClusterClient,
    target: ClusterClient,
    rules: TopicRules,
    remote_names: dict[str, str],
    result: DryRun,
) -> Drift:
    if not settings.topic_sync.configs_enabled:
        result.notices.append("settings of topics are not synced: sync.topic.configs.enabled=false")
        return Drift()
    drift = await differences(source, target, rules.configs, remote_names)
    result.notices += [f"{topic}: its settings cannot be compared: {why}" for topic, why in drift.refused.items()]
    return drift


async def _created_with(
    source: ClusterClient, rules: TopicRules, missing: list[Action], result: DryRun
) -> dict[str, dict[str, str]]:
    described = await describe_configs(source, [one.topic for one in missing])
    result.notices += [f"{topic}: its settings on the source: {why}" for topic, why in described.refused.items()]
    return {topic: rules.configs.at_creation(settings) for topic, settings in described.settings.items()}
