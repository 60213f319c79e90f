"""Every offset of the source is taken once on the target: by its record, or by nothing that anybody sees.

A source log of plain and transactional batches, markers, aborted data and missing offsets is prepared and aligned in
answers of any size, and played onto a target that gives out one offset after the other, as a broker does. It may be cut off
anywhere, also inside a hole, and goes on where the target's log ends.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.cluster.buffer_pool import BufferPool
from mirrorspark.cluster.writer import Writer
from mirrorspark.errors import CorruptBatch
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.parity import Parity
from mirrorspark.pipeline.holes import AlignedQueue, Hole, align, hole_instead
from mirrorspark.pipeline.preparation import prepare
from mirrorspark.pipeline.track import CarriedBatch, Track
from mirrorspark.plan.lanes import Assignment
from mirrorspark.wire.record_batch import Batch, split_batches
from mirrorspark.wire.records import Record, decode_records
from wire.batches import thorough, v2_batch

AT = TopicPartition("orders", 3)
NOW = 1_700_000_000_000
TRANSACTIONAL, CONTROL = 0x10, 0x20
ABORT = struct.pack(">hh", 0, 0)
COMMIT = struct.pack(">hh", 0, 1)


@dataclass
class SourceLog:
    """Written batch by batch; knows what a consumer who reads committed is to see."""

    start: int = 0
    batches: list[bytearray] = field(default_factory=list)
    records: list[tuple[int, Record]] = field(default_factory=list)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer, first offset, its marker's
    open: dict[int, int] = field(default_factory=dict)
    end: int = 0

    def __post_init__(self) -> None:
        self.end = self.start

    def write(self, kept: Sequence[bool], producer: int = -1) -> None:
        """A batch of as many offsets; those that are not kept were taken out. ``producer``: transactional, of this id."""
        records = [Record(self.end + i, NOW, b"k", b"%d" % (self.end + i)) for i, is_kept in enumerate(kept) if is_kept]
        self.batches.append(
            v2_batch(
                records,
                base_offset=self.end,
                last_offset=self.end + len(kept) - 1,
                flags=TRANSACTIONAL if producer >= 0 else 0,
                producer=(producer, 0, 0),
            )
        )
        if producer >= 0:
            self.open.setdefault(producer, self.end)
        self.records += [(producer, record) for record in records]
        self.end += len(kept)

    def finish(self, producer: int, *, commit: bool) -> None:
        key = COMMIT if commit else ABORT
        marker = Record(self.end, NOW, key, b"\0\0\0\0\0\0")
        self.batches.append(v2_batch([marker], flags=TRANSACTIONAL | CONTROL, producer=(producer, 0, -1)))
        first = self.open.pop(producer, None)
        if not commit and first is not None:
            self.aborted.append((producer, first, self.end))
            self.records = [one for one in self.records if one[0] != producer or one[1].offset < first]
        self.end += 1

    def skip(self, count: int) -> None:
        """Offsets without a batch."""
        self.end += count

    @property
    def visible(self) -> list[tuple[int, bytes]]:
        return [(record.offset, record.value or b"") for _, record in self.records]

    def fetch(self, offset: int, most: int) -> list[Batch]:
        """Some batches from the one with this offset on, in bytes of their own."""
        found = [batch for raw in self.batches for batch in split_batches(memoryview(bytearray(raw)), *AT)]
        return [batch for batch in found if batch.last_offset >= offset][:most]

    def aligned(self, offset: int, most: int) -> list[CarriedBatch]:
        """Aborted transactions are listed with every answer that they reach into, as brokers do."""
        aborted = tuple((producer, first) for producer, first, last in self.aborted if last >= offset)
        items = prepare(self.fetch(offset, most), offset, AT, aborted=aborted, with_aborted=True)
        return list(align(items, offset, AT))


@dataclass
class TargetLog:
    """Gives out offsets; ``visible`` are the records that a consumer who reads committed sees."""

    end: int
    visible: list[tuple[int, bytes]] = field(default_factory=list)

    def append(self, batch: Batch, *, hidden: bool = False) -> None:
        values = [record.value or b"" for record in decode_records(batch, *AT)]
        if not hidden:
            self.visible += [(self.end + i, value) for i, value in enumerate(values)]
        self.end += len(values)

    def play(self, item: CarriedBatch) -> None:
        """As ``hole_filling`` and the carrying loop do it."""
        assert item.upstream_first == self.end
        if not isinstance(item, Hole):
            self.append(item.batch)
            return
        while item.markers:
            expected = item.step_next
            for one in item.batches:
                self.append(one.batch, hidden=True)
            self.end += 1
            assert self.end == expected
            item.shrink()
            assert item.upstream_first == self.end
        assert self.end == item.upstream_next

    def die_inside(self, hole: Hole, batches: int) -> None:
        """Some of its data was appended; then whoever comes next ends the transaction, which puts its marker there."""
        for one in hole.batches[:batches]:
            self.append(one.batch, hidden=True)
        self.end += 1


@st.composite
def source_logs(draw: st.DrawFn) -> SourceLog:
    log = SourceLog(draw(st.sampled_from([0, 5, 7_000_000])))
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["plain", "transactional", "transactional", "commit", "abort", "skip", "cut"]))
        producer = draw(st.integers(1, 3))
        if kind == "plain":
            log.write([True] * draw(st.integers(1, 4)))
        elif kind == "transactional":
            log.write([True] * draw(st.integers(1, 4)), producer)
        elif kind in ("commit", "abort"):
            log.finish(producer, commit=kind == "commit")
        elif kind == "skip":
            log.skip(draw(st.integers(1, 3)))
        else:
            log.write(draw(st.lists(st.booleans(), min_size=1, max_size=6)))
    for producer in list(log.open):  # read committed gives nothing of what is still open
        log.finish(producer, commit=draw(st.booleans()))
    log.write([True])
    return log


@thorough
@given(log=source_logs(), most=st.integers(1, 6))
def test_each_offset_is_taken_once_and_each_record_keeps_its_own(log: SourceLog, most: int) -> None:
    target = TargetLog(log.start)
    while target.end < log.end:
        for item in log.aligned(target.end, most):
            target.play(item)
    assert target.end == log.end
    assert target.visible == log.visible


@thorough
@given(log=source_logs(), seed=st.integers(0, 2**32))
def test_cut_off_anywhere_it_goes_on_where_the_targets_log_ends(log: SourceLog, seed: int) -> None:
    dice = random.Random(seed)
    target = TargetLog(log.start)
    while target.end < log.end:
        items = log.aligned(target.end, dice.randint(1, 6))
        survived = dice.randint(0, len(items))
        for item in items[:survived]:
            target.play(item)
        if survived < len(items) and isinstance(hole := items[survived], Hole):
            target.die_inside(hole, dice.randint(0, len(hole.batches)))
    assert target.end == log.end
    assert target.visible == log.visible


def test_aborted_data_goes_unopened_where_its_marker_has_room() -> None:
    log = SourceLog()
    log.write([True] * 3)
    log.write([True] * 2, producer=1)
    log.write([True] * 4, producer=1)
    log.finish(1, commit=False)
    log.write([True])
    first, hole, last = log.aligned(0, 10)
    assert (first.upstream_first, last.upstream_first) == (0, 10)
    assert isinstance(hole, Hole)
    assert (hole.upstream_first, hole.upstream_next, hole.markers) == (3, 10, 1)
    assert [one.batch.record_count for one in hole.batches] == [2, 4]
    assert all(one.is_aborted and one.runs is None for one in hole.batches)


def test_aborted_data_without_room_gives_its_last_offset_to_the_marker() -> None:
    log = SourceLog()
    log.write([True] * 3, producer=1)
    log.write([True] * 2)  # somebody else's, before the end of the transaction
    log.finish(1, commit=False)
    hole, plain, marker = log.aligned(0, 10)
    assert isinstance(hole, Hole)
    assert isinstance(marker, Hole)
    assert [one.batch.record_count for one in hole.batches] == [2]
    assert (hole.upstream_next, plain.upstream_first, plain.upstream_next) == (3, 3, 5)
    assert (marker.upstream_first, marker.upstream_next, marker.batches) == (5, 6, [])


def test_nothing_is_held_for_what_was_left_out() -> None:
    """Memory of an answer is given back when its last batch is through, also where the answer is damaged."""
    log = SourceLog()
    log.write([True] * 3, producer=1)
    log.write([True])
    log.finish(1, commit=False)
    pool = BufferPool(100, 1)
    held = pool.take(100)
    items = prepare(log.fetch(0, 10), 0, AT, aborted=((1, 0),), held=held, with_aborted=True)
    for item in align(items, 0, AT):
        item.release()
    held.release()
    assert pool.live_bytes == 0

    held = pool.take(100)
    batches = log.fetch(0, 10)
    batches[1].buffer[-1] ^= 1
    with pytest.raises(CorruptBatch):
        list(align(prepare(batches, 0, AT, aborted=((1, 0),), held=held, with_aborted=True), 0, AT))
    held.release()
    assert pool.live_bytes == 0


# -- in line -----------------------------------------------------------------------------------------------------------


def _track(log: SourceLog) -> Track:
    track = Track(Assignment(AT, "east.orders", ""))
    track.queue = AlignedQueue(track.remote)
    track.begin(Writer("lane", 7, 3), log.start, log.start, -1)
    track.parity, track.identical = Parity(log.start), True
    for item in log.aligned(log.start, 100):
        track.accept(item, transactional=False)
    return track


def _three() -> SourceLog:
    """A record, a marker, a record, two markers."""
    log = SourceLog(100)
    log.write([True])
    log.finish(1, commit=True)
    log.write([True])
    log.finish(1, commit=True)
    log.finish(2, commit=True)
    return log


def test_what_is_behind_a_hole_waits_for_it() -> None:
    track = _track(_three())
    queue = track.queue
    assert isinstance(queue, AlignedQueue)
    assert track.queued_end == track.queued_next == 105
    assert queue.sendable()
    sent = queue.waiting.popleft()
    assert isinstance(sent, CarriedBatch)
    track.book(sent, 100)
    assert not queue.sendable()
    hole = queue.first_hole
    assert hole is not None
    track.book_hole(hole.step_next)
    queue.waiting.popleft()
    assert queue.sendable()
    assert (track.upstream_next, track.downstream_end) == (102, 102)
    page = track.ledger.open_page(102)
    assert [(run.upstream_first, run.upstream_last, run.downstream_first) for run in page.runs()][-1][:2] == (100, 101)


def test_when_parity_is_lost_holes_are_left_out_and_the_position_steps_over_them() -> None:
    track = _track(_three())
    first = track.queue.waiting.popleft()
    assert isinstance(first, CarriedBatch)
    track.book(first, 103)
    track.lose_parity(100)
    assert track.parity == Parity(100, 100)
    assert (track.upstream_next, track.downstream_end) == (102, 104)  # over the marker behind it
    (last,) = track.queue.waiting
    assert isinstance(last, CarriedBatch)
    assert (last.upstream_first, last.upstream_next) == (102, 105)
    assert track.queue.sendable()
    track.queue.waiting.popleft()
    track.book(last, 104)
    assert (track.upstream_next, track.downstream_end) == (105, 105)
    assert track.unacked_bytes == 0


def test_a_batch_that_is_left_out_leaves_a_hole() -> None:
    track = _track(_three())
    batch = track.queue.waiting[0]
    assert isinstance(batch, CarriedBatch)
    hole = hole_instead(batch)
    assert (hole.upstream_first, hole.upstream_next, hole.markers, hole.size) == (100, 101, 1, 0)
