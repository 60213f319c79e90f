"""Brokers of other versions, from their own jars: what an old cluster holds arrives whole, and what a mirror does besides.

In ``make test`` from 2.8 with its ZooKeeper; 3.9 on both sides, kills and an upgrade under way with ``-m slow``.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_admin import GroupAdmin
from mirrorspark.cluster.topic_acls import create_acls, describe_acls
from mirrorspark.cluster.topic_configs import describe_configs
from mirrorspark.control.heartbeats import HeartbeatJob
from mirrorspark.errors import LabError
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import create_topic, topic_partitions, total_records, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.kafka_version import KAFKA_2_8, KAFKA_3_9, LATEST, KafkaVersion
from mirrorspark.lab.old_topics import (
    COMPACTED,
    inherit_logs,
    write_compacted,
    write_in_every_format,
    write_transactions,
)
from mirrorspark.lab.plain_records import PlainRecord, alter_topic, read_records
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.lab.workload import TOPIC_SETTINGS, Workload
from mirrorspark.names import TopicAcl, TopicPartition
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC
from mirrorspark.settings import CONFIG_PROPERTIES_EXCLUDE, FlowSettings, GroupSync, Heartbeats, TopicSync

Begin = Callable[..., FlowWithoutSpark]
MakeSettings = Callable[..., FlowSettings]

ARRIVES_S = 120.0
RECORDS = 3_000
RETENTION_MS = str(77 * 3_600_000)
# The copies of compacted topics stay whole, so that what arrived can be counted.
NOT_COMPACTED = ", ".join([CONFIG_PROPERTIES_EXCLUDE, *(name.replace(".", r"\.") for name in COMPACTED)])


def _cluster(name: str, kafka: KafkaVersion) -> ClusterOfBrokers:
    settings = {
        "authorizer.class.name": kafka.authorizer,
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
        "log.cleaner.backoff.ms": "200",
    }
    return ClusterOfBrokers(name, kafka=kafka, settings=settings)


@pytest.fixture(scope="module")
def cluster_2_8() -> Iterator[ClusterOfBrokers]:
    with _cluster("with-zookeeper", KAFKA_2_8) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def cluster_3_9() -> Iterator[ClusterOfBrokers]:
    with _cluster("three-nine", KAFKA_3_9) as cluster:
        yield cluster


def _shown(records: Sequence[PlainRecord]) -> list[tuple[object, ...]]:
    """All that a consumer sees but the offset."""
    return [record[1:] for record in records]


def _is_subsequence(some: Sequence[object], of: Sequence[object]) -> bool:
    left: Iterator[object] = iter(of)
    return all(one in left for one in some)


@dataclass
class Journey:
    """A source's topics under one prefix, and their copies."""

    source: ClusterOfBrokers
    target: ClusterOfBrokers
    prefix: str
    settings: FlowSettings

    def remote(self, topic: str) -> str:
        return f"{self.settings.flow.source}.{topic}"

    def shown(self, topic: str) -> list[tuple[object, ...]]:
        return _shown(read_records(self.source.bootstrap, topic)[0])

    def arrived(self, topic: str) -> list[tuple[object, ...]]:
        return _shown(read_records(self.target.bootstrap, self.remote(topic))[0])

    def wait_last(self, flow: FlowWithoutSpark, topic: str) -> None:
        last = self.shown(topic)[-1]
        try:
            wait_for(lambda: self.arrived(topic)[-1:] == [last], f"the last record of {topic}", ARRIVES_S, 0.3)
        except LabError as error:
            told = f"{flow.events}, {flow.status.failures}\n{flow.log_text()[-3000:]}"
            raise LabError(f"{error}: {last} is not {self.arrived(topic)[-1:]}; {told}") from error

    def wait_more(self, topic: str, count: int) -> None:
        remote = self.remote(topic)
        seen = total_records(self.target.bootstrap, remote)
        wait_for(
            lambda: total_records(self.target.bootstrap, remote) > seen + count, f"more of {remote}", ARRIVES_S, 0.2
        )

    def workload(self, topic: str, *, has_own_bounds: bool) -> Workload:
        """The awkward records. Brokers before 3.6 have no bounds for timestamps, nor settings for them: a copy is told."""
        workload = Workload(self.source.bootstrap, topic, 3)
        if has_own_bounds:
            workload.create_topic()
        else:
            create_topic(self.source.bootstrap, topic, 3, settings={"retention.ms": "-1"})
            create_topic(self.target.bootstrap, self.remote(topic), 3, settings=TOPIC_SETTINGS)
        return workload

    def assert_exact(self, workload: Workload) -> None:
        wait_until_caught_up(
            self.source.bootstrap, self.target.bootstrap, workload.topic, self.remote(workload.topic), ARRIVES_S
        )
        for isolation in ("read_committed", "read_uncommitted"):
            verdict = check_copy(
                self.target.bootstrap, self.remote(workload.topic), workload.ledger, isolation=isolation
            )
            print(f"{self.source.kafka} -> {self.target.kafka}, {isolation}: {verdict}, {verdict.read} records")
            assert verdict.is_clean, f"{isolation}: {verdict.report()}"
            assert verdict.read == workload.ledger.acknowledged


