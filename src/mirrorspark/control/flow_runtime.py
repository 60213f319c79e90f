"""Leading one flow: claim it, make the target ready, publish the plan, run the query, watch both, stop cleanly.

One asyncio task per flow in the driver's own loop; Spark's blocking calls go to threads. The plan on the target is the
only channel to the lanes, the status topic the only one back: nothing assumes that they share a process or a disk.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.reconcile import ensure_internal_topics, reconcile_topics
from mirrorspark.errors import ClusterError, Fenced, MirrorError, SparkLost
from mirrorspark.events import Event
from mirrorspark.names import TopicPartition
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.offsets.internal_topics import plan_topic, status_topic
from mirrorspark.pipeline.lane import PLAN_KEY
from mirrorspark.plan.lanes import Owner, Plan, spread
from mirrorspark.settings import FlowSettings

__all__ = ["PAUSE_KEY", "FlowRuntime", "Query"]

log = logging.getLogger("mirrorspark.flow")

T = TypeVar("T")

PAUSE_KEY = b"pause"
BOOT_TIMEOUT_S = 15.0
FOLLOW_MS = 500
STOP_TIMEOUT_S = 30.0
RESTART_PAUSE_S_MAX = 30.0
RESPREAD_INTERVAL_S = 60.0


class Query(Protocol):
    """What the runtime needs of a Spark query."""

    def start(self) -> None: ...
    def begin_no_epoch(self) -> None: ...
    def stop(self) -> None: ...
    @property
    def active(self) -> bool: ...
    @property
    def failure(self) -> str | None: ...


class FlowRuntime:
    def __init__(self, settings: FlowSettings, make_query: Callable[[FlowSettings, int], Query]) -> None:
        self.settings = settings
        self.status = FlowStatus(str(settings.flow))
        self._make_query = make_query
        self._source = ClusterClient(settings.source, f"mirrorspark|{settings.flow}|driver")
        self._target = ClusterClient(settings.target, f"mirrorspark|{settings.flow}|driver")
        self._plans = KeyedTopic(self._target, plan_topic(settings.flow.source))
        self._statuses = KeyedTopic(self._target, status_topic(settings.flow.source))
        self._plan: Plan | None = None
        self._paused: frozenset[str] = frozenset()
        self._query: Query | None = None
        self._stop = asyncio.Event()
        self._rates: dict[TopicPartition, float] = {}
        self._respread_at = time.monotonic() + RESPREAD_INTERVAL_S
        self.on_event: Callable[[Event], None] = lambda event: None

    # -- start ------------------------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Reach both clusters, lead the flow, have a first plan. Raises what a person must mend."""
        await asyncio.gather(self._source.start(BOOT_TIMEOUT_S), self._target.start(BOOT_TIMEOUT_S))
        await ensure_internal_topics(self._target, self.settings)
        deadline = Deadline(60.0)
        plans = await self._plans.read_all(deadline)
        for key, value in (await self._statuses.read_all(deadline)).items():
            self.status.fold(key, value)
        self.status.forget_reports()
        self._paused = _pauses(plans.get(PAUSE_KEY))
        before = Plan.from_json(raw) if (raw := plans.get(PLAN_KEY)) else None
        await self._lead(before, deadline)
        await self._replan()

    async def _lead(self, before: Plan | None, deadline: Deadline) -> None:
        """Publish a plan of the next generation; of two drivers that try at once, the first in the log leads."""
        generation = before.owner.generation if before else 0
        while True:
            generation += 1
            owner = Owner(generation, uuid.uuid4().hex, socket.gethostname(), os.getpid())
            lanes = before.lanes[: self.settings.tasks_max] if before else ()
            plan = Plan(owner, 1, False, lanes if _same_lanes(before, self.settings) else (), self._paused)
            await self._plans.append([(PLAN_KEY, plan.to_json())], deadline)
            mine = None
            while mine is None:
                for key, raw in await self._plans.follow(deadline, FOLLOW_MS):
                    if key == PLAN_KEY and raw and (seen := Plan.from_json(raw)).owner.generation >= generation:
                        mine = mine if mine is not None else seen.owner.id == owner.id
            if mine:
                self._plan = plan
                return

    @property
    def generation(self) -> int:
        assert self._plan is not None
        return self._plan.owner.generation

    def start_query(self) -> None:
        """Blocking: begin the epochs."""
        self._query = self._make_query(self.settings, self.generation)
        self._query.start()
        self.status.state = "running"

    # -- run --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until stopped, or until another driver takes the flow over (Fenced)."""
        jobs = {
            asyncio.ensure_future(self._follow_plan_topic()): "following the plan topic",
            asyncio.ensure_future(self._follow_status()): "following the status topic",
            asyncio.ensure_future(self._refresh()): "refreshing topics",
            asyncio.ensure_future(self._watch_query()): "watching the query",
        }
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            done, _ = await asyncio.wait([*jobs, stop], return_when=asyncio.FIRST_COMPLETED)
            for job in done:
                if job is not stop:
                    job.result()
        finally:
            for job in [*jobs, stop]:
                job.cancel()
            await asyncio.gather(*jobs, stop, return_exceptions=True)

    async def stop(self, *, superseded: bool = False) -> None:
        """Drain: lanes commit and end, then the query stops."""
        self._stop.set()
        self.status.state = "stopping"
        if self._query is not None:
            self._query.begin_no_epoch()
        try:
            if self._plan is not None and not superseded:
                await self._publish(replace(self._plan, version=self._plan.version + 1, stopping=True))
                await self._await_lanes_ended()
        except MirrorError as error:
            log.warning("%s: stopping: %s", self.settings.flow, error)
        if self._query is not None:
            try:
                await asyncio.to_thread(self._query.stop)
            except SparkLost as error:
                log.warning("%s: stopping: %s", self.settings.flow, error)
        self.status.state = "superseded" if superseded else "stopped"
        self._source.close()
        self._target.close()

    async def _await_lanes_ended(self) -> None:
        deadline = Deadline(STOP_TIMEOUT_S)
        while not deadline.passed and self._query is not None and self._query.active:
            for key, value in await self._statuses.follow(deadline, FOLLOW_MS):
                self.status.fold(key, value)
            lanes = [self.status.lanes.get(index) for index in range(self.settings.tasks_max)]
            if all(lane is not None and lane.state == "ended" for lane in lanes):
                return
        if deadline.passed:
            log.warning(
                "%s: not all lanes ended within %.0f s; stopping them as they are (the next start recovers)",
                self.settings.flow,
                STOP_TIMEOUT_S,
            )

    async def _follow_plan_topic(self) -> None:
        """Another driver's plan ends our lead; a pause is taken into the plan."""
        while True:
            entries = await self._patiently(lambda: self._plans.follow(Deadline(60.0), FOLLOW_MS))
            for key, raw in entries or []:
                if key == PAUSE_KEY:
                    self._paused = _pauses(raw)
                    assert self._plan is not None
                    if self._paused != self._plan.paused:
                        await self._publish(replace(self._plan, version=self._plan.version + 1, paused=self._paused))
                elif key == PLAN_KEY and raw:
                    owner = Plan.from_json(raw).owner
                    if owner.generation > self.generation:
                        raise Fenced(
                            f"flow {self.settings.flow} was taken over by {owner}; this mirror stops. "
                            "Run one mirror per flow; if that one is not yours, look for it there",
                            flow=str(self.settings.flow),
                        )

    async def _follow_status(self) -> None:
        while True:
            entries = await self._patiently(lambda: self._statuses.follow(Deadline(60.0), FOLLOW_MS))
            for key, value in entries or []:
                event = self.status.fold(key, value)
                if event is not None:
                    self.on_event(event)

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(self.settings.refresh_topics_interval_s)
            await self._patiently(self._replan)

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """A cluster that is away is waited for, and said so; anything else ends the flow's lead."""
        try:
            result = await work()
        except ClusterError as error:
            if not error.retriable:
                raise
            self.status.failure = str(error)
            await asyncio.sleep(1.0)
            return None
        self.status.failure = ""
        return result

    async def _replan(self) -> None:
        """Look at both clusters; publish a new plan only if something changed."""
        assert self._plan is not None
        found = await reconcile_topics(self._source, self._target, self.settings)
        for event in found.events:
            if event.key not in self.status.events:
                await self._statuses.append([(event.key.encode(), event.to_json())], Deadline(30.0))
        if time.monotonic() >= self._respread_at:
            self._respread_at = time.monotonic() + RESPREAD_INTERVAL_S
            self._rates = self.status.partition_rates()
        lanes = spread(found.assignments, self.settings.tasks_max, before=self._plan.lanes, bytes_per_s=self._rates)
        if lanes != self._plan.lanes or self._plan.version == 1:
            await self._publish(replace(self._plan, version=self._plan.version + 1, lanes=lanes))

    async def _publish(self, plan: Plan) -> None:
        await self._plans.append([(PLAN_KEY, plan.to_json())], Deadline(30.0))
        self._plan = plan

    async def _watch_query(self) -> None:
        """A query that ends by itself is started again, with longer pauses each time."""
        pause = 1.0
        while True:
            await asyncio.sleep(1.0)
            query = self._query
            if query is None or query.active:
                continue
            self.status.failure = query.failure or "the Spark query ended"
            log.error("%s: the query ended: %s; starting it again", self.settings.flow, self.status.failure)
            self.status.state = "restarting"
            await asyncio.sleep(pause)
            pause = min(pause * 2, RESTART_PAUSE_S_MAX)
            await asyncio.to_thread(self.start_query)


def _same_lanes(before: Plan | None, settings: FlowSettings) -> bool:
    return before is not None and len(before.lanes) == settings.tasks_max


def _pauses(raw: bytes | None) -> frozenset[str]:
    return frozenset(json.loads(raw)) if raw else frozenset()
