"""Leading one flow: claim it, make the target ready, publish the plan, run the query, watch both, stop cleanly.

One asyncio task per flow in the driver's own loop; Spark's blocking calls go to threads. The plan on the target is the
only channel to the lanes, the status topic the only one back: nothing assumes that they share a process or a disk.
``flow_life`` calls ``reach``, ``lead``, ``start_query``, ``run`` and ``stop``, in this order; nothing is changed on a
cluster before ``lead``.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.bandwidth_sharing import SHARING_BANDWIDTH, BandwidthPool, BandwidthSharing
from mirrorspark.control.certificate_watch import CertificateWatch
from mirrorspark.control.ending import end_tasks
from mirrorspark.control.group_sync import SYNCING_GROUPS, GroupSyncJob
from mirrorspark.control.lag_watch import LagWatch
from mirrorspark.control.lane_shares import LaneShare
from mirrorspark.control.mirror_maker_watch import WATCHING_MIRROR_MAKER, MirrorMakerWatch, check_no_mirror_maker
from mirrorspark.control.offset_books import KEEPING_LEDGER, OffsetBooks, make_offset_syncs_topic
from mirrorspark.control.plan_lead import PlanLead
from mirrorspark.control.reconcile import Reconciler, ensure_internal_topics
from mirrorspark.control.takeover import take_over
from mirrorspark.control.teller import Teller
from mirrorspark.control.topic_sync import TopicSyncJobs
from mirrorspark.errors import ClusterError, MirrorError
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.offsets.internal_topics import BANDWIDTH_KEY, status_topic
from mirrorspark.plan.lanes import Assignment, spread
from mirrorspark.settings import FlowSettings

__all__ = ["FlowRuntime", "Query", "reach_cluster"]

log = logging.getLogger("mirrorspark.flow")

T = TypeVar("T")

BOOT_TIMEOUT_S = 15.0
LEAD_TIMEOUT_S = 60.0
FOLLOW_MS = 500
STOP_TIMEOUT_S = 30.0
SHARES_S_MAX = 30.0
WATCH_INTERVAL_S = 1.0
LANES_POLL_S = 0.1
RESTART_PAUSE_S_MAX = 30.0
RAN_WELL_S = 60.0
"""A query that ran for so long is well again: its last failure is forgotten, the next pause is a short one."""
RESPREAD_INTERVAL_S = 60.0

FOLLOWING_PLAN = "following the plan topic"
FOLLOWING_STATUS = "following the status topic"
PUBLISHING = "publishing the plan"
REFRESHING = "refreshing topics"
MAKING_TOPICS = "making topics"
SHARING_LANES = "lanes"
SYNCING_CONFIGS = "syncing topic settings"
SYNCING_ACLS = "syncing ACLs"
WATCHING_QUERY = "the Spark query"
WATCHING_LAG = "watching the source's ends"
WATCHING_CERTIFICATES = "watching certificates"


class Query(Protocol):
    """What the runtime needs of a Spark query."""

    def start(self) -> None: ...
    def carry_with(self, lanes: int, resized: int) -> None: ...
    def begin_no_epoch(self) -> None: ...
    def stop(self) -> None: ...
    @property
    def active(self) -> bool: ...
    @property
    def failure(self) -> str | None: ...


async def reach_cluster(client: ClusterClient, timeout_s: float = BOOT_TIMEOUT_S) -> None:
    """Raises the client's own error with the key that leads there."""
    try:
        await client.start(timeout_s)
    except ClusterError as error:
        if "key" in error.facts:
            raise  # TLS and logins have keys of their own
        raise type(error)(f"{client.alias}.bootstrap.servers: {error.message}", **error.facts) from error