def _prepared(
    source: ClusterOfBrokers, target: ClusterOfBrokers, prefix: str, make: MakeSettings, **changes: Any
) -> Journey:
    sync = TopicSync(refresh_interval_s=1.0, config_properties_exclude=NOT_COMPACTED, acls_interval_s=1.0)
    groups = GroupSync(groups=f"{prefix}-.*", offsets_enabled=True, refresh_interval_s=1.0)
    settings = make(
        f"{prefix}.*", source=source, target=target, topic_sync=sync, group_sync=groups, tasks_max=2, **changes
    )
    return Journey(source, target, prefix, settings)


def test_all_that_a_2_8_cluster_holds_arrives(
    cluster_2_8: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: MakeSettings,
    lanes_without_spark: Begin,
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
) -> None:
    journey = _prepared(cluster_2_8, target_cluster, topic_name, flow_settings, read_committed=True)
    source = cluster_2_8.bootstrap
    workload = journey.workload(f"{topic_name}-awkward", has_own_bounds=False)
    workload.produce(RECORDS)
    grown, decided = f"{topic_name}-grown", f"{topic_name}-decided"
    write_in_every_format(source, grown)
    assert {one.magic for one in raw_batches(source, grown)[0]} == {0, 1, 2}
    committed = write_transactions(source, decided, f"writer-{topic_name}")
    compacted = {magic: f"{topic_name}-compacted-v{magic}" for magic in (0, 1, 2)}
    for magic, topic in compacted.items():
        write_compacted(source, topic, magic)
    before = {topic: journey.shown(topic) for topic in compacted.values()}
    alter_topic(source, grown, {"retention.ms": RETENTION_MS})
    here, there = connect(cluster_2_8), connect(target_cluster)
    acl = TopicAcl("LITERAL", grown, f"User:reader-{os.getpid()}", "*", "READ", "ALLOW")
    assert not in_loop(create_acls(here, [acl])).refused

    flow = lanes_without_spark(journey.settings)
    for topic in (grown, decided, *compacted.values()):
        journey.wait_last(flow, topic)
    assert journey.arrived(grown) == journey.shown(grown)
    assert [record[2] for record in journey.arrived(decided)] == committed
    for topic in compacted.values():
        arrived = journey.arrived(topic)
        # The cleaner may have gone on meanwhile: all that is left now arrived, and nothing that was not there before.
        assert len(set(arrived)) == len(arrived)
        assert _is_subsequence(arrived, before[topic])
        assert _is_subsequence(journey.shown(topic), arrived)
    workload.produce(RECORDS // 4)
    journey.assert_exact(workload)

    # A group stands, on the target, before the very record that it stands before on the source.
    group, place = f"{topic_name}-readers", TopicPartition(grown, 0)
    offset = read_records(source, grown)[0][40].offset
    assert not in_loop(GroupAdmin(here).commit({group: {place: (offset, "")}}, Deadline(60.0))).refused
    wanted = _value_at(source, grown, offset)
    copy = TopicPartition(journey.remote(grown), 0)

    def is_followed() -> bool:
        found = in_loop(GroupAdmin(there).offsets({group: None}, Deadline(60.0))).found.get(group, {})
        return copy in found and _value_at(target_cluster.bootstrap, copy.topic, found[copy][0]) == wanted

    wait_for(is_followed, "the group on the target", ARRIVES_S, 0.3)
    wait_for(
        lambda: acl._replace(name=copy.topic) in in_loop(describe_acls(there)), "the ACL on the target", ARRIVES_S, 0.3
    )
    settings = {one.name: one.value for one in in_loop(describe_configs(there, [copy.topic])).settings[copy.topic]}
    assert settings["retention.ms"] == RETENTION_MS
    drift = flow.status.sync["drift"][copy.topic]
    assert any("message.format.version" in one and "left out" in one for one in drift), drift
    assert flow.events == []
    flow.stop()


def _value_at(bootstrap: str, topic: str, offset: int) -> object:
    found = [record for record in read_records(bootstrap, topic)[0] if record.offset >= offset]
    return found[0][1:] if found else None


def _killed_under_way(journey: Journey, begin: Begin, *, has_own_bounds: bool) -> None:
    """A flow under load whose lanes are killed three times, then a clean end; the copy is exact."""
    workload = journey.workload(f"{journey.prefix}-killed", has_own_bounds=has_own_bounds)
    workload.produce(RECORDS, has_ancient=False)
    flow = begin(journey.settings)
    workload.start(400)
    for _ in range(3):
        journey.wait_more(workload.topic, 400)
        assert flow.lanes is not None
        flow.lanes.kill(restart=True)
    workload.stop()
    journey.assert_exact(workload)
    assert [event for event in flow.events if event.waits] == []
    flow.stop()


BOTH_MODES = pytest.mark.parametrize("transactions", [False, True], ids=["express", "transactions"])


@pytest.mark.slow
@BOTH_MODES
def test_kills_between_2_8_and_the_latest(
    cluster_2_8: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: MakeSettings,
    lanes_without_spark: Begin,
    transactions: bool,
) -> None:
    journey = _prepared(cluster_2_8, target_cluster, topic_name, flow_settings, transactions=transactions)
    _killed_under_way(journey, lanes_without_spark, has_own_bounds=False)


@pytest.mark.slow
@BOTH_MODES
@pytest.mark.parametrize("direction", ["from", "to"])
def test_kills_between_3_9_and_the_latest(
    cluster_3_9: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: MakeSettings,
    lanes_without_spark: Begin,
    transactions: bool,
    direction: str,
) -> None:
    both = (cluster_3_9, target_cluster) if direction == "from" else (target_cluster, cluster_3_9)
    journey = _prepared(*both, topic_name, flow_settings, transactions=transactions)
    _killed_under_way(journey, lanes_without_spark, has_own_bounds=True)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["from", "to"])
