"""What the flow back needs, so that it carries what is written on the target from now on, and nothing that came from here.

By the policy, topic by topic: where names tell (default policy) or producer ids do (same-name) the flow back leaves out what
came from the source by itself; with plain identity it must begin where the copies ended. Start positions are written as
its lanes write them, only where it has none, and only while no mirror runs it. Called as the step ``reverse``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offsets
from mirrorspark.control.failover.journal import Journal
from mirrorspark.control.failover.record import Outcome, Record, StepState
from mirrorspark.control.flow_lag import LagLook
from mirrorspark.control.flow_on_target import FlowOnTarget, NeverRan
from mirrorspark.errors import MirrorError
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.observe.flow_status import EVERYTHING
from mirrorspark.offsets.internal_topics import ledger_topic
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.position import Position, positions_group
from mirrorspark.offsets.translation_both_ways import first_not_brought
from mirrorspark.plan.desired_topics import TopicRules
from mirrorspark.settings import FlowSettings

__all__ = ["ReverseFlow", "StartRule", "prepare_reverse", "reversed_settings", "start_rule"]

TIMEOUT_S = 60.0
WATCH_S = 3.0
PAUSE_TAKEN_S_MAX = 30.0


class StartRule(StrEnum):
    """How the flow back treats a topic that came from here."""

    BY_NAME = "by.name"  # its name says where it came from: it is not carried back
    BY_ORIGIN = "by.origin"  # lanes leave out what a mirror wrote
    AT_END = "at.end"  # nothing would tell: it must begin behind the copy


@dataclass(frozen=True, slots=True)
class ReverseFlow:
    settings: FlowSettings
    is_in_file: bool
    """Whether the file has it, enabled; if not, its settings are the flow's own, turned round."""

    @property
    def flow(self) -> Flow:
        return self.settings.flow


def reversed_settings(settings: FlowSettings) -> FlowSettings:
    flow = settings.flow
    turned = Flow(flow.target, flow.source, flow.instance)
    return replace(settings, flow=turned, source=settings.target, target=settings.source)


def start_rule(rules: TopicRules, topic: str) -> StartRule:
    """``rules`` of the flow back; ``topic`` is a remote topic of the flow, as it is called on the target."""
    if not rules.wants(topic):
        return StartRule.BY_NAME
    return StartRule.BY_ORIGIN if rules.policy.needs_origin_check else StartRule.AT_END


async def prepare_reverse(look: LagLook, reverse: ReverseFlow, record: Record) -> Outcome:
    """Raises MirrorError where a mirror that runs is in the way."""
    if look.source is None:
        text = f"cluster {look.settings.flow.source} cannot be reached: nothing can be set up there yet"
        return Outcome(text, {"notices": [text]}, StepState.POSTPONED)
    is_running = await _is_running(reverse.settings)
    rules = TopicRules(reverse.settings)
    assignments = {one.remote: one.source for one in look.there.assignments}
    chosen = {remote: start_rule(rules, remote.topic) for remote in assignments}
    starts = await _starts(look, reverse, chosen, record, is_running)
    if starts:
        back = GroupPositions(look.source, positions_group(reverse.flow))
        await back.commit({at: position.to_commit() for at, position in starts.items()}, Deadline(TIMEOUT_S))
    resumed = await _resume(reverse.settings)
    facts: dict[str, Any] = {
        "flow": str(reverse.flow),
        "in_file": reverse.is_in_file,
        "running": is_running,
        "rules": sorted({rule.value for rule in chosen.values()}),
        "start_positions": len(starts),
        "resumed": resumed,
    }
    return Outcome(_words(reverse, facts), facts)


def _words(reverse: ReverseFlow, facts: Mapping[str, Any]) -> str:
    parts = [f"{reverse.flow} leaves out what came from here"]
    if facts["start_positions"]:
        parts.append(f"{facts['start_positions']} start positions written")
    if facts["resumed"]:
        parts.append("its pause was lifted")
    parts.append("its mirror runs" if facts["running"] else "no mirror runs it yet")
    return ", ".join(parts)


