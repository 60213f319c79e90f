"""Invariants B and C on real brokers: who wrote last is shut out, what they left is proved, our name is put there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.writer import Writer
from mirrorspark.errors import BrokerError, PartitionStopped
from mirrorspark.events import Event, EventKind
from mirrorspark.lab.clients import delete_records, end_offsets
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.offsets.position import Booked, LastWriter, Position, positions_group
from mirrorspark.pipeline.recovery import Recovery, StillHeld, transactional_id
from mirrorspark.pipeline.track import Track, TrackState
from mirrorspark.plan.lanes import Assignment
from mirrorspark.settings import FlowSettings, Policies
from mirrorspark.wire.records import encode_batch

if TYPE_CHECKING:
    from conftest import TwoLogs

InLoop = Callable[..., Any]
DEADLINE_S = 60.0


class Attempt:
    """One lane's attempt at owning the partition of two logs."""

    def __init__(self, logs: TwoLogs, *, lane: int = 0, generation: int = 1, **changes: Any) -> None:
        flow = Flow(logs.at.topic, "west")
        self.settings = FlowSettings(flow, logs.source.settings, logs.target.settings, **changes)
        self.logs = logs
        self.events: list[Event] = []
        self.remembered: Position | None = None
        self.positions = GroupPositions(logs.target, positions_group(flow))
        self.recovery = Recovery(
            logs.source,
            logs.target,
            self.settings,
            lane=lane,
            generation=generation,
            positions=self.positions,
            remembered=self._remember,
            report=self.events.append,
        )
        self.track = Track(Assignment(logs.at, logs.remote.topic, logs.source.topics[logs.at.topic].topic_id.hex()))

    async def _remember(self, source: TopicPartition, remote: TopicPartition) -> Position | None:
        assert (source, remote) == (self.logs.at, self.logs.remote)
        return self.remembered

    @property
    def writer(self) -> Writer:
        assert self.recovery.writer is not None
        return self.recovery.writer

    async def own(self) -> Exception | None:
        """Obtain an epoch and own; what kept it from owning, if something did."""
        await self.recovery.obtain(Deadline(DEADLINE_S))
        return (await self.recovery.own([self.track])).get(self.track)

    async def committed(self) -> Position | None:
        found = await self.positions.fetch([self.logs.remote], Deadline(DEADLINE_S))
        return Position.from_commit(*found[self.logs.remote]) if found else None

    async def commit(self, position: Position) -> None:
        await self.positions.commit({self.logs.remote: position.to_commit()}, Deadline(DEADLINE_S))

    async def leave(self, *, clean: bool = True) -> None:
        await self.commit(self.recovery.signed(self.track, clean=clean))

    async def refused(self, writer: Writer, sequence: int) -> bool:
        """Whether the target refuses this writer."""
        try:
            await self.logs.carry(await self.logs.write(1), writer, sequence)
        except BrokerError as error:
            return error.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        return False


