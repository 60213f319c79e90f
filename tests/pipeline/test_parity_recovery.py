"""Identical offsets after an unclean end, on real brokers: no marker, no duplicate, also beside a writer that still lives.

And where they begin: start levels, what cannot be brought to one, and what is refused by name.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.log_reader import LATEST, list_offset
from mirrorspark.cluster.topic_configs import alter_configs
from mirrorspark.cluster.writer import Writer, fence, obtain_writer
from mirrorspark.errors import BrokerError
from mirrorspark.events import Event, EventKind
from mirrorspark.lab.clients import delete_records, end_offsets
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.offsets.parity import Parity
from mirrorspark.offsets.position import LastWriter, Pen, Position, positions_group
from mirrorspark.pipeline import identical_lane, parity_recovery
from mirrorspark.pipeline.identical_lane import IdenticalLane
from mirrorspark.pipeline.recovery import Recovery
from mirrorspark.pipeline.tail_walk import Found
from mirrorspark.pipeline.track import REMEMBERED_MS, Track
from mirrorspark.pipeline.writers import WriterRegistry
from mirrorspark.plan.lanes import Assignment
from mirrorspark.settings import FlowSettings
from mirrorspark.wire.record_batch import Batch

if TYPE_CHECKING:
    from conftest import TwoLogs

InLoop = Callable[..., Any]
DEADLINE_S = 60.0
NOW_MS = int(time.time() * 1000)


class Attempt:
    """One lane's attempt at owning the partition of two logs, with identical offsets."""

    def __init__(self, logs: TwoLogs, *, lane: int = 0, generation: int = 1) -> None:
        flow = Flow(logs.at.topic, "west")
        self.settings = FlowSettings(
            flow, logs.source.settings, logs.target.settings, offsets="identical", read_committed=True
        )
        self.logs = logs
        self.events: list[Event] = []
        self.positions = GroupPositions(logs.target, positions_group(flow))
        registry = WriterRegistry(logs.target, 1)
        self.identical = IdenticalLane(
            logs.source,
            logs.target,
            self.settings,
            lane=lane,
            generation=generation,
            registry=registry,
            report=self.events.append,
            impossible="",
        )
        self.recovery = Recovery(
            logs.source,
            logs.target,
            self.settings,
            lane=lane,
            generation=generation,
            positions=self.positions,
            remembered=self._nothing,
            report=self.events.append,
            registry=registry,
            identical=self.identical.offsets,
            holes=self.identical.holes,
        )
        self.track = Track(Assignment(logs.at, logs.remote.topic, logs.source.topics[logs.at.topic].topic_id.hex()))

    async def _nothing(self, source: TopicPartition, remote: TopicPartition) -> Position | None:
        return None

    async def own(self) -> Track:
        deadline = Deadline(DEADLINE_S)
        await self.identical.start(await self.recovery.obtain(deadline), deadline)
        assert await self.recovery.own([self.track]) == {}
        return self.track

    async def carry(self, batch: Batch) -> None:
        """As the lane would send it next."""
        track = self.track
        assert track.pen is not None
        await self.logs.carry(batch, track.pen, track.next_sequence)
        track.next_sequence += batch.record_count

    async def commit(self, **changes: Any) -> None:
        position = replace(self.recovery.signed(self.track), **changes)
        await self.positions.commit({self.logs.remote: position.to_commit()}, Deadline(DEADLINE_S))

    async def committed(self) -> Position:
        found = await self.positions.fetch([self.logs.remote], Deadline(DEADLINE_S))
        position = Position.from_commit(*found[self.logs.remote])
        assert position is not None
        return position

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


