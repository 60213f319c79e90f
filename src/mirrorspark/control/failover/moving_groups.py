"""Groups in a failover: what is in the way of moving them, and their last sync, exact and proved by a second look.

With the source at hand, from its commits by the ledger; without it, by the newest checkpoints on the target. A group with
members on the target is never written. Called for the checks and by the step ``groups``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_admin import GroupAdmin
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.failover.record import Mode, Outcome
from mirrorspark.control.group_sync import read_checkpoints
from mirrorspark.control.group_view import GroupDescription, GroupPartition, GroupView, UnknownGroup
from mirrorspark.control.target_groups import TargetGroups, Wanted
from mirrorspark.errors import MirrorError
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.group_sync import Synced, Verdict
from mirrorspark.offsets.translation import Reason
from mirrorspark.plan.group_filter import GroupFilter
from mirrorspark.plan.replication_policy import policy_for
from mirrorspark.settings import FlowSettings

__all__ = [
    "GroupChecks",
    "GroupChoice",
    "GroupsInTheWay",
    "check_groups",
    "move_groups",
    "move_groups_by_checkpoints",
    "view_groups",
]

TIMEOUT_S = 120.0
GROUPS_PER_WRITE_MAX = 500
PROBLEMS_TOLD_MAX = 20
NAMES_TOLD_MAX = 5
_NOT_IN_USE = ("Empty", "Dead", "")
_FALLS_SHORT = (Reason.AHEAD.value, Reason.UNKNOWN.value)
"""What a drain mends: the group is ahead of the copy."""


class GroupsInTheWay(MirrorError):
    code = "GROUPS_IN_THE_WAY"


@dataclass(frozen=True, slots=True)
class GroupChoice:
    """Which groups move: all that the flow's filter takes, or those that are named; without those that are left alone."""

    only: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()
    allow_inexact: bool = False


@dataclass(frozen=True)
class GroupChecks:
    """``in_the_way`` keeps a failover from going on, ``notices`` do not. Each text names its group."""

    in_the_way: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


# -- look --------------------------------------------------------------------------------------------------------------


async def view_groups(view: GroupView, choice: GroupChoice) -> list[GroupDescription]:
    """Those that move and read something of the flow. Raises UnknownGroup for a name that is on no cluster."""
    found = [await view.describe(name) for name in choice.only] if choice.only else await view.list_all()
    known = {one.group for one in found} | view.refused.keys()
    for name in (name for name in choice.left_alone if name not in known):
        await view.describe(name)
    return [one for one in found if one.group not in choice.left_alone and one.partitions]


def check_groups(
    found: Sequence[GroupDescription],
    mode: Mode,
    choice: GroupChoice,
    *,
    is_last: bool,
    refused: Mapping[str, Exception] | None = None,
    more: Iterable[str] = (),
) -> GroupChecks:
    """``is_last``: nothing more will be carried; before that, what a drain mends is not in the way. ``refused``: groups that
    a cluster does not let us look at. ``more``: what else the look had to say."""
    notices: list[str] = [*more]
    in_the_way = [
        f"group {name} cannot be looked at: {error}. Give --leave-group {name} if it shall stay where it is"
        for name, error in sorted((refused or {}).items())
        if name not in choice.left_alone
    ]
    for one in found:
        if one.in_use_on_target:
            in_the_way.append(
                f"group {one.group} is in use on the target ({one.target_members} members): stop its consumers there; or "
                f"give --leave-group {one.group} if it has moved already"
            )
        if one.state not in _NOT_IN_USE:
            text = f"group {one.group} still reads on the source ({one.state}): stop its consumers there"
            (in_the_way if mode is Mode.DRAIN else notices).append(text)
        for part in one.partitions:
            text, stops = _inexact(one.group, part, mode, choice, is_last)
            if text:
                (in_the_way if stops else notices).append(text)
            if part.verdict == Verdict.TARGET_AHEAD.value:
                notices.append(
                    f"group {one.group} is further on the target in {part.remote_topic}-{part.partition} "
                    f"({part.target_offset}, by the source {part.downstream_offset}): it is not taken back"
                )
        if one.left_out:
            topics = ", ".join(sorted(one.left_out)[:NAMES_TOLD_MAX])
            notices.append(f"group {one.group} also reads topics that the flow does not carry: {topics}")
    return GroupChecks(tuple(in_the_way), tuple(notices), tuple(one.group for one in found))


def _inexact(group: str, part: GroupPartition, mode: Mode, choice: GroupChoice, is_last: bool) -> tuple[str, bool]:
    """What is to be said of one partition, and whether it is in the way."""
    at = f"group {group}, {part.topic}-{part.partition} at {part.upstream_offset}"
    if part.is_beyond_end:
        return (
            f"{at}: beyond the end of the source's log, {part.upstream_end}: reset the group, or leave it alone",
            True,
        )
    if part.exact:
        return "", False
    falls_short = part.reason in _FALLS_SHORT
    if falls_short and not is_last:
        return f"{at}: ahead of the copy, {part.downstream_offset}", False
    if falls_short and mode is Mode.CUT and part.downstream_offset is not None:
        return f"{at}: has read records that never arrived; it goes on at the end of the copy", False
    if part.downstream_offset is None:
        return f"{at}: cannot be translated: {part.reason}", mode is Mode.DRAIN
    allowed = "" if choice.allow_inexact else "; --allow-inexact lets it read some records again"
    return f"{at}: not exact: {part.reason}{allowed}", not choice.allow_inexact


# -- move --------------------------------------------------------------------------------------------------------------


