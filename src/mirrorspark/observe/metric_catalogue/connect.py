"""Connect's series that dashboards of MirrorMaker 2 use: a lane is a task, each flow has up to three connectors.

Label values are quoted where JMX quotes them (``connector="\\"A->B.MirrorSourceConnector\\""``): Strimzi's dashboard matches
the quotes. What has not happened yet is 0, where Kafka's own sensors say NaN before their first measurement.
"""

from __future__ import annotations

from mirrorspark.observe.metric_catalogue.metric import Metric, MetricKind

__all__ = ["CONNECT", "CONNECT_OLDER", "OLDER_CONNECTORS", "TASK_STATES"]

_G, _C = MetricKind.GAUGE, MetricKind.COUNTER
_TASK = ("connector", "task")
OLDER_CONNECTORS = {kind: f"mirror{kind.lower()}connector" for kind in ("Source", "Checkpoint", "Heartbeat")}
TASK_STATES = ("total", "running", "paused", "failed", "unassigned", "destroyed", "restarting")

_STATUS = "Lane reports and the flow's state."
_HELD = "Estimated: bytes that the lane holds over the mean size of its records."
_COMMITS = "Commits of positions by the lane."
_EVENTS = "Events of the lane's partitions that nobody acknowledged; a record is never dropped without one."
_FETCHES = "Fetches of the lane, the source's wait for records included (at most 500 ms); since the process began."
_HANDOUTS = "Leads of the flows: from the plan to the first report of the last lane."

_WORKER = "kafka_connect_worker_"
_TASK_COUNTS = tuple(
    Metric(
        f"{_WORKER}connector_{state}_task_count",
        _G,
        ("connector",),
        "tasks",
        f"Tasks of a connector, {state}.",
        _STATUS,
    )
    for state in TASK_STATES
)
_STARTS = tuple(
    Metric(f"{_WORKER}{what}_startup_{outcome}_total", _C, (), "starts", f"Starts of a {what}: {outcome}.", origin)
    for what, origin in (
        ("connector", "Flows that were begun, lead, or failed."),
        ("task", "Attempts of lanes that reported, that carried, that ended by an error."),
    )
    for outcome in ("attempts", "success", "failure")
)
_START_SHARES = tuple(
    Metric(
        f"{_WORKER}{what}_startup_{outcome}_percentage",
        _G,
        (),
        "1",
        f"Share of the starts of a {what}: {outcome}; 0 before the first.",
        "From the counts.",
    )
    for what in ("connector", "task")
    for outcome in ("success", "failure")
)
_DEAD_LETTERS = "Only with on.record.too.large = dead-letter; since the process began."
_ERRORS = (
    (
        "total_record_errors",
        "events",
        "Troubles with records: damaged, refused, too large, gone before they were carried.",
    ),
    ("total_record_failures", "events", "Those of them because of which a partition waits."),
    ("total_records_skipped", "records", "Records that the target refused for their size and that were left out."),
    ("total_errors_logged", "events", "The same as total_record_errors: each is logged."),
)

