"""What the dashboard of Strimzi's Metrics Reporter asks for: the same figures as Connect's, without quotes in the labels.

Only what that dashboard names and what the figures of ``connect`` are not there for already.
"""

from __future__ import annotations

from mirrorspark.observe.metric_catalogue.metric import Metric, MetricKind

__all__ = ["REPORTER"]

_G = MetricKind.GAUGE
_TASK = ("connector", "task")

REPORTER: tuple[Metric, ...] = (
    Metric(
        "kafka_connect_connect_coordinator_metrics_assigned_connectors",
        _G,
        ("client_id",),
        "connectors",
        "Connectors of a flow.",
        "As kafka_connect_coordinator_assigned_connectors.",
    ),
    Metric(
        "kafka_connect_connect_coordinator_metrics_assigned_tasks",
        _G,
        ("client_id",),
        "tasks",
        "Tasks of a flow.",
        "As kafka_connect_coordinator_assigned_tasks.",
    ),
    Metric(
        "kafka_connect_connect_worker_rebalance_metrics_rebalancing",
        _G,
        (),
        "1",
        "1 while a lane of a flow that is led is missing.",
        "As kafka_connect_worker_rebalance_rebalancing.",
    ),
    Metric(
        "kafka_connect_connector_task_metrics_offset_commit_avg_time_ms",
        _G,
        _TASK,
        "ms",
        "Mean time of a commit.",
        "As kafka_connect_connector_task_offset_commit_avg_time_ms.",
    ),
    Metric(
        "kafka_consumer_consumer_fetch_manager_metrics_records_lag",
        _G,
        ("client_id", "topic", "partition"),
        "records",
        "Records on the source that are not on the target yet; topic is the source's.",
        "As mirrorspark_partition_lag_records.",
    ),
    Metric(
        "kafka_consumer_consumer_metrics_incoming_byte",
        _G,
        ("client_id",),
        "bytes",
        "Bytes carried; only grows.",
        "As kafka_consumer_incoming_byte_total.",
    ),
    Metric(
        "kafka_producer_producer_metrics_outgoing_byte",
        _G,
        ("client_id",),
        "bytes",
        "Bytes carried; only grows.",
        "As kafka_producer_outgoing_byte_total.",
    ),
    Metric(
        "kafka_producer_producer_metrics_buffer_available_bytes",
        _G,
        ("client_id",),
        "bytes",
        "What is left of lane.memory.max.bytes.",
        "As kafka_producer_buffer_available_bytes.",
    ),
)
