"""What Prometheus sees of a running flow: every series that people's dashboards and rules name, with values that are those
of the two logs, also when the lanes are gone."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

import pytest
from confluent_kafka import TopicPartition as Place
from tests.observe.named_series import missing_series

from mirrorspark.control.metrics_endpoint import MetricsEndpoint
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import consumer, create_topic, end_offsets, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import write_values
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.lab.scrape import names_on, scrape
from mirrorspark.lab.workload import Workload
from mirrorspark.settings import FlowSettings, GroupSync, MetricsSettings

PATIENCE_S = 120.0
PARTITIONS = 2
RECORDS = 500
MORE = 30
SEED = 20261117
LOOKS = 40
MIRROR_MAKER = "kafka_connect_mirror_mirrorsourceconnector_"
OLDER = "connect_mirror_mirrorsourceconnector_"


def open_endpoint(flow: FlowWithoutSpark) -> int:
    async def begin() -> int:
        endpoint = MetricsEndpoint(MetricsSettings(("127.0.0.1", 0)), lambda: [flow.status])
        endpoint.open()
        assert endpoint.port is not None
        return endpoint.port

    return flow.call(begin())


def test_a_scrape_says_what_the_logs_and_the_checker_say(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    workload = Workload(source, topic_name, PARTITIONS, SEED)
    workload.create_topic()
    group = f"{topic_name}-group"
    sync = GroupSync(groups=group, offsets_enabled=True)
    flow = lanes_without_spark(flow_settings(topic_name, group_sync=sync))
    pair = flow.settings.flow
    remote = f"{pair.source}.{topic_name}"
    port = open_endpoint(flow)
    workload.produce(PARTITIONS * RECORDS)
    reader = consumer(source, {"group.id": group})
    reader.commit(offsets=[Place(topic_name, 0, RECORDS // 2)], asynchronous=False)
    reader.close()

    def missing() -> list[str]:
        """No Spark runs here and a flow without FlowSet emits no heartbeats; ``test_run_secrets`` demands these, too."""
        client = f"{pair.source}_{pair.target}".replace("-", "_")
        found = missing_series(names_on(port), client)
        return [name for name in found if not name.startswith("jvm_") and "mirrorheartbeatconnector" not in name]

    wait_until_caught_up(source, target, topic_name, remote)

    def all_is_told() -> bool:
        found = scrape(port)
        carried = found.get("mirrorspark_flow_records_total", {}).get((str(pair),))
        lag = found.get("mirrorspark_flow_lag_records", {}).get((str(pair),))
        is_looked_at = "mirrorspark_flow_source_look_age_seconds" in found
        return carried == workload.ledger.acknowledged and lag == 0 and is_looked_at and not missing()

    try:
        wait_for(all_is_told, "every series, and all records counted", PATIENCE_S)
    except Exception as error:
        raise AssertionError(f"missing: {missing()}") from error
    found = scrape(port)
    verdict = check_copy(target, remote, workload.ledger, isolation="read_uncommitted")
    assert verdict.is_clean, verdict.report()
    assert verdict.read == found["mirrorspark_flow_records_total"][str(pair),]
    logs, ends = raw_batches(target, remote), end_offsets(target, remote)
    for number in range(PARTITIONS):
        data = [batch for batch in logs[number] if not batch.is_control]
        labels = (pair.source, pair.target, remote, str(number))
        for prefix, place in ((MIRROR_MAKER, labels), (OLDER, labels[1:])):
            assert found[f"{prefix}record_count"][place] == len(workload.ledger.books[number])
            assert found[f"{prefix}byte_count"][place] == sum(batch.size for batch in data)
        ours = (str(pair), remote, str(number))
        assert found["mirrorspark_partition_records_total"][ours] == sum(batch.record_count for batch in data)
        assert found["mirrorspark_partition_lag_records"][ours] == 0
        assert found["mirrorspark_partition_source_next_offset"][ours] == end_offsets(source, topic_name)[number][1]
        assert found["mirrorspark_partition_target_end_offset"][ours] == ends[number][1]
    assert sum(found["kafka_consumer_fetch_manager_records_consumed_total"].values()) == verdict.read
    assert sum(found["kafka_consumer_fetch_manager_records_lag"].values()) == 0
    assert sum(found["kafka_connect_source_task_source_record_write_total"].values()) == verdict.read
    data_bytes = sum(batch.size for log in logs.values() for batch in log if not batch.is_control)
    assert sum(found["kafka_consumer_incoming_byte_total"].values()) >= data_bytes
    assert sum(found["kafka_producer_outgoing_byte_total"].values()) >= data_bytes
    assert sum(found["kafka_producer_node_request_total"].values()) > 0
    written = sum(end for _, end in end_offsets(source, topic_name).values())
    assert sum(found["kafka_consumer_fetch_manager_records_lead"].values()) == written
    assert found["kafka_connect_worker_rebalance_completed_rebalances_total"][()] == 1
    latency = "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms"
    assert (pair.source, pair.target, group, remote, "0") in found[latency]
    assert found["mirrorspark_flow_state"][str(pair), "running"] == 1
    assert found["mirrorspark_lane_cpu_seconds_total"][str(pair), "0"] > 0

    assert flow.lanes is not None
    flow.lanes.kill()
    write_values(source, topic_name, [b"x" * 100] * MORE, partition=1)
    place = (str(pair), remote, "1")

    def lag_is_seen() -> bool:
        found = scrape(port)
        waits_s = found["mirrorspark_partition_lag_seconds"].get(place, 0.0)
        return found["mirrorspark_partition_lag_records"][place] == MORE and waits_s > 0

    wait_for(lag_is_seen, "the lag of a partition that nobody carries", PATIENCE_S)
    assert scrape(port)["mirrorspark_partition_lag_bytes"][place] > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_figures_how_old_the_page_is(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From when the target has a record until the page counts it. A figure, no bound: machines differ."""
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    create_topic(source, topic_name)
    flow = lanes_without_spark(flow_settings(topic_name))
    place = (str(flow.settings.flow), f"{flow.settings.flow.source}.{topic_name}", "0")
    port = open_endpoint(flow)
    ages_s, chance = [], random.Random(SEED)
    for count in range(1, LOOKS + 1):
        write_values(source, topic_name, [b"x" * 100])
        wait_for(lambda wanted=count: end_offsets(target, place[1])[0][1] >= wanted, "it", PATIENCE_S, 0.01)  # type: ignore[misc]
        arrived_at = time.monotonic()

        def is_counted(wanted: int = count) -> bool:
            return scrape(port).get("mirrorspark_partition_records_total", {}).get(place) == wanted

        wait_for(is_counted, "the record on the page", PATIENCE_S, 0.01)
        ages_s.append(time.monotonic() - arrived_at)
        time.sleep(chance.random())  # not in step with the lane's second
    with capsys.disabled():
        print(f"\nage of /metrics: median {statistics.median(ages_s):.2f} s, largest {max(ages_s):.2f} s of {LOOKS}")
