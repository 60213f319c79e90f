"""Consumers move to the target and go on at exactly the next record; many groups are followed in about a second.

The figures for many groups are taken by the slow test (``-m slow``), which prints them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import TopicPartition as Place

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.commit_log import CommitLog
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_admin import GroupAdmin
from mirrorspark.lab.clients import consumer, create_topic, producer, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import write_values
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.consumer_offsets_record import CONSUMER_OFFSETS_TOPIC, parse_commit
from mirrorspark.settings import FlowSettings, GroupSync
from mirrorspark.wire.records import decode_records

PATIENCE_S = 120.0
GROUPS = 50
PARTITIONS = 2
RECORDS = 1_000


def values_by_offset(bootstrap: str, topic: str) -> dict[tuple[int, int], bytes | None]:
    """Partition and offset -> value."""
    return {
        (number, record.offset): record.value
        for number, batches in raw_batches(bootstrap, topic).items()
        for batch in batches
        for record in decode_records(batch, topic, number)
    }


def begin(
    topic: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
    **changes: Any,
) -> tuple[FlowWithoutSpark, str]:
    sync = GroupSync(groups=f"{topic}-.*", offsets_enabled=True, **changes)
    flow = lanes_without_spark(flow_settings(topic, group_sync=sync))
    return flow, f"{flow.settings.flow.source}.{topic}"


def test_groups_go_on_at_exactly_the_next_record(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    create_topic(source, topic_name, PARTITIONS)
    here, there = GroupAdmin(connect(source_cluster)), GroupAdmin(connect(target_cluster))
    flow, remote = begin(topic_name, flow_settings, lanes_without_spark)
    for number in range(PARTITIONS):
        write_values(source, topic_name, [f"{number}/{i}".encode() for i in range(RECORDS)], partition=number)
    dice = random.Random(5)
    wanted = {
        f"{topic_name}-{index}": {
            TopicPartition(topic_name, n): (dice.randrange(RECORDS), "") for n in range(PARTITIONS)
        }
        for index in range(GROUPS)
    }

    def commit(offsets: dict[str, dict[TopicPartition, tuple[int, str]]]) -> None:
        assert in_loop(here.commit(offsets, Deadline(PATIENCE_S))).refused == {}

    def all_exact() -> bool:
        """Every group stands, on the target, before the very record that it stands before on the source."""
        found = in_loop(there.offsets(dict.fromkeys(wanted), Deadline(PATIENCE_S))).found
        copied = values_by_offset(target, remote)
        return all(
            copied.get((at.partition, found[group].get(TopicPartition(remote, at.partition), (-1, ""))[0]))
            == f"{at.partition}/{offset}".encode()
            for group, offsets in wanted.items()
            for at, (offset, _) in offsets.items()
        )

    commit(wanted)
    wait_for(all_exact, "all groups to be exact", PATIENCE_S, every_s=0.3)
    wanted |= {group: dict.fromkeys(offsets, (dice.randrange(RECORDS), "")) for group, offsets in wanted.items()}
    commit(wanted)  # some forward, some back
    wait_for(all_exact, "all groups to follow, forward and back", PATIENCE_S, every_s=0.3)
    flow.kill()  # what follows goes over a killed mirror: a marker on the target, another epoch
    flow, remote_after = FlowWithoutSpark(flow.settings, folder=flow.folder / "again"), remote
    with flow:
        _move_a_consumer(source, target, topic_name, remote_after, flow)


def _move_a_consumer(source: str, target: str, topic: str, remote: str, flow: FlowWithoutSpark) -> None:
    """A consumer reads on the source, more records come; it goes on elsewhere and reads each of the rest once."""
    group = f"{topic}-moving"
    settings = {"group.id": group, "auto.offset.reset": "earliest"}
    reader = consumer(source, {**settings, "max.partition.fetch.bytes": 2_000, "queued.min.messages": 1})
    reader.subscribe([topic])
    read: list[bytes] = []

    def take(client: Any, count: int) -> None:
        end = time.monotonic() + PATIENCE_S
        while len(read) < count and time.monotonic() < end:
            message = client.poll(0.5)
            if message is not None and message.error() is None:
                read.append(message.value())

    take(reader, PARTITIONS * RECORDS // 3)
    write_values(source, topic, [f"0/{i}".encode() for i in range(RECORDS, RECORDS + 50)], partition=0)
    take(reader, PARTITIONS * RECORDS // 2)
    reader.commit(asynchronous=False)
    standing = {one.partition: one.offset for one in reader.position(reader.assignment()) if one.offset >= 0}
    reader.close()

    def has_arrived() -> bool:
        found = consumer(target, {"group.id": group})
        committed = found.committed([Place(remote, number) for number in standing], 30.0)
        found.close()
        return all(_value_at(target, one) == f"{one.partition}/{standing[one.partition]}".encode() for one in committed)

    wait_for(has_arrived, f"the group's offsets {standing} on the target", PATIENCE_S, every_s=0.3)
    mover = consumer(target, settings)
    mover.subscribe([remote])
    total = PARTITIONS * RECORDS + 50
    take(mover, total)
    assert mover.poll(1.0) is None, "something was read twice"
    mover.close()
    assert len(read) == len(set(read)) == total
    assert not flow.events


def _value_at(bootstrap: str, place: Place) -> bytes | None:
    """Of the first record from there on; of the one that would come next, if there is none."""
    values = values_by_offset(bootstrap, place.topic)
    offsets = sorted(offset for number, offset in values if number == place.partition)
    following = [offset for offset in offsets if offset >= place.offset >= 0]
    if following:
        return values[place.partition, following[0]]
    return f"{place.partition}/{len(offsets)}".encode() if place.offset >= 0 else None


# -- figures -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_figures_for_many_groups(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Must-show 4: 500 groups at the log's end under load, p95 of commit to commit; then 5,000 idle ones."""
    source = source_cluster.bootstrap
    create_topic(source, topic_name, 4)
    flow, remote = begin(topic_name, flow_settings, lanes_without_spark)
    here = GroupAdmin(connect(source_cluster))
    watch = CommitLog(connect(target_cluster), CONSUMER_OFFSETS_TOPIC)
    in_loop(
        GroupAdmin(connect(target_cluster)).commit(
            {f"{topic_name}x": {TopicPartition(remote, 0): (0, "")}}, Deadline(60)
        )
    )
    in_loop(watch.start(Deadline(PATIENCE_S)))
    # A cluster on which no group ever committed is asked every 5 s; what is measured is one that is in use.
    in_loop(here.commit({f"{topic_name}x": {TopicPartition(topic_name, 0): (0, "")}}, Deadline(PATIENCE_S)))
    wait_for(lambda: flow.status.groups.get("mode") == "following", "commits to be followed", PATIENCE_S)
    latencies = in_loop(_follow_500(source, topic_name, here, watch, flow))
    latencies.sort()
    figures = {p: latencies[min(len(latencies) - 1, int(len(latencies) * p / 100))] for p in (50, 95, 99, 100)}

    idle = {f"{topic_name}-idle-{i}": {TopicPartition(topic_name, 0): (5, "")} for i in range(5_000)}
    for first in range(0, 5_000, 500):
        names = list(idle)[first : first + 500]
        assert in_loop(here.commit({name: idle[name] for name in names}, Deadline(PATIENCE_S))).refused == {}
    wait_for(lambda: flow.status.groups.get("groups", 0) >= 5_500, "all groups to be known", PATIENCE_S)
    wait_for(lambda: flow.status.groups.get("offsets_written", 0) >= 5_500, "all groups to be written", PATIENCE_S)
    time.sleep(3.0)
    with_idle = _driver_share(flow, 30.0)
    flow.stop()
    bare = lanes_without_spark(flow_settings(topic_name, group_sync=GroupSync(checkpoints_enabled=False)))
    time.sleep(3.0)
    without = _driver_share(bare, 30.0)
    with capsys.disabled():
        text = ", ".join(f"p{p} {value * 1000:.0f} ms" for p, value in figures.items())
        print(f"\n{len(latencies)} commits of 500 groups: {text}")
        print(f"5,500 idle groups: the driver takes {with_idle:.2%} of a core, {without:.2%} without any group sync")
    assert figures[95] <= 2.0
    assert with_idle - without < 0.05


