"""The catalogue: each series once, named as Prometheus and the people who know MirrorMaker 2 expect."""

from __future__ import annotations

import re

import pytest

from mirrorspark.events import EventKind
from mirrorspark.observe.metric_catalogue import ABSENT, FAMILIES, METRICS, Metric, MetricKind
from mirrorspark.observe.own_series import EVENT_KINDS

STRIMZI_DASHBOARD = [
    "kafka_connect_worker_connector_count",
    "kafka_connect_worker_task_count",
    "kafka_connect_mirror_mirrorsourceconnector_record_rate",
    "kafka_connect_mirror_mirrorsourceconnector_byte_rate",
    "kafka_connect_mirror_mirrorsourceconnector_record_age_ms",
    "kafka_connect_mirror_mirrorsourceconnector_record_age_ms_avg",
    "kafka_connect_mirror_mirrorsourceconnector_record_age_ms_min",
    "kafka_connect_mirror_mirrorsourceconnector_record_age_ms_max",
    "kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms",
    "kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms_avg",
    "kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms_min",
    "kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms_max",
    "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms",
    "kafka_consumer_fetch_manager_records_lag",
    "kafka_consumer_incoming_byte_total",
    "kafka_producer_outgoing_byte_total",
    "kafka_producer_buffer_available_bytes",
    "kafka_connect_connector_task_offset_commit_avg_time_ms",
    "kafka_connect_source_task_source_record_active_count",
    "kafka_connect_coordinator_assigned_connectors",
    "kafka_connect_worker_rebalance_rebalancing",
    "kafka_connect_coordinator_assigned_tasks",
    "jvm_memory_used_bytes",
    "jvm_gc_collection_seconds_sum",
    "jvm_threads_current",
]
"""All that it asks a mirror for, as of August 2026; besides these it names cAdvisor's container_cpu_usage_seconds_total."""
REPORTER_DASHBOARD = [
    "kafka_connect_connect_coordinator_metrics_assigned_connectors",
    "kafka_connect_connect_coordinator_metrics_assigned_tasks",
    "kafka_connect_connect_worker_metrics_connector_count",
    "kafka_connect_connect_worker_metrics_task_count",
    "kafka_connect_connect_worker_rebalance_metrics_rebalancing",
    "kafka_connect_connector_task_metrics_offset_commit_avg_time_ms",
    "kafka_consumer_consumer_fetch_manager_metrics_records_lag",
    "kafka_consumer_consumer_metrics_incoming_byte",
    "kafka_producer_producer_metrics_outgoing_byte",
    "kafka_producer_producer_metrics_buffer_available_bytes",
    "process_cpu_seconds_total",
]
"""Of the dashboard for Strimzi's Metrics Reporter, what the other one has not."""
OLDER_RULES = {
    "kafka_connect_connect_worker_metrics_": "connector_count task_count connector_startup_attempts_total "
    "connector_startup_success_total connector_startup_failure_total connector_startup_success_percentage "
    "connector_startup_failure_percentage task_startup_attempts_total task_startup_success_total "
    "task_startup_failure_total task_startup_success_percentage task_startup_failure_percentage",
    "connect_mirror_mirrorsourceconnector_": "byte_rate byte_count record_age_ms record_rate record_count "
    "replication_latency_ms",
    "connect_mirror_mirrorcheckpointconnector_": "checkpoint_latency_ms",
    **{
        f"{prefix}_{connector}_{more}": endings
        for connector in ("mirrorsourceconnector", "mirrorcheckpointconnector", "mirrorheartbeatconnector")
        for prefix, more, endings in (
            (
                "connect_worker_metrics",
                "connector_",
                "destroyed_task_count failed_task_count paused_task_count running_task_count total_task_count "
                "unassigned_task_count",
            ),
            (
                "connect_connector_task_metrics",
                "",
                "batch_size_avg batch_size_max offset_commit_avg_time_ms offset_commit_failure_percentage "
                "offset_commit_max_time_ms offset_commit_success_percentage running_ratio",
            ),
            (
                "connect_source_task_metrics",
                "",
                "source_record_active_count source_record_poll_total source_record_write_total",
            ),
            (
                "connect_task_error_metrics",
                "",
                "total_record_errors total_record_failures total_records_skipped total_retries",
            ),
        )
    },
}


def test_each_series_is_declared_once() -> None:
    names = [metric.name for family in FAMILIES.values() for metric in family]
    assert len(names) == len(set(names)) == len(METRICS)
    assert not {one.name for one in ABSENT} & METRICS.keys()


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_a_series_is_described(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]+", metric.name)
    assert all(re.fullmatch(r"[a-z_]+", label) for label in metric.labels)
    assert not {"job", "instance"} & set(metric.labels), "Prometheus' own: it would call ours exported_job"
    assert metric.help.endswith(".")
    assert metric.origin
    assert metric.unit
    assert "|" not in metric.help + metric.origin, "they stand in a table"
    if metric.kind is MetricKind.COUNTER:
        assert metric.name.endswith("_total")


@pytest.mark.parametrize("metric", FAMILIES["Our own"], ids=lambda metric: metric.name)
def test_our_own_names_carry_base_units(metric: Metric) -> None:
    assert metric.name.startswith("mirrorspark_")
    assert metric.unit != "ms"
    if metric.unit == "s":
        assert "_seconds" in metric.name
    if metric.unit == "bytes":
        assert "_bytes" in metric.name
    assert metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER)


def test_what_the_strimzi_dashboard_names_is_there() -> None:
    assert [name for name in (*STRIMZI_DASHBOARD, *REPORTER_DASHBOARD) if name not in METRICS] == []


def test_what_older_rules_name_is_there() -> None:
    names = [prefix + ending for prefix, endings in OLDER_RULES.items() for ending in endings.split()]
    assert [name for name in names if name not in METRICS] == []
    assert METRICS["connect_mirror_mirrorsourceconnector_record_count"].labels == ("target", "topic", "partition")


def test_every_kind_of_event_is_told() -> None:
    assert EventKind.DATA_GAP in EVENT_KINDS
    assert EventKind.TOPIC_RECREATED in EVENT_KINDS
    assert len(EVENT_KINDS) >= 25
