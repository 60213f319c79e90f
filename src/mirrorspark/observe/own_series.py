"""Our own series of a flow: state, lag, lanes, groups, what is kept equal, events."""

from __future__ import annotations

from collections import Counter

from mirrorspark.events import EventKind
from mirrorspark.observe.flow_status import LANE_SILENT_S, FlowStatus
from mirrorspark.observe.lane_totals import LaneTotals
from mirrorspark.observe.metric_catalogue.own import FLOW_STATES, LANE_STATES
from mirrorspark.observe.partition_figures import PartitionFigures
from mirrorspark.observe.sheet import Sheet

__all__ = ["put_own"]

EVENT_KINDS = tuple(sorted(str(value) for name, value in vars(EventKind).items() if name.isupper()))
JOBS = {
    "refreshing topics": "topics",
    "syncing topic settings": "settings",
    "syncing ACLs": "acls",
    "syncing groups": "groups",
}
"""Jobs of the driver whose age is told, and the label that they get."""


def put_own(sheet: Sheet, status: FlowStatus, partitions: list[PartitionFigures], *, is_summed: bool) -> None:
    flow = status.flow
    _put_flow(sheet, status, partitions)
    sheet.put("mirrorspark_partitions_with_own_series", 0 if is_summed else 1, flow)
    for one in partitions:
        _put_partition(sheet, flow, one)
    for lane in range(max([status.lanes_expected, *(index + 1 for index in status.lanes)])):
        _put_lane(sheet, status, lane)
    _put_events(sheet, status)
    _put_groups(sheet, status)
    _put_syncs(sheet, status)


def _put_flow(sheet: Sheet, status: FlowStatus, partitions: list[PartitionFigures]) -> None:
    flow, verdict, ends = status.flow, status.verdict, status.source_ends
    for state in FLOW_STATES:
        sheet.put("mirrorspark_flow_state", int(state == verdict), flow, state)
    if verdict not in FLOW_STATES:
        sheet.put("mirrorspark_flow_state", 1, flow, verdict)
    counted = [one for one in partitions if one.topic != status.heartbeats_topic]
    waits_s = [one.lag_seconds for one in counted if one.lag_seconds is not None]
    latency_ms = status.latency_ms
    figures: dict[str, float | None] = {
        "flow_generation": status.generation,
        "flow_failures": len(status.failures),
        "flow_topics": status.matched,
        "flow_partitions": None if status.planned is None else len(status.planned),
        "flow_records_total": status.records,
        "flow_bytes_total": status.bytes_carried,
        "flow_lag_records": sum(one.lag_records for one in counted),
        "flow_lag_bytes": sum(one.lag_bytes or 0.0 for one in counted),
        "flow_lag_seconds": max(waits_s, default=None),
        "flow_latency_seconds": None if latency_ms is None else latency_ms / 1000,
        "flow_source_look_age_seconds": None if ends.looked_at is None else status.clock() - ends.looked_at,
        "flow_paused": int(status.is_paused),
        "flow_paused_topics": len(status.paused),
        "flow_bandwidth_limit_bytes_per_second": sum(one.bytes_per_s for one in status.limits),
        "flow_held_by_bandwidth_limit": int(any(one.is_held for one in status.limits)),
    }
    for name, value in figures.items():
        sheet.put(f"mirrorspark_{name}", value, flow)


def _put_partition(sheet: Sheet, flow: str, one: PartitionFigures) -> None:
    figures: dict[str, float | None] = {
        "lag_records": one.lag_records,
        "lag_bytes": one.lag_bytes,
        "lag_seconds": one.lag_seconds,
        "latency_seconds": None if one.latency_ms is None else one.latency_ms / 1000,
        "source_end_offset": one.source_end,
        "source_next_offset": one.source_next,
        "target_end_offset": one.target_end,
        "records_total": one.records,
        "bytes_total": one.bytes,
        "reencoded_batches_total": one.reencoded,
    }
    for name, value in figures.items():
        sheet.put(f"mirrorspark_partition_{name}", value, flow, one.topic, one.partition)


