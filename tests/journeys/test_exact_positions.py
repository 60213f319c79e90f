"""A group that moves to the target goes on at exactly the next record, whatever the source was and whoever was killed.

The short form of ``mirrorspark positions``; MirrorMaker 2's own Java client reads the same answers from the target.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mirrorspark.java_home import java_home
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.clients import create_topic, producer, topic_partitions
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.exact_positions import (
    SHARES,
    commit_groups,
    fill,
    group_of,
    judge,
    read_checkpoints,
    table,
    wait_for_checkpoints,
)
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.jars import kafka_class_path
from mirrorspark.lab.ledger_check import read_ledger
from mirrorspark.lab.numbered_log import KINDS, NumberedLog, NumberedTopic
from mirrorspark.lab.plain_records import read_records
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC, Heartbeat
from mirrorspark.offsets.offset_sync import OffsetSync
from mirrorspark.offsets.translation import translate
from mirrorspark.settings import FlowSettings, Heartbeats

TwoLogs = tuple[NumberedTopic, NumberedLog, NumberedLog]
"""A topic, what a consumer sees of it on the source, and of its copy on the target."""

SEED = 20261116
RECORDS = 20_000
KILLS = 3
JAVA_S = 120.0
READ_TARGET = Path(__file__).parent / "java" / "ReadTarget.java"


def test_every_group_goes_on_at_the_next_record(
    own_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
    tmp_path: Path,
) -> None:
    source, target = own_cluster.bootstrap, target_cluster.bootstrap
    topics = [NumberedTopic(source, f"{topic_name}-{kind}", kind) for kind in KINDS]
    settings = flow_settings(
        ",".join(topic.topic for topic in topics), source=own_cluster, read_committed=True, heartbeats=Heartbeats()
    )
    alias = settings.flow.source
    far = f"far-of-{alias}"
    _beat(source, alias, HEARTBEATS_TOPIC)
    _beat(source, far, f"{far}.{HEARTBEATS_TOPIC}")
    flow = fill(topics, RECORDS, lambda: lanes_without_spark(settings), kills=KILLS, seed=SEED, tell=print)
    for topic in topics:
        wait_until_caught_up(source, target, topic.topic, f"{alias}.{topic.topic}")
    committed = commit_groups(topics, topic_name)
    wait_for_checkpoints(target, alias, committed)
    answers = judge(topics, committed, target, alias, topic_name)
    print(table(answers))
    assert all(answer.is_exact for answer in answers), f"{table(answers)}\n{flow.log_text()}"
    assert flow.lanes is not None
    assert flow.lanes.starts > KILLS

    _assert_what_comes_next_is_read_first(topics, target, alias, committed)
    flow.stop()
    logs = [
        (topic, NumberedLog.read(source, topic.topic), NumberedLog.read(target, f"{alias}.{topic.topic}"))
        for topic in topics
    ]
    _assert_ledger_tells_all(logs, target, alias)
    _assert_offset_syncs(logs, source)
    groups = [group_of(topic_name, share) for share in SHARES[::2]]
    _assert_java_client_reads_it(target, (alias, far), [topic.topic for topic in topics], groups, tmp_path)


def _beat(source: str, alias: str, topic: str) -> None:
    """A heartbeat on the source, as the reverse flow's heartbeat job writes it: the flow mirrors it. One that came from a
    cluster behind the source is mirrored on, and says that there are two hops to that."""
    if not topic_partitions(source, topic):
        create_topic(source, topic)
    beat = Heartbeat("west", alias, int(time.time() * 1000))
    client = producer(source)
    client.produce(topic, beat.value, beat.key)
    assert client.flush(30) == 0


def _assert_what_comes_next_is_read_first(
    topics: list[NumberedTopic], target: str, alias: str, committed: dict[tuple[str, str], int]
) -> None:
    """Whoever had read everything reads the next record that is written, and nothing before it."""
    checkpoints = read_checkpoints(target, alias)
    for topic in topics:
        new = topic.next
        topic.write(3)
        remote = f"{alias}.{topic.topic}"
        wait_until_caught_up(topic.bootstrap, target, topic.topic, remote)
        ends = [
            group for (group, name), _ in committed.items() if name == topic.topic and group.endswith("-100-percent")
        ]
        checkpoint = checkpoints[ends[0], TopicPartition(remote, 0)]
        copy = NumberedLog.read(target, remote)
        assert copy.numbers[copy.records_before(checkpoint.downstream_offset)] == new


def _assert_ledger_tells_all(logs: list[TwoLogs], target: str, alias: str) -> None:
    """Every single offset of the copy translates exactly, not just those of the groups."""
    ledger = read_ledger(target, alias)
    assert ledger.damaged_entries == 0
    for topic, there, copy in logs:
        remote = TopicPartition(f"{alias}.{topic.topic}", 0)
        place = dict(zip(there.numbers, there.offsets, strict=True))
        for number, downstream in zip(copy.numbers, copy.offsets, strict=True):
            upstream = place.get(number)
            if upstream is None:
                continue  # the cleaner took it from the source since
            found = translate(ledger, remote, upstream)
            assert (found.downstream_offset, found.exact) == (downstream, True), (topic.kind, upstream, found)
        pages = len(ledger.pages(remote))
        runs = sum(page.run_count for page in ledger.pages(remote))
        print(f"{topic.kind}: {len(copy.numbers)} records in {runs} runs on {pages} pages")


def _assert_offset_syncs(logs: list[TwoLogs], source: str) -> None:
    """On the source, where MirrorMaker 2 looks for them; each names one record on both sides, the last one the last."""
    syncs: dict[TopicPartition, OffsetSync] = {}
    for record in read_records(source, "mm2-offset-syncs.west.internal", isolation="read_uncommitted")[0]:
        sync = OffsetSync.from_record(record.key, record.value)
        assert sync is not None
        assert record.headers == ()
        syncs[sync.at] = sync
    for topic, there, copy in logs:
        sync = syncs[TopicPartition(topic.topic, 0)]
        assert (sync.upstream, sync.downstream) == (there.offsets[-1], copy.offsets[-1])


def _assert_java_client_reads_it(
    target: str, aliases: tuple[str, str], topics: list[str], groups: list[str], folder: Path
) -> None:
    """``aliases``: the source, and a cluster behind it."""
    alias, far = aliases
    compiler = shutil.which("javac", path=str(java_home() / "bin")) or shutil.which("javac")
    if compiler is None:
        pytest.skip("there is no javac here; all else of this journey was held")
    classes = kafka_class_path()
    subprocess.run([compiler, "-cp", classes, "-d", folder, READ_TARGET], check=True, timeout=JAVA_S)
    command = [
        java_home() / "bin" / "java",
        "-Xmx256m",
        "-cp",
        f"{folder}:{classes}",
        "ReadTarget",
        target,
        alias,
        far,
        *groups,
    ]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=JAVA_S)
    assert ended.returncode == 0, ended.stderr[-4_000:]
    facts = [line.split(" ") for line in ended.stdout.splitlines() if line]
    told = {fact[0]: fact[1] for fact in facts if fact[0] != "offset"}
    assert {alias, far} <= set(told["upstream"].split(","))
    assert (told["hops"], told["far"], told["nowhere"], told["clients"]) == ("1", "2", "-1", "true")
    beats = [f"{alias}.{HEARTBEATS_TOPIC}", f"{alias}.{far}.{HEARTBEATS_TOPIC}"]
    assert told["remote"].split(",") == sorted([*(f"{alias}.{topic}" for topic in topics), *beats])
    assert set(told["remote"].split(",")) <= set(told["all"].split(","))
    assert set(beats) <= set(told["heartbeats"].split(","))
    assert f"{alias}.checkpoints.internal" in told["checkpoints"].split(",")
    translated = [
        (topic, int(number), int(offset), metadata)
        for _, topic, number, offset, metadata in (fact for fact in facts if fact[0] == "offset")
    ]
    wanted = read_checkpoints(target, alias)
    by_group = [
        (at.topic, at.partition, one.downstream_offset, one.metadata)
        for group in groups
        for (_, at), one in sorted(wanted.items())
        if one.group == group
    ]
    assert translated == by_group
    assert len(translated) == len(groups) * len(KINDS)
