"""A running lane follows the plan: new topics and partitions, pauses and moves, inside one epoch, without a restart, and
without another partition feeling it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import NewPartitions

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.control.pauses import PAUSE_KEY, format_pauses
from mirrorspark.lab.clients import admin, consumer, create_topic, producer, topic_partitions, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import read_records, write_values
from mirrorspark.names import TopicPartition
from mirrorspark.settings import FlowSettings, TopicSync

CARRIED_WITHIN_S = 10.0
"""The promise for a new topic or partition; it takes one refresh of up to 5 s and a moment."""
BUSY_MACHINE = 2.0
"""How much longer the moment may take where others use the cores."""
PAUSED_WITHIN_S = 2.0
HOLE_S_MAX = 5.0
"""Far above what a move takes, far below what a lane's restart would on a busy machine."""
PATIENCE_S = 60.0
EVERY_S = 0.02


class Stream:
    """A record every 20 ms into one partition, and when each was seen on the target."""

    def __init__(self, source: str, target: str, topic: str, remote: str, partition: int) -> None:
        self.sent: list[bytes] = []
        self.seen: list[tuple[float, float]] = []  # sent at, seen at
        self._source, self._target = source, target
        self._topic, self._remote, self._partition = topic, remote, partition
        self._ending = threading.Event()

    @contextmanager
    def flowing(self) -> Iterator[Stream]:
        threads = [threading.Thread(target=work, daemon=True) for work in (self._write, self._read)]
        for thread in threads:
            thread.start()
        try:
            wait_for(lambda: len(self.seen) > 10, "the stream to flow", PATIENCE_S)
            yield self
            wait_for(lambda: self.seen[-1][0] > time.monotonic() - 1, "the stream to flow on", PATIENCE_S)
        finally:
            self._ending.set()
            for thread in threads:
                thread.join()

    def _write(self) -> None:
        client = producer(self._source, {"linger.ms": 0, "enable.idempotence": True})
        while not self._ending.wait(EVERY_S):
            value = b"%.6f" % time.monotonic()
            client.produce(self._topic, value, partition=self._partition)
            client.poll(0)
            self.sent.append(value)
        assert client.flush(PATIENCE_S) == 0

    def _read(self) -> None:
        reader = consumer(self._target, {"fetch.wait.max.ms": 20})
        reader.assign([Place(self._remote, self._partition, 0)])
        while not self._ending.is_set():
            message = reader.poll(0.1)
            if message is not None and message.error() is None:
                self.seen.append((float(message.value()), time.monotonic()))
        reader.close()

    def latency_s_max(self, since: float) -> float:
        return max(seen - sent for sent, seen in self.seen if sent >= since)


def _values(bootstrap: str, topic: str, partition: int) -> list[bytes | None]:
    if topic_partitions(bootstrap, topic) <= partition:
        return []
    return [record.value for record in read_records(bootstrap, topic)[partition]]


def _swapped(flow: FlowWithoutSpark, remote: TopicPartition) -> int:
    """The partition and one of the other lane change places; returns the lane that has it now."""
    plan = flow.runtime.plans.plan
    assert plan is not None
    lanes = [list(lane) for lane in plan.lanes]
    ((here, one),) = [(i, one) for i, lane in enumerate(lanes) for one in lane if one.remote == remote]
    other = next(one for one in lanes[1 - here] if one.remote.topic == remote.topic and one.remote.partition != 0)
    lanes[here].remove(one)
    lanes[1 - here].remove(other)
    lanes[here].append(other)
    lanes[1 - here].append(one)
    wanted = tuple(tuple(sorted(lane, key=lambda item: item.remote)) for lane in lanes)
    flow.call(flow.runtime.plans.publish(lanes=wanted))
    return 1 - here