class FlowRuntime:
    """``status`` may outlive a runtime: a flow that is started anew goes on with the one it had."""

    def __init__(
        self,
        settings: FlowSettings,
        make_query: Callable[[FlowSettings, int], Query],
        status: FlowStatus | None = None,
        pool: BandwidthPool | None = None,
    ) -> None:
        self.settings = settings
        self.status = status or FlowStatus(str(settings.flow), settings.tasks_max, settings.topics)
        self.status.lane_memory_bytes_max = settings.limits.lane_memory_bytes_max
        self._make_query = make_query
        self._source = ClusterClient(settings.source, f"mirrorspark|{settings.flow}|driver")
        self._target = ClusterClient(settings.target, f"mirrorspark|{settings.flow}|driver")
        self.status.worker_traffic = self._target.traffic_by_node
        self.plans = PlanLead(settings.flow, self._target, self.status)
        self.plans.on_lanes = self._carry_with
        self._statuses = KeyedTopic(self._target, status_topic(settings.flow.books))
        self._reconciler = Reconciler(self._source, self._target)
        self._teller = Teller(self._statuses, self.status)
        self._topic_sync = TopicSyncJobs(
            self._source, self._target, self._statuses, self.status, self.plans.topic.topic
        )
        tell = Teller(self._statuses, self.status).tell
        self._mirror_maker_watch = MirrorMakerWatch(self._target, lambda: self.settings, tell)
        self._group_sync = GroupSyncJob(lambda: self.settings, self._statuses, self.status)
        clusters = [(settings.source, self._source), (settings.target, self._target)]
        self._certificate_watch = CertificateWatch(clusters, self.status)
        self._bandwidth = BandwidthSharing(
            lambda: self.settings,
            self.plans.topic.append,
            self.status,
            lambda: (self.generation, self.lane_count),
            pool,
        )
        self._lag_watch = LagWatch(self._source, self.status, read_committed=settings.read_committed)
        self._offset_books = OffsetBooks(
            settings,
            self._source,
            self._target,
            lambda: self._carried,
            fail=self.status.fail,
            clear=self.status.clear,
        )
        self._carried: list[Assignment] = []
        self._query: Query | None = None
        self._stop = asyncio.Event()
        self._changed = asyncio.Event()
        self._planned_with = settings
        self._rates: dict[TopicPartition, float] = {}
        self._respread_at = time.monotonic() + RESPREAD_INTERVAL_S
        self.is_bridged = False
        """Whether lanes were begun outside of Spark, to carry until its query is there."""
        self.on_event: Callable[[Event], None] = lambda event: None
        self.lane_share: Callable[[], LaneShare] = lambda: LaneShare(self.settings.tasks_max)

    # -- start ------------------------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """``reach`` and ``lead`` in one go, for whoever has no Spark to wait for in between."""
        await self.reach()
        await self.lead()

    async def reach(self) -> None:
        """Both clusters answer, or an error that names the key; the first one that fails is enough. Changes nothing."""
        sides = [asyncio.ensure_future(reach_cluster(client)) for client in (self._source, self._target)]
        try:
            await asyncio.gather(*sides)
        finally:
            await end_tasks(sides)

    async def is_free(self) -> bool:
        """Whether no other mirror can be at work on the flow: it never ran here, or was stopped in order."""
        (found,) = await self._target.refresh([self.plans.topic.topic])
        if found.error_code:
            return True
        await self.plans.read(Deadline(LEAD_TIMEOUT_S))
        return self.plans.before is None or self.plans.before.stopping

    async def lead(self) -> None:
        """Take the flow over and have a first plan. Raises what a person must mend."""
        await check_no_mirror_maker(self._target, self.settings)
        await ensure_internal_topics(self._target, self.settings)
        not_made = await make_offset_syncs_topic(self._source, self._target, self.settings)
        self._offset_books.lacks_syncs_topic = bool(not_made)
        deadline = Deadline(LEAD_TIMEOUT_S)
        held = await self.plans.read(deadline)
        for key, value in (await self._statuses.read_all(deadline)).items():
            self.status.fold(key, value, fresh=False)
        self._carried = [one for lane in self.plans.before.lanes for one in lane] if self.plans.before else []
        await self.plans.claim(self.settings.tasks_max, deadline)
        self.status.begin(self.generation)
        _, unproved = await take_over(self._source, self._target, self.settings)
        await Teller(self._statuses, self.status).tell([*not_made, *unproved])
        await self._replan()
        await self._bandwidth.begin(held.get(BANDWIDTH_KEY), Deadline(SHARES_S_MAX))

    async def all_lanes_carry(self, within_s: float) -> None:
        """Returns when every lane has reported that it carries, or after so long: nothing depends on it but the start."""
        deadline = Deadline(within_s)
        while not deadline.passed:
            lanes = [self.status.lanes.get(index) for index in range(self.lane_count)]
            if all(lane is not None and lane.state == "carrying" for lane in lanes):
                return
            await asyncio.sleep(LANES_POLL_S)

    @property
    def has_led(self) -> bool:
        return self.plans.plan is not None

    @property
    def generation(self) -> int:
        return self.plans.generation

    @property
    def lane_count(self) -> int:
        return self.plans.lane_count

    def start_query(self) -> None:
        """Blocking: begin the epochs."""
        query = self._make_query(self.settings, self.generation)
        query.carry_with(*self.plans.size)
        query.start()
        self._query = query  # from here on it is watched, and told of another number of lanes
        query.carry_with(*self.plans.size)
        self.is_bridged = False
        self.status.run()

    def _carry_with(self, lanes: int, resized: int) -> None:
        if self._query is not None:
            self._query.carry_with(lanes, resized)

    # -- run --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until stopped, or until another driver takes the flow over (Fenced)."""
        jobs = {
            asyncio.ensure_future(self._follow_plan_topic()): FOLLOWING_PLAN,
            asyncio.ensure_future(self._follow_status()): FOLLOWING_STATUS,
            asyncio.ensure_future(self._refresh()): REFRESHING,
            asyncio.ensure_future(self._sync_configs()): SYNCING_CONFIGS,
            asyncio.ensure_future(self._sync_acls()): SYNCING_ACLS,
            asyncio.ensure_future(self._group_sync.run()): SYNCING_GROUPS,
            asyncio.ensure_future(self._offset_books.run()): KEEPING_LEDGER,
            asyncio.ensure_future(self._mirror_maker_watch.run()): WATCHING_MIRROR_MAKER,
            asyncio.ensure_future(self._watch_query()): WATCHING_QUERY,
            asyncio.ensure_future(self._lag_watch.run()): WATCHING_LAG,
            asyncio.ensure_future(self._certificate_watch.run()): WATCHING_CERTIFICATES,
            asyncio.ensure_future(self._bandwidth.run()): SHARING_BANDWIDTH,
        }
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            done, _ = await asyncio.wait([*jobs, stop], return_when=asyncio.FIRST_COMPLETED)
            for job in done:
                if job is not stop:
                    job.result()
        finally:
            await end_tasks([*jobs, stop])

    def change(self, settings: FlowSettings) -> None:
        """Go by other settings from now on, which no lane looks at (``live_change``). Jobs take their turn at once."""
        self.settings = settings
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def show_edit(self, refused: str) -> None:
        """An edit of the file that was refused is an event until a good one comes (an empty text)."""
        event = Event(EventKind.EDIT_REFUSED, refused)
        known = self.status.events.get(event.key)
        if refused and (known is None or known.text != refused):
            await self._statuses.append([(event.key.encode(), event.to_json())], Deadline(30.0))
        elif not refused and known is not None:
            await self._statuses.append([(event.key.encode(), None)], Deadline(30.0))

    async def stop(self, *, superseded: bool = False) -> None:
        """Drain: lanes commit and end, then the query stops."""
        self._stop.set()
        self.status.state = "stopping"
        if self._query is not None:
            self._query.begin_no_epoch()
        try:
            if self.has_led and not superseded:
                await self.plans.publish(stopping=True)
                await self._await_lanes_ended()
        except MirrorError as error:
            log.warning("%s: stopping: %s", self.settings.flow, error)
        if self._query is not None:
            try:
                await asyncio.to_thread(self._query.stop)
            except MirrorError as error:
                log.warning("%s: stopping: %s", self.settings.flow, error)
        self.status.state = "superseded" if superseded else "stopped"
        self.close()

    def close(self) -> None:
        """Leave the clusters, and everything on them as it is."""
        self._source.close()
        self._target.close()

    async def _await_lanes_ended(self) -> None:
        deadline = Deadline(STOP_TIMEOUT_S)
        while not deadline.passed and (self.is_bridged or (self._query is not None and self._query.active)):
            for key, value in await self._statuses.follow(deadline, FOLLOW_MS):
                self.status.fold(key, value)
            lanes = [self.status.lanes.get(index) for index in range(self.lane_count)]
            if all(lane is not None and lane.state == "ended" for lane in lanes):
                return
        if deadline.passed:
            log.warning(
                "%s: not all lanes ended within %.0f s; stopping them as they are (the next start recovers)",
                self.settings.flow,
                STOP_TIMEOUT_S,
            )

    # -- jobs -------------------------------------------------------------------------------------------------------

    async def _follow_plan_topic(self) -> None:
        """Another driver's plan ends our lead; a pause is taken into the plan."""
        while True:
            if await self._patiently(FOLLOWING_PLAN, self.plans.follow):
                await self._patiently(PUBLISHING, self.plans.publish)

    async def _follow_status(self) -> None:
        while True:
            entries = await self._patiently(FOLLOWING_STATUS, lambda: self._statuses.follow(Deadline(60.0), FOLLOW_MS))
            for key, value in entries or []:
                event = self.status.fold(key, value)
                if event is not None:
                    self.on_event(event)

    async def _refresh(self) -> None:
        while True:
            await self._pause_for(self.settings.topic_sync.refresh_interval_s, self._planned_with)
            looks = self.settings.topic_sync.refresh_enabled or self.settings is not self._planned_with
            await self._patiently(REFRESHING, self._replan if looks else self._spread)

    async def _sync_configs(self) -> None:
        while True:
            settings = self.settings
            if settings.topic_sync.configs_enabled:
                work = partial(self._topic_sync.sync_configs, settings, self._carried)
                await self._patiently(SYNCING_CONFIGS, work)
            await self._pause_for(_about(settings.topic_sync.configs_interval_s), settings)

    async def _sync_acls(self) -> None:
        while True:
            settings = self.settings
            if settings.topic_sync.acls_enabled:
                await self._patiently(SYNCING_ACLS, partial(self._topic_sync.sync_acls, settings, self._carried))
            await self._pause_for(_about(settings.topic_sync.acls_interval_s), settings)

    async def _pause_for(self, interval_s: float, settings: FlowSettings) -> None:
        """Until the job's next turn; at once when there are other settings than those of its last one."""
        if settings is not self.settings:
            return
        try:
            async with asyncio.timeout(interval_s):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _patiently(self, job: str, work: Callable[[], Awaitable[T]]) -> T | None:
        """What a cluster does not do now is waited for, and said so: the lanes carry on meanwhile."""
        try:
            result = await work()
        except ClusterError as error:
            if self.status.failures.get(job) != str(error):
                log.warning("%s: %s: %s", self.settings.flow, job, error)
            self.status.fail(job, str(error))
            await asyncio.sleep(1.0)
            return None
        self.status.clear(job)
        self.status.note_done(job)
        return result

    async def _replan(self) -> None:
        """Look at both clusters; publish a new plan only if something changed."""
        settings = self.settings
        found = await self._reconciler.reconcile(settings, self._carried)
        self.status.hold(MAKING_TOPICS, found.unfinished)
        await self._teller.tell(found.events)
        self._carried = found.assignments
        self.status.matched = found.matched
        await self._spread()
        self._planned_with = settings

    async def _spread(self) -> None:
        """What is carried over the lanes, as even as measured rates ask for."""
        plan = self.plans.plan
        assert plan is not None
        if time.monotonic() >= self._respread_at:
            self._respread_at = time.monotonic() + RESPREAD_INTERVAL_S
            self._rates = self.status.partition_rates()
        share = self.lane_share()
        if share.why and share.why != self.status.failures.get(SHARING_LANES):
            log.warning("%s: %s", self.settings.flow, share.why)
        self.status.hold(SHARING_LANES, share.why)
        lanes = spread(self._carried, share.lanes, before=plan.lanes, bytes_per_s=self._rates)
        if lanes != plan.lanes or plan.version == 1:
            await self.plans.publish(lanes=lanes)
        self.status.expect(self.lane_count)

    async def _watch_query(self) -> None:
        """A query that ends by itself is started again, with longer pauses each time until it has run well."""
        pause, started_at = 1.0, time.monotonic()
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            query = self._query
            if query is None:
                continue
            is_active, failure = await asyncio.to_thread(_look_at, query)
            if is_active:
                if time.monotonic() - started_at >= RAN_WELL_S:
                    pause = 1.0
                    self.status.clear(WATCHING_QUERY)
                continue
            why = failure or "it ended without a reason"
            self.status.fail(WATCHING_QUERY, why)
            log.error("%s: the query ended: %s; starting it again in %.0f s", self.settings.flow, why, pause)
            self.status.state = "restarting"
            await asyncio.sleep(pause)
            pause = min(pause * 2, RESTART_PAUSE_S_MAX)
            await asyncio.to_thread(self.start_query)
            started_at = time.monotonic()


def _look_at(query: Query) -> tuple[bool, str | None]:
    """Whether it runs, and if not, why. In a thread: a JVM that hangs must not hold up the driver."""
    is_active = query.active
    return is_active, None if is_active else query.failure


def _about(interval_s: float) -> float:
    """Up to a tenth more or less: two flows that copy from each other must not go on swapping in step."""
    return interval_s * random.uniform(0.9, 1.1)
