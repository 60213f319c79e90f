"""Flows that are values and nothing else: what the routes under ``/mirrorspark/v1`` are tested over."""

from __future__ import annotations

from collections.abc import Sequence

from mirrorspark.rest.connector_host import Refusal
from mirrorspark.rest.flow_views import (
    Acknowledged,
    Cluster,
    EventPage,
    EventView,
    FlowConfig,
    FlowLagView,
    FlowLanes,
    FlowList,
    FlowView,
    GroupPage,
    GroupRow,
    GroupView,
    LaneCount,
    LaneView,
    Page,
    PartitionPage,
    PartitionView,
    PausedView,
    PositionView,
    ReadinessView,
    SettingView,
    TopicLagView,
    TopicSort,
    Topology,
    TopologyFlow,
    TranslationView,
    Waiting,
)
from mirrorspark.rest.flows_host import no_flow

__all__ = ["FLOW", "MemoryFlows"]

FLOW = "east->west/team"


class MemoryFlows:
    command = "run"

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.paused: list[str] = []
        self.keys = ["event/data.gap/east.orders/3/1200"]
        self.asked: list[object] = []

    def _need(self, flow: str | None) -> None:
        if flow not in (FLOW, None):
            raise no_flow(str(flow))

    def flows(self) -> FlowList:
        return FlowList(1, [self.flow(FLOW)])

    def flow(self, flow: str) -> FlowView:
        self._need(flow)
        return FlowView(
            flow=flow,
            source="east",
            target="west",
            instance="team",
            carries=True,
            verdict="paused" if self.paused else "running",
            generation=3,
            lanes=LaneCount(2, 2, [], []),
            partitions=1,
            topics=1,
            records=10,
            bytes=100,
            records_per_s=1.0,
            bytes_per_s=10.0,
            lag_records=4,
            lag_bytes=40.0,
            lag_seconds=0.8,
            lag_looked_age_s=0.4,
            latency_ms=12,
            record_age_ms=None,
            heartbeat_age_s=0.6,
            is_paused=bool(self.paused),
            paused=self.paused,
            waiting=[Waiting("east.orders-3", "too large")],
            waiting_count=1,
            events_count=len(self.keys),
            notices=["east.orders-3 waits: too large"],
            notices_count=1,
        )

    def topology(self) -> Topology:
        flow = TopologyFlow(FLOW, "east", "west", "team", True, "running", 1.0, 10.0, 4, 0.8)
        return Topology([Cluster("east", ["east-1:9092"]), Cluster("west", ["west-1:9092"])], [flow])

    def partitions(self, flow: str, page: Page, *, by_name: bool) -> PartitionPage:
        self._need(flow)
        self.asked.append((page, by_name))
        one = PartitionView(
            *("orders", "east.orders", 3, 1, "carrying", None, False),
            *(1000, 1040, 1003, 40, 40960.0, 0.8, 120.0, 122880.0, 12.0),
        )
        return PartitionPage(flow, 5000, 1, page.limit, page.offset, [one])

    def lanes(self, flow: str) -> FlowLanes:
        self._need(flow)
        lane = LaneView(0, "carrying", True, 0.4, 1, 2500, 1, 2, 3, 4, 5, 0.05, [Waiting("east.orders-3", "why")])
        return FlowLanes(flow, 1, [lane])

    def lag(self, flow: str, page: Page, sort: TopicSort) -> FlowLagView:
        self._need(flow)
        self.asked.append((page, sort))
        topic = TopicLagView("orders", "east.orders", 20, 40, 40960.0, 0.8, 120.0, 122880.0)
        return FlowLagView(flow, 40, 40960.0, 0.8, 0.4, 250, 1, page.limit, page.offset, [topic])

    def config(self, flow: str) -> FlowConfig:
        self._need(flow)
        setting = SettingView("topics", "orders.*", "flow east->west", "mm2.properties:12", False, False)
        return FlowConfig(flow, "mm2.properties", [setting])

    def events(self, flow: str | None, page: Page) -> EventPage:
        self._need(flow)
        found = [EventView(FLOW, key, "data.gap", "gone", "east.orders", 3, 1, 2, False, 1) for key in self.keys]
        return EventPage(len(found), page.limit, page.offset, found[page.offset : page.offset + page.limit])

    async def groups(self, flow: str, page: Page) -> GroupPage:
        self._need(flow)
        row = GroupRow("billing", "consumer", "Stable", "Empty", 0, 20, 3, True, True, True, "in step", {})
        return GroupPage(flow, 1, 1, 1, page.limit, page.offset, True, [], [row])

    async def group(self, flow: str, group: str) -> GroupView:
        self._need(flow)
        if group != "bill/ing":
            raise Refusal("no such group", 404)
        at = PositionView("orders", "east.orders", 3, 997, 1000, 3, 1000, 1000, True, "why", "in.step", False)
        return GroupView(flow, 1, group, "consumer", "Stable", "Empty", 0, 3, True, True, True, "in step", {}, [at])

    async def readiness(self, flow: str, mode: str) -> ReadinessView:
        self._need(flow)
        checks = [{"level": "ok", "subject": "source", "text": "cluster east answers"}]
        return ReadinessView(flow, mode, 1, True, "ready", checks)

    async def translate(self, flow: str, topic: str, partition: int, offset: int) -> TranslationView:
        self._need(flow)
        return TranslationView(flow, topic, partition, offset, 1040, "east.orders", offset + 3, True, "why")

    async def pause(self, flow: str, topics: Sequence[str]) -> PausedView:
        self._need(flow)
        self.paused = list(topics) or ["*"]
        return PausedView(flow, self.paused, True)

    async def resume(self, flow: str, topics: Sequence[str]) -> PausedView:
        self._need(flow)
        self.paused = []
        return PausedView(flow, [], True)

    async def acknowledge(self, flow: str | None, keys: Sequence[str]) -> Acknowledged:
        self._need(flow)
        if unknown := [key for key in keys if key != "all" and key not in self.keys]:
            raise Refusal(f"{unknown[0]}: no such event", 404)
        gone, self.keys = self.keys, []
        return Acknowledged([{"flow": FLOW, "key": key} for key in gone])
