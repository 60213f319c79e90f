"""With ``offsets=identical`` a record has the same offset on both clusters: whatever wrote it, whoever was killed.

The source's log begins far from nought; plain and transactional producers write in turns, some transactions are aborted, and
ordinary clients compare both sides. Somebody else's record in the remote topic ends it, at once and loudly.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.events import EventKind
from mirrorspark.lab.clients import create_topic, delete_records, end_offsets, producer, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.ledger_check import read_ledger
from mirrorspark.lab.plain_records import read_records, write_values
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.parity import Parity
from mirrorspark.offsets.position import Position, positions_group
from mirrorspark.offsets.translation import translate
from mirrorspark.settings import FlowSettings
from mirrorspark.wire.filler import FILLER_RECORDS_MAX, filler_batch

SEED = 20261117
DEADLINE_S = 120.0
LEVELS = {0: 7_000_000, 1: 123_456, 2: 0}
CLEAN_RESTARTS = 20
KILLS = 2
KILLS_IN_A_LONG_RUN = 30


class Source:
    """A topic with three producers: a plain one and two whose transactions overlap; sometimes one is aborted."""

    def __init__(self, bootstrap: str, topic: str, seed: int) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        self._dice = random.Random(seed)
        self._number = 0
        self._plain = producer(bootstrap, {"enable.idempotence": True, "linger.ms": 0})
        self._transactional = [
            producer(bootstrap, {"transactional.id": f"{topic}-{name}", "linger.ms": 0}) for name in "ab"
        ]
        for one in self._transactional:
            one.init_transactions(DEADLINE_S)

    def write(self) -> None:
        """A round: two transactions, begun and ended in any order, with plain records between."""
        writers = list(self._transactional)
        for one in writers:
            one.begin_transaction()
        for one in self._dice.sample([*writers, *writers, self._plain], 5):
            self._send(one)
        for one in self._dice.sample(writers, 2):
            if self._dice.random() < 0.4:
                one.abort_transaction(DEADLINE_S)
            else:
                one.commit_transaction(DEADLINE_S)
            self._send(self._plain)

    def _send(self, client: Any) -> None:
        for partition in LEVELS:
            for _ in range(self._dice.randrange(4)):
                self._number += 1
                client.produce(self.topic, b"%d" % self._number, b"k", partition=partition)
        assert not client.flush(DEADLINE_S)


@pytest.fixture
def raise_source(in_loop: Callable[..., Any], connect: Callable[..., ClusterClient]) -> Callable[..., None]:
    """Make a topic's partitions begin at given offsets, as if retention had taken all before."""

    def make(cluster: ClusterOfBrokers, topic: str, levels: dict[int, int]) -> None:
        client = connect(cluster)

        async def fill() -> None:
            await client.refresh([topic])
            for partition, level in levels.items():
                left = level
                while left:
                    count = min(left, FILLER_RECORDS_MAX)
                    raw = filler_batch(count, int(time.time() * 1000))
                    await KeyedTopic(client, topic).append_batch(partition, raw, Deadline(DEADLINE_S))
                    left -= count

        in_loop(fill())
        delete_records(cluster.bootstrap, topic, {number: level for number, level in levels.items() if level})

    return make


def _settled(source: str, target: str, topic: str, remote: str) -> bool:
    """Whether the target's logs begin and end where the source's do, with no transaction left open there."""
    ends = end_offsets(source, topic)
    return ends == end_offsets(source, topic, committed=True) == end_offsets(target, remote)


def _assert_same(source: str, target: str, topic: str, remote: str) -> int:
    """What a consumer sees has the same offsets on both sides; how many records that are."""
    originals, copies = read_records(source, topic), read_records(target, remote)
    assert originals == copies
    return sum(len(records) for records in originals.values())


def _parities(in_loop: Any, client: ClusterClient, settings: FlowSettings, remote: str) -> dict[int, Parity | None]:
    group = GroupPositions(client, positions_group(settings.flow))
    wanted = [TopicPartition(remote, number) for number in LEVELS]
    committed = in_loop(group.fetch(wanted, Deadline(DEADLINE_S)))
    found: dict[int, Parity | None] = {}
    for at, (offset, text) in committed.items():
        position = Position.from_commit(offset, text)
        found[at.partition] = position.parity if position is not None else None
    return found


def _events(flow: FlowWithoutSpark, kind: str) -> list[str]:
    return [str(event) for event in flow.events if event.kind == kind]


