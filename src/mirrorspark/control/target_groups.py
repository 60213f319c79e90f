"""Writing translated offsets to the groups on the target, and never harming one that somebody uses there.

A group with members is left alone: it is described right before the write, and the coordinator itself refuses the write if
somebody has joined since. One without is never taken back (invariant E, ``offsets.group_sync``). A commit that somebody
made between our look and our write is found in the coordinator's log afterwards, and put back. Called by
``control.group_sync`` with what changed, and by the one-shot sync.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mirrorspark.cluster.broker_errors import broker_error
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.commit_log import CommitLog
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_admin import GroupAdmin, GroupOffset, GroupState
from mirrorspark.cluster.log_reader import LATEST, list_offsets
from mirrorspark.errors import BrokerError, WireError
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.consumer_offsets_record import CONSUMER_OFFSETS_TOPIC, parse_commit
from mirrorspark.offsets.group_sync import Synced, Verdict, decide, decide_again

__all__ = ["Outcome", "TargetGroups", "Wanted"]

log = logging.getLogger("mirrorspark.groups")

DEADLINE_S = 30.0
MEMBERS_RECHECK_S, MEMBERS_RECHECK_S_MAX = 5.0, 60.0
"""A group with members is looked at again after so long, longer each time."""
REFUSED_AGAIN_S, PASSING_AGAIN_S = 60.0, 1.0
"""A refusal that needs a person, and one that passes by itself."""
UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, FENCED_MEMBER_EPOCH = 25, 22, 27, 110
_SOMEBODY_JOINED = (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, FENCED_MEMBER_EPOCH)

GroupPlace = tuple[str, TopicPartition]
"""A group and a partition, both on the target."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a target group shall have in one partition."""

    synced: Synced
    metadata: str = ""


@dataclass
class Outcome:
    """What became of each partition. ``later`` are the groups to come back to, and why."""

    verdicts: dict[GroupPlace, Verdict] = field(default_factory=dict)
    target_offsets: dict[GroupPlace, int] = field(default_factory=dict)
    """As they were before."""
    members: dict[str, GroupState] = field(default_factory=dict)
    refused: dict[str, BrokerError] = field(default_factory=dict)
    restored: list[GroupPlace] = field(default_factory=list)
    later: set[str] = field(default_factory=set)

    @property
    def written(self) -> list[GroupPlace]:
        return [
            place
            for place, verdict in self.verdicts.items()
            if verdict.writes and place[0] not in self.members and place[0] not in self.refused
        ]


@dataclass(slots=True)
class _Held:
    """A group that is left alone for a while."""

    until: float
    pause_s: float


