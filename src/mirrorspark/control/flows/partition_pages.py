"""One page of a flow's partitions. Cheap with thousands: only those on the page are looked at in full.

Of all others only what the order needs is worked out: the name, or the lag. Pure; ``hosting`` calls it.
"""

from __future__ import annotations

from mirrorspark.control.flows.pictures import DIGITS, NOT_REPORTED, partition_lag
from mirrorspark.names import TopicPartition
from mirrorspark.observe.flow_status import EVERYTHING, FlowStatus
from mirrorspark.observe.partition_figures import figures_of_partition
from mirrorspark.rest.flow_views import Page, PartitionPage, PartitionView

__all__ = ["partition_page"]


def partition_page(status: FlowStatus, page: Page, *, by_name: bool) -> PartitionPage:
    every = status.planned if status.planned is not None else frozenset(status.partitions)
    matched = _matching(status, every, page.search.strip().lower())
    matched.sort()
    if not by_name:
        matched.sort(key=lambda at: -_lag(status, at))
    waiting = status.waiting
    shown = [_view(status, at, waiting) for at in matched[page.offset : page.offset + page.limit]]
    return PartitionPage(status.flow, len(every), len(matched), page.limit, page.offset, shown)


def _matching(status: FlowStatus, every: frozenset[TopicPartition], search: str) -> list[TopicPartition]:
    if not search:
        return list(every)
    return [at for at in every if search in str(at).lower() or search in str(status.sources.get(at, at)).lower()]


def _lag(status: FlowStatus, at: TopicPartition) -> int:
    one = status.partitions.get(at)
    return -1 if one is None else partition_lag(status, at, one)


def _view(status: FlowStatus, at: TopicPartition, waiting: dict[str, str]) -> PartitionView:
    one = status.partitions.get(at)
    topic, is_paused = status.sources.get(at, at).topic, bool({EVERYTHING, at.topic} & status.paused)
    waits = waiting.get(str(at))
    if one is None:
        nothing = (None,) * 6
        return PartitionView(
            topic, at.topic, at.partition, None, NOT_REPORTED, waits, is_paused, *nothing, 0.0, 0.0, None
        )
    figures = figures_of_partition(status, at, one)
    return PartitionView(
        topic=topic,
        remote_topic=at.topic,
        partition=at.partition,
        lane=one.lane if one.lane >= 0 else None,
        state=one.state or "carrying",
        waits=waits,
        is_paused=is_paused,
        source_next=figures.source_next,
        source_end=figures.source_end,
        target_end=figures.target_end,
        lag_records=figures.lag_records,
        lag_bytes=_rounded(figures.lag_bytes),
        lag_seconds=_rounded(figures.lag_seconds),
        records_per_s=round(figures.record_rate, DIGITS),
        bytes_per_s=round(figures.byte_rate, DIGITS),
        latency_ms=_rounded(figures.latency_ms),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
