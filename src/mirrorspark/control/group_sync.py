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
from collections.abc import Callable
from typing import Any

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_admin import NewTopic, create_topics
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.ending import end_tasks
from mirrorspark.control.group_rounds import GroupRounds
from mirrorspark.control.group_translation import GroupTranslation
from mirrorspark.control.source_groups import SourceGroups
from mirrorspark.control.target_groups import TargetGroups
from mirrorspark.control.teller import Teller
from mirrorspark.errors import BrokerError, MirrorError
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.observe.flow_status import GROUPS_KEY, FlowStatus
from mirrorspark.offsets.group_checkpoint import GroupCheckpoint
from mirrorspark.offsets.group_sync import GroupBook, Synced
from mirrorspark.plan.group_filter import GroupFilter
from mirrorspark.settings import FlowSettings

__all__ = ["SYNCING_GROUPS", "GroupSyncJob", "read_checkpoints"]

log = logging.getLogger("mirrorspark.groups")

SYNCING_GROUPS = "syncing groups"
LEDGER_WAIT_MS = 1_000
LOGS_INTERVAL_S = 60.0
STATUS_INTERVAL_S = 2.0
START_DEADLINE_S = 120.0
WRITE_DEADLINE_S = 30.0
RETRY_PAUSE_S_MIN, RETRY_PAUSE_S_MAX = 1.0, 60.0
RAN_WELL_S = 60.0
"""After so long without an error the next pause is a short one again."""
NAMES_TOLD_MAX = 5


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
        self._rounds = GroupRounds(settings.group_sync, self._book, self._translation, self._targets, self._checkpoints)
        self._checkpoints_damaged = 0
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
                    self._rounds.go_round(),
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
        for (group, remote), one in found.items():
            synced = Synced(one.upstream_offset, one.downstream_offset)
            self._rounds.previous[group, remote] = synced
            self._targets.ours.setdefault(group, {})[remote] = synced
        self._translation.checkpoints = self._rounds.previous
        await self._translation.read(deadline)
        await self._groups.open()
        await self._rounds.look_at_logs(place.at for place in self._book.commits)
        self._status.clear(SYNCING_GROUPS)
        self._rounds.wake()

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
            self._rounds.wake()

    async def _follow_ledger(self) -> None:
        while True:
            self._book.moved(await self._translation.follow(LEDGER_WAIT_MS))
            self._rounds.wake()

    async def _follow_ledger_back(self) -> None:
        while self._translation.has_way_back:
            self._book.moved(await self._translation.follow_back(LEDGER_WAIT_MS))
            self._rounds.wake()
        await asyncio.Event().wait()  # nothing to follow; the attempt ends by others

    async def _refresh(self) -> None:
        """Now and then a look at everything: logs that lost their beginning, offsets that expired on the target."""
        sync = self._settings.group_sync
        looked_at = time.monotonic()
        while True:
            await asyncio.sleep(min(LOGS_INTERVAL_S, sync.refresh_interval_s))
            await self._rounds.look_at_logs(place.at for place in self._book.commits)
            if sync.refresh_enabled and time.monotonic() - looked_at >= sync.refresh_interval_s:
                await self._groups.look()
                self._book.look_again_at(list(self._book.groups))
                self._rounds.wake()
                looked_at = time.monotonic()

    # -- what people see --------------------------------------------------------------------------------------------

    async def _show(self, is_current: Callable[[], bool]) -> None:
        """Returns when there are other settings."""
        while is_current():
            vanished = self._book.take_vanished()
            self._groups_vanished += len(vanished)
            for group in vanished[:NAMES_TOLD_MAX]:
                text = "group %s has no offsets on %s any more; what is on %s stays"
                log.info(text, group, self._settings.flow.source, self._settings.flow.target)
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
        return {
            "mode": "polling" if self._groups.not_followed else "following",
            "groups": len(list(self._book.groups)),
            "partitions": len(self._book.commits),
            "waiting": len(self._book.waiting),
            "not_exact": self._rounds.inexact,
            "with_members_on_target": len(self._targets.with_members),
            "refused": len(self._targets.refused) + len(self._groups.refused),
            "share_groups_not_handled": len(self._groups.share_groups),
            "vanished": self._groups_vanished,
            "checkpoints_written": self._rounds.checkpoints_written,
            "checkpoint_appends": self._rounds.checkpoint_appends,
            "checkpoint_append_max": self._rounds.checkpoint_append_max,
            "offsets_written": self._rounds.offsets_written,
            "latency_ms_p95": self._rounds.latency_ms_p95,
            "writes_offsets": self._settings.group_sync.offsets_enabled,
        }

    async def _write_status(self) -> None:
        picture = self.picture()
        self._status.checkpoint_latencies = self._rounds.latencies_ms
        self._status.note_done(SYNCING_GROUPS)
        if picture != self._status.groups:
            raw = json.dumps(picture, separators=(",", ":")).encode()
            await self._statuses.append([(GROUPS_KEY.encode(), raw)], Deadline(WRITE_DEADLINE_S))
            self._status.groups = picture
