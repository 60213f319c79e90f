"""Flows that are figures and nothing else, as many as one wants: what the page is tested over.

Figures move with the clock, so that charts have something to draw; names and counts stay.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

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
)
from mirrorspark.rest.flows_host import no_flow

__all__ = ["HOSTILE_TOPIC", "MovingFlows"]

LANES = 4
PARTITIONS_PER_TOPIC = 20
RECORD_BYTES = 1_000
HOSTILE_TOPIC = "<img src=x onerror=alert(1)>"
"""No topic of Kafka's, but a page must not depend on that."""


@dataclass
class MovingFlows:
    """Three flows between three clusters; the first has all the partitions."""

    partition_count: int = 5_000
    paused: dict[str, list[str]] = field(default_factory=dict)
    event_views: list[EventView] = field(default_factory=list)
    command: str = "run"
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.ids = ["east->west", "west->east", "east->north"]
        topics = (self.partition_count + PARTITIONS_PER_TOPIC - 1) // PARTITIONS_PER_TOPIC
        self.topics = [f"orders.{number:04d}" for number in range(topics)]
        self.topics[-1] = HOSTILE_TOPIC
        self.begin()

    def begin(self) -> None:
        """Nothing is held, nothing was acknowledged."""
        self.paused = {}
        at_ms = int(time.time() * 1000) - 60_000
        gap = "the source deleted 100 offsets before they were carried"
        self.event_views = [
            EventView(
                "east->west", "event/data.gap/a", "data.gap", gap, "east.orders.0003", 7, 1200, 1299, False, at_ms
            ),
            EventView(
                "west->east", "event/lane.failed/b", "lane.failed", HOSTILE_TOPIC, "", -1, -1, -1, True, at_ms - 9
            ),
        ]

    # -- from memory ------------------------------------------------------------------------------------------------

    def _wave(self, period_s: float = 30.0) -> float:
        """0.5 to 1.5."""
        return 1 + math.sin((time.monotonic() - self._began) * 2 * math.pi / period_s) / 2

    def _partitions_of(self, flow: str) -> int:
        return self.partition_count if flow == self.ids[0] else 12

    def flows(self) -> FlowList:
        return FlowList(int(time.time() * 1000), [self.flow(one) for one in self.ids])

    def flow(self, flow: str) -> FlowView:
        if flow not in self.ids:
            raise no_flow(flow)
        source, _, target = flow.partition("->")
        paused = self.paused.get(flow, [])
        events = sum(event.flow == flow for event in self.event_views)
        rate = 0.0 if "*" in paused else round(12_000 * self._wave() / (1 + self.ids.index(flow)), 1)
        records = int((time.monotonic() - self._began) * 12_000)
        return FlowView(
            flow=flow,
            source=source,
            target=target,
            instance=None,
            carries=True,
            verdict="paused" if "*" in paused else "degraded" if events else "running",
            generation=3,
            lanes=LaneCount(LANES, LANES, [], []),
            partitions=self._partitions_of(flow),
            topics=len(self.topics),
            records=records,
            bytes=records * RECORD_BYTES,
            records_per_s=rate,
            bytes_per_s=round(rate * RECORD_BYTES * self._wave(50.0), 1),
            lag_records=int(900 * self._wave(20.0)),
            lag_bytes=900.0 * RECORD_BYTES,
            lag_seconds=round(0.4 * self._wave(37.0), 2),
            lag_looked_age_s=0.3,
            latency_ms=int(14 * self._wave(13.0)),
            record_age_ms=None,
            heartbeat_age_s=0.4,
            is_paused="*" in paused,
            paused=paused,
            waiting=[],
            waiting_count=0,
            events_count=events,
            notices=[event.text for event in self.event_views if event.flow == flow],
            notices_count=events,
        )

    def topology(self) -> Topology:
        views = [self.flow(one) for one in self.ids]
        names = ("flow", "source", "target", "instance", "carries", "verdict")
        figures = ("records_per_s", "bytes_per_s", "lag_records", "lag_seconds")
        return Topology(
            [Cluster(one, [f"{one}-1.example:9092", f"{one}-2.example:9092"]) for one in ("east", "west", "north")],
            [TopologyFlow(**{name: getattr(view, name) for name in (*names, *figures)}) for view in views],
        )

    def partitions(self, flow: str, page: Page, *, by_name: bool) -> PartitionPage:
        self.flow(flow)
        places = [
            (self.topics[n // PARTITIONS_PER_TOPIC], n % PARTITIONS_PER_TOPIC) for n in range(self.partition_count)
        ]
        words = page.search.lower()
        found = [place for place in places if words in f"{place[0]}-{place[1]}".lower()]
        found.sort(key=(lambda place: place) if by_name else (lambda place: (-_lag(place), place)))
        rows = [self._partition(flow, place) for place in found[page.offset : page.offset + page.limit]]
        return PartitionPage(flow, len(places), len(found), page.limit, page.offset, rows)

    def _partition(self, flow: str, place: tuple[str, int]) -> PartitionView:
        topic, partition = place
        end = int((time.monotonic() - self._began) * 60) + 100_000
        return PartitionView(
            topic=topic,
            remote_topic=f"east.{topic}",
            partition=partition,
            lane=partition % LANES,
            state="carrying",
            waits="looking for its leader" if partition == 19 else None,
            is_paused=f"east.{topic}" in self.paused.get(flow, []),
            source_next=end - _lag(place),
            source_end=end,
            target_end=end - _lag(place) + 3,
            lag_records=_lag(place),
            lag_bytes=float(_lag(place) * RECORD_BYTES),
            lag_seconds=0.1,
            records_per_s=round(2.4 * self._wave(), 1),
            bytes_per_s=round(2_400 * self._wave(), 1),
            latency_ms=12.0,
        )

    def lanes(self, flow: str) -> FlowLanes:
        each = self._partitions_of(flow) // LANES
        rows = [
            LaneView(n, "carrying", True, 0.4, 0, each, 2_000_000, 16_777_216, 600_000, 600_000_000, 2, 0.05, [])
            for n in range(LANES)
        ]
        return FlowLanes(flow, LANES, rows)

    def lag(self, flow: str, page: Page, sort: TopicSort) -> FlowLagView:
        self.flow(flow)
        rows = [
            TopicLagView(topic, f"east.{topic}", PARTITIONS_PER_TOPIC, _lag((topic, 0)), 1.0, 0.1, 48.0, 48_000.0 + n)
            for n, topic in enumerate(self.topics)
        ]
        found = [row for row in rows if page.search.lower() in row.topic.lower()]
        found.sort(key=lambda row: row.topic)
        if sort != "name":
            found.sort(key=lambda row: -(row.lag_records if sort == "lag" else row.bytes_per_s))
        shown = found[page.offset : page.offset + page.limit]
        return FlowLagView(flow, 900, 900_000.0, 0.4, 0.3, len(rows), len(found), page.limit, page.offset, shown)

    def config(self, flow: str) -> FlowConfig:
        self.flow(flow)
        return FlowConfig(
            flow,
            "mm2.properties",
            [
                SettingView("topics", "orders.*", f"flow {flow}", "mm2.properties:12", False, False),
                SettingView("source.sasl.jaas.config", "[hidden]", "cluster east", "mm2.properties:4", False, True),
                SettingView("tasks.max", "4", f"flow {flow}", "mm2.properties:14", False, False),
                *(SettingView(f"some.key.{n}", None, "default", "default", True, False) for n in range(60)),
            ],
        )

    def events(self, flow: str | None, page: Page) -> EventPage:
        found = [event for event in self.event_views if flow in (None, event.flow)]
        return EventPage(len(found), page.limit, page.offset, found[page.offset : page.offset + page.limit])

    # -- as if clusters were asked ----------------------------------------------------------------------------------

    async def groups(self, flow: str, page: Page) -> GroupPage:
        names = [name for name in ("billing", "shipping", "audit") if page.search.lower() in name]
        rows = [_group(name) for name in names[page.offset : page.offset + page.limit]]
        at_ms = int(time.time() * 1000)
        return GroupPage(flow, at_ms, 3, len(names), page.limit, page.offset, True, [], rows)

    async def group(self, flow: str, group: str) -> GroupView:
        row = _group(group)
        positions = [
            PositionView(
                "orders.0001", "east.orders.0001", n, 997, 1000, 3, 1000, 1000, True, "exact", "in.step", False
            )
            for n in range(row.partitions)
        ]
        facts = (row.kind, row.state, row.target_state, row.target_members, row.lag_records)
        verdict = (row.exact, row.in_step, row.ready, row.word, row.left_out)
        return GroupView(flow, int(time.time() * 1000), group, *facts, *verdict, positions)

    async def readiness(self, flow: str, mode: str) -> ReadinessView:
        checks = [
            {"level": "ok", "subject": "source", "text": "cluster east answers"},
            {"level": "stop", "subject": "groups", "text": "group shipping is in use on the target (3 members)"},
        ]
        return ReadinessView(flow, mode, int(time.time() * 1000), False, "not ready", checks)

    async def translate(self, flow: str, topic: str, partition: int, offset: int) -> TranslationView:
        return TranslationView(flow, topic, partition, offset, 1_000, f"east.{topic}", offset + 3, True, "exact")

    # -- steering ---------------------------------------------------------------------------------------------------

    async def pause(self, flow: str, topics: Sequence[str]) -> PausedView:
        self.flow(flow)
        self.paused.setdefault(flow, []).extend([f"east.{topic}" for topic in topics] or ["*"])
        return PausedView(flow, self.paused[flow], True)

    async def resume(self, flow: str, topics: Sequence[str]) -> PausedView:
        self.flow(flow)
        gone = [f"east.{topic}" for topic in topics] or self.paused.get(flow, [])
        self.paused[flow] = [one for one in self.paused.get(flow, []) if one not in gone]
        return PausedView(flow, self.paused[flow], True)

    async def acknowledge(self, flow: str | None, keys: Sequence[str]) -> Acknowledged:
        ours = [one for one in self.event_views if flow in (None, one.flow) and (one.key in keys or "all" in keys)]
        if not ours:
            raise Refusal(f"no event {keys[0]}", 404)
        self.event_views = [event for event in self.event_views if event not in ours]
        return Acknowledged([{"flow": event.flow, "key": event.key} for event in ours])


def _lag(place: tuple[str, int]) -> int:
    """Some have much, most have none; never moves, so that an order can be asked for."""
    topic, partition = place
    return 1_000 - partition if topic == "orders.0007" else 5 if partition == 3 else 0


def _group(name: str) -> GroupRow:
    if name == "shipping":
        word = "in use on the target (3 members)"
        return GroupRow(name, "consumer", "Stable", "Stable", 3, 20, 40, True, False, False, word, {})
    left_out = {"audit": "excluded by topics.exclude"}
    return GroupRow(name, "consumer", "Stable", "Empty", 0, 60, 3, True, True, True, "in step", left_out)