def test_a_successor_writes_on_with_the_pen_and_nothing_is_appended_twice(
    in_loop: InLoop, two_logs: TwoLogs, target_cluster: ClusterOfBrokers
) -> None:
    async def run() -> None:
        one, two, three = [await two_logs.write(count) for count in (3, 4, 5)]
        first = Attempt(two_logs)
        track = await first.own()
        assert (track.identical, track.parity, track.pen) == (True, Parity(0), track.writer)
        await first.carry(one)
        await first.carry(two)  # and is cut off: nothing was committed

        second = Attempt(two_logs)
        track = await second.own()
        assert (track.upstream_next, track.downstream_end, track.next_sequence) == (7, 7, 7)  # no marker took an offset
        assert track.identical
        assert second.events == []
        assert first.track.pen is not None
        assert track.pen is not None
        assert (track.pen.producer_id, track.pen.epoch) == (first.track.pen.producer_id, first.track.pen.epoch)
        (run,) = track.ledger.open_page(7).runs()
        assert run[:4] == (0, 6, 0, 6)
        claim = await second.committed()
        assert claim.writer is not None
        assert claim.writer.epoch > track.pen.epoch  # by which the first one is told that it is no longer the newest
        assert not await first.identical.offsets.is_newest(first.recovery.writer or Writer("", -1, -1))
        assert await second.identical.offsets.is_newest(second.recovery.writer or Writer("", -1, -1))

        # Both send what comes next: it is there once. What does not fit is refused.
        await second.carry(three)
        await first.carry(three)
        four = await two_logs.write(2)
        with pytest.raises(BrokerError) as refused:
            await two_logs.carry(four, track.pen, 5)
        assert refused.value.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert end_offsets(target_cluster.bootstrap, two_logs.remote.topic)[0] == (0, 12)

        # A clean end: the next one has a pen of its own again, and still no marker.
        await second.commit(
            upstream_next=12,
            downstream_end=12,
            writer=replace(claim.writer, clean=True),
        )
        third = Attempt(two_logs)
        track = await third.own()
        assert (track.identical, track.upstream_next, track.next_sequence, track.pen) == (True, 12, 0, track.writer)
        await third.carry(four)
        assert end_offsets(target_cluster.bootstrap, two_logs.remote.topic)[0] == (0, 14)
        assert third.events == []

    in_loop(run())


def test_what_a_filler_left_open_ends_with_the_marker_that_was_due(
    in_loop: InLoop, two_logs: TwoLogs, target_cluster: ClusterOfBrokers
) -> None:
    """Another lane died with a transaction of filler open: its partition goes on behind the marker, as the source does."""

    async def run() -> None:
        first = Attempt(two_logs)
        await first.own()
        one = await two_logs.write(2)
        await first.carry(one)
        await _mark_on_source(two_logs)
        await two_logs.write(1)  # source: 0, 1, marker, 3
        await first.identical.offsets.filler.begin([two_logs.remote], Deadline(DEADLINE_S))

        second = Attempt(two_logs, lane=1, generation=2)
        track = await second.own()
        assert (track.upstream_next, track.downstream_end, track.identical) == (3, 3, True)
        (run,) = track.ledger.open_page(3).runs()
        assert run[:4] == (0, 2, 0, 2)  # the hole lies at its own offset too
        assert second.events == []

    in_loop(run())


async def _mark_on_source(logs: TwoLogs) -> None:
    """A transaction marker, which takes one offset; in the log when this returns."""
    deadline = Deadline(DEADLINE_S)
    end = await list_offset(logs.source, logs.at, LATEST, deadline)
    writer = await obtain_writer(
        logs.source, f"{logs.at.topic}-source", transaction_timeout_ms=60_000, deadline=deadline
    )
    await fence(logs.source, writer, [logs.at], deadline)
    while await list_offset(logs.source, logs.at, LATEST, deadline) == end:
        assert not deadline.passed
        await asyncio.sleep(0.01)


def test_where_the_broker_may_have_forgotten_the_lease_is_waited_for(
    in_loop: InLoop, two_logs: TwoLogs, target_cluster: ClusterOfBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parity_recovery, "LEASE_S", 0.1)

    async def run() -> None:
        one = await two_logs.write(3)
        first = Attempt(two_logs)
        await first.own()
        await first.carry(one)
        old = Pen(first.track.pen.producer_id, first.track.pen.epoch, 3, NOW_MS - 2 * REMEMBERED_MS)  # type: ignore[union-attr]
        await first.commit(upstream_next=3, downstream_end=3, pen=old)
        second = Attempt(two_logs)
        track = await second.own()
        assert (track.identical, track.upstream_next, track.downstream_end) == (True, 3, 3)
        assert (track.pen, track.next_sequence) == (track.writer, 0)
        assert end_offsets(target_cluster.bootstrap, two_logs.remote.topic)[0] == (0, 3)

    in_loop(run())


