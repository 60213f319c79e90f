"""What is told of a partition, or of all partitions of a topic together where there are too many for a series each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mirrorspark.names import TopicPartition
from mirrorspark.observe.carried_series import CarriedSeries
from mirrorspark.observe.flow_status import FlowStatus, PartitionStatus

__all__ = ["ALL", "PartitionFigures", "figures_of", "figures_of_partition"]

ALL = "all"
"""The label ``partition`` of a topic's sum; also the label ``topic`` of the sum of a flow that has too many topics."""


@dataclass(frozen=True, slots=True)
class PartitionFigures:
    """None where it is not known. Of a topic's sum: offsets are added up too, there is no lane, times are the largest
    (``_min`` the least, ``_avg`` the mean)."""

    topic: str
    partition: str
    source_topic: str
    lane: int | None
    records: int
    bytes: int
    reencoded: int
    record_rate: float
    byte_rate: float
    latency_ms: float | None
    latency_ms_min: float | None
    latency_ms_max: float | None
    latency_ms_avg: float | None
    lag_records: int
    lag_records_avg: float | None
    lag_records_max: float | None
    lead_records: int | None
    lag_bytes: float | None
    lag_seconds: float | None
    source_end: int | None
    source_next: int | None
    target_end: int | None


def figures_of(status: FlowStatus, partitions_max: int) -> list[PartitionFigures]:
    """Of each partition that was reported; a sum for each topic if there are more than ``partitions_max``; one sum if there
    are more topics than that. Never more than ``partitions_max``."""
    each = [figures_of_partition(status, at, one) for at, one in status.partitions.items()]
    if len(each) <= partitions_max:
        return each
    by_topic: dict[str, list[PartitionFigures]] = {}
    for one in each:
        by_topic.setdefault(one.topic, []).append(one)
    if len(by_topic) > partitions_max:
        return [replace(_together(each), topic=ALL, source_topic=ALL)]
    return [_together(some) for some in by_topic.values()]


def figures_of_partition(status: FlowStatus, at: TopicPartition, one: PartitionStatus) -> PartitionFigures:
    now = status.clock()
    series = status.carried.get(at) or CarriedSeries()
    looked_end = status.source_ends.end_of(at)
    end = one.high_watermark if looked_end is None else max(looked_end, one.upstream_next)
    lag = max(0, end - one.upstream_next)
    waiting_s = status.source_ends.waiting_s(at, one.upstream_next, now)
    latency = series.latency_window
    lags = status.source_ends.lags_of(at, now)
    start = status.source_ends.starts.get(at)
    return PartitionFigures(
        topic=at.topic,
        partition=str(at.partition),
        source_topic=status.sources.get(at, at).topic,
        lane=one.lane,
        records=series.records,
        bytes=series.bytes,
        reencoded=series.reencoded,
        record_rate=series.record_window.rate(now),
        byte_rate=series.byte_window.rate(now),
        latency_ms=series.latency_ms,
        latency_ms_min=latency.low(now),
        latency_ms_max=latency.high(now),
        latency_ms_avg=latency.mean(now),
        lag_records=lag,
        lag_records_avg=lags[0] if lags else lag,
        lag_records_max=lags[1] if lags else lag,
        lead_records=None if start is None else one.upstream_next - start,
        lag_bytes=_bytes_of(lag, series),
        lag_seconds=0.0 if lag == 0 else waiting_s,
        source_end=end,
        source_next=one.upstream_next,
        target_end=one.downstream_end,
    )


def _bytes_of(lag_records: int, series: CarriedSeries) -> float | None:
    """By the mean size of what was carried; None where nothing was."""
    if lag_records == 0:
        return 0.0
    return lag_records * series.bytes / series.records if series.records else None


def _together(some: list[PartitionFigures]) -> PartitionFigures:
    means = [one.latency_ms_avg for one in some if one.latency_ms_avg is not None]
    return PartitionFigures(
        topic=some[0].topic,
        partition=ALL,
        source_topic=some[0].source_topic,
        lane=None,
        records=sum(one.records for one in some),
        bytes=sum(one.bytes for one in some),
        reencoded=sum(one.reencoded for one in some),
        record_rate=sum(one.record_rate for one in some),
        byte_rate=sum(one.byte_rate for one in some),
        latency_ms=_largest(one.latency_ms for one in some),
        latency_ms_min=min((one.latency_ms_min for one in some if one.latency_ms_min is not None), default=None),
        latency_ms_max=_largest(one.latency_ms_max for one in some),
        latency_ms_avg=sum(means) / len(means) if means else None,
        lag_records=sum(one.lag_records for one in some),
        lag_records_avg=sum(one.lag_records_avg or 0.0 for one in some),
        lag_records_max=_largest(one.lag_records_max for one in some),
        lead_records=min((one.lead_records for one in some if one.lead_records is not None), default=None),
        lag_bytes=sum(one.lag_bytes or 0.0 for one in some),
        lag_seconds=_largest(one.lag_seconds for one in some),
        source_end=sum(one.source_end or 0 for one in some),
        source_next=sum(one.source_next or 0 for one in some),
        target_end=sum(one.target_end or 0 for one in some),
    )


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
