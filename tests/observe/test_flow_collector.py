"""Statuses in, series out: only those of the catalogue, with true values, and never more than was allowed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry

from mirrorspark.cluster.traffic import Traffic
from mirrorspark.events import Event, EventKind
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.observe.flow_collector import FlowCollector, flow_of, metrics_text
from mirrorspark.observe.flow_status import LANE_SILENT_S, FlowStatus
from mirrorspark.observe.jvm_figures import Collector, JvmFigures, MemoryArea
from mirrorspark.observe.metric_catalogue import METRICS
from mirrorspark.observe.metric_catalogue.clients import WORKER_CLIENT_PREFIX
from mirrorspark.observe.metric_catalogue.process import JVM
from mirrorspark.observe.sampled_window import SampledWindow
from mirrorspark.settings import MetricsSettings

ORDERS = [TopicPartition("east.orders", number) for number in range(3)]
SERIES_OF_A_PARTITION_MAX = 50
Samples = dict[str, dict[tuple[str, ...], float]]


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def status() -> FlowStatus:
    """A flow of two lanes that has carried ten records of each of three partitions."""
    made = FlowStatus("east->west", lanes_expected=2, topics="orders", clock=Clock())
    made.begin(7)
    made.follow_plan([[ORDERS[0], ORDERS[2]], [ORDERS[1]]], ())
    made.sources = {at: TopicPartition("orders", at.partition) for at in ORDERS}
    made.matched = 1
    made.lane_memory_bytes_max = 1_000
    made.run()
    report(made, 0, ORDERS[0], ORDERS[2])
    report(made, 1, ORDERS[1])
    return made


def report(status: FlowStatus, lane: int, *places: TopicPartition, records: int = 10, **changes: Any) -> None:
    counts = {"cpu_s": 1.5, "fences": 2, "duplicates_avoided": 40, "batches": 4, "commits": 2, "commit_ms": 10}
    counts |= {"batch_records_max": 7, "fetches": 4, "fetch_ms": 100, "fetch_ms_max": 60, "transactions": 2}
    text = {
        "lane": lane,
        "generation": 7,
        "state": "carrying",
        "since_ms": 1,
        "at_ms": 2,
        "partitions": len(places),
        "held_bytes": 200,
        "waiting": {},
        "counts": counts,
        "moved": [
            [at.topic, at.partition, records, records + 5, records + 20, records, records * 100, 30, "carrying", 1]
            for at in places
        ],
        **changes,
    }
    status.fold(f"lane/{lane}".encode(), json.dumps(text).encode())
    assert not status.failures


def scrape(*statuses: FlowStatus, **limits: int) -> Samples:
    text = metrics_text(lambda: statuses, MetricsSettings(**limits))().decode()
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = re.sub("^kafka_connect_connect_metrics_[a-z]+_[a-z]+_", WORKER_CLIENT_PREFIX, sample.name)
            metric = METRICS.get(name)
            if metric is None:
                assert sample.name.startswith(("process_", "python_")), f"{sample.name} is not in the catalogue"
                continue
            assert set(sample.labels) == set(metric.labels)
            assert (family.type == "counter") == (metric.kind.value == "counter")
            found.setdefault(sample.name, {})[tuple(sample.labels[one] for one in metric.labels)] = sample.value
    return found


def test_partitions_are_told_under_every_name(status: FlowStatus) -> None:
    found = scrape(status)
    for number in ("0", "1", "2"):
        assert found["mirrorspark_partition_records_total"]["east->west", "east.orders", number] == 10
        assert found["mirrorspark_partition_bytes_total"]["east->west", "east.orders", number] == 1_000
        assert found["mirrorspark_partition_reencoded_batches_total"]["east->west", "east.orders", number] == 1
        assert found["mirrorspark_partition_target_end_offset"]["east->west", "east.orders", number] == 15
        theirs = "kafka_connect_mirror_mirrorsourceconnector_"
        assert found[f"{theirs}record_count"]["east", "west", "east.orders", number] == 10
        assert found[f"{theirs}replication_latency_ms_avg"]["east", "west", "east.orders", number] == 30
        assert found["connect_mirror_mirrorsourceconnector_byte_count"]["west", "east.orders", number] == 1_000
    assert found["mirrorspark_flow_records_total"]["east->west",] == 30


def test_lag_is_that_of_the_last_look_at_the_source(status: FlowStatus) -> None:
    assert scrape(status)["mirrorspark_flow_lag_records"]["east->west",] == 60, "as of the lanes' last fetch"
    clock = status.clock
    assert isinstance(clock, Clock)
    status.source_ends.take(clock.now, dict.fromkeys(ORDERS, 110), dict.fromkeys(ORDERS, 10))
    clock.now += 4
    found = scrape(status)
    place = ("east->west", "east.orders", "1")
    assert found["mirrorspark_partition_lag_records"][place] == 100
    assert found["mirrorspark_partition_lag_bytes"][place] == 10_000
    assert found["mirrorspark_partition_lag_seconds"][place] == 4
    assert found["mirrorspark_flow_source_look_age_seconds"]["east->west",] == 4
    consumer = '"east->west|east->west.MirrorSourceConnector-1|replication-consumer"'
    assert found["kafka_consumer_fetch_manager_records_lag"][consumer, "orders", "1"] == 100
    status.source_ends.starts = dict.fromkeys(ORDERS, 4)
    status.source_ends.take(clock.now, dict.fromkeys(ORDERS, 110), dict.fromkeys(ORDERS, 90))
    found = scrape(status)
    assert found["kafka_consumer_fetch_manager_records_lag_max"][consumer, "orders", "1"] == 100
    assert found["kafka_consumer_fetch_manager_records_lag_avg"][consumer, "orders", "1"] == 60
    assert found["kafka_consumer_fetch_manager_records_lead"][consumer, "orders", "1"] == 6


def test_names_of_the_metrics_reporter_have_no_quotes(status: FlowStatus) -> None:
    found = scrape(status)
    client = "east->west|east->west.MirrorSourceConnector-1|replication-consumer"
    assert found["kafka_consumer_consumer_fetch_manager_metrics_records_lag"][client, "orders", "1"] == 20
    connector = "east->west.MirrorSourceConnector"
    assert found["kafka_connect_connector_task_metrics_offset_commit_avg_time_ms"][connector, "0"] == 5
    assert found["kafka_connect_connect_coordinator_metrics_assigned_tasks"]["east->west",] == 2
    assert found["kafka_connect_connect_worker_rebalance_metrics_rebalancing"][()] == 0
    producer = "connector-producer-east->west.MirrorSourceConnector-0"
    assert found["kafka_producer_producer_metrics_outgoing_byte"][producer,] == 2_000
    assert found["kafka_producer_producer_metrics_buffer_available_bytes"][producer,] == 800


def test_checkpoints_and_heartbeats_are_connectors_of_older_rules(status: FlowStatus) -> None:
    status.groups = {"groups": 1, "partitions": 1, "checkpoints_written": 5}
    status.groups |= {"checkpoint_appends": 5, "checkpoint_append_max": 1}
    status.heartbeat_sent_at, status.heartbeats_sent = status.clock(), 12
    status.fail("heartbeats", "refused")
    found = scrape(status)
    for name, written, fails in (("mirrorcheckpointconnector", 5, 0), ("mirrorheartbeatconnector", 12, 1)):
        assert found[f"connect_worker_metrics_{name}_connector_failed_task_count"][()] == fails
        assert found[f"connect_source_task_metrics_{name}_source_record_write_total"]["0",] == written
        assert found[f"connect_task_error_metrics_{name}_total_record_failures"]["0",] == fails
        assert found[f"connect_connector_task_metrics_{name}_running_ratio"]["0",] == 1 - fails
        assert found[f"connect_connector_task_metrics_{name}_batch_size_max"]["0",] == 1
        assert found[f"connect_task_error_metrics_{name}_total_retries"]["0",] == fails
    assert found["kafka_connect_connect_worker_metrics_task_startup_success_percentage"][()] == 1
    assert found["kafka_connect_connect_worker_metrics_connector_startup_attempts_total"][()] == 3


def test_sparks_jvm_is_told_where_there_is_one(status: FlowStatus) -> None:
    assert not [name for name in scrape(status) if name.startswith("jvm_")]
    figures = JvmFigures(MemoryArea(1, 2, 3), MemoryArea(4, 5, -1), 7, 6, 9, (Collector("Copy", 2, 0.5),))
    registry = CollectorRegistry()
    registry.register(FlowCollector(lambda: [status], jvm=lambda: figures))
    text = generate_latest(registry).decode()
    assert 'jvm_memory_used_bytes{area="nonheap"} 4.0' in text
    assert 'jvm_memory_max_bytes{area="nonheap"} -1.0' in text
    assert "jvm_threads_current 7.0" in text
    assert 'jvm_gc_collection_seconds_sum{gc="Copy"} 0.5' in text
    names = {sample.name for family in parse_open_metrics(open_metrics(registry).decode()) for sample in family.samples}
    assert {metric.name for metric in JVM} <= names


def test_a_scrape_is_noted_so_that_somebody_looks(status: FlowStatus) -> None:
    assert status.source_ends.asked_at == float("-inf")
    scrape(status)
    assert status.source_ends.asked_at == status.clock()


def test_too_many_partitions_are_told_by_topic(status: FlowStatus) -> None:
    found = scrape(status, partitions_max=2)
    assert found["mirrorspark_partition_records_total"] == {("east->west", "east.orders", "all"): 30}
    assert found["mirrorspark_partition_lag_records"] == {("east->west", "east.orders", "all"): 60}
    assert found["mirrorspark_partitions_with_own_series"]["east->west",] == 0
    assert len(found["kafka_connect_mirror_mirrorsourceconnector_record_count"]) == 1
    assert scrape(status, partitions_max=3)["mirrorspark_partitions_with_own_series"]["east->west",] == 1


def test_too_many_topics_are_told_as_one(status: FlowStatus) -> None:
    """Whatever a flow has, the number of series is bounded by the setting."""
    places = [TopicPartition(f"east.{name}", number) for name in ("a", "b", "c", "d") for number in range(2)]
    status.follow_plan([places, []], ())
    status.sources = {at: TopicPartition(at.topic.removeprefix("east."), at.partition) for at in places}
    report(status, 0, *places)
    found = scrape(status, partitions_max=4)
    assert found["mirrorspark_partition_records_total"].keys() == {
        ("east->west", f"east.{name}", "all") for name in ("a", "b", "c", "d")
    }
    found = scrape(status, partitions_max=3)
    assert found["mirrorspark_partition_records_total"] == {("east->west", "all", "all"): 80}
    assert found["mirrorspark_partition_lag_records"] == {("east->west", "all", "all"): 160}
    assert found["kafka_connect_mirror_mirrorsourceconnector_record_count"] == {("east", "west", "all", "all"): 80}
    assert list(found["kafka_consumer_fetch_manager_records_lag"]) == [
        ('"east->west|east->west.MirrorSourceConnector-all|replication-consumer"', "all", "all")
    ]
    assert found["mirrorspark_flow_records_total"]["east->west",] == 30 + 80


@pytest.mark.parametrize("partitions", [1, 40, 400])
def test_series_are_bounded_by_the_settings(status: FlowStatus, partitions: int) -> None:
    places = [TopicPartition(f"east.t{number % 50}", number // 50) for number in range(partitions)]
    status.follow_plan([places, []], ())
    report(status, 0, *places)
    window = SampledWindow()
    window.add(status.clock(), 1.0)
    status.checkpoint_latencies = {(f"group-{n}", at): window for n in range(3) for at in places}
    samples = sum(len(one) for one in scrape(status, partitions_max=20, checkpoints_max=20).values())
    fixed = sum(len(one) for one in scrape(FlowStatus("east->west", lanes_expected=2)).values())
    assert samples <= fixed + 20 * SERIES_OF_A_PARTITION_MAX + 20 * 5 + 200


def test_counters_go_on_when_a_lane_begins_anew(status: FlowStatus) -> None:
    report(status, 0, ORDERS[0], records=4, since_ms=99)
    found = scrape(status)
    assert found["mirrorspark_partition_records_total"]["east->west", "east.orders", "0"] == 14
    assert found["mirrorspark_lane_attempts_total"]["east->west", "0"] == 2
    assert found["mirrorspark_lane_cpu_seconds_total"]["east->west", "0"] == 3
    assert found["mirrorspark_lane_fences_total"]["east->west", "1"] == 2
    assert found["mirrorspark_lane_duplicates_avoided_total"]["east->west", "1"] == 40
    connector = '"east->west.MirrorSourceConnector"'
    assert found["kafka_connect_source_task_source_record_write_total"][connector, "0"] == 24
    assert found["kafka_connect_task_error_total_retries"][connector, "0"] == 1


def test_connectors_and_tasks_as_connect_would_tell_them(status: FlowStatus) -> None:
    found = scrape(status)
    connector = '"east->west.MirrorSourceConnector"'
    assert found["kafka_connect_connector_status"] == {(connector, "0", "running"): 1, (connector, "1", "running"): 1}
    assert found["kafka_connect_worker_connector_running_task_count"][connector,] == 2
    assert found["connect_worker_metrics_mirrorsourceconnector_connector_running_task_count"][()] == 2
    assert found["kafka_connect_worker_connector_count"][()] == 1
    assert found["kafka_connect_connector_task_offset_commit_avg_time_ms"][connector, "0"] == 5
    assert found["kafka_connect_connector_task_batch_size_avg"][connector, "0"] == 5
    assert found["connect_connector_task_metrics_mirrorsourceconnector_batch_size_max"]["0",] == 7
    producer = '"connector-producer-east->west.MirrorSourceConnector-0"'
    assert found["kafka_producer_buffer_available_bytes"][producer,] == 800
    assert found["kafka_producer_outgoing_byte_total"][producer,] == 2_000


def test_connections_are_told_by_client_and_broker(status: FlowStatus) -> None:
    rows = {"source": {"1": [10, 9, 500, 80_000, 90]}, "target": {"1": [4, 4, 70_000, 200, 8], "2": [1, 0, 50, 0, 0]}}
    report(status, 0, ORDERS[0], ORDERS[2], traffic=rows)
    found = scrape(status)
    consumer = '"east->west|east->west.MirrorSourceConnector-0|replication-consumer"'
    producer = '"connector-producer-east->west.MirrorSourceConnector-0"'
    assert found["kafka_consumer_incoming_byte_total"][consumer,] == 80_000
    assert found["kafka_producer_outgoing_byte_total"][producer,] == 70_050
    assert found["kafka_producer_producer_metrics_outgoing_byte"][producer.strip('"'),] == 70_050
    assert found["kafka_consumer_node_request_total"][consumer, "node-1"] == 10
    assert found["kafka_consumer_node_request_latency_avg"][consumer, "node-1"] == 10
    assert found["kafka_producer_node_outgoing_byte_total"][producer, "node-2"] == 50
    assert found["kafka_producer_node_request_latency_avg"][producer, "node-2"] == 0
    assert found["kafka_consumer_fetch_manager_fetch_latency_avg"][consumer,] == 25
    assert found["kafka_consumer_start_time_seconds"][consumer,] == 0.001
    report(status, 0, ORDERS[0], since_ms=99, traffic={"source": {"1": [1, 1, 1, 1, 1]}, "target": {}})
    assert scrape(status)["kafka_consumer_node_request_total"][consumer, "node-1"] == 11, "they go on"


def test_the_drivers_connections_are_the_workers_client(status: FlowStatus) -> None:
    figures = dict.fromkeys(Traffic().figures(), 0.0)
    figures |= {"opened": 3, "closed": 1, "requests": 20, "answers": 20, "bytes_out": 1_000, "bytes_in": 9_000}
    figures |= {"answer_s": 0.1, "request_bytes_max": 80, "turns": 10, "turn_s": 0.001}
    status.worker_traffic = lambda: {1: figures, 2: figures}
    status.began_at_s -= 100
    text = metrics_text(lambda: [status])().decode()
    client = "kafka_connect_connect_metrics_east_west_"
    told = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if line.startswith(client)}
    assert told[f"{client}connection_count"] == 4
    assert told[f"{client}request_total"] == 40
    assert told[f"{client}network_io_total"] == 80
    assert told[f"{client}request_size_avg"] == 50
    assert told[f"{client}request_size_max"] == 80
    assert told[f"{client}io_ratio"] + told[f"{client}io_wait_ratio"] == 1
    assert 99e9 < told[f"{client}io_waittime_total"] < 160e9
    assert scrape(status)["kafka_connect_node_request_latency_avg"]['"east->west"', "node-2"] == 5


def test_a_lead_is_a_rebalance(status: FlowStatus) -> None:
    clock = status.clock
    assert isinstance(clock, Clock)
    prefix = "kafka_connect_worker_rebalance_"
    assert scrape(status)[f"{prefix}completed_rebalances_total"][()] == 1
    status.begin(8)
    clock.now += 4
    report(status, 0, ORDERS[0], generation=8)
    assert scrape(status)[f"{prefix}rebalancing"][()] == 1
    report(status, 1, ORDERS[1], generation=8)
    clock.now += 2
    found = scrape(status)
    assert found[f"{prefix}rebalancing"][()] == 0
    assert found[f"{prefix}completed_rebalances_total"][()] == 2
    assert found[f"{prefix}rebalance_avg_time_ms"][()] == 2_000
    assert found[f"{prefix}rebalance_max_time_ms"][()] == 4_000
    assert found[f"{prefix}time_since_last_rebalance_ms"][()] == 2_000
    assert found["kafka_connect_connect_worker_rebalance_metrics_completed_rebalances"][()] == 2


def silent(status: FlowStatus) -> None:
    status.clock.now += LANE_SILENT_S + 1  # type: ignore[attr-defined]


def failed(status: FlowStatus) -> None:
    status.state = "failed"


def restarting(status: FlowStatus) -> None:
    status.state = "restarting"


def paused(status: FlowStatus) -> None:
    status.paused = frozenset("*")


@pytest.mark.parametrize(
    ("happens", "verdict", "task"),
    [
        (silent, "silent", "unassigned"),
        (failed, "failed", "failed"),
        (restarting, "restarting", "restarting"),
        (paused, "paused", "paused"),
    ],
)
def test_a_state_is_told_as_it_is(
    status: FlowStatus, happens: Callable[[FlowStatus], None], verdict: str, task: str
) -> None:
    happens(status)
    found = scrape(status)
    states = found["mirrorspark_flow_state"]
    assert {state for (_, state), value in states.items() if value} == {verdict}
    assert states["east->west", "running"] == 0
    connector = '"east->west.MirrorSourceConnector"'
    assert set(found["kafka_connect_connector_status"]) == {(connector, lane, task) for lane in "01"}


def test_events_are_counted_by_kind_and_gaps_by_records(status: FlowStatus) -> None:
    for event in (
        Event(EventKind.DATA_GAP, "gone", "orders", 1, 5, 9),
        Event(EventKind.DATA_GAP, "gone", "orders", 1, 20, 20),
        Event(EventKind.TOPIC_RECREATED, "again", "orders"),
    ):
        status.fold(event.key.encode(), event.to_json())
    found = scrape(status)
    assert found["mirrorspark_gap_records"]["east->west",] == 6
    assert found["mirrorspark_events"]["east->west", EventKind.DATA_GAP] == 2
    assert found["mirrorspark_events"]["east->west", EventKind.TOPIC_RECREATED] == 1
    assert found["mirrorspark_events"]["east->west", EventKind.BATCH_DAMAGED] == 0
    connector = '"east->west.MirrorSourceConnector"'
    assert found["kafka_connect_task_error_total_record_errors"] == {(connector, "0"): 0, (connector, "1"): 2}


def test_identical_offsets_are_counted_where_they_were_asked_for(status: FlowStatus) -> None:
    assert "mirrorspark_identical_partitions" not in scrape(status)
    report(status, 0, ORDERS[0], ORDERS[2], identical=[1, 1])
    report(status, 1, ORDERS[1], identical=[1, 0])
    holds = scrape(status)["mirrorspark_identical_partitions"]
    assert holds == {("east->west", "true"): 2, ("east->west", "false"): 1}


def test_groups_and_syncs(status: FlowStatus) -> None:
    status.groups = {
        "mode": "following",
        "groups": 3,
        "partitions": 8,
        "waiting": 1,
        "not_exact": 2,
        "refused": 0,
        "with_members_on_target": 1,
        "checkpoints_written": 5,
        "offsets_written": 4,
        "latency_ms_p95": 250,
    }
    status.sync = {"settings_differ": 2, "settings_changed": 7, "acls_granted": 1, "acls_revoked": 0}
    status.note_done("syncing topic settings")
    status.clock.now += 30  # type: ignore[attr-defined]
    window = SampledWindow()
    window.add(status.clock(), 250.0)
    status.checkpoint_latencies = {("app", ORDERS[0]): window, ("app", ORDERS[1]): window}
    found = scrape(status)
    assert found["mirrorspark_group_translation_exact_ratio"]["east->west",] == 0.75
    assert found["mirrorspark_groups_blocked_on_target"]["east->west",] == 1
    assert found["mirrorspark_drift_topics"]["east->west",] == 2
    assert found["mirrorspark_settings_changed_total"]["east->west",] == 7
    assert found["mirrorspark_sync_age_seconds"] == {("east->west", "settings"): 30}
    theirs = "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms"
    assert found[theirs]["east", "west", "app", "east.orders", "0"] == 250
    assert found["kafka_connect_worker_connector_count"][()] == 2
    left = "west, group=app, topic=east.orders, partition=0"
    assert found["kafka_connect_mirror_checkpoint_connector_checkpoint_latency_ms_avg"]["east", left] == 250
    assert list(scrape(status, checkpoints_max=1)[theirs]) == [("east", "west", "all", "all", "all")]


def test_several_flows_add_up_where_names_have_no_flow(status: FlowStatus) -> None:
    other = FlowStatus("west->east", lanes_expected=1, clock=status.clock)
    beats = FlowStatus("north->east", lanes_expected=0, state="heartbeats only", clock=status.clock)
    beats.heartbeat_sent_at = status.clock() - 3
    found = scrape(status, other, beats)
    assert found["connect_worker_metrics_mirrorsourceconnector_connector_total_task_count"][()] == 3
    assert found["kafka_connect_worker_task_count"][()] == 4
    assert found["mirrorspark_heartbeat_age_seconds"] == {("north->east",): 3}
    assert found["mirrorspark_flow_state"]["north->east", "heartbeats only"] == 1


def test_prometheus_may_ask_for_open_metrics(status: FlowStatus) -> None:
    registry = CollectorRegistry()
    registry.register(FlowCollector(lambda: [status]))
    families = list(parse_open_metrics(open_metrics(registry).decode()))
    names = {sample.name for family in families for sample in family.samples}
    assert names >= {"mirrorspark_flow_state", "kafka_consumer_incoming_byte_total"}


@pytest.mark.parametrize("flow", [Flow("a", "b"), Flow("a.b-c", "d_e"), Flow("a", "b", "group-1")])
def test_a_flow_is_read_as_it_is_written(flow: Flow) -> None:
    assert flow_of(str(flow)) == flow
