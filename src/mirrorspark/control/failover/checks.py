"""What is looked at before anything is changed, each as a finding: fine, worth a word, or in the way. Pure.

``failover`` gathers the values; the same findings are shown by a dry run and before the act.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from mirrorspark.control.dry_run import DryRun
from mirrorspark.control.failover.moving_groups import GroupChecks
from mirrorspark.control.failover.record import Mode, Record
from mirrorspark.control.failover.reverse_flow import ReverseFlow
from mirrorspark.control.failover.stranded import find_stranded
from mirrorspark.control.flow_lag import FlowLag
from mirrorspark.observe.flow_status import EVERYTHING, FlowStatus
from mirrorspark.plan.start_positions import StartKind, flow_start
from mirrorspark.settings import FlowSettings

__all__ = ["Finding", "Level", "Standing", "check"]

TOLD_MAX = 20


class Level(StrEnum):
    FINE = "ok"
    NOTICE = "notice"
    IN_THE_WAY = "stop"


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.level.value:6} {self.subject}: {self.text}"


@dataclass(frozen=True)
class Standing:
    """Everything that was looked at. ``groups`` and ``drift`` are None where the source cannot be asked."""

    settings: FlowSettings
    mode: Mode
    lag: FlowLag
    status: FlowStatus
    is_carried: bool
    """Whether a mirror is at work on the flow."""
    paused: frozenset[str]
    record: Record | None
    groups: GroupChecks | None
    drift: DryRun | None
    reverse: ReverseFlow


def check(it: Standing) -> list[Finding]:
    return [
        _source(it),
        *_lag(it),
        *_mirror(it),
        *_groups(it),
        *_drift(it),
        *_reverse(it),
    ]


def _source(it: Standing) -> Finding:
    alias = it.settings.flow.source
    if not it.lag.source_error:
        return Finding(Level.FINE, "source", f"cluster {alias} answers")
    if it.mode is Mode.CUT:
        return Finding(Level.NOTICE, "source", f"cluster {alias} cannot be reached: {it.lag.source_error}")
    text = f"cluster {alias} cannot be reached, so nothing can be drained: {it.lag.source_error}"
    return Finding(Level.IN_THE_WAY, "source", f"{text}. --cut takes what is on the target")


def _lag(it: Standing) -> list[Finding]:
    if it.lag.source_error:
        return []
    stranded = find_stranded(it.lag)
    if not stranded.count:
        found = [Finding(Level.FINE, "lag", f"nothing behind in {len(it.lag.counted)} partitions")]
    elif it.mode is Mode.DRAIN:
        found = [Finding(Level.FINE, "lag", f"{stranded.records} records to drain in {stranded.count} partitions")]
    else:
        text = f"{stranded.records} records in {stranded.count} partitions have not arrived and would be left behind"
        found = [Finding(Level.NOTICE, "lag", text)]
        found += [Finding(Level.NOTICE, "left behind", str(one)) for one in stranded.partitions[:TOLD_MAX]]
    return [*found, *(Finding(Level.NOTICE, "lag", text) for text in it.lag.notices[:TOLD_MAX])]


def _mirror(it: Standing) -> list[Finding]:
    found = []
    ours = it.record is not None and it.record.is_holding
    is_behind = bool(it.lag.behind) and not it.lag.source_error
    if EVERYTHING in it.paused and not ours and it.mode is Mode.DRAIN:
        text = "the flow is paused, nothing would be drained: mirrorspark resume first, or --cut"
        found.append(Finding(Level.IN_THE_WAY, "mirror", text))
    elif it.paused and not ours:
        names = ", ".join(sorted(it.paused)[:TOLD_MAX])
        level = Level.IN_THE_WAY if it.mode is Mode.DRAIN else Level.NOTICE
        found.append(Finding(level, "mirror", f"paused: {names}; mirrorspark resume lets them go on"))
    if it.is_carried:
        found.append(Finding(Level.FINE, "mirror", "runs"))
    elif it.mode is Mode.DRAIN and is_behind and not ours:
        text = "no mirror runs, so nothing would be drained: start it, or give --cut"
        found.append(Finding(Level.IN_THE_WAY, "mirror", text))
    else:
        found.append(Finding(Level.NOTICE, "mirror", "no mirror runs the flow now"))
    waiting = sorted(it.status.waiting.items())[:TOLD_MAX]
    level = Level.IN_THE_WAY if it.mode is Mode.DRAIN and is_behind else Level.NOTICE
    found += [Finding(level, "waiting", f"{place}: {why}") for place, why in waiting]
    if it.status.events:
        text = f"{len(it.status.events)} events that nobody acknowledged: see mirrorspark events"
        found.append(Finding(Level.NOTICE, "events", text))
    return found


def _groups(it: Standing) -> list[Finding]:
    if it.groups is None:
        text = "the source cannot be asked: groups go on where their last checkpoints say"
        return [Finding(Level.NOTICE, "groups", text)]
    found = [Finding(Level.IN_THE_WAY, "groups", text) for text in _some(it.groups.in_the_way)]
    found += [Finding(Level.NOTICE, "groups", text) for text in _some(it.groups.notices)]
    if not it.groups.in_the_way:
        found.append(Finding(Level.FINE, "groups", f"{len(it.groups.groups)} groups can move"))
    return found


def _some(texts: Sequence[str]) -> list[str]:
    more = [f"… and {len(texts) - TOLD_MAX} more"] if len(texts) > TOLD_MAX else []
    return [*texts[:TOLD_MAX], *more]


def _drift(it: Standing) -> list[Finding]:
    if it.drift is None:
        return []
    differ = [one for one in it.drift.verdicts if one.sent]
    found = [
        Finding(
            Level.NOTICE, "settings", f"{one.action.remote} differs: {', '.join(change.name for change in one.sent)}"
        )
        for one in differ[:TOLD_MAX]
    ]
    if it.drift.acls.changes:
        changes = it.drift.acls.changes
        text = f"{len(changes.grant)} are not on the target yet, {len(changes.revoke)} are still there: see mirrorspark plan"
        found.append(Finding(Level.NOTICE, "ACLs", text))
    if not found:
        found.append(Finding(Level.FINE, "settings", "settings and ACLs of the topics are in step"))
    return found


def _reverse(it: Standing) -> list[Finding]:
    reverse = it.reverse
    if not reverse.is_in_file:
        text = f"{reverse.flow} is not enabled in the file; the report says what to add"
        return [Finding(Level.NOTICE, "flow back", text)]
    found = [Finding(Level.FINE, "flow back", f"{reverse.flow} is in the file")]
    if flow_start(reverse.settings).kind is StartKind.LATEST:
        text = f"{reverse.flow} begins at the end of topics that are new to it: start it before producers write there"
        found.append(Finding(Level.NOTICE, "flow back", text))
    return found