async def _is_running(settings: FlowSettings) -> bool:
    try:
        async with FlowOnTarget(settings) as there:
            await there.watch(WATCH_S)
            return there.is_carried
    except NeverRan:
        return False


async def _resume(settings: FlowSettings) -> bool:
    """Lift the pause that an earlier failover of the flow back left; a person's own pause stays."""
    try:
        async with FlowOnTarget(settings) as there:
            journal = Journal(there.target, settings.flow)
            record = await journal.read()
            is_ours = record is not None and record.is_in_force
            if is_ours and EVERYTHING in there.paused:
                await there.watch(WATCH_S)
                await there.pause(frozenset(), PAUSE_TAKEN_S_MAX if there.is_carried else 0.0)
            if is_ours:
                await journal.mark_returned()
            return is_ours
    except NeverRan:
        return False


# -- start positions ---------------------------------------------------------------------------------------------------


async def _starts(
    look: LagLook, reverse: ReverseFlow, chosen: Mapping[TopicPartition, StartRule], record: Record, is_running: bool
) -> dict[TopicPartition, Position]:
    """By partition on the flow back's target, which is our source."""
    assert look.source is not None
    needed = {remote: rule for remote, rule in chosen.items() if rule is not StartRule.BY_NAME}
    must_begin_there = [remote for remote, rule in needed.items() if rule is StartRule.AT_END]
    if must_begin_there and is_running:
        raise MirrorError(
            f"a mirror runs {reverse.flow}, and its policy cannot tell what came from {look.settings.flow.source}: stop it, "
            "then run this again"
        )
    if not needed or is_running:
        return {}
    policy = TopicRules(reverse.settings).policy
    places = {remote: TopicPartition(policy.remote(remote.topic), remote.partition) for remote in needed}
    deadline = Deadline(TIMEOUT_S)
    await look.source.refresh(sorted({at.topic for at in places.values()}), deadline)
    await look.target.refresh(sorted({at.topic for at in places}), deadline)
    held = await GroupPositions(look.source, positions_group(reverse.flow)).fetch_all(deadline)
    fresh = {
        remote: at
        for remote, at in places.items()
        if (needed[remote] is StartRule.AT_END or at not in held)
        and look.source.leader(at) is not None
        and look.target.leader(remote) is not None
    }
    upstream = await _upstream_starts(look, needed, fresh, record, deadline)
    ends = await list_offsets(look.source, list(fresh.values()), LATEST, deadline)
    return {
        at: Position(
            upstream[remote],
            ends[at],
            _topic_id(look.target, remote.topic),
            -1,
            None,
            remote_id=_topic_id(look.source, at.topic),
        )
        for remote, at in fresh.items()
        if remote in upstream
    }


async def _upstream_starts(
    look: LagLook,
    needed: Mapping[TopicPartition, StartRule],
    fresh: Mapping[TopicPartition, TopicPartition],
    record: Record,
    deadline: Deadline,
) -> dict[TopicPartition, int]:
    """Where the flow back begins to read: behind the copy, or, where lanes look at origins, at the first offset that the
    ledger does not claim for us. Left out where that is the log's own start."""
    ends = record.facts("hold").get("downstream_ends", {})
    starts = await list_offsets(look.target, list(fresh), EARLIEST, deadline)
    ledger = LedgerStore()
    if any(needed[remote] is StartRule.BY_ORIGIN for remote in fresh):
        for entry in await KeyedTopic(look.target, ledger_topic(look.settings.flow.books)).catch_up(deadline):
            ledger.fold(*entry)
    found = {}
    for remote in fresh:
        if needed[remote] is StartRule.AT_END:
            end = ends.get(remote.topic, {}).get(str(remote.partition))
            if end is not None:
                found[remote] = int(end)
        else:
            first = first_not_brought(ledger, remote, starts[remote])
            if first > starts[remote]:
                found[remote] = first
    return found


def _topic_id(client: ClusterClient, topic: str) -> str:
    known = client.topics.get(topic)
    return known.topic_id.hex() if known is not None and any(known.topic_id) else ""
