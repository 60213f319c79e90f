"""Flows of a ``FlowSet`` that nobody runs: their statuses are told what lanes and drivers would tell."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterable
from typing import Any

from mirrorspark.control.flow_runtime import Query
from mirrorspark.events import Event
from mirrorspark.names import TopicPartition
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.settings import FlowSettings

__all__ = ["Clock", "NoSpark", "lane_report", "told"]


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class NoSpark:
    """For flows that never come so far."""

    where = "no Spark"
    tasks_at_once: int | None = None

    def begin(self, lanes: int) -> None:
        pass

    def up(self) -> Awaitable[object]:
        return asyncio.get_running_loop().create_future()

    def make_query(self, settings: FlowSettings, generation: int) -> Query:
        raise NotImplementedError

    def carry_early(self, settings: FlowSettings, generation: int) -> bool:
        return False


def lane_report(lane: int, moved: Iterable[tuple[Any, ...]], **more: Any) -> tuple[bytes, bytes]:
    """``moved``: topic, partition, upstream next, downstream end, high watermark, records, bytes, latency, state."""
    report = {
        "generation": 1,
        "lane": lane,
        "state": "carrying",
        "since_ms": 5,
        "at_ms": 10,
        "partitions": 2,
        "held_bytes": 7,
        "waiting": {},
        "moved": [list(one) for one in moved],
        **more,
    }
    return f"lane/{lane}".encode(), json.dumps(report).encode()


def told(status: FlowStatus, clock: Clock, lanes: list[list[TopicPartition]], *events: Event) -> FlowStatus:
    """A flow that runs, with this plan; remote topics are named ``east.…``."""
    status.clock = clock
    status.lanes_expected = len(lanes)
    status.begin(1)
    status.run()
    status.follow_plan(lanes, ())
    planned = [at for lane in lanes for at in lane]
    status.sources = {at: TopicPartition(at.topic.removeprefix("east."), at.partition) for at in planned}
    status.matched = 1
    for event in events:
        status.fold(event.key.encode(), event.to_json())
    return status
