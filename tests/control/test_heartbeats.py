"""A file that enables no flow: as in MirrorMaker 2, heartbeats are written for every pair of its clusters. Without Spark."""

from __future__ import annotations

from confluent_kafka.admin import ConfigResource, ResourceType

from mirrorspark.lab.clients import admin, topic_partitions, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.mirror import Mirror
from mirrorspark.lab.plain_records import read_records
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC, Heartbeat

DEADLINE_S = 120.0


def _beats(cluster: ClusterOfBrokers, source: str, target: str) -> list[Heartbeat]:
    if not topic_partitions(cluster.bootstrap, HEARTBEATS_TOPIC):
        return []
    found = [Heartbeat.from_record(one.key, one.value) for one in read_records(cluster.bootstrap, HEARTBEATS_TOPIC)[0]]
    return [beat for beat in found if beat is not None and (beat.source, beat.target) == (source, target)]


def _setting(cluster: ClusterOfBrokers, topic: str, name: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    client = admin(cluster.bootstrap)  # kept until it has answered
    [answer] = client.describe_configs([resource]).values()
    return str(answer.result(30)[name].value)


def test_2_12_1_and_2_12_2_heartbeats_of_every_pair_where_no_flow_is_enabled(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    a, b = f"a-{topic_name}", f"b-{topic_name}"
    properties = {
        "clusters": f"{a}, {b}",
        f"{a}.bootstrap.servers": source_cluster.bootstrap,
        f"{b}.bootstrap.servers": target_cluster.bootstrap,
        f"{a}->{b}.enabled": "false",
        f"{a}->{b}.topics": "",
    }
    with Mirror(properties) as mirror:
        for cluster, pair in ((target_cluster, (a, b)), (source_cluster, (b, a))):
            wait_for(
                lambda c=cluster, p=pair: len(_beats(c, *p)) >= 2, f"heartbeats of {pair}", DEADLINE_S, every_s=0.5
            )
            times = [beat.timestamp_ms for beat in _beats(cluster, *pair)]
            assert times == sorted(times)
            assert topic_partitions(cluster.bootstrap, HEARTBEATS_TOPIC) == 1  # rule 2.4.10
            assert _setting(cluster, HEARTBEATS_TOPIC, "cleanup.policy") == "compact"
        told = mirror.log_tail(50)
        assert f"{a}->{b}.enabled: no flow is enabled: only heartbeats are written ({a}->{b}, {b}->{a})" in told
        assert mirror.jvms() == []
        assert mirror.stop() == 0, mirror.log_tail(50)