async def _follow_500(
    source: str, topic: str, here: GroupAdmin, watch: CommitLog, flow: FlowWithoutSpark
) -> list[float]:
    """Each group commits the log's end every 5 s while records come; how long until the target's group has it exactly."""
    writer = producer(source)
    names = [f"{topic}-{i}" for i in range(500)]
    ends = [0, 0, 0, 0]
    waiting: dict[str, tuple[float, int]] = {}
    latencies: list[float] = []
    dice = random.Random(7)
    began = time.monotonic()

    async def produce() -> None:
        while True:
            for partition in range(4):
                for _ in range(5):
                    writer.produce(topic, b"x" * 100, partition=partition)
            await asyncio.to_thread(writer.flush, 30)
            for partition in range(4):
                ends[partition] += 5
            await asyncio.sleep(0.05)

    async def commit() -> None:
        while time.monotonic() - began < 60.0:
            some = dice.sample(names, 20)
            now = time.monotonic()
            offsets = {}
            for name in some:
                partition = names.index(name) % 4
                if name not in waiting and ends[partition]:
                    offsets[name] = {TopicPartition(topic, partition): (ends[partition], "")}
                    waiting[name] = now, ends[partition]
            if offsets:
                await here.commit(offsets, Deadline(30.0))
            await asyncio.sleep(max(0.0, 0.2 - (time.monotonic() - now)))

    async def observe() -> None:
        while True:
            for entry in await watch.poll(500):
                record = parse_commit(*entry)
                if record is None or record.commit is None or record.group not in waiting:
                    continue
                since, upstream = waiting[record.group]
                if record.commit.offset >= upstream:  # an empty remote topic: downstream equals upstream
                    latencies.append(time.monotonic() - since)
                    del waiting[record.group]

    jobs = [asyncio.ensure_future(produce()), asyncio.ensure_future(observe())]
    try:
        await commit()
        end = time.monotonic() + 30.0
        while waiting and time.monotonic() < end:
            await asyncio.sleep(0.1)
        assert not waiting, f"{len(waiting)} groups never arrived; {flow.status.groups} {flow.status.failures}"
    finally:
        for job in jobs:
            job.cancel()
    return latencies


def _driver_share(flow: FlowWithoutSpark, seconds: float) -> float:
    """CPU of the driver's thread, as a share of one core."""

    async def cpu_s() -> float:
        return time.thread_time()

    before = flow.call(cpu_s())
    time.sleep(seconds)
    return (flow.call(cpu_s()) - before) / seconds