class TargetGroups:
    """``ours`` is what we wrote last, from checkpoints at the start: only that may follow a source group back."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._admin = GroupAdmin(client)
        self._log: CommitLog | None = None
        self._check_again_at = 0.0
        self._held: dict[str, _Held] = {}
        self.ours: dict[str, dict[TopicPartition, Synced]] = {}
        self.with_members: dict[str, int] = {}
        self.refused: dict[str, BrokerError] = {}

    def is_held(self, group: str) -> bool:
        held = self._held.get(group)
        return held is not None and time.monotonic() < held.until

    async def sync(self, wanted: Mapping[str, Mapping[TopicPartition, Wanted]], *, dry_run: bool = False) -> Outcome:
        """One look and at most one write for each group. Raises ClusterError where the cluster does not answer."""
        deadline = Deadline(DEADLINE_S)
        outcome = Outcome(later={group for group in wanted if self.is_held(group)})
        groups = [group for group in wanted if group not in outcome.later]
        free, _ = await asyncio.gather(
            self._without_members(groups, outcome, deadline),
            self._mark_the_log(deadline, is_needed=bool(groups) and not dry_run),
        )
        theirs = await self._admin.offsets({group: list(wanted[group]) for group in free}, deadline, stable=True)
        self._note_refused(theirs.refused, outcome)
        writes: dict[str, dict[TopicPartition, GroupOffset]] = {}
        for group, offsets in theirs.found.items():
            for remote, one in wanted[group].items():
                there = offsets[remote][0] if remote in offsets else None
                outcome.verdicts[group, remote] = decide(one.synced, there, self.ours.get(group, {}).get(remote))
                if there is not None:
                    outcome.target_offsets[group, remote] = there
        await self._look_beyond_the_end(outcome, deadline)
        for (group, remote), verdict in outcome.verdicts.items():
            if verdict.writes:
                one = wanted[group][remote]
                writes.setdefault(group, {})[remote] = one.synced.downstream, one.metadata
        if writes and not dry_run:
            await self._write(writes, wanted, outcome, deadline)
        return outcome

    # -- before the write -------------------------------------------------------------------------------------------

    async def _without_members(self, groups: Iterable[str], outcome: Outcome, deadline: Deadline) -> list[str]:
        described = await self._admin.describe(groups, deadline)
        self._note_refused(described.refused, outcome)
        free = []
        for group, state in described.found.items():
            if state.is_free:
                free.append(group)
                self._let_go(group)
            else:
                outcome.members[group] = state
                self._hold_for_members(group, state.members, outcome)
        return free

    def _hold_for_members(self, group: str, members: int, outcome: Outcome) -> None:
        """Somebody reads by it on the target: what is there is theirs from now on, also when they leave."""
        before = self._held.get(group)
        pause_s = min(before.pause_s * 2, MEMBERS_RECHECK_S_MAX) if before else MEMBERS_RECHECK_S
        self._held[group] = _Held(time.monotonic() + pause_s, pause_s)
        if group not in self.with_members:
            log.info("group %s has members on cluster %s: left alone there", group, self._client.alias)
        self.with_members[group] = members
        self.ours.pop(group, None)
        outcome.later.add(group)

    def _let_go(self, group: str) -> None:
        self._held.pop(group, None)
        self.with_members.pop(group, None)
        self.refused.pop(group, None)

    def _note_refused(self, refused: Mapping[str, BrokerError], outcome: Outcome) -> None:
        for group, error in refused.items():
            outcome.refused[group] = error
            outcome.later.add(group)
            pause_s = PASSING_AGAIN_S if error.retriable else REFUSED_AGAIN_S
            self._held[group] = _Held(time.monotonic() + pause_s, pause_s)
            if not error.retriable:
                self.refused[group] = error

    async def _look_beyond_the_end(self, outcome: Outcome, deadline: Deadline) -> None:
        """Of groups that are ahead: whether the target's log reaches that far at all."""
        ahead = [place for place, verdict in outcome.verdicts.items() if verdict is Verdict.TARGET_AHEAD]
        remotes = {remote for _, remote in ahead if self._client.leader(remote) is not None}
        ends = await list_offsets(self._client, remotes, LATEST, deadline)
        for place in ahead:
            if place[1] in ends:
                found = decide_again(outcome.verdicts[place], outcome.target_offsets[place], ends[place[1]])
                outcome.verdicts[place] = found

    # -- the write, and the look after it ---------------------------------------------------------------------------

    async def _write(
        self,
        writes: Mapping[str, Mapping[TopicPartition, GroupOffset]],
        wanted: Mapping[str, Mapping[TopicPartition, Wanted]],
        outcome: Outcome,
        deadline: Deadline,
    ) -> None:
        answers = await self._admin.commit(writes, deadline)
        for group, error in answers.refused.items():
            if error.error_code in _SOMEBODY_JOINED:
                state = GroupState("joined just now", 1)
                outcome.members[group] = state
                self._hold_for_members(group, state.members, outcome)
            else:
                self._note_refused({group: error}, outcome)
        for group, codes in answers.found.items():
            for remote in writes[group]:
                if remote in codes:
                    error = broker_error(codes[remote], "OffsetCommit", f"group {group}, {remote}")
                    self._note_refused({group: error}, outcome)
                else:
                    self.ours.setdefault(group, {})[remote] = wanted[group][remote].synced
        await self._put_back(
            {group: writes[group] for group in answers.found if group not in outcome.refused}, outcome, deadline
        )

    async def _mark_the_log(self, deadline: Deadline, *, is_needed: bool) -> None:
        """Remember where the coordinators' log ends before we look at offsets: what is after that, we have not seen."""
        if not is_needed or time.monotonic() < self._check_again_at:
            return
        try:
            if self._log is None:
                opened = CommitLog(self._client, CONSUMER_OFFSETS_TOPIC)
                await opened.start(deadline)
                self._log = opened
            else:
                await self._log.skip(deadline)
        except BrokerError as error:
            self._log = None
            if error.retriable:
                return  # no such topic before the first group has committed there
            is_new = self._check_again_at == 0.0
            self._check_again_at = time.monotonic() + REFUSED_AGAIN_S
            log.log(
                logging.WARNING if is_new else logging.DEBUG,
                "cluster %s: %s. Until then a commit that is made there at the very moment of a sync cannot be noticed",
                self._client.alias,
                error,
            )

    async def _put_back(
        self, writes: Mapping[str, Mapping[TopicPartition, GroupOffset]], outcome: Outcome, deadline: Deadline
    ) -> None:
        """What somebody committed between our look and our write, and was further: as if we had not been there."""
        if self._log is None or not writes:
            return
        history: dict[GroupPlace, list[GroupOffset]] = {}
        for key, value in await self._log.catch_up(deadline):
            try:
                record = parse_commit(key, value)
            except WireError as error:
                log.warning("cluster %s: %s", self._client.alias, error)
                continue
            if record is not None and record.commit is not None and record.at in writes.get(record.group, {}):
                commit = record.commit
                history.setdefault((record.group, record.at), []).append((commit.offset, commit.metadata))
        back = overwritten(history, writes)
        if not back:
            return
        for group, offsets in back.items():
            for remote in offsets:
                self.ours.get(group, {}).pop(remote, None)
                outcome.restored.append((group, remote))
                outcome.verdicts[group, remote] = Verdict.TARGET_AHEAD
        log.warning(
            "cluster %s: somebody committed offsets at the moment of a sync; theirs are put back: %s",
            self._client.alias,
            ", ".join(f"{group} {remote}" for group, remote in outcome.restored),
        )
        await self._admin.commit(back, deadline)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()


def overwritten(
    history: Mapping[GroupPlace, list[GroupOffset]], writes: Mapping[str, Mapping[TopicPartition, GroupOffset]]
) -> dict[str, dict[TopicPartition, GroupOffset]]:
    """Of what was committed since the look, in order: the others' offsets that ours came after and was behind."""
    found: dict[str, dict[TopicPartition, GroupOffset]] = {}
    for (group, remote), committed in history.items():
        ours = writes[group][remote]
        if committed[-1] != ours:
            continue  # theirs came after ours and stands
        others = [one for one in committed[:-1] if one[0] > ours[0]]
        if others:
            found.setdefault(group, {})[remote] = others[-1]
    return found
