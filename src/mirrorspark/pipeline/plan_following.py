"""The plan topic as a lane reads it: the newest plan at its start, then each as it is published. On the lane's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.log_reader import LATEST, list_offset
from mirrorspark.errors import ClusterError, MirrorError, RequestTimedOut
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.offsets.internal_topics import PLAN_KEY, plan_topic
from mirrorspark.plan.lanes import Plan

__all__ = ["PlanFollowing"]

READ_TIMEOUT_S = 60.0
LONG_POLL_MS = 1_000
CATCH_UP_POLL_S = 0.005
RETRY_PAUSE_S = 1.0


class PlanFollowing:
    """``end``: the attempt is over, nothing is followed any more."""

    def __init__(self, target: ClusterClient, flow: Flow, end: asyncio.Event) -> None:
        self._target = target
        self._flow = flow
        self._end = end
        self._topic = KeyedTopic(target, plan_topic(flow.books))

    async def newest(self, deadline: Deadline) -> Plan:
        raw = (await self._topic.read_all(deadline)).get(PLAN_KEY)
        if raw is None:
            raise MirrorError(f"flow {self._flow}: no plan is published on {self._topic.topic}")
        return Plan.from_json(raw)

    async def follow(self, take: Callable[[Plan], None]) -> None:
        """Hands out each new plan at once, with no pause between reading it and handing it out."""
        while not self._end.is_set():
            try:
                entries = await self._topic.follow(Deadline(READ_TIMEOUT_S), LONG_POLL_MS)
            except ClusterError as error:
                if not error.retriable:
                    raise
                await asyncio.sleep(RETRY_PAUSE_S)
                continue
            for key, raw in entries:
                if key == PLAN_KEY and raw is not None and not self._end.is_set():
                    take(Plan.from_json(raw))

    async def caught_up(self, deadline: Deadline) -> None:
        """Until every plan that was published before this call has been handed out, or the attempt is over."""
        end = await list_offset(self._target, TopicPartition(self._topic.topic, 0), LATEST, deadline)
        while self._topic.next_offset < end and not self._end.is_set():
            if deadline.passed:
                raise RequestTimedOut(f"{self._topic.topic}: read to {self._topic.next_offset}, its end is {end}")
            await asyncio.sleep(CATCH_UP_POLL_S)
