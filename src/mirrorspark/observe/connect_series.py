"""Connect's series of all flows of a process: a lane is a task of the source connector.

Names are quoted as JMX quotes them, since known dashboards match the quotes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mirrorspark.events import Event, EventKind
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.observe.client_series import LaneClients, put_fetch_manager, put_worker_client
from mirrorspark.observe.flow_status import LANE_SILENT_S, FlowStatus
from mirrorspark.observe.lane_totals import LaneTotals
from mirrorspark.observe.metric_catalogue.connect import OLDER_CONNECTORS, TASK_STATES
from mirrorspark.observe.partition_figures import PartitionFigures
from mirrorspark.observe.sheet import Sheet

__all__ = ["FlowPart", "put_connect"]

RECORD_TROUBLES = frozenset(
    {
        EventKind.DATA_GAP,
        EventKind.RECORD_TOO_LARGE,
        EventKind.BATCH_DAMAGED,
        EventKind.APPEND_REFUSED,
        EventKind.FETCH_REFUSED,
        EventKind.SOURCE_TRUNCATED,
        EventKind.TARGET_TRUNCATED,
    }
)
_WORKER = "kafka_connect_worker_"
_OLDER_WORKER = "kafka_connect_connect_worker_metrics_"
_REBALANCE = "kafka_connect_worker_rebalance_"
_JOBS = {"Checkpoint": "syncing groups", "Heartbeat": "heartbeats"}
"""By the names under which their failures are kept."""
_TASK = "kafka_connect_connector_task_"
_SOURCE_TASK = "kafka_connect_source_task_"
_ERROR = "kafka_connect_task_error_"
_OLDER_TASK = f"connect_connector_task_metrics_{OLDER_CONNECTORS['Source']}_"
_OLDER_SOURCE_TASK = f"connect_source_task_metrics_{OLDER_CONNECTORS['Source']}_"
_OLDER_ERROR = f"connect_task_error_metrics_{OLDER_CONNECTORS['Source']}_"


@dataclass(frozen=True)
class FlowPart:
    """One flow as Connect would see it."""

    flow: Flow
    status: FlowStatus
    partitions: list[PartitionFigures] = field(default_factory=list)

    def connector(self, kind: str) -> str:
        """As JMX writes the name that Strimzi gives it."""
        return f'"{self.flow}.Mirror{kind}Connector"'

    @property
    def kinds(self) -> dict[str, list[str]]:
        """The connectors that are there, each with the states of its tasks."""
        status = self.status
        found = {}
        if status.state != "heartbeats only":
            found["Source"] = [_task_state(status, lane) for lane in range(status.lanes_expected)]
        if status.groups:
            found["Checkpoint"] = ["failed" if "syncing groups" in status.failures else "running"]
        if status.heartbeat_sent_at is not None or "heartbeats" in status.failures:
            found["Heartbeat"] = ["failed" if "heartbeats" in status.failures else "running"]
        return found


def _task_state(status: FlowStatus, index: int) -> str:
    lane = status.lanes.get(index)
    if status.state == "failed" or (lane is not None and lane.state == "superseded"):
        return "failed"
    if status.state == "restarting":
        return "restarting"
    if lane is None or lane.seen_at is None or status.clock() - lane.seen_at >= LANE_SILENT_S:
        return "unassigned"
    return "paused" if status.is_paused else "running"


def put_connect(sheet: Sheet, parts: list[FlowPart]) -> None:
    for part in parts:
        _put_flow(sheet, part)
        for task in range(part.status.lanes_expected if "Source" in part.kinds else 0):
            _put_task(sheet, part, task)
        _put_jobs(sheet, part)
        put_fetch_manager(sheet, part.flow, part.partitions)
        put_worker_client(sheet, part.flow, part.status)
    _put_worker(sheet, parts)


def _put_flow(sheet: Sheet, part: FlowPart) -> None:
    kinds = part.kinds
    client = f'"{part.flow}"'
    sheet.put("kafka_connect_coordinator_assigned_connectors", len(kinds), client)
    sheet.put("kafka_connect_coordinator_assigned_tasks", sum(map(len, kinds.values())), client)
    for kind, states in kinds.items():
        connector = part.connector(kind)
        for task, state in enumerate(states):
            sheet.put("kafka_connect_connector_status", 1, connector, task, state)
        for state in TASK_STATES:
            count = len(states) if state == "total" else states.count(state)
            sheet.put(f"kafka_connect_worker_connector_{state}_task_count", count, connector)
            if state != "restarting":
                sheet.put(f"connect_worker_metrics_{OLDER_CONNECTORS[kind]}_connector_{state}_task_count", count)


def _put_task(sheet: Sheet, part: FlowPart, task: int) -> None:
    status = part.status
    totals = status.lane_totals.get(task, LaneTotals())
    records = totals.records
    state, connector = _task_state(status, task), part.connector("Source")
    lane = status.lanes.get(task)
    held = lane.held_bytes if lane is not None else 0
    is_running = float(state == "running")
    figures: dict[str, float] = {
        "offset_commit_avg_time_ms": totals["commit_ms"] / totals["commits"] if totals["commits"] else 0.0,
        "offset_commit_max_time_ms": totals["commit_ms_max"],
        "batch_size_avg": records / totals["batches"] if totals["batches"] else 0.0,
        "running_ratio": is_running,
    }
    failed_share = totals["commits_failed"] / totals["commits"] if totals["commits"] else 0.0
    older = {
        "batch_size_max": totals["batch_records_max"],
        "offset_commit_failure_percentage": failed_share,
        "offset_commit_success_percentage": 1.0 - failed_share,
    }
    for name, value in figures.items():
        sheet.put(f"{_TASK}{name}", value, connector, task)
    for name, value in (figures | older).items():
        sheet.put(f"{_OLDER_TASK}{name}", value, task)
    sheet.put(f"{_TASK}pause_ratio", float(state == "paused"), connector, task)
    _put_source_task(sheet, part, task, totals)
    memory = status.lane_memory_bytes_max
    LaneClients(part.flow, task).put(sheet, totals, max(0, memory - held) if memory else None)
    _put_errors(sheet, part, task, totals)


def _put_source_task(sheet: Sheet, part: FlowPart, task: int, totals: LaneTotals) -> None:
    lane, connector, now = part.status.lanes.get(task), part.connector("Source"), part.status.clock()
    records_per_byte = totals.records / totals.bytes if totals.bytes else 0.0
    active = (lane.held_bytes if lane is not None else 0) * records_per_byte
    for name in ("source_record_poll_total", "source_record_write_total"):
        sheet.put(f"{_SOURCE_TASK}{name}", totals.records, connector, task)
        sheet.put(f"{_OLDER_SOURCE_TASK}{name}", totals.records, task)
    place = f"kafka.connect<type=source-task-metrics, connector={connector}, task={task}><>source-record-active-count"
    sheet.put(f"{_SOURCE_TASK}source_record_active_count", active, connector, task, place)
    sheet.put(f"{_OLDER_SOURCE_TASK}source_record_active_count", active, task)
    held = totals.held_window
    figures = {
        "source_record_active_count_avg": (held.mean(now) or 0.0) * records_per_byte,
        "source_record_active_count_max": (held.high(now) or 0.0) * records_per_byte,
        "poll_batch_avg_time_ms": totals.fetch_ms_avg,
        "poll_batch_max_time_ms": totals["fetch_ms_max"],
        "transaction_size_avg": totals.records / totals["transactions"] if totals["transactions"] else 0.0,
    }
    for name, value in figures.items():
        sheet.put(f"{_SOURCE_TASK}{name}", value, connector, task)


def _put_errors(sheet: Sheet, part: FlowPart, task: int, totals: LaneTotals) -> None:
    troubles = [event for event in part.status.events.values() if _is_trouble_of(part, event, task)]
    skipped = [event for event in troubles if event.kind == EventKind.RECORD_TOO_LARGE and not event.waits]
    figures = {
        "total_record_errors": len(troubles),
        "total_record_failures": sum(event.waits for event in troubles),
        "total_records_skipped": len(skipped),
        "total_retries": max(0, totals.attempts - 1),
    }
    connector = part.connector("Source")
    for name, value in figures.items():
        sheet.put(f"{_ERROR}{name}", value, connector, task)
        sheet.put(f"{_OLDER_ERROR}{name}", value, task)
    sheet.put(f"{_ERROR}total_errors_logged", len(troubles), connector, task)
    for name, counted in (("requests", "dead_letters"), ("failures", "dead_letters_failed")):
        sheet.put(f"{_ERROR}deadletterqueue_produce_{name}", totals[counted], connector, task)
    newest_ms = max((event.at_ms for event in troubles), default=0)
    sheet.put(f"{_ERROR}last_error_timestamp", newest_ms, connector, task)


def _is_trouble_of(part: FlowPart, event: Event, task: int) -> bool:
    """By the partition that it is about, whose topic may be the source's or the remote one; else it is the first task's."""
    if event.kind not in RECORD_TROUBLES:
        return False
    places = part.status.partitions
    found = [one.lane for at, one in places.items() if _is_about(part.status, event, at)]
    return task in found if found else task == 0


def _is_about(status: FlowStatus, event: Event, at: TopicPartition) -> bool:
    return event.partition == at.partition and event.topic in (at.topic, status.sources.get(at, at).topic)


def _put_jobs(sheet: Sheet, part: FlowPart) -> None:
    """Checkpoints and heartbeats are jobs of the driver; older rules have tasks of theirs."""
    status = part.status
    written = {"Checkpoint": status.groups.get("checkpoints_written", 0), "Heartbeat": status.heartbeats_sent}
    appends = {"Checkpoint": status.groups.get("checkpoint_appends", 0), "Heartbeat": status.heartbeats_sent}
    largest = {"Checkpoint": status.groups.get("checkpoint_append_max", 0), "Heartbeat": min(1, status.heartbeats_sent)}
    for kind, states in part.kinds.items():
        if kind == "Source":
            continue
        name = OLDER_CONNECTORS[kind]
        is_failed = int("failed" in states)
        task_figures: dict[str, float] = {
            "batch_size_avg": written[kind] / appends[kind] if appends[kind] else 0.0,
            "batch_size_max": largest[kind],
            **dict.fromkeys(("offset_commit_avg_time_ms", "offset_commit_max_time_ms"), 0.0),
            "offset_commit_failure_percentage": 0.0,
            "offset_commit_success_percentage": 1.0,
            "running_ratio": 1 - is_failed,
        }
        for figure, value in task_figures.items():
            sheet.put(f"connect_connector_task_metrics_{name}_{figure}", value, 0)
        sheet.put(f"connect_source_task_metrics_{name}_source_record_active_count", 0, 0)
        for figure in ("source_record_poll_total", "source_record_write_total"):
            sheet.put(f"connect_source_task_metrics_{name}_{figure}", written[kind], 0)
        for figure in ("total_record_errors", "total_record_failures"):
            sheet.put(f"connect_task_error_metrics_{name}_{figure}", is_failed, 0)
        sheet.put(f"connect_task_error_metrics_{name}_total_records_skipped", 0, 0)
        sheet.put(f"connect_task_error_metrics_{name}_total_retries", status.failed_times[_JOBS[kind]], 0)


def _put_worker(sheet: Sheet, parts: list[FlowPart]) -> None:
    connectors = sum(len(part.kinds) for part in parts)
    tasks = sum(len(states) for part in parts for states in part.kinds.values())
    sheet.put(f"{_WORKER}connector_count", connectors)
    sheet.put(f"{_WORKER}task_count", tasks)
    statuses = [part.status for part in parts]
    totals = [one for status in statuses for one in status.lane_totals.values()]
    failed_lanes = sum(event.kind == EventKind.LANE_FAILED for status in statuses for event in status.events.values())
    _put_starts(
        sheet,
        "connector",
        connectors,
        success=sum(len(part.kinds) for part in parts if part.status.lanes),
        failure=sum(status.state == "failed" for status in statuses),
    )
    _put_starts(
        sheet,
        "task",
        sum(one.attempts for one in totals),
        success=sum(one.attempts_carried for one in totals),
        failure=failed_lanes,
    )
    is_moving = any(status.generation is not None and status.lanes_missing for status in statuses)
    sheet.put(f"{_REBALANCE}rebalancing", int(is_moving))
    sheet.put(f"{_REBALANCE}epoch", max((status.generation or 0 for status in statuses), default=0))
    _put_handouts(sheet, statuses)


def _put_handouts(sheet: Sheet, statuses: list[FlowStatus]) -> None:
    handouts = [status.handouts for status in statuses]
    completed = sum(one.completed for one in handouts)
    ages_s = [
        status.clock() - status.handouts.completed_at for status in statuses if status.handouts.completed_at is not None
    ]
    sheet.put(f"{_REBALANCE}completed_rebalances_total", completed)
    mean_s = sum(one.total_s for one in handouts) / completed if completed else 0.0
    sheet.put(f"{_REBALANCE}rebalance_avg_time_ms", mean_s * 1000)
    sheet.put(f"{_REBALANCE}rebalance_max_time_ms", max((one.longest_s for one in handouts), default=0.0) * 1000)
    sheet.put(f"{_REBALANCE}time_since_last_rebalance_ms", min(ages_s, default=math.inf) * 1000)


def _put_starts(sheet: Sheet, what: str, attempts: int, *, success: int, failure: int) -> None:
    for prefix in (_WORKER, _OLDER_WORKER):
        sheet.put(f"{prefix}{what}_startup_attempts_total", attempts)
        sheet.put(f"{prefix}{what}_startup_success_total", success)
        sheet.put(f"{prefix}{what}_startup_failure_total", failure)
    for outcome, count in (("success", success), ("failure", failure)):
        share = count / attempts if attempts else 0.0
        sheet.put(f"{_WORKER}{what}_startup_{outcome}_percentage", share)
