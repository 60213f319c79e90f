"""What Prometheus sees of a running flow: every series that people's dashboards and rules name, with values that are those
of the two logs, also when the lanes are gone."""

from __future__ import annotations

from collections.abc import Callable

import httpx
from confluent_kafka import TopicPartition as Place
from prometheus_client.parser import text_string_to_metric_families

from mirrorspark.control.metrics_endpoint import MetricsEndpoint
from mirrorspark.lab.clients import consumer, create_topic, end_offsets, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import write_values
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.observe.metric_catalogue import FAMILIES, METRICS
from mirrorspark.settings import FlowSettings, GroupSync, MetricsSettings

PATIENCE_S = 120.0
PARTITIONS = 2
RECORDS = 500
MORE = 30
MIRROR_MAKER = "kafka_connect_mirror_mirrorsourceconnector_"

Samples = dict[str, dict[tuple[str, ...], float]]


def scrape(port: int) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60.0).text):
        for sample in family.samples:
            if (metric := METRICS.get(sample.name)) is not None:
                labels = tuple(sample.labels[name] for name in metric.labels)
                found.setdefault(sample.name, {})[labels] = sample.value
    return found


def open_endpoint(flow: FlowWithoutSpark) -> int:
    async def begin() -> int:
        endpoint = MetricsEndpoint(MetricsSettings(("127.0.0.1", 0)), lambda: [flow.status])
        endpoint.open()
        assert endpoint.port is not None
        return endpoint.port

    return flow.call(begin())


def test_a_scrape_says_what_the_logs_say(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    create_topic(source, topic_name, PARTITIONS)
    group = f"{topic_name}-group"
    sync = GroupSync(groups=group, offsets_enabled=True)
    flow = lanes_without_spark(flow_settings(topic_name, group_sync=sync))
    pair = flow.settings.flow
    remote = f"{pair.source}.{topic_name}"
    for number in range(PARTITIONS):
        write_values(source, topic_name, [b"x" * 100] * RECORDS, partition=number)
    reader = consumer(source, {"group.id": group})
    reader.commit(offsets=[Place(topic_name, 0, RECORDS // 2)], asynchronous=False)
    reader.close()
    port = open_endpoint(flow)
    theirs = {metric.name for title, family in FAMILIES.items() if title != "Our own" for metric in family}

    def all_is_told() -> bool:
        found = scrape(port)
        counts = found.get(f"{MIRROR_MAKER}record_count", {})
        is_carried = all(
            counts.get((pair.source, pair.target, remote, str(number))) == RECORDS for number in range(PARTITIONS)
        )
        return is_carried and theirs <= found.keys() and "mirrorspark_flow_source_look_age_seconds" in found

    wait_for(all_is_told, "every series, and all records counted", PATIENCE_S)
    found = scrape(port)
    logs = raw_batches(target, remote)
    ends = end_offsets(target, remote)
    for number in range(PARTITIONS):
        data = [batch for batch in logs[number] if not batch.is_control]
        labels = (pair.source, pair.target, remote, str(number))
        assert found[f"{MIRROR_MAKER}record_count"][labels] == sum(batch.record_count for batch in data)
        assert found[f"{MIRROR_MAKER}byte_count"][labels] == sum(batch.size for batch in data)
        ours = (str(pair), remote, str(number))
        assert found["mirrorspark_partition_lag_records"][ours] == 0
        assert found["mirrorspark_partition_source_next_offset"][ours] == RECORDS
        assert found["mirrorspark_partition_target_end_offset"][ours] == ends[number][1]
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
