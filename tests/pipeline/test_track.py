"""One partition on its way: what moves its position, what is booked, and the invariants that it defends."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirrorspark.cluster.buffer_pool import BufferPool, PooledBuffer
from mirrorspark.cluster.writer import Writer
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import LedgerRange
from mirrorspark.pipeline.preparation import carry_records
from mirrorspark.pipeline.track import CarriedBatch, Span, Track, TrackState
from mirrorspark.plan.lanes import Assignment
from mirrorspark.wire.record_batch import Batch, split_batches, verify_crc
from mirrorspark.wire.records import Record, encode_batch

AT = TopicPartition("orders", 3)
REMOTE = TopicPartition("east.orders", 3)
WRITER = Writer("__mirrorspark-east->west-0", 4_000, 9)
SEQUENCES = 2**31


def _track(upstream_next: int = 100, downstream_end: int = 40) -> Track:
    track = Track(Assignment(AT, "east.orders", "ab" * 16))
    track.begin(WRITER, upstream_next, downstream_end, 6)
    return track


def _records(first: int, count: int) -> list[Record]:
    return [Record(first + step, 1_700_000_000_000, b"key", b"value") for step in range(count)]


def _dense(first: int, count: int, *, held: PooledBuffer | None = None, leader_epoch: int = 7) -> CarriedBatch:
    data = encode_batch(_records(first, count))
    struct.pack_into(">q", data, 0, first)
    [batch] = split_batches(memoryview(data), *AT)
    return CarriedBatch(batch, (first, first + count - 1), leader_epoch, held)


def _with_holes(*offsets: int) -> CarriedBatch:
    return carry_records([_records(offset, 1)[0] for offset in offsets], 0, 7, AT)


def _accept(track: Track, *batches: CarriedBatch) -> None:
    for carried in batches:
        track.accept(carried, transactional=False)


def _send(track: Track) -> CarriedBatch:
    """As the appender does: from ``waiting`` to ``in_flight``."""
    carried = track.queue.waiting.popleft()
    assert isinstance(carried, CarriedBatch)
    track.queue.in_flight.append(carried)
    return carried


def _ranges(track: Track) -> list[LedgerRange]:
    page = track.ledger.open_page(track.upstream_next)
    return [LedgerRange(run.upstream_first, run.upstream_last, run.downstream_first) for run in page.runs()]


def _append(track: Track, base_offset: int) -> CarriedBatch:
    """The oldest batch is sent and acknowledged."""
    carried = _send(track)
    track.queue.in_flight.popleft()
    track.book(carried, base_offset)
    return carried


def _bytes_of(carried: CarriedBatch) -> Batch:
    """The batch as the target reads it."""
    [batch] = split_batches(carried.buffer, *REMOTE)
    verify_crc(batch, *REMOTE)
    return batch


# -- beginning ---------------------------------------------------------------------------------------------------------


def test_a_new_track_owns_nothing() -> None:
    track = Track(Assignment(AT, "east.orders", "ab" * 16))
    assert track.state is TrackState.OWNING
    assert (track.source, track.remote) == (AT, REMOTE)
    assert track.topic_id == b"\xab" * 16
    assert track.drained
    with pytest.raises(AssertionError):
        _accept(track, _dense(0, 1))


def test_a_source_without_topic_ids() -> None:
    assert Track(Assignment(AT, "east.orders", "")).topic_id == bytes(16)


def test_beginning_puts_the_track_at_its_proved_position() -> None:
    track = _track(100, 40)
    assert track.state is TrackState.CARRYING
    assert (track.fetch_next, track.upstream_next, track.downstream_end) == (100, 100, 40)
    assert (track.leader_epoch, track.fetched_epoch) == (6, 6)
    assert (track.next_sequence, track.acknowledged_sequence) == (0, 0)


def test_beginning_anew_starts_from_sequence_nought() -> None:
    track = _track()
    _accept(track, _dense(100, 5))
    _append(track, 40)
    track.queue.blocked = True
    track.begin(WRITER, 105, 46, 7)
    assert (track.next_sequence, track.acknowledged_sequence, track.queue.blocked) == (0, 0, False)


@pytest.mark.parametrize("sent", [False, True])
def test_invariant_b_nothing_is_left_over_from_an_earlier_attempt(sent: bool) -> None:
    track = _track()
    _accept(track, _dense(100, 5))
    if sent:
        _send(track)
    with pytest.raises(AssertionError, match="left over"):
        track.begin(WRITER, 100, 40, 6)


# -- accepting ---------------------------------------------------------------------------------------------------------


def test_accepted_batches_are_stamped_in_sequence() -> None:
    track = _track()
    batches = [_dense(100, 5), _with_holes(105, 107, 108), _dense(109, 1)]
    _accept(track, *batches)
    found = [_bytes_of(carried) for carried in batches]
    assert [(batch.producer_id, batch.producer_epoch, batch.base_sequence) for batch in found] == [
        (4_000, 9, 0),
        (4_000, 9, 5),
        (4_000, 9, 8),
    ]
    assert not any(batch.is_transactional for batch in found)
    assert [carried.batch_sequence for carried in batches] == [0, 5, 8]
    assert track.next_sequence == 9
    assert list(track.queue.waiting) == batches
    assert track.unacked_bytes == sum(carried.size for carried in batches)
    assert not track.drained


def test_accepting_moves_no_position() -> None:
    """Invariant D: receipts do."""
    track = _track(100, 40)
    _accept(track, _dense(100, 5))
    assert (track.upstream_next, track.downstream_end, track.records, track.uncommitted) == (100, 40, 0, False)
    assert not _ranges(track)


def test_a_batch_of_a_transaction_is_stamped_as_one() -> None:
    track = _track()
    carried = _dense(100, 5)
    track.accept(carried, transactional=True)
    assert _bytes_of(carried).is_transactional


def test_sequences_wrap_to_nought() -> None:
    track = _track()
    track.next_sequence = SEQUENCES - 3
    batches = [_dense(100, 3), _dense(103, 2)]
    _accept(track, *batches)
    assert [carried.batch_sequence for carried in batches] == [SEQUENCES - 3, 0]
    track.next_sequence = SEQUENCES - 1
    crossing = _dense(105, 4)  # begins before the wrap and ends after it
    _accept(track, crossing)
    assert (crossing.batch_sequence, track.next_sequence) == (SEQUENCES - 1, 3)
    for base_offset in (40, 43, 45):
        _append(track, base_offset)
    assert track.acknowledged_sequence == 3


def test_invariant_a_no_batch_from_before_the_position() -> None:
    track = _track(100)
    with pytest.raises(AssertionError, match="invariant A"):
        _accept(track, _dense(99, 5))


# -- booking -----------------------------------------------------------------------------------------------------------


def test_a_receipt_moves_the_position() -> None:
    track = _track(100, 40)
    _accept(track, _dense(100, 5), _dense(105, 2))
    size = _append(track, 40).size
    assert (track.upstream_next, track.downstream_end, track.acknowledged_sequence) == (105, 45, 5)
    assert (track.records, track.bytes, track.leader_epoch) == (5, size, 7)
    assert (track.uncommitted, track.unbooked) == (True, True)
    _append(track, 45)
    assert (track.upstream_next, track.downstream_end, track.unacked_bytes) == (107, 47, 0)
    assert track.drained


def test_invariant_a_receipts_come_in_order() -> None:
    track = _track()
    first, second = _dense(100, 5), _dense(105, 2)
    _accept(track, first, second)
    track.book(second, 40)
    with pytest.raises(AssertionError, match="invariant A"):
        track.book(first, 42)


def test_a_receipt_is_booked_once() -> None:
    track = _track()
    carried = _dense(100, 5)
    _accept(track, carried)
    track.book(carried, 40)
    with pytest.raises(AssertionError, match="invariant A"):
        track.book(carried, 40)


def test_a_receipt_lets_go_of_the_answers_buffer() -> None:
    buffer = BufferPool(1 << 20, 1).take(1)
    buffer.hold()
    track = _track()
    _accept(track, _dense(100, 5, held=buffer))
    _append(track, 40)
    assert buffer.users == 1


def test_dense_receipts_make_one_range() -> None:
    track = _track(100, 40)
    _accept(track, _dense(100, 5), _dense(105, 2), _dense(107, 3))
    for base_offset in (40, 45, 47):
        _append(track, base_offset)
    assert _ranges(track) == [LedgerRange(100, 109, 40)]


def test_a_hole_on_the_source_opens_a_range() -> None:
    track = _track(100, 40)
    _accept(track, _dense(100, 5), _dense(108, 2))
    _append(track, 40)
    _append(track, 45)
    assert _ranges(track) == [LedgerRange(100, 104, 40), LedgerRange(108, 109, 45)]


def test_a_marker_on_the_target_opens_a_range() -> None:
    track = _track(100, 40)
    _accept(track, _dense(100, 5), _dense(105, 2))
    _append(track, 40)
    _append(track, 46)
    assert _ranges(track) == [LedgerRange(100, 104, 40), LedgerRange(105, 106, 46)]
    assert track.downstream_end == 48


def test_holes_inside_a_batch_open_ranges() -> None:
    track = _track(100, 40)
    _accept(track, _dense(100, 2), _with_holes(102, 103, 106, 110, 111), _dense(112, 1))
    for base_offset in (40, 42, 47):
        _append(track, base_offset)
    assert _ranges(track) == [LedgerRange(100, 103, 40), LedgerRange(106, 106, 44), LedgerRange(110, 112, 45)]
    assert track.downstream_end == 48


def test_a_span_sums_up_since_the_last_receipt_row() -> None:
    track = _track(100, 40)
    _accept(track, _dense(100, 5), _with_holes(106, 108))
    size = _append(track, 40).size + _append(track, 45).size
    span = track.span
    assert isinstance(span, Span)
    assert (span.upstream_first, span.upstream_last, span.downstream_first) == (100, 108, 40)
    assert (span.records, span.batches, span.bytes) == (7, 2, size)
    track.span = None
    _accept(track, _dense(109, 1))
    _append(track, 47)
    assert track.span is not None
    assert (track.span.upstream_first, track.span.downstream_first, track.span.batches) == (109, 47, 1)


# -- skipping ----------------------------------------------------------------------------------------------------------


def test_a_skip_with_nothing_in_line_moves_at_once() -> None:
    track = _track(100, 40)
    track.skip_to(103)
    assert (track.upstream_next, track.downstream_end, track.uncommitted, track.unbooked) == (103, 40, True, True)


def test_a_skip_never_goes_back() -> None:
    track = _track(100)
    track.skip_to(90)
    assert (track.upstream_next, track.uncommitted) == (100, False)
    _accept(track, _dense(100, 5))
    track.skip_to(102)
    _append(track, 40)
    assert track.upstream_next == 105


@pytest.mark.parametrize("sent", [0, 1, 2])
def test_a_skip_goes_with_the_last_batch_in_line(sent: int) -> None:
    """What lies behind it is passed only when what lies before it is on the target."""
    track = _track(100, 40)
    _accept(track, _dense(100, 5), _dense(105, 2))
    flying = [_send(track) for _ in range(sent)]
    track.skip_to(110)
    assert track.upstream_next == 100
    flying += [_send(track) for _ in range(2 - sent)]
    track.queue.in_flight.popleft()
    track.book(flying[0], 40)
    assert track.upstream_next == 105
    track.queue.in_flight.popleft()
    track.book(flying[1], 45)
    assert track.upstream_next == 110
    assert _ranges(track) == [LedgerRange(100, 106, 40)]


def test_a_batch_after_a_skip_follows_it() -> None:
    track = _track(100, 40)
    _accept(track, _dense(100, 2))
    track.skip_to(103)
    _accept(track, _dense(103, 2))
    _append(track, 40)
    _append(track, 42)
    assert track.upstream_next == 105
    assert _ranges(track) == [LedgerRange(100, 101, 40), LedgerRange(103, 104, 42)]


# -- starting over -----------------------------------------------------------------------------------------------------


def test_a_dropped_queue_is_fetched_again_from_the_position() -> None:
    pool = BufferPool(1 << 20, 1)
    buffer = pool.take(1)
    for _ in range(3):
        buffer.hold()
    track = _track(100, 40)
    _accept(track, *(_dense(first, 5, held=buffer) for first in (100, 105, 110)))
    _append(track, 40)
    _send(track)
    track.fetch_next, track.fetched_epoch = 115, 8
    track.drop_queue()
    assert track.drained
    assert (track.fetch_next, track.upstream_next, track.fetched_epoch, track.unacked_bytes) == (105, 105, 7, 0)
    assert buffer.users == 1


def test_a_queue_is_not_dropped_while_its_bytes_are_on_the_wire() -> None:
    track = _track()
    _accept(track, _dense(100, 5))
    _send(track)
    track.queue.outstanding = 1
    with pytest.raises(AssertionError, match="on the wire"):
        track.drop_queue()


def test_waiting_batches_are_numbered_anew() -> None:
    track = _track(100, 40)
    _accept(track, _dense(100, 5), _dense(105, 4), _dense(109, 2))
    _append(track, 40)
    whole = track.queue.waiting.popleft()
    assert isinstance(whole, CarriedBatch)
    for half in (_dense(107, 2), _dense(105, 2)):
        track.queue.waiting.appendleft(half)
    track.restamp(whole.batch_sequence, transactional=False)
    waiting = [carried for carried in track.queue.waiting if isinstance(carried, CarriedBatch)]
    assert [_bytes_of(carried).base_sequence for carried in waiting] == [5, 7, 9]
    assert [carried.upstream_first for carried in waiting] == [105, 107, 109]
    assert (track.next_sequence, track.unacked_bytes) == (11, sum(carried.size for carried in waiting))


def test_batches_in_flight_are_never_renumbered() -> None:
    track = _track()
    _accept(track, _dense(100, 5))
    _send(track)
    with pytest.raises(AssertionError):
        track.restamp(0, transactional=False)


def test_lag() -> None:
    track = _track(100)
    assert track.lag_records == 0
    track.high_watermark = 130
    assert track.lag_records == 30
    track.high_watermark = 90
    assert track.lag_records == 0


# -- all together ------------------------------------------------------------------------------------------------------

steps = st.lists(
    st.tuples(st.sampled_from(["dense", "holes", "skip", "append"]), st.integers(1, 5), st.integers(0, 3)), max_size=30
)


@settings(deadline=None, max_examples=100)
@given(steps)
def test_ranges_say_where_every_record_went(script: list[tuple[str, int, int]]) -> None:
    track = _track(100, 40)
    upstream, downstream = 100, 40
    landed: dict[int, int] = {}

    def append(markers: int) -> None:
        nonlocal downstream
        downstream += markers
        carried = _append(track, downstream)
        offsets = [
            at
            for first, count in carried.runs or [(carried.upstream_first, carried.batch.record_count)]
            for at in range(first, first + count)
        ]
        landed.update(zip(offsets, range(downstream, downstream + len(offsets)), strict=True))
        downstream += len(offsets)

    for kind, number, extra in script:
        if kind == "dense":
            _accept(track, _dense(upstream + extra, number))
            upstream += extra + number
        elif kind == "holes":
            _accept(track, _with_holes(*(upstream + 2 * step for step in range(number))))
            upstream += 2 * number
        elif kind == "skip":
            upstream += number
            track.skip_to(upstream)
        elif track.queue.waiting:
            append(extra)
    while track.queue.waiting:
        append(0)
    told = {
        span.upstream_first + step: span.downstream_first + step
        for span in _ranges(track)
        for step in range(span.upstream_last - span.upstream_first + 1)
    }
    assert told == landed
    assert track.records == len(landed)
    assert track.unacked_bytes == 0
    assert max(landed, default=99) < track.upstream_next <= upstream
    assert track.downstream_end == downstream