def test_invariant_b_our_name_stands_there_before_the_first_append(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        await two_logs.write(3)
        attempt = Attempt(two_logs)
        assert await attempt.own() is None
        assert attempt.track.state is TrackState.CARRYING
        assert (attempt.track.upstream_next, attempt.track.downstream_end) == (0, 0)
        position = await attempt.committed()
        assert position is not None
        assert position.writer == LastWriter(
            transactional_id(attempt.settings, 0), attempt.writer.producer_id, attempt.writer.epoch, 1, clean=False
        )
        assert await two_logs.target_batches() == []  # nobody was there: no fence, no marker
        assert attempt.events == []

    in_loop(run())


def test_invariant_b_an_unclean_writer_is_fenced_and_what_it_left_is_not_sent_again(
    in_loop: InLoop, two_logs: TwoLogs
) -> None:
    async def run() -> None:
        one, other = await two_logs.write(3), await two_logs.write(4)
        await two_logs.write(5)
        first = Attempt(two_logs)
        assert await first.own() is None
        await two_logs.carry(one, first.writer, 0)
        await two_logs.carry(other, first.writer, 3)  # and died before it could commit

        second = Attempt(two_logs)
        assert await second.own() is None
        assert second.writer.epoch > first.writer.epoch
        assert second.track.upstream_next == 7
        assert second.track.downstream_end == 8  # seven records and the marker
        assert await second.refused(first.writer, 7)
        (run,) = second.track.ledger.open_page(7).runs()
        assert run == (0, 6, 0, 6, 7)  # the ledger gets what was proved
        assert second.track.unbooked

    in_loop(run())


def test_invariant_c_a_clean_end_is_taken_up_without_a_marker(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        first = Attempt(two_logs)
        assert await first.own() is None
        await two_logs.carry(await two_logs.write(3), first.writer, 0)
        first.track.upstream_next = first.track.downstream_end = 3
        await first.leave()
        second = Attempt(two_logs)
        assert await second.own() is None
        assert (second.track.upstream_next, second.track.downstream_end) == (3, 3)
        assert not any(batch.is_control for batch in await two_logs.target_batches())

    in_loop(run())


def test_invariant_c_a_clean_end_below_the_logs_end_is_not_believed(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        one, other = await two_logs.write(3), await two_logs.write(4)
        first = Attempt(two_logs)
        assert await first.own() is None
        await two_logs.carry(one, first.writer, 0)
        await two_logs.carry(other, first.writer, 3)
        first.track.upstream_next = first.track.downstream_end = 3  # signs off what it knew before it was cut off
        await first.leave()
        second = Attempt(two_logs)
        assert await second.own() is None
        assert second.track.upstream_next == 7
        assert await second.refused(first.writer, 7)

    in_loop(run())


def test_invariant_c_a_target_that_lost_its_end_stops_the_partition(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        await two_logs.write(9)
        for clean in (True, False):
            attempt = Attempt(two_logs)
            name = transactional_id(attempt.settings, 0)
            producer_id = (await two_logs.obtain(name)).producer_id
            await attempt.commit(Position(5, 5, "", -1, LastWriter(name, producer_id, 0, 1, clean=clean)))
            problem = await attempt.own()
            assert isinstance(problem, PartitionStopped)
            assert problem.facts["event"] == EventKind.TARGET_TRUNCATED
            assert problem.facts["topic"] == two_logs.remote.topic
            assert problem.facts["offset_last"] == 4
            assert attempt.track.writer is None

    in_loop(run())


def test_invariant_b_a_sibling_is_waited_for_and_fenced_when_it_does_not_let_go(
    in_loop: InLoop, two_logs: TwoLogs
) -> None:
    async def run() -> None:
        sibling = Attempt(two_logs, lane=0)
        assert await sibling.own() is None
        await two_logs.carry(await two_logs.write(3), sibling.writer, 0)
        other = Attempt(two_logs, lane=1)
        assert isinstance(await other.own(), StillHeld)
        assert other.track.writer is None
        other.track.force_ownership = True
        assert await other.own() is None
        assert other.track.upstream_next == 3
        assert await other.refused(sibling.writer, 3)
        position = await other.committed()
        assert position is not None
        assert position.writer is not None
        assert position.writer.transactional_id == transactional_id(other.settings, 1)

    in_loop(run())


def test_invariant_b_a_lane_of_an_earlier_driver_is_fenced_at_once(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        earlier = Attempt(two_logs, lane=3, generation=1)
        assert await earlier.own() is None
        await two_logs.carry(await two_logs.write(3), earlier.writer, 0)
        now = Attempt(two_logs, lane=0, generation=2)
        assert await now.own() is None
        assert now.track.upstream_next == 3
        assert await now.refused(earlier.writer, 3)

    in_loop(run())


def test_invariant_b_a_writer_that_turns_up_in_the_tail_is_fenced_too(in_loop: InLoop, two_logs: TwoLogs) -> None:
    """The position names one lane, but another of ours has written since: both must be shut out."""

    async def run() -> None:
        named, unnamed = Attempt(two_logs, lane=1), Attempt(two_logs, lane=2)
        assert await named.own() is None
        await unnamed.recovery.obtain(Deadline(DEADLINE_S))
        await two_logs.carry(await two_logs.write(2), named.writer, 0)
        await two_logs.carry(await two_logs.write(2), unnamed.writer, 0)
        successor = Attempt(two_logs, lane=0, generation=2)
        assert await successor.own() is None
        assert successor.track.upstream_next == 4
        assert await successor.refused(named.writer, 2)
        assert await successor.refused(unnamed.writer, 2)

    in_loop(run())


def test_invariant_c_without_any_position_both_logs_are_compared_from_the_beginning(
    in_loop: InLoop, two_logs: TwoLogs
) -> None:
    async def run() -> None:
        first = Attempt(two_logs)
        await first.recovery.obtain(Deadline(DEADLINE_S))
        await two_logs.carry(await two_logs.write(3), first.writer, 0)
        await two_logs.write(2)
        attempt = Attempt(two_logs)
        assert await attempt.own() is None
        assert attempt.track.upstream_next == 3
        (event,) = attempt.events
        assert (event.kind, event.topic, event.offset_first, event.offset_last) == (
            *(EventKind.POSITION_LOST, two_logs.remote.topic),
            *(0, 2),
        )
        assert await attempt.refused(first.writer, 3)

    in_loop(run())


def test_invariant_c_a_lost_position_is_taken_from_the_books_and_proved(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        first = Attempt(two_logs)
        await first.recovery.obtain(Deadline(DEADLINE_S))
        await two_logs.carry(await two_logs.write(3), first.writer, 0)
        await two_logs.carry(await two_logs.write(3), first.writer, 3)
        attempt = Attempt(two_logs)
        name = transactional_id(attempt.settings, 0)
        attempt.remembered = Position(3, 3, "", -1, LastWriter(name, -1, -1, 0, clean=False))
        assert await attempt.own() is None
        assert attempt.track.upstream_next == 6
        assert attempt.events == []

    in_loop(run())


@pytest.mark.parametrize("policy", ["restart", "fail"])
def test_a_topic_with_another_id_is_told_and_goes_by_the_policy(
    in_loop: InLoop, two_logs: TwoLogs, policy: str
) -> None:
    async def run() -> None:
        await two_logs.write(4)
        attempt = Attempt(two_logs, policies=Policies(on_topic_recreated=policy))
        await attempt.recovery.obtain(Deadline(DEADLINE_S))
        await two_logs.append(two_logs.target, two_logs.remote, encode_batch(two_logs.records(6)))
        name = transactional_id(attempt.settings, 0)
        await attempt.commit(Position(6, 6, "ab" * 16, -1, LastWriter(name, 1, 1, 1, clean=True)))
        problem = await attempt.own()
        if policy == "fail":
            assert isinstance(problem, PartitionStopped)
            told = problem.facts
            assert (told["event"], told["topic"], told["partition"]) == (EventKind.TOPIC_RECREATED, *two_logs.at)
        else:
            assert problem is None
            assert [event.kind for event in attempt.events] == [EventKind.TOPIC_RECREATED]
            assert (attempt.track.upstream_next, attempt.track.downstream_end) == (0, 6)

    in_loop(run())


@pytest.mark.parametrize("policy", ["continue", "fail"])
def test_a_gap_met_during_recovery_goes_by_the_policy(
    in_loop: InLoop, two_logs: TwoLogs, source_cluster: ClusterOfBrokers, policy: str
) -> None:
    async def fill() -> None:
        first = Attempt(two_logs)
        assert await first.own() is None
        batches = [await two_logs.write(3) for _ in range(4)]
        await two_logs.carry(batches[0], first.writer, 0)
        first.track.upstream_next = first.track.downstream_end = 3
        await first.leave(clean=False)

    async def run() -> None:
        attempt = Attempt(two_logs, policies=Policies(on_data_gap=policy))
        problem = await attempt.own()
        event = attempt.events[0]
        assert (event.kind, event.topic, event.partition) == (EventKind.DATA_GAP, *two_logs.at)
        assert (event.offset_first, event.offset_last) == (3, 8)
        if policy == "fail":
            assert isinstance(problem, PartitionStopped)
            assert problem.facts["event"] == EventKind.DATA_GAP
        else:
            assert problem is None
            assert attempt.track.upstream_next == 9

    in_loop(fill())
    delete_records(source_cluster.bootstrap, two_logs.at.topic, {0: 9})
    in_loop(run())


def test_invariant_c_with_transactions_what_a_dead_attempt_left_open_is_committed_and_proved(
    in_loop: InLoop, two_logs: TwoLogs, target_cluster: ClusterOfBrokers
) -> None:
    async def run() -> None:
        first = Attempt(two_logs, transactions=True)
        assert await first.own() is None
        await two_logs.carry(await two_logs.write(3), first.writer, 0, transactional=True)
        assert end_offsets(target_cluster.bootstrap, two_logs.remote.topic, committed=True)[0] == (0, 0)

        second = Attempt(two_logs, transactions=True)
        await second.recovery.finish_own_transaction(Deadline(DEADLINE_S))
        assert await second.own() is None
        assert second.track.upstream_next == 3
        visible = end_offsets(target_cluster.bootstrap, two_logs.remote.topic, committed=True)[0]
        assert visible == (0, 5)  # three records, their commit, the fence's marker

        # Another lane finishes a sibling's transaction in the same way.
        await two_logs.carry(await two_logs.write(2), second.writer, 0, transactional=True)
        other = Attempt(two_logs, lane=1, generation=2, transactions=True)
        await other.recovery.finish_own_transaction(Deadline(DEADLINE_S))
        assert await other.own() is None
        assert other.track.upstream_next == 5

    in_loop(run())


def test_what_a_killed_lane_carried_and_did_not_book_is_booked_by_its_successor(
    in_loop: InLoop, two_logs: TwoLogs, source_cluster: ClusterOfBrokers
) -> None:
    """The position may be ahead of the ledger: then the walk begins where the ledger ends, and its page goes on."""

    async def run() -> None:
        one, other = await two_logs.write(3), await two_logs.write(4)
        first = Attempt(two_logs)
        assert await first.own() is None
        assert await first.committed() == first.recovery.signed(first.track)
        await two_logs.carry(one, first.writer, 0)
        await two_logs.carry(other, first.writer, 3)
        position = first.recovery.signed(first.track)
        booked = Booked(3, 3, (0, 0), (0, 2, 0))
        await first.commit(replace(position, upstream_next=7, downstream_end=7, booked=booked))

        second = Attempt(two_logs)
        assert await second.own() is None
        page = second.track.ledger.open_page(7)
        assert (page.upstream_start, list(page.runs())) == (0, [(0, 6, 0, 6, 7)])
        assert second.track.unbooked
        committed = await second.committed()
        assert committed is not None
        assert committed.booked == booked  # until it is in the topic

        await second.commit(replace(committed, booked=booked))
        delete_records(source_cluster.bootstrap, two_logs.at.topic, {two_logs.at.partition: 5})
        third = Attempt(two_logs)
        assert await third.own() is None
        page = third.track.ledger.open_page(7)  # the source no longer has all of it: begins where the position is
        assert (page.upstream_start, list(page.runs())) == (7, [])
        assert third.track.unbooked
        assert third.events == []

    in_loop(run())


def test_a_clean_end_goes_on_with_the_ledgers_last_page(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        batch = await two_logs.write(3)
        first = Attempt(two_logs)
        assert await first.own() is None
        await two_logs.carry(batch, first.writer, 0)
        position = replace(first.recovery.signed(first.track, clean=True), upstream_next=3, downstream_end=3)
        await first.commit(replace(position, booked=Booked(3, 3, (0, 0), (0, 2, 0))))
        second = Attempt(two_logs)
        assert await second.own() is None
        assert list(second.track.ledger.open_page(3).runs()) == [(0, 2, 0, 2, 3)]
        assert not second.track.unbooked  # nothing new to tell

        await second.commit(
            replace(position, booked=Booked(2, 2, (0, 0), (0, 1, 0)))
        )  # a ledger that does not reach it
        third = Attempt(two_logs)
        assert await third.own() is None
        assert third.track.ledger.open_page(3).upstream_start == 3
        assert third.track.unbooked

    in_loop(run())