def test_compaction_and_transactions_between_3_9_and_the_latest(
    cluster_3_9: ClusterOfBrokers,
    own_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: MakeSettings,
    lanes_without_spark: Begin,
    in_loop: Callable[..., Any],
    direction: str,
) -> None:
    both = (cluster_3_9, own_cluster) if direction == "from" else (own_cluster, cluster_3_9)
    journey = _prepared(*both, topic_name, flow_settings, read_committed=True)
    source = journey.source.bootstrap
    compacted, decided = f"{topic_name}-compacted", f"{topic_name}-decided"
    committed = write_transactions(source, decided, f"writer-{topic_name}")
    write_compacted(source, compacted, 2)
    before = journey.shown(compacted)
    flow = lanes_without_spark(journey.settings)
    journey.wait_last(flow, decided)
    journey.wait_last(flow, compacted)
    assert [record[2] for record in journey.arrived(decided)] == committed
    arrived = journey.arrived(compacted)
    assert _is_subsequence(arrived, before)
    assert _is_subsequence(journey.shown(compacted), arrived)
    in_loop(_until_it_beats(journey, flow))
    assert flow.events == []
    flow.stop()


@pytest.mark.slow
def test_old_formats_that_a_3_9_cluster_inherited_arrive(
    cluster_2_8: ClusterOfBrokers,
    cluster_3_9: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: MakeSettings,
    lanes_without_spark: Begin,
) -> None:
    """Logs in formats v0, v1 and v2 that 2.8 wrote, some compacted, on a broker that was upgraded since."""
    old = cluster_2_8.bootstrap
    grown, compacted = f"{topic_name}-grown", [f"{topic_name}-compacted-v{magic}" for magic in (0, 1)]
    write_in_every_format(old, grown)
    for magic, topic in enumerate(compacted):
        write_compacted(old, topic, magic)
    inherit_logs(cluster_3_9, cluster_2_8, [grown, *compacted])
    formats = {
        topic: {one.magic for one in raw_batches(cluster_3_9.bootstrap, topic)[0]} for topic in [grown, *compacted]
    }
    assert formats == {grown: {0, 1, 2}, compacted[0]: {0}, compacted[1]: {1}}
    journey = _prepared(cluster_3_9, target_cluster, topic_name, flow_settings)
    flow = lanes_without_spark(journey.settings)
    for topic in (grown, *compacted):
        journey.wait_last(flow, topic)
        assert journey.arrived(topic) == journey.shown(topic)
    assert flow.events == []
    flow.stop()