def test_new_topics_partitions_pauses_and_moves_inside_one_epoch(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    base = f"inside-{os.getpid()}"
    create_topic(source, f"{base}-a", 4)
    settings = flow_settings(f"{base}-.*", tasks_max=2, topic_sync=TopicSync(refresh_interval_s=5.0))
    alias = settings.flow.source
    flow = lanes_without_spark(settings)
    attempts = {lane: status.since_ms for lane, status in flow.status.lanes.items()}
    remote = f"{alias}.{base}-a"

    with Stream(source, target, f"{base}-a", remote, 0).flowing() as stream:
        began = time.monotonic()

        create_topic(source, f"{base}-b", 1)
        since = time.monotonic()
        write_values(source, f"{base}-b", [b"1"])
        wait_for(lambda: _values(target, f"{alias}.{base}-b", 0) == [b"1"], "the new topic", PATIENCE_S)
        new_topic_s = time.monotonic() - since

        client = admin(source)
        client.create_partitions([NewPartitions(f"{base}-b", 2)])[f"{base}-b"].result(PATIENCE_S)
        wait_for(lambda: topic_partitions(source, f"{base}-b") == 2, "the new partition", PATIENCE_S)
        since = time.monotonic()
        write_values(source, f"{base}-b", [b"2"], partition=1)
        wait_for(lambda: _values(target, f"{alias}.{base}-b", 1) == [b"2"], "the new partition", PATIENCE_S)
        new_partition_s = time.monotonic() - since

        paused_s = _pause_and_resume(flow, source, target, f"{base}-b", f"{alias}.{base}-b")

        # To the other lane and back again, twice, with records before, between and after.
        moved = TopicPartition(remote, 1)
        numbers = 0
        for _ in range(4):
            write_values(source, f"{base}-a", [b"%d" % number for number in range(numbers, numbers + 5)], partition=1)
            numbers += 5
            wanted = [b"%d" % number for number in range(numbers)]
            try:
                wait_for(lambda: _values(target, remote, 1) == wanted, f"record {numbers} of {moved}", PATIENCE_S)  # noqa: B023
            except Exception as error:
                told = f"{_values(target, remote, 1)} of {numbers}; waiting {flow.status.waiting}; {flow.events}"
                raise AssertionError(f"{told}\n{flow.log_text()}") from error
            lane = _swapped(flow, moved)
            wait_for(lambda: flow.status.partitions[moved].lane == lane, f"lane {lane} to report it", PATIENCE_S)  # noqa: B023
        latency_s_max = stream.latency_s_max(began)

    print(
        f"new topic after {new_topic_s:.2f} s, new partition after {new_partition_s:.2f} s, paused after {paused_s:.2f} s; "
        f"longest latency of another partition meanwhile {latency_s_max:.3f} s"
    )
    assert new_topic_s <= CARRIED_WITHIN_S * BUSY_MACHINE
    assert new_partition_s <= CARRIED_WITHIN_S * BUSY_MACHINE
    assert paused_s <= PAUSED_WITHIN_S
    assert latency_s_max <= HOLE_S_MAX
    assert flow.lanes is not None
    assert flow.lanes.starts == settings.tasks_max
    assert {lane: status.since_ms for lane, status in flow.status.lanes.items()} == attempts  # the same attempts
    assert not flow.status.waiting
    flow.stop()
    assert _values(target, remote, 0) == stream.sent


def _pause_and_resume(flow: FlowWithoutSpark, source: str, target: str, topic: str, remote: str) -> float:
    """Pause partition 0's topic under a stream of its own; returns how late a record was still carried."""

    def pause(*topics: str) -> float:
        at = time.monotonic()
        flow.call(flow.runtime.plans.topic.append([(PAUSE_KEY, format_pauses(topics))], Deadline(PATIENCE_S)))
        return at

    before = len(_values(target, remote, 0))
    stream = Stream(source, target, topic, remote, 0)
    writing = threading.Thread(target=stream._write, daemon=True)
    writing.start()
    try:
        wait_for(lambda: len(_values(target, remote, 0)) > before + 5, "records before the pause", PATIENCE_S)
        paused_at = pause(remote)
        wait_for(lambda: flow.status.partitions[TopicPartition(remote, 0)].state == "paused", "the pause", PATIENCE_S)
        carried = _values(target, remote, 0)
        # Others go on, and by the time that they have arrived nothing more of the paused topic has.
        write_values(source, topic.removesuffix("-b") + "-a", [b"meanwhile"], partition=3)
        other = remote.removesuffix("-b") + "-a"
        wait_for(lambda: _values(target, other, 3) == [b"meanwhile"], "another topic", PATIENCE_S)
        assert _values(target, remote, 0) == carried
    finally:
        stream._ending.set()
        writing.join()
    assert len(stream.sent) > len(carried) - before
    pause()
    wanted = [b"1", *stream.sent]
    wait_for(lambda: _values(target, remote, 0) == wanted, "all records after the pause", PATIENCE_S)
    return float(carried[-1] or 0) - paused_at