def test_offsets_are_those_of_the_source(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
    raise_source: Callable[..., None],
    in_loop: Any,
    connect: Callable[..., ClusterClient],
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    create_topic(source, topic_name, len(LEVELS))
    raise_source(source_cluster, topic_name, LEVELS)
    writer = Source(source, topic_name, SEED)
    settings = flow_settings(topic_name, offsets="identical", read_committed=True)
    remote = f"{settings.flow.source}.{topic_name}"

    def settle(flow: FlowWithoutSpark) -> None:
        def same() -> bool:
            return _settled(source, target, topic_name, remote)

        try:
            wait_for(same, f"{remote} at the source's end", DEADLINE_S)
        except BaseException:
            print(end_offsets(source, topic_name), end_offsets(target, remote), flow.events, flow.log_text())
            raise

    began = time.monotonic()
    flow = lanes_without_spark(settings)
    settle(flow)
    print(
        f"{sum(LEVELS.values())} offsets of start level in {time.monotonic() - began:.1f} s, the flow's start included"
    )
    for number in range(CLEAN_RESTARTS):
        writer.write()
        if number < KILLS:
            assert flow.lanes is not None
            flow.lanes.kill(restart=True)
            writer.write()
            settle(flow)
        t0 = time.monotonic()
        flow.stop()
        t1 = time.monotonic()
        assert flow.events == []
        writer.write()
        t2 = time.monotonic()
        flow = lanes_without_spark(settings)
        print(f"stop {t1 - t0:.2f} write {t2 - t1:.2f} start {time.monotonic() - t2:.2f}")
    settle(flow)
    print(f"{_assert_same(source, target, topic_name, remote)} records after {CLEAN_RESTARTS} restarts")
    assert flow.events == []

    client = connect(target_cluster)
    _assert_positions_translate_to_themselves(source, target, topic_name, remote, settings)
    flow.stop()
    assert _parities(in_loop, client, settings, remote) == {number: Parity(level) for number, level in LEVELS.items()}
    _assert_somebody_elses_record_is_noticed(flow := lanes_without_spark(settings), source, target, topic_name, remote)
    flow.stop()
    parities = _parities(in_loop, client, settings, remote)
    assert (parities[1], parities[2]) == (Parity(LEVELS[1]), Parity(LEVELS[2]))
    lost = parities[0]
    assert lost is not None
    assert not lost.holds


def _assert_positions_translate_to_themselves(
    source: str, target: str, topic: str, remote: str, settings: FlowSettings
) -> None:
    for number, (first, end) in end_offsets(source, topic).items():
        at = TopicPartition(remote, number)

        def is_booked(at: TopicPartition = at, end: int = end) -> bool:
            newest = read_ledger(target, settings.flow.books).newest(at)
            return newest is not None and newest.upstream_next == end

        wait_for(is_booked, f"the ledger of {at}", DEADLINE_S)
        store = read_ledger(target, settings.flow.books)
        for offset in range(first, end + 1):
            found = translate(store, at, offset)
            assert (found.downstream_offset, found.exact) == (offset, True), (at, offset, found)


def _assert_somebody_elses_record_is_noticed(
    flow: FlowWithoutSpark, source: str, target: str, topic: str, remote: str
) -> None:
    at = end_offsets(source, topic)[0][1]
    assert _events(flow, EventKind.PARITY_LOST) == []
    write_values(target, remote, [b"somebody else's"])
    write_values(source, topic, [b"the next one"])
    wait_for(lambda: _events(flow, EventKind.PARITY_LOST), "the loss", DEADLINE_S)
    (event,) = [event for event in flow.events if event.kind == EventKind.PARITY_LOST]
    assert (event.topic, event.partition, event.offset_first) == (remote, 0, at)  # its first receipt
    wait_for(lambda: flow.status.partitions_identical == (2, 1), "the lane's report of it", DEADLINE_S)
    write_values(source, topic, [b"and so on"])
    wait_for(
        lambda: (
            [one.value for one in read_records(target, remote)[0]][-3:]
            == [b"somebody else's", b"the next one", b"and so on"]
        ),
        "the records behind it",
        DEADLINE_S,
    )


@pytest.mark.slow
def test_kills_at_any_moment_cost_no_offset(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
) -> None:
    """Lanes are killed while transactions are carried: inside holes, between receipts and positions, while owning."""
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    create_topic(source, topic_name, len(LEVELS))
    settings = flow_settings(topic_name, offsets="identical", read_committed=True, tasks_max=2)
    remote = f"{settings.flow.source}.{topic_name}"
    flow = lanes_without_spark(settings)
    dice = random.Random(SEED)
    enough = threading.Event()

    def write() -> None:
        writer = Source(source, topic_name, SEED)
        while not enough.is_set():
            writer.write()

    writing = threading.Thread(target=write)
    writing.start()
    try:
        for _ in range(KILLS_IN_A_LONG_RUN):
            time.sleep(dice.uniform(0.1, 3.0))
            assert flow.lanes is not None
            flow.lanes.kill(restart=True)
    finally:
        enough.set()
        writing.join()
    wait_for(lambda: _settled(source, target, topic_name, remote), f"{remote} at the source's end", DEADLINE_S)
    print(f"{_assert_same(source, target, topic_name, remote)} records, {KILLS_IN_A_LONG_RUN} kills, seed {SEED}")
    assert flow.events == [], flow.log_text()
    assert flow.status.partitions_identical == (len(LEVELS), 0)