async def _until_it_beats(journey: Journey, flow: FlowWithoutSpark) -> None:
    """Heartbeats are a job of the whole mirror, so that a flow without Spark has none."""
    target = journey.target.bootstrap
    settings = replace(journey.settings, heartbeats=Heartbeats(interval_s=0.2, replication_factor=1))
    job = asyncio.ensure_future(HeartbeatJob(settings, flow.status).run())
    try:
        while not await asyncio.to_thread(topic_partitions, target, HEARTBEATS_TOPIC):
            await asyncio.sleep(0.2)
        before = await asyncio.to_thread(total_records, target, HEARTBEATS_TOPIC)
        while await asyncio.to_thread(total_records, target, HEARTBEATS_TOPIC) < before + 2:
            await asyncio.sleep(0.2)
    finally:
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)


@pytest.mark.slow
@BOTH_MODES
@pytest.mark.parametrize("upgraded", ["source", "target"])
def test_a_cluster_goes_from_3_9_to_the_latest_while_a_flow_runs(
    source_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: MakeSettings,
    lanes_without_spark: Begin,
    transactions: bool,
    upgraded: str,
) -> None:
    with _cluster("to-be-upgraded", KAFKA_3_9) as old:
        both = (old, source_cluster) if upgraded == "source" else (source_cluster, old)
        journey = _prepared(*both, topic_name, flow_settings, transactions=transactions)
        workload = journey.workload(f"{topic_name}-kept", has_own_bounds=True)
        flow = lanes_without_spark(journey.settings)
        workload.start(300)
        journey.wait_more(workload.topic, 300)
        began = time.monotonic()
        old.upgrade(LATEST)
        journey.wait_more(workload.topic, 300)
        print(f"{upgraded} upgraded, flowing again after {time.monotonic() - began:.1f} s")
        workload.stop()
        journey.assert_exact(workload)
        assert [event for event in flow.events if event.waits] == []
        flow.stop()