CONNECT: tuple[Metric, ...] = (
    Metric(
        "kafka_connect_connector_status", _G, (*_TASK, "status"), "1", "1 for the state that a task is in.", _STATUS
    ),
    Metric(
        "kafka_connect_connector_task_offset_commit_avg_time_ms", _G, _TASK, "ms", "Mean time of a commit.", _COMMITS
    ),
    Metric("kafka_connect_connector_task_offset_commit_max_time_ms", _G, _TASK, "ms", "Longest commit.", _COMMITS),
    Metric(
        "kafka_connect_connector_task_batch_size_avg", _G, _TASK, "records", "Mean records of a batch.", "Receipts."
    ),
    Metric("kafka_connect_connector_task_running_ratio", _G, _TASK, "1", "1 while the task carries, else 0.", _STATUS),
    Metric("kafka_connect_connector_task_pause_ratio", _G, _TASK, "1", "1 while the task is paused, else 0.", _STATUS),
    Metric("kafka_connect_source_task_source_record_poll_total", _C, _TASK, "records", "Records carried.", "Receipts."),
    Metric(
        "kafka_connect_source_task_source_record_write_total", _C, _TASK, "records", "Records carried.", "Receipts."
    ),
    Metric(
        "kafka_connect_source_task_source_record_active_count",
        _G,
        (*_TASK, "_objectname"),
        "records",
        "Records fetched and not yet acknowledged.",
        f"{_HELD} The last label is the exporter's, for a panel of the reporter's dashboard.",
    ),
    *(
        Metric(
            f"kafka_connect_source_task_source_record_active_count_{ending}",
            _G,
            _TASK,
            "records",
            f"Records fetched and not yet acknowledged, {which} of a minute.",
            _HELD,
        )
        for ending, which in (("avg", "mean"), ("max", "largest"))
    ),
    Metric("kafka_connect_source_task_poll_batch_avg_time_ms", _G, _TASK, "ms", "Mean time of a fetch.", _FETCHES),
    Metric("kafka_connect_source_task_poll_batch_max_time_ms", _G, _TASK, "ms", "Longest fetch.", _FETCHES),
    Metric(
        "kafka_connect_source_task_transaction_size_avg",
        _G,
        _TASK,
        "records",
        "Mean records of a transaction; 0 where the flow uses none.",
        "Transactions that the lane committed.",
    ),
    *(Metric(f"kafka_connect_task_error_{name}", _G, _TASK, unit, text, _EVENTS) for name, unit, text in _ERRORS),
    Metric(
        "kafka_connect_task_error_total_retries",
        _G,
        _TASK,
        "attempts",
        "Attempts of the lane after its first, epochs included.",
        "Lane reports.",
    ),
    Metric(
        "kafka_connect_task_error_last_error_timestamp",
        _G,
        _TASK,
        "ms",
        "When the last of them was, 0 for never.",
        _EVENTS,
    ),
    *(
        Metric(f"kafka_connect_task_error_deadletterqueue_produce_{name}", _G, _TASK, "records", text, _DEAD_LETTERS)
        for name, text in (
            ("requests", "Records that were set aside."),
            ("failures", "Records that could not be set aside; their partition waits."),
        )
    ),
    Metric(f"{_WORKER}connector_count", _G, (), "connectors", "Connectors of all flows of this process.", _STATUS),
    Metric(
        f"{_WORKER}task_count",
        _G,
        (),
        "tasks",
        "Lanes, and a task for each checkpoint and heartbeat connector.",
        _STATUS,
    ),
    *_STARTS,
    *_START_SHARES,
    *_TASK_COUNTS,
    Metric(
        "kafka_connect_worker_rebalance_completed_rebalances_total",
        _C,
        (),
        "handouts",
        "How often the lanes of a flow were given out and all of them took up their work.",
        _HANDOUTS,
    ),
    Metric("kafka_connect_worker_rebalance_rebalance_avg_time_ms", _G, (), "ms", "Mean time of that.", _HANDOUTS),
    Metric("kafka_connect_worker_rebalance_rebalance_max_time_ms", _G, (), "ms", "Longest.", _HANDOUTS),
    Metric(
        "kafka_connect_worker_rebalance_time_since_last_rebalance_ms",
        _G,
        (),
        "ms",
        "Since the last of them; +Inf before the first, as Connect says.",
        _HANDOUTS,
    ),
    Metric(
        "kafka_connect_worker_rebalance_rebalancing",
        _G,
        (),
        "1",
        "1 while a lane of a flow that is led is missing.",
        _STATUS,
    ),
    Metric(
        "kafka_connect_worker_rebalance_epoch", _G, (), "generations", "The highest generation led.", "The plan topic."
    ),
    Metric(
        "kafka_connect_coordinator_assigned_connectors",
        _G,
        ("clientid",),
        "connectors",
        "Connectors of a flow.",
        _STATUS,
    ),
    Metric("kafka_connect_coordinator_assigned_tasks", _G, ("clientid",), "tasks", "Tasks of a flow.", _STATUS),
)

_OLDER_TASK = (
    ("batch_size_avg", "records", "Mean records of a batch.", "Receipts."),
    ("batch_size_max", "records", "Records of the largest batch.", "Receipts."),
    ("offset_commit_avg_time_ms", "ms", "Mean time of a commit.", _COMMITS),
    ("offset_commit_max_time_ms", "ms", "Longest commit.", _COMMITS),
    ("offset_commit_failure_percentage", "1", "Share of commits that failed.", _COMMITS),
    ("offset_commit_success_percentage", "1", "Share of commits that did not.", _COMMITS),
    ("running_ratio", "1", "1 while the task carries, else 0.", _STATUS),
)
_OLDER_SOURCE = (
    ("source_record_active_count", "records", "Records fetched and not yet acknowledged, estimated.", "Lane reports."),
    ("source_record_poll_total", "records", "Records carried.", "Receipts."),
    ("source_record_write_total", "records", "Records carried.", "Receipts."),
)
_OLDER_ERRORS = (*_ERRORS[:3], ("total_retries", "attempts", "Attempts of the lane after its first."))
_JOBS = (
    "The driver's job: records are what it wrote, errors are 1 while it fails, retries count that; it commits nothing."
)


def _older(connector: str) -> tuple[Metric, ...]:
    """Of one connector, whose name these rules have in the name."""
    is_source = connector == OLDER_CONNECTORS["Source"]
    return (
        *(
            Metric(
                f"connect_worker_metrics_{connector}_connector_{state}_task_count",
                _G,
                (),
                "tasks",
                f"Tasks of all flows, {state}.",
                _STATUS,
            )
            for state in TASK_STATES
            if state != "restarting"
        ),
        *(
            Metric(
                f"{prefix}_{connector}_{name}",
                _C if name.endswith("_total") else _G,
                ("task",),
                unit,
                text,
                origin if is_source else _JOBS,
            )
            for prefix, rows in (
                ("connect_connector_task_metrics", _OLDER_TASK),
                ("connect_source_task_metrics", _OLDER_SOURCE),
                ("connect_task_error_metrics", tuple((*row, _EVENTS) for row in _OLDER_ERRORS)),
            )
            for name, unit, text, origin in rows
        ),
    )


_OLDER_WORKER = "kafka_connect_connect_worker_metrics_"
CONNECT_OLDER: tuple[Metric, ...] = (
    *(metric for connector in OLDER_CONNECTORS.values() for metric in _older(connector)),
    *(
        Metric(f"{_OLDER_WORKER}{one.name.removeprefix(_WORKER)}", _C, (), one.unit, one.help, one.origin)
        for one in _STARTS
    ),
)
"""By the rules of guides for Kafka 2.4, which have the connector in the name and no flow in the labels: lanes of one number
of several flows are added up."""