def _put_lane(sheet: Sheet, status: FlowStatus, index: int) -> None:
    flow, lane = status.flow, status.lanes.get(index)
    age_s = None if lane is None or lane.seen_at is None else status.clock() - lane.seen_at
    state = "missing" if lane is None else "silent" if age_s is None or age_s >= LANE_SILENT_S else lane.state
    for name in LANE_STATES:
        sheet.put("mirrorspark_lane_state", int(name == state), flow, index, name)
    sheet.put("mirrorspark_lane_report_age_seconds", age_s, flow, index)
    if lane is not None:
        sheet.put("mirrorspark_lane_partitions", lane.partitions, flow, index)
        sheet.put("mirrorspark_lane_waiting_partitions", len(lane.waiting), flow, index)
        sheet.put("mirrorspark_lane_held_bytes", lane.held_bytes, flow, index)
    totals = status.lane_totals.get(index, LaneTotals())
    sheet.put("mirrorspark_lane_epoch_pause_seconds", totals.pause_s, flow, index)
    sheet.put("mirrorspark_lane_attempts_total", totals.attempts, flow, index)
    for name, counted in (
        ("cpu_seconds", "cpu_s"),
        ("batches", "batches"),
        ("fences", "fences"),
        ("duplicates_avoided", "duplicates_avoided"),
        ("position_commits", "commits"),
        ("position_commits_failed", "commits_failed"),
        ("bandwidth_held_seconds", "limit_held_s"),
        ("bandwidth_holds", "limit_holds"),
    ):
        sheet.put(f"mirrorspark_lane_{name}_total", totals[counted], flow, index)


def _put_events(sheet: Sheet, status: FlowStatus) -> None:
    flow, events = status.flow, list(status.events.values())
    kinds = Counter(event.kind for event in events)
    for kind in sorted({*EVENT_KINDS, *kinds}):
        sheet.put("mirrorspark_events", kinds[kind], flow, kind)
    gaps = [event for event in events if event.kind == EventKind.DATA_GAP and event.offset_first >= 0]
    sheet.put("mirrorspark_gap_records", sum(gap.offset_last - gap.offset_first + 1 for gap in gaps), flow)
    for origin, counts in status.skipped_by_origin.items():
        sheet.put("mirrorspark_skipped_by_origin_records", counts["records"], flow, origin)
        sheet.put("mirrorspark_skipped_by_origin_batches", counts["batches"], flow, origin)
    if (identical := status.partitions_identical) is not None:
        for holds, count in zip(("true", "false"), identical, strict=True):
            sheet.put("mirrorspark_identical_partitions", count, flow, holds)


def _put_groups(sheet: Sheet, status: FlowStatus) -> None:
    groups, flow = status.groups, status.flow
    if not groups:
        return
    places, inexact = groups.get("partitions", 0), groups.get("not_exact", 0)
    p95_ms = groups.get("latency_ms_p95")
    figures: dict[str, float | None] = {
        "groups": groups.get("groups"),
        "group_offsets": places,
        "group_offsets_not_exact": inexact,
        "group_offsets_waiting": groups.get("waiting"),
        "group_translation_exact_ratio": 1.0 - inexact / places if places else 1.0,
        "groups_blocked_on_target": groups.get("with_members_on_target"),
        "groups_refused": groups.get("refused"),
        "groups_polled": int(groups.get("mode") == "polling"),
        "group_latency_p95_seconds": None if p95_ms is None else p95_ms / 1000,
        "group_checkpoints_written_total": groups.get("checkpoints_written"),
        "group_offsets_written_total": groups.get("offsets_written"),
    }
    for name, value in figures.items():
        sheet.put(f"mirrorspark_{name}", value, flow)


def _put_syncs(sheet: Sheet, status: FlowStatus) -> None:
    flow, sync = status.flow, status.sync
    for job, label in JOBS.items():
        if job in status.done_at:
            sheet.put("mirrorspark_sync_age_seconds", status.clock() - status.done_at[job], flow, label)
    if sync:
        sheet.put("mirrorspark_drift_topics", sync.get("settings_differ"), flow)
        for name in ("settings_changed", "acls_granted", "acls_revoked"):
            sheet.put(f"mirrorspark_{name}_total", sync.get(name), flow)
    sheet.put("mirrorspark_heartbeat_age_seconds", status.heartbeat_age_s, flow)
    sheet.put("mirrorspark_heartbeat_mirrored_age_seconds", status.heartbeat_mirrored_age_s, flow)
    for (cluster, certificate), expires_at in status.certificates.items():
        sheet.put("mirrorspark_certificate_expiry_timestamp_seconds", expires_at, flow, cluster, certificate)
