"""Recovery where others write to the remote topic too (equal names on both sides), on real brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from test_recovery import Attempt

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.writer import Writer, obtain_writer
from mirrorspark.events import EventKind
from mirrorspark.names import Flow
from mirrorspark.offsets.writer_registry import MirrorWriter
from mirrorspark.pipeline.company import step_past_company
from mirrorspark.pipeline.origin import OriginCheck
from mirrorspark.pipeline.preparation import carry_records
from mirrorspark.pipeline.recovery import Recovery
from mirrorspark.pipeline.track import CarriedBatch, Track
from mirrorspark.pipeline.writers import FlowWriters, WriterRegistry
from mirrorspark.wire.record_batch import Batch, split_batches, stamp
from mirrorspark.wire.records import encode_batch

if TYPE_CHECKING:
    from conftest import TwoLogs

InLoop = Callable[..., Any]
DEADLINE_S = 60.0


class InCompany(Attempt):
    """An attempt of a flow that keeps topic names."""

    def __init__(self, logs: TwoLogs, *, lane: int = 0, generation: int = 1, has_books: bool = False) -> None:
        super().__init__(logs, lane=lane, generation=generation)
        self.registry = WriterRegistry(logs.target, 1)
        self.recovery = Recovery(
            logs.source,
            logs.target,
            self.settings,
            lane=lane,
            generation=generation,
            positions=self.positions,
            remembered=self._remember,
            report=self.events.append,
            registry=self.registry,
            origin=OriginCheck(logs.source, self.settings, on_target=self.registry, report=self.events.append),
            has_books=lambda: has_books,
        )


async def _company_writes(logs: TwoLogs, like: Batch | None = None) -> int:
    """A local producer on the target appends two records, or the very bytes of a batch of the source; the log's end."""
    raw = bytearray(like.buffer) if like is not None else encode_batch(logs.records(2))
    if like is not None:
        (copy,) = split_batches(memoryview(raw), *logs.remote)
        stamp(copy, producer_id=-1, producer_epoch=-1, base_sequence=-1)
    await logs.append(logs.target, logs.remote, raw)
    return (await logs.target_batches())[-1].next_offset


async def _markers(logs: TwoLogs) -> int:
    return sum(batch.is_control for batch in await logs.target_batches())


