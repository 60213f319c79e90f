"""A flow's status as a picture for REST: flow, lanes, lag by topic, events. Pure; asks no cluster.

``hosting`` calls it with each request and about once a second for the stream, so the cost is one pass over the partitions.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from mirrorspark.config.connector_secrets import HIDDEN, is_secret
from mirrorspark.config.forms.secret_values import REFERENCE
from mirrorspark.config.levels import Effective
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.observe.flow_status import FlowStatus, LaneStatus, PartitionStatus
from mirrorspark.observe.lane_totals import LaneTotals
from mirrorspark.rest.flow_views import (
    EventView,
    FlowLagView,
    FlowLanes,
    FlowView,
    LaneCount,
    LaneView,
    Page,
    SettingView,
    TopicLagView,
    TopicSort,
    TopologyFlow,
    Waiting,
)

__all__ = [
    "LagSum",
    "event_views",
    "flow_view",
    "lag_of",
    "lag_view",
    "lane_views",
    "note_asked",
    "now_ms",
    "partition_lag",
    "setting_views",
    "topology_flow",
]

TOLD_MAX = 100
"""Notices and waiting places in one answer; their counts tell of all."""
NOT_REPORTED = "not reported"
DIGITS = 3
"""Of seconds and rates: a millisecond."""


def note_asked(status: FlowStatus) -> None:
    """Somebody looks: from now on the driver looks at the source's log ends too (``lag_watch``)."""
    status.source_ends.asked_at = status.clock()


# -- lag ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class LagSum:
    """``seconds`` of the one that waits longest; None where it waits and nobody can say since when."""

    partitions: int = 0
    records: int = 0
    bytes: float | None = 0.0
    seconds: float | None = 0.0

    def add(self, records: int, size: float | None, seconds: float | None) -> None:
        self.partitions += 1
        self.records += records
        if records:
            self.bytes = None if self.bytes is None or size is None else self.bytes + size
            self.seconds = None if self.seconds is None or seconds is None else max(self.seconds, seconds)


def partition_lag(status: FlowStatus, at: TopicPartition, one: PartitionStatus) -> int:
    """By the source's log end where it is known, else by what the lane saw."""
    end = status.source_ends.end_of(at)
    return max(0, (one.high_watermark if end is None else end) - one.upstream_next)


def _add(lag: LagSum, status: FlowStatus, at: TopicPartition, one: PartitionStatus) -> None:
    records = partition_lag(status, at, one)
    if not records:
        lag.add(0, None, None)
        return
    series = status.carried.get(at)
    size = records * series.bytes / series.records if series is not None and series.records else None
    lag.add(records, size, status.source_ends.waiting_s(at, one.upstream_next, status.clock()))


def lag_of(status: FlowStatus) -> LagSum:
    """Heartbeats come every second for ever: their topic counts in no sum."""
    found = LagSum()
    for at, one in status.partitions.items():
        if at.topic != status.heartbeats_topic:
            _add(found, status, at, one)
    return found


def _looked_age_s(status: FlowStatus) -> float | None:
    looked_at = status.source_ends.looked_at
    return None if looked_at is None else _rounded(status.clock() - looked_at)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def lag_view(status: FlowStatus, page: Page, sort: TopicSort = "lag") -> FlowLagView:
    """``page.search``: part of a topic's name on either side."""
    sums: dict[str, LagSum] = {}
    rates: dict[str, tuple[float, float]] = {}
    sources: dict[str, str] = {}
    now = status.clock()
    for at, one in status.partitions.items():
        _add(sums.setdefault(at.topic, LagSum()), status, at, one)
        sources[at.topic] = status.sources.get(at, at).topic
        records_s, bytes_s = rates.get(at.topic, (0.0, 0.0))
        if (series := status.carried.get(at)) is not None:
            records_s, bytes_s = records_s + series.record_window.rate(now), bytes_s + series.byte_window.rate(now)
        rates[at.topic] = (records_s, bytes_s)
    wanted = page.search.strip().lower()
    matched = [topic for topic in sums if wanted in topic.lower() or wanted in sources[topic].lower()]
    matched.sort(key=lambda topic: (sources[topic], topic))
    if sort != "name":
        matched.sort(key=lambda topic: -(sums[topic].records if sort == "lag" else rates[topic][1]))
    topics = [
        TopicLagView(
            sources[topic],
            topic,
            sums[topic].partitions,
            sums[topic].records,
            _rounded(sums[topic].bytes),
            _rounded(sums[topic].seconds),
            round(rates[topic][0], DIGITS),
            round(rates[topic][1], DIGITS),
        )
        for topic in matched[page.offset : page.offset + page.limit]
    ]
    whole = lag_of(status)
    return FlowLagView(
        status.flow,
        whole.records,
        _rounded(whole.bytes),
        _rounded(whole.seconds),
        _looked_age_s(status),
        len(sums),
        len(matched),
        page.limit,
        page.offset,
        topics,
    )


