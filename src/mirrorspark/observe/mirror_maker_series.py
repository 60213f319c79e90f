"""MirrorMaker 2's own series of a flow, under each of the names that people have."""

from __future__ import annotations

from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.observe.metric_catalogue.mirror_maker import (
    AWS_CHECKPOINT,
    AWS_SOURCE,
    CHECKPOINT,
    OLDER_CHECKPOINT,
    OLDER_SOURCE,
    SOURCE,
)
from mirrorspark.observe.partition_figures import ALL, PartitionFigures
from mirrorspark.observe.sheet import Sheet

__all__ = ["put_mirror_maker"]


def put_mirror_maker(
    sheet: Sheet, flow: Flow, status: FlowStatus, partitions: list[PartitionFigures], *, checkpoints_max: int
) -> None:
    for one in partitions:
        _put_partition(sheet, flow, one)
    _put_checkpoints(sheet, flow, status, checkpoints_max)


def _put_partition(sheet: Sheet, flow: Flow, one: PartitionFigures) -> None:
    place = one.topic, one.partition
    for prefix, labels in (
        (SOURCE, (flow.source, flow.target, *place)),
        (AWS_SOURCE, (flow.target, *place)),
        (OLDER_SOURCE, (flow.target, *place)),
    ):
        sheet.put(f"{prefix}record_count", one.records, *labels)
        sheet.put(f"{prefix}record_rate", one.record_rate, *labels)
        sheet.put(f"{prefix}byte_count", one.bytes, *labels)
        sheet.put(f"{prefix}byte_rate", one.byte_rate, *labels)
        for name in ("record_age_ms", "replication_latency_ms"):
            sheet.put(f"{prefix}{name}", one.latency_ms, *labels)
            if prefix != OLDER_SOURCE:
                sheet.put(f"{prefix}{name}_min", one.latency_ms_min, *labels)
                sheet.put(f"{prefix}{name}_max", one.latency_ms_max, *labels)
                sheet.put(f"{prefix}{name}_avg", one.latency_ms_avg, *labels)


def _put_checkpoints(sheet: Sheet, flow: Flow, status: FlowStatus, checkpoints_max: int) -> None:
    """Windows that hold nothing any more are left out; too many become one series, of the largest."""
    now = status.clock()
    live = {
        (group, at.topic, str(at.partition)): (high, window.low(now), mean)
        for (group, at), window in status.checkpoint_latencies.items()
        if (high := window.high(now)) is not None and (mean := window.mean(now)) is not None
    }
    if len(live) > checkpoints_max:
        highs, lows, means = zip(*live.values(), strict=True)
        live = {(ALL, ALL, ALL): (max(highs), min(lows), sum(means) / len(means))}
    for place, (high, low, mean) in live.items():
        labels = flow.source, flow.target, *place
        sheet.put(f"{CHECKPOINT}checkpoint_latency_ms", mean, *labels)
        sheet.put(f"{CHECKPOINT}checkpoint_latency_ms_min", low, *labels)
        sheet.put(f"{CHECKPOINT}checkpoint_latency_ms_max", high, *labels)
        sheet.put(f"{CHECKPOINT}checkpoint_latency_ms_avg", mean, *labels)
        sheet.put(f"{OLDER_CHECKPOINT}checkpoint_latency_ms", mean, *labels)
        group, topic, partition = place
        left = f"{flow.target}, group={group}, topic={topic}, partition={partition}"
        for ending, value in (("", mean), ("_min", low), ("_max", high), ("_avg", mean)):
            sheet.put(f"{AWS_CHECKPOINT}checkpoint_latency_ms{ending}", value, flow.source, left)
