"""What must never pass silently: each case is an event on the status topic with topic, partition and offsets, goes by its
policy, and holds up no other partition."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.events import Event, EventKind
from mirrorspark.lab.clients import create_topic, delete_records, delete_topic, end_offsets, topic_partitions, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import alter_topic, one_batch, read_records, write_values
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.position import Position, positions_group
from mirrorspark.settings import FlowSettings, Limits, Policies
from mirrorspark.wire.record_batch import PATCH_BYTES_MIN

ARRIVES_S = 60.0
RETRIED_SOON = {"mirrorspark.pipeline.troubles.RETRY_WAITING_S": 1.0}

Begin = Callable[..., FlowWithoutSpark]
MakeSettings = Callable[..., FlowSettings]


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


class World:
    """A source topic of two partitions and its copy. Partition 0 meets trouble; 1 must flow all the time."""

    def __init__(self, source: ClusterOfBrokers, target: ClusterOfBrokers, topic: str, settings: FlowSettings) -> None:
        self.source, self.target = source.bootstrap, target.bootstrap
        self.topic, self.remote = topic, f"{settings.flow.source}.{topic}"
        self.settings = settings
        self._beats = 0

    def write(self, values: list[bytes], partition: int = 0, **changes: Any) -> None:
        write_values(self.source, self.topic, values, partition=partition, **changes)

    def arrived(self, partition: int = 0, isolation: str = "read_uncommitted") -> list[bytes | None]:
        if not topic_partitions(self.target, self.remote):
            return []
        return [record.value for record in read_records(self.target, self.remote, isolation=isolation)[partition]]

    def wait_arrived(self, wanted: list[bytes], flow: FlowWithoutSpark, partition: int = 0) -> None:
        try:
            wait_for(lambda: self.arrived(partition) == wanted, f"{self.remote}-{partition}", ARRIVES_S, 0.2)
        except Exception as error:
            seen = self.arrived(partition)
            raise AssertionError(
                f"{len(seen)} records arrived, {len(wanted)} were wanted; {seen[-3:]}; "
                f"waiting {flow.status.waiting}; events {[str(event) for event in flow.events]}\n{flow.log_text()}"
            ) from error

    def others_flow(self, flow: FlowWithoutSpark) -> None:
        """A record through partition 1, now."""
        self._beats += 1
        self.write([b"beat"], 1)
        self.wait_arrived([b"beat"] * self._beats, flow, 1)


@pytest.fixture
def make_world(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str, flow_settings: MakeSettings
) -> Callable[..., World]:
    def make(policies: Policies | None = None, **changes: Any) -> World:
        create_topic(source_cluster.bootstrap, topic_name, 2)
        settings = flow_settings(topic_name, policies=policies or Policies(), **changes)
        return World(source_cluster, target_cluster, topic_name, settings)

    return make


def wait_event(flow: FlowWithoutSpark, kind: str) -> Event:
    """The event of this kind, as the driver read it from the status topic."""

    def found() -> bool:
        return any(event.kind == kind for event in flow.events)

    try:
        wait_for(found, f"an event {kind}", ARRIVES_S)
    except Exception as error:
        raise AssertionError(f"no {kind}, but {[str(one) for one in flow.events]}\n{flow.log_text()}") from error
    (event,) = (event for event in flow.events if event.kind == kind)
    return event


def place(event: Event) -> tuple[str, int, int, int]:
    return event.topic, event.partition, event.offset_first, event.offset_last


def wait_waits(flow: FlowWithoutSpark, remote: str, partition: int = 0) -> None:
    wait_for(lambda: f"{remote}-{partition}" in flow.status.waiting, f"{remote}-{partition} to wait", ARRIVES_S)


def wait_nothing_waits(flow: FlowWithoutSpark) -> None:
    """What the lanes report as waiting is what an operator sees; it must go away with its cause."""
    wait_for(lambda: not flow.status.waiting, f"nothing to wait, but {flow.status.waiting}", ARRIVES_S)


@contextmanager
def frozen(flow: FlowWithoutSpark) -> Iterator[None]:
    """The lanes stand still for a moment, as on a machine that is too busy."""
    assert flow.lanes is not None
    pids = list(flow.lanes.pids.values())
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


# -- the source deleted what was not carried yet ---------------------------------------------------------------------


@pytest.mark.parametrize("while_it_runs", [False, True], ids=["while stopped", "while running"])
def test_data_gap_goes_on_at_the_first_record_left(
    make_world: Callable[..., World], lanes_without_spark: Begin, while_it_runs: bool
) -> None:
    world = make_world()
    flow = lanes_without_spark(world.settings)
    world.write(numbered(0, 10))
    world.wait_arrived(numbered(0, 10), flow)
    if while_it_runs:
        with frozen(flow):
            world.write(numbered(10, 30))
            delete_records(world.source, world.topic, {0: 25})
    else:
        flow.stop()
        world.write(numbered(10, 30))
        delete_records(world.source, world.topic, {0: 25})
        flow = lanes_without_spark(world.settings)
    event = wait_event(flow, EventKind.DATA_GAP)
    assert place(event) == (world.topic, 0, 10, 24)
    assert not event.waits
    world.wait_arrived([*numbered(0, 10), *numbered(25, 30)], flow)
    world.others_flow(flow)
    assert flow.status.verdict == "degraded"  # until somebody acknowledges it
    flow.stop()


def test_data_gap_with_fail_waits_alone_and_says_so_over_a_restart(
    make_world: Callable[..., World], lanes_without_spark: Begin
) -> None:
    world = make_world(Policies(on_data_gap="fail"))
    flow = lanes_without_spark(world.settings)
    world.write(numbered(0, 10))
    world.wait_arrived(numbered(0, 10), flow)
    flow.stop()
    world.write(numbered(10, 30))
    delete_records(world.source, world.topic, {0: 25})
    for _ in range(2):
        flow = lanes_without_spark(world.settings)
        event = wait_event(flow, EventKind.DATA_GAP)
        assert place(event) == (world.topic, 0, 10, 24)
        assert event.waits
        wait_waits(flow, world.remote)
        world.others_flow(flow)
        assert world.arrived() == numbered(0, 10)
        flow.stop()


# -- the source topic is another one ---------------------------------------------------------------------------------


@pytest.mark.parametrize("while_it_runs", [False, True], ids=["while stopped", "while running"])
def test_recreated_topic_is_carried_from_its_beginning(
    make_world: Callable[..., World], lanes_without_spark: Begin, while_it_runs: bool
) -> None:
    world = make_world()
    flow = lanes_without_spark(world.settings)
    world.write(numbered(0, 10))
    world.wait_arrived(numbered(0, 10), flow)
    world.others_flow(flow)
    if not while_it_runs:
        flow.stop()
    delete_topic(world.source, world.topic)
    create_topic(world.source, world.topic, 2)
    # As many as before, in one batch as before: to a broker that numbers them they look like a repeat.
    world.write(numbered(100, 110))
    if not while_it_runs:
        flow = lanes_without_spark(world.settings)
    world.wait_arrived([*numbered(0, 10), *numbered(100, 110)], flow)
    told = {place(event) for event in flow.events if event.kind == EventKind.TOPIC_RECREATED}
    assert (world.topic, 0) in {one[:2] for one in told}
    world.others_flow(flow)
    wait_nothing_waits(flow)
    flow.stop()
    # Known from now on: the next start finds nothing new and sends nothing again.
    flow = lanes_without_spark(world.settings)
    world.others_flow(flow)
    assert world.arrived() == [*numbered(0, 10), *numbered(100, 110)]
    assert {place(event) for event in flow.events if event.kind == EventKind.TOPIC_RECREATED} == told
    flow.stop()


def test_recreated_topic_with_fail_waits(
    make_world: Callable[..., World], lanes_without_spark: Begin, new_topic_name: Callable[[], str]
) -> None:
    other = new_topic_name()
    world = make_world(Policies(on_topic_recreated="fail"))
    world.settings = replace(world.settings, topics=f"{world.topic}, {other}")
    create_topic(world.source, other, 1)
    flow = lanes_without_spark(world.settings)
    world.write(numbered(0, 10))
    world.wait_arrived(numbered(0, 10), flow)
    delete_topic(world.source, world.topic)
    create_topic(world.source, world.topic, 2)
    world.write(numbered(100, 110))
    wait_for(lambda: len(flow.events) == 2, "an event for each partition", ARRIVES_S)
    wait_waits(flow, world.remote, 0)
    told = {(event.kind, event.topic, event.partition, event.waits) for event in flow.events}
    assert told == {(EventKind.TOPIC_RECREATED, world.topic, number, True) for number in range(2)}
    write_values(world.source, other, numbered(0, 5))
    remote_other = f"{world.settings.flow.source}.{other}"
    wait_for(lambda: end_offsets(world.target, remote_other)[0] == (0, 5), "the other topic", ARRIVES_S)
    assert world.arrived() == numbered(0, 10)
    flow.stop()


# -- records that the target does not take ---------------------------------------------------------------------------

LIMIT_BYTES = 100_000
LARGE = b"L" * (2 * LIMIT_BYTES)


def test_record_too_large_waits_alone_and_goes_on_when_the_limit_is_raised(
    make_world: Callable[..., World], lanes_without_spark: Begin
) -> None:
    world = make_world()
    flow = lanes_without_spark(world.settings, patches=RETRIED_SOON)
    world.write(numbered(0, 3))
    world.wait_arrived(numbered(0, 3), flow)
    alter_topic(world.target, world.remote, {"max.message.bytes": str(LIMIT_BYTES)})
    world.write([b"before", LARGE, b"after"], settings=one_batch(len(LARGE)))
    event = wait_event(flow, EventKind.RECORD_TOO_LARGE)
    assert place(event) == (world.topic, 0, 4, 4)
    assert event.waits
    wait_waits(flow, world.remote)
    world.others_flow(flow)
    world.wait_arrived([*numbered(0, 3), b"before"], flow)  # what fits before it is not held up

    alter_topic(world.target, world.remote, {"max.message.bytes": str(2_000_000)})
    world.wait_arrived([*numbered(0, 3), b"before", LARGE, b"after"], flow)
    world.others_flow(flow)
    wait_nothing_waits(flow)
    flow.stop()


@pytest.mark.parametrize("policy", ["skip", "dead-letter"])
def test_record_too_large_is_left_out_or_set_aside_by_policy(
    make_world: Callable[..., World], lanes_without_spark: Begin, policy: str
) -> None:
    world = make_world(Policies(on_record_too_large=policy))
    flow = lanes_without_spark(world.settings)
    world.write(numbered(0, 3))
    world.wait_arrived(numbered(0, 3), flow)
    alter_topic(world.target, world.remote, {"max.message.bytes": str(LIMIT_BYTES)})
    world.write([b"before", LARGE, b"after"], settings=one_batch(len(LARGE)), key=b"its key")
    world.wait_arrived([*numbered(0, 3), b"before", b"after"], flow)
    event = wait_event(flow, EventKind.RECORD_TOO_LARGE)
    assert place(event) == (world.topic, 0, 4, 4)
    assert not event.waits
    world.write([LARGE])  # the last of its partition, alone in its batch
    wait_for(lambda: len(flow.events) == 2, "the second event", ARRIVES_S)
    flow.stop()

    alias = world.settings.flow.source
    if policy == "dead-letter":
        aside = read_records(world.target, f"mirrorspark-dead-letters.{alias}.internal")[0]
        assert [record.value for record in aside] == [LARGE, LARGE]
        assert aside[0].key == b"its key"
        assert dict(aside[0].headers) == {
            "mirrorspark.source.cluster": alias.encode(),
            "mirrorspark.source.topic": world.topic.encode(),
            "mirrorspark.source.partition": b"0",
            "mirrorspark.source.offset": b"4",
        }
    # The next start does not meet them again.
    flow = lanes_without_spark(world.settings)
    world.write([b"last"])
    world.wait_arrived([*numbered(0, 3), b"before", b"after", b"last"], flow)
    flow.stop()


def test_many_large_records_in_a_row_are_skipped_and_the_partition_goes_on(
    make_world: Callable[..., World], lanes_without_spark: Begin
) -> None:
    """More of them than one partition may hold in memory, so that it is left out of the fetches meanwhile."""
    world = make_world(Policies(on_record_too_large="skip"))
    large = os.urandom(900_000)
    count = world.settings.limits.partition_memory_bytes_max // len(large) + 4
    flow = lanes_without_spark(world.settings)
    world.write([b"first"])
    world.wait_arrived([b"first"], flow)
    alter_topic(world.target, world.remote, {"max.message.bytes": str(LIMIT_BYTES)})
    with frozen(flow):
        world.write([large] * count)
    wait_for(lambda: len(flow.events) == count, f"{count} events", ARRIVES_S)
    world.write([b"last"])
    world.wait_arrived([b"first", b"last"], flow)
    flow.stop()


def test_batch_too_large_is_cut_until_its_records_fit(
    make_world: Callable[..., World], lanes_without_spark: Begin
) -> None:
    world = make_world()
    flow = lanes_without_spark(world.settings)
    world.others_flow(flow)
    alter_topic(world.target, world.remote, {"max.message.bytes": str(LIMIT_BYTES)})
    values = [os.urandom(5_000) + bytes(5_000) for _ in range(100)]
    world.write(values, settings={**one_batch(1_000_000), "compression.type": "lz4"})
    world.write([b"last"])
    world.wait_arrived([*values, b"last"], flow)
    assert max(one.size for one in raw_batches(world.source, world.topic)[0]) > LIMIT_BYTES
    carried = raw_batches(world.target, world.remote)[0]
    assert max(one.size for one in carried) <= LIMIT_BYTES
    assert {one.codec for one in carried[:-1]} == {3}
    assert flow.events == []
    flow.stop()


# -- the target lost what it had -------------------------------------------------------------------------------------


def wait_booked(flow: FlowWithoutSpark, world: World, offset: int) -> None:
    """Until position and ledger tell everything up to this offset of partition 0."""
    group = GroupPositions(flow.runtime._target, positions_group(world.settings.flow))
    at = TopicPartition(world.remote, 0)

    def is_booked() -> bool:
        position = Position.from_commit(*flow.call(group.fetch([at], Deadline(ARRIVES_S)))[at])
        return position is not None and position.booked is not None and position.booked.upstream_next == offset

    wait_for(is_booked, f"{at} to be booked up to {offset}", ARRIVES_S)


@pytest.mark.parametrize(
    ("policy", "made_by_hand", "first"), [("recreate", False, 10), ("recreate", True, 10), ("remirror", False, 0)]
)
def test_target_topic_deleted_while_it_runs_is_named_and_goes_by_policy(
    make_world: Callable[..., World],
    lanes_without_spark: Begin,
    new_topic_name: Callable[[], str],
    policy: str,
    made_by_hand: bool,
    first: int,
) -> None:
    """One that somebody makes anew at once may get our next batch before we know: it is compared, not sent again."""
    other = new_topic_name()
    world = make_world(
        Policies(on_target_topic_deleted=policy),
        limits=Limits(progress_interval_ms=200, position_commit_interval_ms=200),
    )
    world.settings = replace(world.settings, topics=f"{world.topic}, {other}")
    create_topic(world.source, other, 1)
    flow = lanes_without_spark(world.settings)
    world.write(numbered(0, 10))
    world.wait_arrived(numbered(0, 10), flow)
    wait_booked(flow, world, 10)
    delete_topic(world.target, world.remote)
    if made_by_hand:
        create_topic(world.target, world.remote, 2)
    world.write(numbered(10, 15))
    event = wait_event(flow, EventKind.TARGET_TOPIC_DELETED)
    assert event.topic == world.remote
    assert f"on.target.topic.deleted={policy}" in event.text
    write_values(world.source, other, numbered(0, 5))
    remote_other = f"{world.settings.flow.source}.{other}"
    wait_for(lambda: end_offsets(world.target, remote_other)[0] == (0, 5), "the other topic", ARRIVES_S)
    world.wait_arrived(numbered(first, 15), flow)
    world.others_flow(flow)
    wait_nothing_waits(flow)
    flow.stop()
    assert world.arrived() == numbered(first, 15)


@pytest.mark.parametrize(("policy", "first"), [("recreate", 10), ("remirror", 0)])
def test_target_topic_deleted_while_stopped_goes_by_policy(
    make_world: Callable[..., World], lanes_without_spark: Begin, policy: str, first: int
) -> None:
    """The coordinator forgets the positions of a deleted topic; the ledger does not."""
    world = make_world(Policies(on_target_topic_deleted=policy))
    flow = lanes_without_spark(world.settings)
    world.write(numbered(0, 10))
    world.wait_arrived(numbered(0, 10), flow)
    flow.stop()
    delete_topic(world.target, world.remote)
    world.write(numbered(10, 15))
    flow = lanes_without_spark(world.settings)
    world.wait_arrived(numbered(first, 15), flow)
    assert wait_event(flow, EventKind.TARGET_TOPIC_DELETED).topic == world.remote
    flow.stop()


def test_target_log_that_lost_its_end_is_named_and_only_it_waits(
    source_cluster: ClusterOfBrokers,
    own_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: MakeSettings,
    lanes_without_spark: Begin,
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 2)
    settings = flow_settings(topic_name, target=own_cluster)
    world = World(source_cluster, own_cluster, topic_name, settings)
    flow = lanes_without_spark(settings)
    world.write(numbered(0, 10))
    world.wait_arrived(numbered(0, 10), flow)
    world.write(numbered(10, 15))
    world.wait_arrived(numbered(0, 15), flow)
    world.others_flow(flow)
    flow.stop()
    first, second = raw_batches(world.target, world.remote)[0]
    broker = own_cluster.broker(1)
    broker.stop()
    segment = broker.data / f"{world.remote}-0" / f"{0:020d}.log"
    segment.write_bytes(segment.read_bytes()[: first.size])
    broker.start()
    assert end_offsets(world.target, world.remote)[0] == (0, second.base_offset)

    flow = lanes_without_spark(settings)
    event = wait_event(flow, EventKind.TARGET_TRUNCATED)
    assert place(event) == (world.remote, 0, 10, 14)
    assert event.waits
    wait_waits(flow, world.remote)
    world.write(numbered(15, 17))
    world.others_flow(flow)
    assert world.arrived() == numbered(0, 10)
    flow.stop()


# -- the source's disk -----------------------------------------------------------------------------------------------


def test_damaged_batch_is_named_and_nothing_of_it_is_signed_anew(
    own_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: MakeSettings,
    lanes_without_spark: Begin,
) -> None:
    create_topic(own_cluster.bootstrap, topic_name, 2)
    settings = flow_settings(topic_name, source=own_cluster)
    world = World(own_cluster, target_cluster, topic_name, settings)
    world.write(numbered(0, 10))
    large = b"a value that will be found on the disk".ljust(2 * PATCH_BYTES_MIN, b".")
    world.write([large])
    world.write(numbered(11, 15))
    broker = own_cluster.broker(1)
    broker.stop()
    segment = broker.data / f"{topic_name}-0" / f"{0:020d}.log"
    raw = bytearray(segment.read_bytes())
    raw[raw.index(b"found on the disk")] ^= 1
    segment.write_bytes(raw)
    broker.start()

    flow = lanes_without_spark(settings, patches=RETRIED_SOON)
    event = wait_event(flow, EventKind.BATCH_DAMAGED)
    assert place(event) == (topic_name, 0, 10, 10)
    assert event.waits
    assert "checksum" in event.text
    # A large batch goes unread: it was not signed anew, so the target can tell.
    assert "the target refused it" in event.text
    wait_waits(flow, world.remote)
    world.others_flow(flow)
    assert world.arrived() == numbered(0, 10)

    broker.stop()
    raw[raw.index(b"gound on the disk")] ^= 1
    segment.write_bytes(raw)
    broker.start()
    world.wait_arrived([*numbered(0, 10), large, *numbered(11, 15)], flow)
    world.others_flow(flow)
    wait_nothing_waits(flow)
    flow.stop()
