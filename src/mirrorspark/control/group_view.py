"""The groups of one flow as they stand on both clusters: listed, described, translated. Changes nothing.

Asks the clusters themselves, so it does not matter where the mirror runs, or whether it does. Plain functions of an open
``GroupView``, for commands and whoever else wants to show it; values are frozen and go to JSON by ``asdict``.
"""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_admin import GroupAdmin, GroupOffset, GroupState, ListedGroup
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.log_reader import LATEST, list_offsets
from mirrorspark.control.flow_on_target import NeverRan
from mirrorspark.control.flow_runtime import reach_cluster
from mirrorspark.control.group_sync import read_checkpoints
from mirrorspark.control.group_translation import GroupTranslation
from mirrorspark.errors import BrokerError, MirrorError, SettingsError
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.group_sync import Synced, Verdict, decide
from mirrorspark.plan.group_filter import GroupFilter
from mirrorspark.settings import FlowSettings

__all__ = ["GroupDescription", "GroupPartition", "GroupView", "UnknownGroup"]

READ_TIMEOUT_S = 60.0
NAMES_SHOWN_MAX = 5


class UnknownGroup(SettingsError):
    code = "UNKNOWN_GROUP"


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """One partition of a group. Offsets are None where nobody can say; ``exact`` and ``reason`` are the translation's."""

    topic: str
    partition: int
    remote_topic: str
    upstream_offset: int
    upstream_end: int | None
    lag: int | None
    downstream_offset: int | None
    exact: bool
    reason: str
    target_offset: int | None
    verdict: str | None
    metadata: str
    is_beyond_end: bool = False
    """The group committed an offset that the source's log does not reach: the topic was made anew, or lost records."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group: str
    kind: str
    state: str
    chosen: bool
    why_not_chosen: str
    target_state: str
    target_members: int
    partitions: tuple[GroupPartition, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    """Topics that the group reads and the flow does not carry, and why."""

    @property
    def lag(self) -> int | None:
        lags = [one.lag for one in self.partitions]
        return sum(one or 0 for one in lags) if any(one is not None for one in lags) else None

    @property
    def is_exact(self) -> bool:
        return all(one.exact for one in self.partitions)

    @property
    def in_use_on_target(self) -> bool:
        return self.target_members > 0

    @property
    def is_in_step(self) -> bool:
        """Whether a consumer that moves to the target now goes on at the very next record."""
        return self.is_exact and all(one.target_offset == one.downstream_offset for one in self.partitions)

    @property
    def word(self) -> str:
        """How the target's group stands, in a few words."""
        if not self.partitions:
            return "reads nothing of this flow"
        if self.in_use_on_target:
            return f"in use on the target ({self.target_members} members)"
        if self.is_in_step:
            return "in step"
        ahead = [one for one in self.partitions if one.verdict == Verdict.TARGET_AHEAD]
        if ahead:
            return f"ahead on the target in {len(ahead)} partitions"
        missing = sum(one.target_offset is None for one in self.partitions)
        return "not on the target" if missing == len(self.partitions) else "behind"