def test_a_new_flow_begins_behind_what_others_wrote(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        await two_logs.write(3)
        end = await _company_writes(two_logs)
        for attempt in (InCompany(two_logs), InCompany(two_logs, generation=2, has_books=True)):
            assert await attempt.own() is None
            assert (attempt.track.upstream_next, attempt.track.downstream_end) == (0, end)
            assert attempt.events == []
            await attempt.positions.commit({two_logs.remote: (0, "")}, Deadline(DEADLINE_S))  # no longer ours: none
        assert await _markers(two_logs) == 0

    in_loop(run())


def test_what_others_wrote_is_never_taken_for_ours(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        one, other, third = [await two_logs.write(3) for _ in range(3)]
        first = InCompany(two_logs)
        assert await first.own() is None
        await two_logs.carry(one, first.writer, 0)
        await _company_writes(two_logs)
        await two_logs.carry(other, first.writer, 3)
        end = await _company_writes(two_logs, like=third)  # a local producer writes just what the source has next
        second = InCompany(two_logs)
        assert await second.own() is None
        assert second.track.upstream_next == 6
        assert second.track.downstream_end == end + 1  # and the marker
        runs = second.track.ledger.open_page(6).runs()
        assert [(run.upstream_first, run.downstream_first) for run in runs] == [(0, 0), (3, 5)]
        assert await second.refused(first.writer, 6)
        assert second.events == []

    in_loop(run())


def test_a_clean_end_with_company_behind_it_is_taken_up_without_a_marker(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        first = InCompany(two_logs)
        assert await first.own() is None
        await two_logs.carry(await two_logs.write(3), first.writer, 0)
        first.track.upstream_next = first.track.downstream_end = 3
        await first.leave()
        end = await _company_writes(two_logs)
        second = InCompany(two_logs)
        assert await second.own() is None
        assert (second.track.upstream_next, second.track.downstream_end) == (3, end)
        assert await _markers(two_logs) == 0

        # The same, but the one that signed off had been cut off: another attempt wrote behind its position.
        await two_logs.carry(await two_logs.write(2), second.writer, 0)
        await _company_writes(two_logs)
        second.track.upstream_next, second.track.downstream_end = 3, end
        await second.leave()
        third = InCompany(two_logs)
        assert await third.own() is None
        assert third.track.upstream_next == 5
        assert await _markers(two_logs) == 1
        assert third.events == []

    in_loop(run())


def test_every_lane_that_was_entered_counts_as_ours(in_loop: InLoop, two_logs: TwoLogs) -> None:
    """The position names one lane, another has written since; a reverse flow's batches on the source are not expected."""

    async def run() -> None:
        reverse = Flow("west", two_logs.at.topic)
        deadline = Deadline(DEADLINE_S)
        mirror = await obtain_writer(
            two_logs.source, f"__mirrorspark-{reverse}-0", transaction_timeout_ms=60_000, deadline=deadline
        )
        await WriterRegistry(two_logs.source, 1).enter(MirrorWriter(mirror.producer_id, reverse), deadline)
        named, unnamed = InCompany(two_logs, lane=1), InCompany(two_logs, lane=2)
        assert await named.own() is None
        await unnamed.recovery.obtain(deadline)
        await two_logs.carry(await two_logs.write(2), named.writer, 0)
        await _write_as(two_logs, mirror, 4)
        await _company_writes(two_logs)
        await FlowWriters(unnamed.registry, unnamed.settings.flow, 2, 1).enter(unnamed.writer, deadline)
        await two_logs.carry(await two_logs.write(2), unnamed.writer, 0)
        successor = InCompany(two_logs, lane=0, generation=2)
        assert await successor.own() is None
        assert successor.track.upstream_next == 8
        assert await successor.refused(named.writer, 2)
        assert await successor.refused(unnamed.writer, 2)
        assert successor.events == []

    in_loop(run())


async def _write_as(logs: TwoLogs, writer: Writer, count: int) -> None:
    """On the source, under a mirror's name."""
    raw = encode_batch(logs.records(count))
    (batch,) = split_batches(memoryview(raw), *logs.at)
    stamp(batch, producer_id=writer.producer_id, producer_epoch=writer.epoch, base_sequence=0)
    await logs.append(logs.source, logs.at, raw)


def test_without_books_but_with_an_earlier_life_both_logs_are_compared(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        deadline = Deadline(DEADLINE_S)
        first = InCompany(two_logs)
        await first.recovery.obtain(deadline)
        await FlowWriters(first.registry, first.settings.flow, 0, 1).enter(first.writer, deadline)
        await _company_writes(two_logs)
        await two_logs.carry(await two_logs.write(3), first.writer, 0)
        second = InCompany(two_logs, generation=2)
        assert await second.own() is None
        assert second.track.upstream_next == 3
        assert [event.kind for event in second.events] == [EventKind.POSITION_LOST]

    in_loop(run())


def _in_line(logs: TwoLogs, track: Track) -> CarriedBatch:
    carried = carry_records(logs.records(1), 0, 0, logs.at)
    carried.upstream_first = carried.upstream_last = track.queued_next
    track.accept(carried, transactional=False)
    return carried


def test_the_downstream_end_of_a_quiet_partition_goes_along(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        attempt = InCompany(two_logs)
        assert await attempt.own() is None
        track = attempt.track
        end = await _company_writes(two_logs)
        await step_past_company(two_logs.target, [track], Deadline(DEADLINE_S))
        assert (track.downstream_end, track.uncommitted) == (end, True)

        later = await _company_writes(two_logs)
        for hindrance in ("in_doubt", "blocked"):
            place = track if hindrance == "in_doubt" else track.queue
            setattr(place, hindrance, True)
            await step_past_company(two_logs.target, [track], Deadline(DEADLINE_S))
            setattr(place, hindrance, False)
        _in_line(two_logs, track)
        await step_past_company(two_logs.target, [track], Deadline(DEADLINE_S))
        assert track.downstream_end == end < later

    in_loop(run())