@dataclass
class Moved:
    written: int = 0
    in_step: int = 0
    ahead: list[str] = field(default_factory=list)

    def take(self, verdicts: Mapping[tuple[str, TopicPartition], Verdict]) -> None:
        for (group, remote), verdict in verdicts.items():
            if verdict.writes:
                self.written += 1
            elif verdict is Verdict.IN_STEP:
                self.in_step += 1
            else:
                self.ahead.append(f"{group} {remote}")


async def move_groups(settings: FlowSettings, mode: Mode, choice: GroupChoice) -> Outcome:
    """From the source's own commits. Nothing is written if one group is in the way. Raises GroupsInTheWay."""
    async with GroupView(settings) as view:
        found = await view_groups(view, choice)
        checked = check_groups(found, mode, choice, is_last=True, refused=view.refused)
        if checked.in_the_way:
            raise _in_the_way(checked.in_the_way)
        wanted = {
            one.group: {
                TopicPartition(part.remote_topic, part.partition): Wanted(
                    Synced(part.upstream_offset, part.downstream_offset), part.metadata
                )
                for part in one.partitions
                if part.downstream_offset is not None
            }
            for one in found
        }
        moved = await _write(view.target, wanted)
        again = await view_groups(view, choice)
        behind = [
            f"{one.group} {part.remote_topic}-{part.partition}: {part.target_offset} rather than {part.downstream_offset}"
            for one in again
            for part in one.partitions
            if part.downstream_offset is not None and (part.target_offset or 0) < part.downstream_offset
        ]
        if behind:
            raise GroupsInTheWay(f"groups moved while they were written: {'; '.join(behind[:PROBLEMS_TOLD_MAX])}")
    exact = all(one.is_exact for one in found)
    return _outcome(moved, wanted, "exactly" if exact else "not all exactly", checked.notices)


async def move_groups_by_checkpoints(settings: FlowSettings, target: ClusterClient, choice: GroupChoice) -> Outcome:
    """The source cannot be asked: as far as its groups were known last. Raises GroupsInTheWay, UnknownGroup."""
    deadline = Deadline(TIMEOUT_S)
    topic = policy_for(settings).checkpoints_topic(settings.flow.source)
    (listed,) = await target.refresh([topic], deadline)
    if listed.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        raise broker_error(listed.error_code, "Metadata", f"topic {topic} on {target.alias}", before="Fetch")
    if listed.error_code:
        text = f"the source cannot be asked, and {topic} is not on the target: groups start where they are there"
        return Outcome(text, {"groups": 0, "written": 0, "by": "checkpoints", "notices": [text]})
    found, damaged = await read_checkpoints(KeyedTopic(target, topic), deadline)
    chosen = GroupFilter(settings.group_sync.groups, settings.group_sync.groups_exclude)
    wanted: dict[str, dict[TopicPartition, Wanted]] = {}
    for (group, remote), one in found.items():
        is_meant = group in choice.only if choice.only else chosen.refusal(group) is None
        if is_meant and group not in choice.left_alone:
            synced = Synced(one.upstream_offset, one.downstream_offset)
            wanted.setdefault(group, {})[remote] = Wanted(synced, one.metadata)
    for name in choice.only:
        if name not in wanted and name not in choice.left_alone:
            raise UnknownGroup(f"{topic} has no checkpoint of group {name}, and the source cannot be asked", group=name)
    states = await GroupAdmin(target).describe(wanted, deadline)
    used = [
        f"group {group} is in use on the target ({state.members} members): stop its consumers there; or give --leave-group "
        f"{group} if it has moved already"
        for group, state in sorted(states.found.items())
        if not state.is_free
    ]
    if used:
        raise _in_the_way(used)
    moved = await _write(target, wanted)
    notices = [f"{damaged} records of {topic} cannot be read and are left out"] if damaged else []
    return _outcome(moved, wanted, "as of their last checkpoints", notices)


async def _write(target: ClusterClient, wanted: Mapping[str, Mapping[TopicPartition, Wanted]]) -> Moved:
    moved = Moved()
    names = [name for name in sorted(wanted) if wanted[name]]
    topics = sorted({remote.topic for offsets in wanted.values() for remote in offsets})
    if topics:
        await target.refresh(topics, Deadline(TIMEOUT_S))
    writer = TargetGroups(target)
    try:
        for first in range(0, len(names), GROUPS_PER_WRITE_MAX):
            some = names[first : first + GROUPS_PER_WRITE_MAX]
            outcome = await writer.sync({name: wanted[name] for name in some})
            problems = [
                f"group {name} came into use on the target ({state})" for name, state in outcome.members.items()
            ]
            problems += [f"group {name}: {error}" for name, error in outcome.refused.items()]
            if problems:
                raise _in_the_way(problems)
            moved.take(outcome.verdicts)
    finally:
        writer.close()
    return moved


def _in_the_way(problems: Sequence[str]) -> GroupsInTheWay:
    more = [f"… and {len(problems) - PROBLEMS_TOLD_MAX} more"] if len(problems) > PROBLEMS_TOLD_MAX else []
    return GroupsInTheWay("\n".join([*problems[:PROBLEMS_TOLD_MAX], *more]))


def _outcome(moved: Moved, wanted: Mapping[str, object], how: str, notices: Iterable[str]) -> Outcome:
    facts = {
        "groups": len(wanted),
        "names": sorted(wanted)[:GROUPS_PER_WRITE_MAX],
        "written": moved.written,
        "in_step": moved.in_step,
        "ahead": moved.ahead[:PROBLEMS_TOLD_MAX],
        "how": how,
        "notices": list(notices)[:PROBLEMS_TOLD_MAX],
    }
    text = f"{len(wanted)} groups, {how}: {moved.written} offsets written, {moved.in_step} were in step"
    return Outcome(text + (f", {len(moved.ahead)} are further on the target" if moved.ahead else ""), facts)