# -- flows -------------------------------------------------------------------------------------------------------------


def flow_view(flow: Flow, status: FlowStatus, *, carries: bool) -> FlowView:
    records_s, bytes_s = status.rates
    lag = lag_of(status)
    notices, waiting, planned = status.notices, status.waiting, status.planned or frozenset()
    silent, missing = status.lanes_silent, status.lanes_missing
    return FlowView(
        flow=str(flow),
        source=flow.source,
        target=flow.target,
        instance=flow.instance or None,
        carries=carries,
        verdict=status.verdict,
        generation=status.generation,
        lanes=LaneCount(status.lanes_expected, len(status.lanes) - len(silent), silent, missing if carries else []),
        partitions=len(planned),
        topics=len({at.topic for at in planned}),
        records=status.records,
        bytes=status.bytes_carried,
        records_per_s=round(records_s, DIGITS),
        bytes_per_s=round(bytes_s, DIGITS),
        lag_records=lag.records,
        lag_bytes=_rounded(lag.bytes),
        lag_seconds=_rounded(lag.seconds),
        lag_looked_age_s=_looked_age_s(status),
        latency_ms=status.latency_ms,
        record_age_ms=status.record_age_ms,
        heartbeat_age_s=_rounded(status.heartbeat_age_s),
        is_paused=status.is_paused,
        paused=sorted(status.paused),
        waiting=_waiting(waiting),
        waiting_count=len(waiting),
        events_count=len(status.events),
        notices=notices[:TOLD_MAX],
        notices_count=len(notices),
    )


def _waiting(places: dict[str, str]) -> list[Waiting]:
    return [Waiting(place, why) for place, why in sorted(places.items())[:TOLD_MAX]]


def topology_flow(view: FlowView) -> TopologyFlow:
    return TopologyFlow(
        view.flow,
        view.source,
        view.target,
        view.instance,
        view.carries,
        view.verdict,
        view.records_per_s,
        view.bytes_per_s,
        view.lag_records,
        view.lag_seconds,
    )


def lane_views(status: FlowStatus) -> FlowLanes:
    numbers = sorted({*range(status.lanes_expected), *status.lanes})
    return FlowLanes(status.flow, status.lanes_expected, [_lane(status, number) for number in numbers])


def _lane(status: FlowStatus, number: int) -> LaneView:
    lane: LaneStatus | None = status.lanes.get(number)
    totals = status.lane_totals.get(number) or LaneTotals()
    seen_at = lane.seen_at if lane is not None else None
    return LaneView(
        lane=number,
        state=lane.state if lane is not None else NOT_REPORTED,
        reports=lane is not None and number not in status.lanes_silent,
        reported_age_s=None if seen_at is None else _rounded(status.clock() - seen_at),
        since_ms=lane.since_ms if lane is not None else None,
        partitions=lane.partitions if lane is not None else None,
        held_bytes=lane.held_bytes if lane is not None else None,
        held_bytes_max=status.lane_memory_bytes_max,
        records=totals.records,
        bytes=totals.bytes,
        attempts=totals.attempts,
        epoch_pause_s=_rounded(totals.pause_s),
        waiting=_waiting(lane.waiting) if lane is not None else [],
    )


# -- events and settings -----------------------------------------------------------------------------------------------


def event_views(statuses: Iterable[FlowStatus]) -> list[EventView]:
    """Newest first."""
    found = [
        EventView(flow=status.flow, key=key, **asdict(event))
        for status in statuses
        for key, event in status.events.items()
    ]
    return sorted(found, key=lambda one: (-one.at_ms, one.flow, one.key))


def setting_views(effective: Iterable[Effective]) -> list[SettingView]:
    return [_setting(one) for one in effective]


def _setting(one: Effective) -> SettingView:
    """As it stands in the file, before config providers were asked; a secret that stands there itself is hidden."""
    if one.entry is None:
        return SettingView(one.name, one.value, one.level, one.origin, True, False)
    is_hidden = is_secret(one.entry.key) and bool(REFERENCE.sub("", one.entry.value).strip())
    text = HIDDEN if is_hidden else one.entry.value
    return SettingView(one.name, text, one.level, one.origin, False, is_hidden)


def now_ms() -> int:
    return int(time.time() * 1000)
