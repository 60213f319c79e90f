"""The plan of a flow as its leading driver holds it: claimed, published version by version, given up to whoever leads next.

``flow_runtime`` alone has one. The plan topic on the target is the only channel to the lanes; of two drivers that claim a
flow at once, the first in the topic's log leads. What a person paused comes by the same topic and goes into the plan.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import Callable
from dataclasses import replace

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.pauses import PAUSE_KEY, parse_pauses
from mirrorspark.control.plan_record import read_owner, read_plan
from mirrorspark.errors import Fenced, SettingsError
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.offsets.internal_topics import PLAN_KEY, plan_topic
from mirrorspark.plan.lanes import Assignment, Owner, Plan

__all__ = ["PlanLead"]

log = logging.getLogger("mirrorspark.flow")

FOLLOW_MS = 500
FOLLOW_TIMEOUT_S = 60.0
PUBLISH_S_MAX = 30.0
PUBLISH_STOPPING_S_MAX = 10.0
"""A target that is away cannot be told to its lanes either: they are cut off, and the next start recovers."""
READING_PAUSES = "reading the pause record"


class PlanLead:
    """``plan`` is ours, as last published; None before ``claim``."""

    def __init__(self, flow: Flow, target: ClusterClient, status: FlowStatus) -> None:
        self._flow = flow
        self._status = status
        self.topic = KeyedTopic(target, plan_topic(flow.books))
        self.plan: Plan | None = None
        self.before: Plan | None = None
        """The last one that was published before ours."""
        self.paused: frozenset[str] = frozenset()
        """What a person wants; in the plan with its next version."""
        self.on_lanes: Callable[[int, int], None] = lambda lanes, resized: None
        """Told of another ``size`` before the plan that has it goes out."""
        self._publishing = asyncio.Lock()

    @property
    def generation(self) -> int:
        assert self.plan is not None
        return self.plan.owner.generation

    @property
    def lane_count(self) -> int:
        return len(self.plan.lanes) if self.plan is not None else 0

    @property
    def size(self) -> tuple[int, int]:
        """The number of lanes, and the version of the plan that changed it last."""
        return self.lane_count, self.plan.resized if self.plan is not None else 0

    async def read(self, deadline: Deadline) -> dict[bytes, bytes | None]:
        """What the topic holds, by key; the plan before ours and the pauses are kept here."""
        held = await self.topic.read_all(deadline)
        self.before = read_plan(raw) if (raw := held.get(PLAN_KEY)) else None
        self.paused = self.before.paused if self.before else frozenset()
        self._obey(held.get(PAUSE_KEY))
        return held

    async def claim(self, lanes: int, deadline: Deadline) -> None:
        """Publish a plan of the next generation, after ``read``: with the former spread if that has as many lanes."""
        before = self.before
        generation = before.owner.generation if before else 0
        while True:
            generation += 1
            owner = Owner(generation, uuid.uuid4().hex, socket.gethostname(), os.getpid())
            former = before.lanes if before is not None and len(before.lanes) == lanes else ()
            plan = Plan(owner, 1, False, former, self.paused)
            await self.topic.append([(PLAN_KEY, plan.to_json())], deadline)
            mine = None
            while mine is None:
                for key, raw in await self.topic.follow(deadline, FOLLOW_MS):
                    if key == PLAN_KEY and raw and (seen := read_owner(raw)).generation >= generation:
                        mine = mine if mine is not None else seen.id == owner.id
            if mine:
                self.plan = plan
                return

    async def follow(self) -> bool:
        """News of the topic, waited for a while; whether a person wants other pauses than the plan has. Raises Fenced when
        another driver leads."""
        for key, raw in await self.topic.follow(Deadline(FOLLOW_TIMEOUT_S), FOLLOW_MS):
            if key == PAUSE_KEY:
                self._obey(raw)
            elif key == PLAN_KEY and raw:
                self._yield_to(read_owner(raw))
        return self.plan is not None and self.paused != self.plan.paused

    def _obey(self, raw: bytes | None) -> None:
        """What is paused, as a person wrote it; a record that cannot be read changes nothing."""
        try:
            self.paused = parse_pauses(raw)
        except SettingsError as error:
            log.warning("%s: %s: %s", self._flow, self.topic.topic, error)
            self._status.fail(READING_PAUSES, f"{self.topic.topic}: {error}")
        else:
            self._status.clear(READING_PAUSES)

    def _yield_to(self, owner: Owner) -> None:
        if owner.generation > self.generation:
            raise Fenced(
                f"flow {self._flow} was taken over by {owner}; this mirror stops. "
                "Run one mirror per flow; if that one is not yours, look for it there",
                flow=str(self._flow),
            )

    async def publish(self, *, lanes: tuple[tuple[Assignment, ...], ...] | None = None, stopping: bool = False) -> None:
        """The next version of the plan: one at a time, since two jobs change it."""
        async with self._publishing:
            assert self.plan is not None
            plan = replace(
                self.plan,
                version=self.plan.version + 1,
                lanes=self.plan.lanes if lanes is None else lanes,
                paused=self.paused,
                stopping=stopping,
            )
            if len(plan.lanes) != self.lane_count:
                plan = replace(plan, resized=plan.version)
                self.on_lanes(len(plan.lanes), plan.resized)  # first: an epoch with another number ends by the plan
            wait_s = PUBLISH_STOPPING_S_MAX if stopping else PUBLISH_S_MAX
            await self.topic.append([(PLAN_KEY, plan.to_json())], Deadline(wait_s))
            self.plan = plan
            self._status.follow_plan(([one.remote for one in lane] for lane in plan.lanes), plan.paused)
            self._status.sources = {one.remote: one.source for lane in plan.lanes for one in lane}
