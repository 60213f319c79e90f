"""The plan topic as a lane reads it: the newest plan at its start, then each as it is published; and with them the lane's
share of the flow's limit. On the lane's loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.log_reader import LATEST, list_offset
from mirrorspark.errors import ClusterError, MirrorError, NewerFormat, RequestTimedOut
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.offsets.internal_topics import BANDWIDTH_KEY, PLAN_KEY, plan_topic
from mirrorspark.plan.bandwidth import Shares
from mirrorspark.plan.lanes import Plan

__all__ = ["PlanFollowing"]

log = logging.getLogger("mirrorspark.lane")

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
        self.on_shares: Callable[[Shares], None] = lambda shares: None

    async def newest(self, deadline: Deadline) -> Plan:
        newest = await self._topic.read_all(deadline)
        raw = newest.get(PLAN_KEY)
        if raw is None:
            raise MirrorError(f"flow {self._flow}: no plan is published on {self._topic.topic}")
        self._hand_shares(newest.get(BANDWIDTH_KEY))
        return _read(raw)

    def _hand_shares(self, raw: bytes | None) -> None:
        """A record that cannot be read changes nothing: lanes go on as they were told before."""
        if raw is None:
            return
        try:
            self.on_shares(Shares.from_json(raw))
        except MirrorError as error:
            log.warning("%s: %s: %s", self._flow, self._topic.topic, error)

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
                    take(_read(raw))
                elif key == BANDWIDTH_KEY:
                    self._hand_shares(raw)

    async def caught_up(self, deadline: Deadline) -> None:
        """Until every plan that was published before this call has been handed out, or the attempt is over."""
        end = await list_offset(self._target, TopicPartition(self._topic.topic, 0), LATEST, deadline)
        while self._topic.next_offset < end and not self._end.is_set():
            if deadline.passed:
                raise RequestTimedOut(f"{self._topic.topic}: read to {self._topic.next_offset}, its end is {end}")
            await asyncio.sleep(CATCH_UP_POLL_S)


def _read(raw: bytes) -> Plan:
    """Of a plan in a newer format only who leads by it: enough for a lane to step aside."""
    try:
        return Plan.from_json(raw)
    except NewerFormat:
        return Plan(Plan.owner_in(raw))
