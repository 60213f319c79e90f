"""Groups of a flow: what they commit on the source becomes checkpoints, and offsets of the groups on the target.

One job for each flow, in the driver's loop (``flow_runtime`` runs it). It follows commits and the ledger side by side; what
changed is taken together in rounds, a few each second: translated, written as checkpoints in MirrorMaker 2's format, and
with ``sync.group.offsets.enabled`` to the target's groups. Costs per commit, nothing per idle group. Nothing else depends
on it: what fails here is shown in the flow's status, tried again, and never ends a flow.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_admin import NewTopic, create_topics
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.ending import end_tasks
from mirrorspark.control.group_translation import WAITING, GroupTranslation
from mirrorspark.control.source_groups import SourceGroups
from mirrorspark.control.target_groups import Outcome, TargetGroups, Wanted
from mirrorspark.control.teller import Teller
from mirrorspark.errors import BrokerError, ClusterError, MirrorError
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.observe.flow_status import GROUPS_KEY, FlowStatus
from mirrorspark.offsets.group_checkpoint import GroupCheckpoint
from mirrorspark.offsets.group_sync import GroupBook, Place, Synced, is_worth_a_checkpoint
from mirrorspark.plan.group_filter import GroupFilter
from mirrorspark.settings import FlowSettings

__all__ = ["SYNCING_GROUPS", "GroupSyncJob", "read_checkpoints"]

log = logging.getLogger("mirrorspark.groups")

SYNCING_GROUPS = "syncing groups"
ROUND_INTERVAL_S = 0.25
"""At most so often: commits that come close together cost one round."""
LEDGER_WAIT_MS = 1_000
LATER_S = 1.0
"""After so long a round comes back to groups that it had to leave."""
LOGS_INTERVAL_S = 60.0
STATUS_INTERVAL_S = 2.0
START_DEADLINE_S = 120.0
WRITE_DEADLINE_S = 30.0
RETRY_PAUSE_S_MIN, RETRY_PAUSE_S_MAX = 1.0, 60.0
RAN_WELL_S = 60.0
"""After so long without an error the next pause is a short one again."""
LATENCIES_KEPT = 1_000
NAMES_TOLD_MAX = 5
NEW_LOGS_DEADLINE_S = 5.0
CHECKPOINTS_PER_APPEND_MAX = 2_000
"""In one batch: well below what a topic takes by default."""
GROUPS_PER_WRITE_MAX = 500
"""Groups in one go: others need not wait for thousands that come at the start."""


async def read_checkpoints(
    topic: KeyedTopic, deadline: Deadline
) -> tuple[dict[tuple[str, TopicPartition], GroupCheckpoint], int]:
    """The newest checkpoint of each group and remote partition, and how many records were none."""
    found: dict[tuple[str, TopicPartition], GroupCheckpoint] = {}
    damaged = 0
    for key, value in (await topic.read_all(deadline)).items():
        if value is None:
            continue
        checkpoint = GroupCheckpoint.from_record(key, value)
        if checkpoint is None or min(checkpoint.upstream_offset, checkpoint.downstream_offset) < 0:
            damaged += 1
        else:
            found[checkpoint.group, checkpoint.at] = checkpoint
    return found, damaged


class GroupSyncJob:
    """``run`` until it is cancelled. ``settings`` is asked anew now and then: they may change while a flow runs."""

    def __init__(self, settings: Callable[[], FlowSettings], statuses: KeyedTopic, status: FlowStatus) -> None:
        self._settings = settings
        self._statuses = statuses
        self._status = status
        self._teller = Teller(statuses, status)
        self._pause_s = RETRY_PAUSE_S_MIN

    async def run(self) -> None:
        while True:
            settings = self._settings()
            if not (settings.group_sync.checkpoints_enabled or settings.group_sync.offsets_enabled):
                await asyncio.sleep(RETRY_PAUSE_S_MIN)
                continue
            began = time.monotonic()
            try:
                attempt = _Attempt(settings, self._teller, self._statuses, self._status)
                await attempt.run(lambda settings=settings: self._settings() is settings)  # type: ignore[misc]
                continue  # other settings
            except Exception as error:  # noqa: BLE001  (told, and tried again)
                self._tell(error)
            if time.monotonic() - began >= RAN_WELL_S:
                self._pause_s = RETRY_PAUSE_S_MIN
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(self._pause_s * 2, RETRY_PAUSE_S_MAX)

    def _tell(self, error: Exception) -> None:
        """In the log once, not with each vain try."""
        text = f"{error if isinstance(error, MirrorError) else repr(error)}; records do not depend on it"
        if self._status.failures.get(SYNCING_GROUPS) != text:
            is_ours = isinstance(error, MirrorError)
            log.warning("%s: groups: %s", self._status.flow, text, exc_info=None if is_ours else error)
        self._status.fail(SYNCING_GROUPS, text)


class _Attempt:
    """From reading everything to the first error, or to other settings."""

    def __init__(self, settings: FlowSettings, teller: Teller, statuses: KeyedTopic, status: FlowStatus) -> None:
        flow = settings.flow
        self._settings = settings
        self._teller = teller
        self._statuses = statuses
        self._status = status
        self._source = ClusterClient(settings.source, f"mirrorspark|{flow}|groups")
        self._target = ClusterClient(settings.target, f"mirrorspark|{flow}|groups")
        self._translation = GroupTranslation(self._source, self._target, settings)
        self._checkpoints = KeyedTopic(self._target, self._translation.checkpoints_topic)
        self._book = GroupBook()
        self._groups = SourceGroups(
            self._source,
            self._book,
            GroupFilter(settings.group_sync.groups, settings.group_sync.groups_exclude),
            lambda topic: self._translation.destination(topic) is not None,
        )
        self._targets = TargetGroups(self._target)
        self._previous: dict[tuple[str, TopicPartition], Synced] = {}
        self._inexact: dict[Place, str] = {}
        self._wake = asyncio.Event()
        self._later: set[str] = set()
        self._looked_at: set[TopicPartition] = set()
        self._latencies_ms: deque[int] = deque(maxlen=LATENCIES_KEPT)
        self._checkpoints_damaged = 0
        self._checkpoints_written = 0
        self._offsets_written = 0
        self._groups_vanished = 0

    async def run(self, is_current: Callable[[], bool]) -> None:
        try:
            await self._open()
            jobs = [
                asyncio.ensure_future(work)
                for work in (
                    self._follow_commits(),
                    self._follow_ledger(),
                    self._follow_ledger_back(),
                    self._go_round(),
                    self._refresh(),
                    self._show(is_current),
                )
            ]
            try:
                done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
                for job in done:
                    job.result()
            finally:
                await end_tasks(jobs)
        finally:
            self._groups.close()
            self._targets.close()
            self._source.close()
            self._target.close()

    async def _open(self) -> None:
        """Reach both clusters; checkpoints, ledgers, groups: all is known before the first thing is written."""
        deadline = Deadline(START_DEADLINE_S)
        await self._source.start()
        await self._target.start()
        await self._make_checkpoints_topic()
        found = await self._read_checkpoints(deadline)
        self._previous = {place: Synced(one.upstream_offset, one.downstream_offset) for place, one in found.items()}
        for (group, remote), synced in self._previous.items():
            self._targets.ours.setdefault(group, {})[remote] = synced
        await self._translation.read(deadline)
        await self._groups.open()
        await self._look_at_logs(at.at for at in self._book.commits)
        self._status.clear(SYNCING_GROUPS)
        self._wake.set()

    async def _make_checkpoints_topic(self) -> None:
        """One that is there is taken as it is, also one that may only be written."""
        (found,) = await self._target.refresh([self._checkpoints.topic])
        if found.error_code in (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            return
        factor = self._settings.group_sync.checkpoints_replication_factor
        factor = min(factor, max(1, len(self._target.nodes))) if factor > 0 else factor
        refused = await create_topics(
            self._target, [NewTopic(self._checkpoints.topic, 1, factor, {"cleanup.policy": "compact"})]
        )
        if refused:
            raise refused[self._checkpoints.topic]

    async def _read_checkpoints(self, deadline: Deadline) -> dict[tuple[str, TopicPartition], GroupCheckpoint]:
        """Where we may only write them, all are written anew at a start, and no group follows its source back over it."""
        try:
            found, self._checkpoints_damaged = await read_checkpoints(self._checkpoints, deadline)
        except BrokerError as error:
            if error.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise
            log.warning("%s: earlier checkpoints may not be read: %s", self._settings.flow, error)
            return {}
        return found

    # -- following --------------------------------------------------------------------------------------------------

    async def _follow_commits(self) -> None:
        while True:
            await self._groups.next()
            if self._book.changed:
                self._wake.set()

    async def _follow_ledger(self) -> None:
        while True:
            self._book.moved(await self._translation.follow(LEDGER_WAIT_MS))
            if self._book.changed:
                self._wake.set()

    async def _follow_ledger_back(self) -> None:
        while self._translation.has_way_back:
            self._book.moved(await self._translation.follow_back(LEDGER_WAIT_MS))
            if self._book.changed:
                self._wake.set()
        await asyncio.Event().wait()  # nothing to follow; the attempt ends by others

    async def _refresh(self) -> None:
        """Now and then a look at everything: logs that lost their beginning, offsets that expired on the target."""
        sync = self._settings.group_sync
        looked_at = time.monotonic()
        while True:
            await asyncio.sleep(min(LOGS_INTERVAL_S, sync.refresh_interval_s))
            await self._look_at_logs(place.at for place in self._book.commits)
            self._wake.set()
            if sync.refresh_enabled and time.monotonic() - looked_at >= sync.refresh_interval_s:
                await self._groups.look()
                self._book.look_again_at(list(self._book.groups))
                looked_at = time.monotonic()

    async def _look_at_logs(self, partitions: Iterable[TopicPartition], within_s: float = WRITE_DEADLINE_S) -> None:
        wanted = set(partitions)
        self._looked_at |= wanted
        try:
            await self._translation.look_at_logs(wanted, Deadline(within_s))
        except ClusterError as error:
            if not error.retriable:
                raise
            log.info("%s: groups: where logs begin is not known anew: %s", self._settings.flow, error)

    # -- rounds -----------------------------------------------------------------------------------------------------

    async def _go_round(self) -> None:
        while True:
            with suppress(TimeoutError):  # then it is time for those that were left
                async with asyncio.timeout(LATER_S if self._later else None):
                    await self._wake.wait()
            self._wake.clear()
            self._book.look_again_at(group for group in self._later if not self._targets.is_held(group))
            self._later = {group for group in self._later if self._targets.is_held(group)}
            places = self._book.take_changed()
            if places:
                await self._round(places)
                await asyncio.sleep(ROUND_INTERVAL_S)

    async def _round(self, places: list[Place]) -> None:
        new = {place.at for place in places} - self._looked_at
        if new:
            await self._look_at_logs(new, NEW_LOGS_DEADLINE_S)
        wanted: dict[str, dict[TopicPartition, Wanted]] = {}
        checkpoints: list[GroupCheckpoint] = []
        exact: list[Place] = []
        for place in places:
            found = self._translate(place)
            if found is None:
                continue
            remote, synced, is_exact = found
            commit = self._book.commits[place]
            if is_exact:
                exact.append(place)
            wanted.setdefault(place.group, {})[remote] = Wanted(synced, commit.metadata)
            if is_worth_a_checkpoint(synced, self._previous.get((place.group, remote))):
                checkpoints.append(
                    GroupCheckpoint(place.group, remote, synced.upstream, synced.downstream, commit.metadata)
                )
        # Offsets first: what a checkpoint says was written may be taken for it at the next start.
        if self._settings.group_sync.offsets_enabled:
            await self._write_offsets(wanted)
        if self._settings.group_sync.checkpoints_enabled:
            await self._write_checkpoints(checkpoints)
        self._note_latency(place for place in exact if place.group not in self._later)

    def _translate(self, place: Place) -> tuple[TopicPartition, Synced, bool] | None:
        """Where the group goes on; None where nothing can be said yet. What becomes exact later is noted."""
        commit = self._book.commits[place]
        found = self._translation.translate(place.at, commit.offset)
        if found is None:
            return None
        remote, answer = found
        if answer.reason in WAITING:
            self._book.wait(place, remote)
        else:
            self._book.done(place, remote)
        if answer.exact:
            self._inexact.pop(place, None)
        else:
            self._inexact[place] = answer.reason.value
        if answer.downstream_offset is None:
            return None
        return remote, Synced(commit.offset, answer.downstream_offset), answer.exact

    async def _write_checkpoints(self, checkpoints: list[GroupCheckpoint]) -> None:
        entries: list[tuple[bytes, bytes | None]] = [(one.key, one.value) for one in checkpoints]
        for first in range(0, len(entries), CHECKPOINTS_PER_APPEND_MAX):
            await self._checkpoints.append(
                entries[first : first + CHECKPOINTS_PER_APPEND_MAX], Deadline(WRITE_DEADLINE_S)
            )
        self._checkpoints_written += len(checkpoints)
        for one in checkpoints:
            self._previous[one.group, one.at] = Synced(one.upstream_offset, one.downstream_offset)

    async def _write_offsets(self, wanted: dict[str, dict[TopicPartition, Wanted]]) -> None:
        names = sorted(wanted)
        for first in range(0, len(names), GROUPS_PER_WRITE_MAX):
            some = names[first : first + GROUPS_PER_WRITE_MAX]
            outcome = await self._targets.sync({group: wanted[group] for group in some})
            self._note(outcome)

    def _note(self, outcome: Outcome) -> None:
        self._offsets_written += len(outcome.written)
        self._later |= outcome.later

    def _note_latency(self, places: Iterable[Place]) -> None:
        now_ms = int(time.time() * 1000)
        for place in places:
            committed_ms = self._book.commits[place].committed_ms if place in self._book.commits else -1
            if committed_ms >= 0:
                self._latencies_ms.append(max(0, now_ms - committed_ms))

    # -- what people see --------------------------------------------------------------------------------------------

    async def _show(self, is_current: Callable[[], bool]) -> None:
        """Returns when there are other settings."""
        while is_current():
            vanished = self._book.take_vanished()
            self._groups_vanished += len(vanished)
            for group in vanished[:NAMES_TOLD_MAX]:
                text = "group %s has no offsets on %s any more; what is on %s stays"
                log.info(text, group, self._settings.flow.source, self._settings.flow.target)
            self._inexact = {place: why for place, why in self._inexact.items() if place in self._book.commits}
            await self._teller.tell(self._events())
            await self._write_status()
            await asyncio.sleep(STATUS_INTERVAL_S)

    def _events(self) -> list[Event]:
        flow = self._settings.flow
        events = []
        if self._groups.may_not_follow:
            text = (
                f"commits on {flow.source} are asked for every few seconds instead of being followed: "
                f"{self._groups.not_followed}. Allow Read on it for about a second of delay; else nothing is to be done"
            )
            events.append(Event(EventKind.GROUPS_POLLED, text))
        for alias, refused in ((flow.source, self._groups.refused), (flow.target, self._targets.refused)):
            if refused:
                names = ", ".join(sorted(refused)[:NAMES_TOLD_MAX])
                more = f" and {len(refused) - NAMES_TOLD_MAX} more" if len(refused) > NAMES_TOLD_MAX else ""
                why = next(iter(refused.values()))
                events.append(
                    Event(EventKind.GROUP_REFUSED, f"{len(refused)} groups ({names}{more}): {why}", topic=alias)
                )
        damaged = {
            self._checkpoints.topic: self._checkpoints_damaged,
            f"the ledger of {flow}": self._translation.damaged_entries,
            f"__consumer_offsets of {flow.source}": self._groups.damaged,
        }
        for where, count in damaged.items():
            if count:
                text = f"{count} records of {where} cannot be read and are left out: who writes there besides mirrors?"
                events.append(Event(EventKind.INTERNAL_RECORD_DAMAGED, text, topic=where))
        return events

    def picture(self) -> dict[str, Any]:
        """Plain values for people and machines."""
        latencies = sorted(self._latencies_ms)
        return {
            "mode": "polling" if self._groups.not_followed else "following",
            "groups": len(list(self._book.groups)),
            "partitions": len(self._book.commits),
            "waiting": len(self._book.waiting),
            "not_exact": len(self._inexact),
            "with_members_on_target": len(self._targets.with_members),
            "refused": len(self._targets.refused) + len(self._groups.refused),
            "share_groups_not_handled": len(self._groups.share_groups),
            "vanished": self._groups_vanished,
            "checkpoints_written": self._checkpoints_written,
            "offsets_written": self._offsets_written,
            "latency_ms_p95": latencies[int(len(latencies) * 0.95)] if latencies else None,
            "writes_offsets": self._settings.group_sync.offsets_enabled,
        }

    async def _write_status(self) -> None:
        picture = self.picture()
        if picture != self._status.groups:
            raw = json.dumps(picture, separators=(",", ":")).encode()
            await self._statuses.append([(GROUPS_KEY.encode(), raw)], Deadline(WRITE_DEADLINE_S))
            self._status.groups = picture