class GroupView:
    """``async with`` reaches both clusters and reads the ledger. Raises NeverRan where there is none."""

    def __init__(self, settings: FlowSettings) -> None:
        flow = settings.flow
        self.settings = settings
        self._source = ClusterClient(settings.source, f"mirrorspark|{flow}|command")
        self.target = ClusterClient(settings.target, f"mirrorspark|{flow}|command")
        self._translation = GroupTranslation(self._source, self.target, settings)
        self._chosen = GroupFilter(settings.group_sync.groups, settings.group_sync.groups_exclude)
        self._ours: dict[tuple[str, TopicPartition], Synced] = {}
        self.remarks: list[str] = []
        self.refused: dict[str, BrokerError] = {}
        """Groups that the last listing could not look at, on either cluster."""

    @property
    def notices(self) -> list[str]:
        """All that a person should know of what is shown."""
        return [*self.remarks, *(f"group {name} is left out: {error}" for name, error in sorted(self.refused.items()))]

    async def __aenter__(self) -> GroupView:
        try:
            await reach_cluster(self._source)
            await reach_cluster(self.target)
            await self._read()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._source.close()
        self.target.close()

    async def _read(self) -> None:
        flow, deadline = self.settings.flow, Deadline(READ_TIMEOUT_S)
        try:
            await self._translation.read(deadline)
        except BrokerError as error:
            raise NeverRan(
                f"flow {flow}: {error}: no mirrorspark has run this flow there yet, or the topic may not be seen"
            ) from error
        if self._translation.damaged_entries:
            self.remarks.append(
                f"{self._translation.damaged_entries} records of the ledger cannot be read and are left out; "
                "offsets that they told of are translated to an earlier one, never to a later one"
            )
        topic = KeyedTopic(self.target, self._translation.checkpoints_topic)
        (found,) = await self.target.refresh([topic.topic])
        if found.error_code == 0:
            checkpoints, damaged = await read_checkpoints(topic, deadline)
            self._ours = {
                place: Synced(one.upstream_offset, one.downstream_offset) for place, one in checkpoints.items()
            }
            self._translation.checkpoints = self._ours
            if damaged:
                self.remarks.append(f"{damaged} records of {topic.topic} are no checkpoints and are left out")

    # -- list and describe ------------------------------------------------------------------------------------------

    async def list_all(self) -> list[GroupDescription]:
        """Every group of the source that the flow's filter takes, by name; share groups only with their names."""
        listed = await GroupAdmin(self._source).list_groups(Deadline(READ_TIMEOUT_S))
        shared = sorted(name for name, group in listed.items() if group.is_share and not self._chosen.refusal(name))
        if shared:
            names = ", ".join(shared[:NAMES_SHOWN_MAX]) + (" …" if len(shared) > NAMES_SHOWN_MAX else "")
            self.remarks.append(f"{len(shared)} share groups are not handled, they have no offsets to carry: {names}")
        wanted = [
            group
            for name, group in sorted(listed.items())
            if group.commits_offsets and self._chosen.refusal(name) is None
        ]
        described, refused = await self._describe(wanted)
        self.refused = {**refused, **await self._hidden(listed)}
        return described

    async def _hidden(self, listed: Container[str]) -> dict[str, BrokerError]:
        """Groups that the file names, or that had checkpoints, and that the source does not list: it leaves out what we may
        not see, and says so when it is asked by name."""
        known = {*self._chosen.named, *(group for group, _ in self._ours)}
        unlisted = sorted(name for name in known if name not in listed and self._chosen.refusal(name) is None)
        answers = await GroupAdmin(self._source).offsets(dict.fromkeys(unlisted), Deadline(READ_TIMEOUT_S))
        return answers.refused

    async def describe(self, group: str) -> GroupDescription:
        """Raises UnknownGroup."""
        listed = await GroupAdmin(self._source).list_groups(Deadline(READ_TIMEOUT_S))
        if group not in listed:
            raise self._unknown(group, listed)
        if listed[group].is_share:
            raise UnknownGroup(f"{group} is a share group: those have no offsets that could be carried", group=group)
        described, refused = await self._describe([listed[group]])
        if group in refused:
            raise refused[group]
        return described[0]

    async def _describe(self, groups: list[ListedGroup]) -> tuple[list[GroupDescription], dict[str, BrokerError]]:
        """Both sides put together, and why not, for groups that a cluster does not show to us."""
        deadline = Deadline(READ_TIMEOUT_S)
        names = [group.name for group in groups]
        committed = await GroupAdmin(self._source).offsets(dict.fromkeys(names), deadline)
        there = GroupAdmin(self.target)
        states = await there.describe(names, deadline)
        theirs = await there.offsets(dict.fromkeys(names), deadline)
        refused = {**committed.refused, **states.refused, **theirs.refused}
        partitions = {at for offsets in committed.found.values() for at in offsets}
        await self._translation.look_at_logs(partitions, deadline)
        ends = await self._ends(partitions, deadline)
        return [
            self._put_together(
                group, committed.found[group.name], ends, states.found[group.name], theirs.found[group.name]
            )
            for group in groups
            if group.name not in refused
        ], refused

    def _put_together(
        self,
        group: ListedGroup,
        committed: dict[TopicPartition, GroupOffset],
        ends: dict[TopicPartition, int],
        state: GroupState,
        theirs: dict[TopicPartition, GroupOffset],
    ) -> GroupDescription:
        refusal = self._chosen.refusal(group.name)
        partitions = []
        left_out = {}
        for at, (offset, metadata) in sorted(committed.items()):
            found = self._partition(group.name, at, offset, metadata, ends.get(at), theirs)
            if found is None:
                left_out[at.topic] = self._translation.why_not(at.topic)
            else:
                partitions.append(found)
        return GroupDescription(
            group.name,
            group.kind or group.protocol_type,
            group.state,
            refusal is None,
            str(refusal or ""),
            state.state if state.is_there else "not there",
            state.members,
            tuple(partitions),
            left_out,
        )

    def _partition(
        self,
        group: str,
        at: TopicPartition,
        offset: int,
        metadata: str,
        end: int | None,
        theirs: dict[TopicPartition, GroupOffset],
    ) -> GroupPartition | None:
        found = self._translation.translate(at, offset, group)
        if found is None:
            return None
        remote, answer = found
        there = theirs[remote][0] if remote in theirs else None
        verdict = None
        if answer.downstream_offset is not None:
            verdict = decide(Synced(offset, answer.downstream_offset), there, self._ours.get((group, remote))).value
        return GroupPartition(
            at.topic,
            at.partition,
            remote.topic,
            offset,
            end,
            None if end is None else max(0, end - offset),
            answer.downstream_offset,
            answer.exact,
            answer.reason.value,
            there,
            verdict,
            metadata,
            end is not None and offset > end,
        )

    async def _ends(self, partitions: Iterable[TopicPartition], deadline: Deadline) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        await self._source.refresh(sorted({at.topic for at in wanted}), deadline)
        return await list_offsets(
            self._source, [at for at in wanted if self._source.leader(at) is not None], LATEST, deadline
        )

    def _unknown(self, group: str, listed: Iterable[str]) -> UnknownGroup:
        close = difflib.get_close_matches(group, list(listed), NAMES_SHOWN_MAX)
        hint = f"; there is {', '.join(close)}" if close else "; mirrorspark groups list shows those that there are"
        return UnknownGroup(f"group {group} is not on cluster {self._source.alias}{hint}", group=group)

    # -- translate --------------------------------------------------------------------------------------------------

    async def translate(self, topic: str, partition: int, offset: int) -> GroupPartition:
        """An offset of the source, without any group. Raises MirrorError for a place that is not there or not carried."""
        at, deadline = TopicPartition(topic, partition), Deadline(READ_TIMEOUT_S)
        if self._translation.destination(topic) is None:
            raise SettingsError(
                f"--topic {topic}: not carried by {self.settings.flow}: {self._translation.why_not(topic)}"
            )
        await self._source.refresh([topic], deadline)
        if self._source.leader(at) is None:
            raise SettingsError(f"{at} is not on cluster {self._source.alias}, or has no leader there now")
        await self._translation.look_at_logs([at], deadline)
        end = (await self._ends([at], deadline))[at]
        if not 0 <= offset <= end:
            raise SettingsError(
                f"--offset {offset}: {at} on cluster {self._source.alias} ends at {end}", key="--offset"
            )
        found = self._partition("", at, offset, "", end, {})
        if found is None:
            raise MirrorError(f"{at} has no place on cluster {self.target.alias}")
        return found
