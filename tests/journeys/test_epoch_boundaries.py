"""Epochs end and begin under load without a trace in the copy; the books say where everything went."""

from __future__ import annotations

import json
from collections.abc import Callable

from mirrorspark.cluster.keyed_topic import partition_of
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import create_topic, end_offsets, total_records, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import read_records, write_values
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.lab.workload import Workload
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.internal_topics import ledger_topic, progress_topic
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.settings import FlowSettings

PARTITIONS = 4
EPOCHS = 4
PATIENCE_S = 60.0


def test_epochs_follow_each_other_without_loss_repeat_or_marker(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    workload = Workload(source, topic_name, PARTITIONS)
    workload.create_topic()
    plain = flow_settings(topic_name, tasks_max=2, epoch_s=2.0)
    in_transactions = flow_settings(topic_name, tasks_max=2, epoch_s=2.0, transactions=True)
    flows = [lanes_without_spark(settings) for settings in (plain, in_transactions)]
    attempts: dict[FlowWithoutSpark, set[tuple[int, int]]] = {flow: set() for flow in flows}
    workload.start(300)

    def enough_epochs() -> bool:
        for flow, seen in attempts.items():
            seen |= {(lane, status.since_ms) for lane, status in flow.status.lanes.items()}
        return all(len(seen) >= 2 * EPOCHS for seen in attempts.values())

    wait_for(enough_epochs, f"{EPOCHS} epochs of each flow", PATIENCE_S)
    workload.stop()
    for flow in flows:
        remote = f"{flow.settings.flow.source}.{topic_name}"
        wait_until_caught_up(source, target, topic_name, remote)
        flow.stop()
        assert flow.lanes is not None
        assert flow.lanes.starts == 2  # epochs end and begin inside the same processes
        for isolation in ("read_committed", "read_uncommitted"):
            verdict = check_copy(target, remote, workload.ledger, isolation=isolation)
            assert verdict.is_clean, f"{flow.settings.transactions}: {verdict.report()}\n{flow.log_text()}"
    markers = raw_batches(target, f"{plain.flow.source}.{topic_name}", controls=True)
    assert not any(batch.is_control for batches in markers.values() for batch in batches)  # clean ends need no fence
    for settings in (plain, in_transactions):
        _assert_progress(source, target, topic_name, settings)
        _assert_ledger(source, target, topic_name, settings)


def test_a_progress_topic_of_another_size_is_used_as_it_is(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
) -> None:
    """MirrorMaker 2 made it with its own offset.storage.partitions; Java looks for a key where that number puts it."""
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    settings = flow_settings(topic_name)
    progress = progress_topic(settings.flow.source)
    create_topic(target, progress, 3, settings={"cleanup.policy": "compact"})
    create_topic(source, topic_name, PARTITIONS)
    flow = lanes_without_spark(settings)
    for partition in range(PARTITIONS):
        write_values(source, topic_name, [b"1", b"2"], partition=partition)
    wait_for(lambda: total_records(target, progress) >= PARTITIONS, f"progress; {flow.log_text()}", PATIENCE_S)
    _assert_progress(source, target, topic_name, settings)
    flow.stop()


def _assert_progress(source: str, target: str, topic: str, settings: FlowSettings) -> None:
    """MirrorMaker 2's own records, byte for byte, where Java would look for them: the last offset of each partition."""
    alias = settings.flow.source
    found = read_records(target, progress_topic(alias))
    newest = {record.key: (number, record.value) for number, records in found.items() for record in records}
    assert len(newest) == PARTITIONS
    for partition, batches in raw_batches(source, topic).items():
        key = f'["MirrorSourceConnector",{{"cluster":"{alias}","partition":{partition},"topic":"{topic}"}}]'.encode()
        where, value = newest[key]
        assert where == partition_of(key, len(found))
        assert json.loads(value or b"null") == {"offset": batches[-1].last_offset}


def _assert_ledger(source: str, target: str, topic: str, settings: FlowSettings) -> None:
    """Its ranges cover every record once and lead to the record's copy."""
    alias = settings.flow.source
    remote = f"{alias}.{topic}"
    ledger = LedgerStore()
    for record in read_records(target, ledger_topic(alias))[0]:
        at = ledger.fold(record.key or b"", record.value)
        assert at is not None
        assert at.topic == remote
    sent, arrived = read_records(source, topic), read_records(target, remote)
    for number, (first, end) in end_offsets(source, topic).items():
        pages = ledger.pages(TopicPartition(remote, number))
        assert settings.transactions or len(pages) == 1  # dense: epochs go on with the page of the one before
        translated = {
            upstream: run.downstream_first + upstream - run.upstream_first
            for page in pages
            for run in page.runs()
            for upstream in range(run.upstream_first, run.upstream_last + 1)
        }
        assert set(translated) == set(range(first, end))
        copies = {record.offset: record[1:] for record in arrived[number]}
        assert all(copies[translated[record.offset]] == record[1:] for record in sent[number])