@pytest.mark.parametrize(
    ("pen", "last", "last_at", "goes_on"),
    [
        (None, None, -1, False),
        (Pen(7, 2, 10, NOW_MS), None, -1, True),
        (Pen(7, 2, 10, NOW_MS), Pen(7, 2, 15, NOW_MS), 100, True),
        (Pen(7, 2, 10, NOW_MS), Pen(7, 3, 5, NOW_MS), 100, False),  # another's after it
        (Pen(7, 2, 10, NOW_MS), Pen(7, 1, 5, NOW_MS), 99, True),  # another's before it
        (Pen(7, 2, 0, -1), None, -1, True),  # never used
        (Pen(7, 2, 10, NOW_MS - 2 * REMEMBERED_MS), None, -1, False),
        (Pen(7, 2, 10, NOW_MS - 2 * REMEMBERED_MS), Pen(7, 2, 15, NOW_MS), 100, True),
    ],
)
def test_whose_pen_is_taken_up(pen: Pen | None, last: Pen | None, last_at: int, goes_on: bool) -> None:
    position = Position(100, 100, "", -1, LastWriter("lane", 7, 4, 1, clean=False), parity=Parity(0), pen=pen)
    found = Found(100, 100, -1, last_pen=last, last_pen_at=last_at)
    chosen = parity_recovery.pen_to_go_on_with(position, found)
    assert (chosen is not None) == goes_on
    if chosen is not None:
        assert chosen == (last if last is not None and last_at >= 100 else pen)


# -- start levels ------------------------------------------------------------------------------------------------------


def _deleted(logs: TwoLogs, cluster: ClusterOfBrokers, before: int) -> None:
    delete_records(cluster.bootstrap, logs.at.topic, {logs.at.partition: before})


def test_a_start_level_that_was_left_half_way_is_reached_by_the_next_attempt(
    in_loop: InLoop,
    two_logs: TwoLogs,
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parity_recovery, "LEASE_S", 0.1)

    async def run() -> None:
        await two_logs.write(50)
        _deleted(two_logs, source_cluster, 40)
        first = Attempt(two_logs)
        deadline = Deadline(DEADLINE_S)
        await first.identical.start(await first.recovery.obtain(deadline), deadline)
        writer = first.recovery.writer
        assert writer is not None
        begun = LastWriter(writer.transactional_id, writer.producer_id, writer.epoch, 1, clean=False)
        claim = Position(40, 0, first.track.assignment.topic_id, -1, begun, parity=Parity(40))
        await first.positions.commit({two_logs.remote: claim.to_commit()}, deadline)
        await two_logs.carry(await two_logs.write(3), writer, 0)  # stands for filler

        second = Attempt(two_logs)
        track = await second.own()
        assert (track.identical, track.parity, track.upstream_next) == (True, Parity(40), 40)
        assert end_offsets(target_cluster.bootstrap, two_logs.remote.topic)[0] == (40, 40)
        assert second.events == []

    in_loop(run())


def test_what_cannot_be_had_is_refused_by_name(
    in_loop: InLoop, two_logs: TwoLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parity_recovery, "LEASE_S", 0.1)

    async def run() -> None:
        await two_logs.write(3)
        # Somebody's records are there already, more than the source has.
        nobody = await two_logs.obtain()
        await two_logs.fence(nobody)
        first = Attempt(two_logs)
        track = await first.own()
        assert not track.identical
        assert track.parity == Parity(1, 1)
        assert first.kinds == [EventKind.POSITION_LOST, EventKind.PARITY_REFUSED]
        assert "translated by the ledger" in first.events[-1].text
        assert (await first.committed()).parity == track.parity

        # It is told once.
        await first.commit(writer=replace((await first.committed()).writer, clean=True))  # type: ignore[type-var]
        second = Attempt(two_logs)
        assert not (await second.own()).identical
        assert second.events == []

    in_loop(run())


def test_a_compacted_topic_stays_translated(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        await alter_configs(two_logs.source, {two_logs.at.topic: {"cleanup.policy": "compact,delete"}})
        attempt = Attempt(two_logs)
        track = await attempt.own()
        assert not track.identical
        (event,) = attempt.events
        assert event.kind == EventKind.PARITY_REFUSED
        assert "is compacted (cleanup.policy=compact,delete)" in event.text
        assert (event.topic, event.partition) == tuple(two_logs.remote)

    in_loop(run())


def test_a_lane_that_is_no_longer_the_newest_learns_it_but_not_by_its_own_new_epoch(
    in_loop: InLoop, two_logs: TwoLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identical_lane, "ASK_INTERVAL_S", 0.0)

    async def run() -> None:
        first = Attempt(two_logs)
        await first.own()
        before = first.recovery.writer
        assert before is not None
        renewed = await first.identical.renewed(before)
        assert renewed is not None
        now = await first.recovery.obtain(Deadline(DEADLINE_S))
        assert await first.identical.renewed(before) == renewed  # once is no proof, but renews nothing
        later = await first.identical.renewed(now)
        assert later is not None
        assert later > renewed
        await Attempt(two_logs).own()
        assert await first.identical.renewed(now) == later
        assert await first.identical.renewed(now) is None

    in_loop(run())
