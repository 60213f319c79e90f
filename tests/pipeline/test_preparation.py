"""Look, don't open: which batches go as they are, which are re-encoded, which are left out."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirrorspark.cluster.buffer_pool import BufferPool
from mirrorspark.errors import CorruptBatch
from mirrorspark.names import TopicPartition
from mirrorspark.pipeline.preparation import carry_records, goes_unopened, prepare
from mirrorspark.pipeline.track import CarriedBatch
from mirrorspark.wire.record_batch import Batch, body, split_batches, stamp, verify_crc
from mirrorspark.wire.records import Record, decode_records, encode_batch
from wire.batches import CODECS, legacy_message, legacy_wrapper, v2_batch

AT = TopicPartition("orders", 3)
NOW = 1_700_000_000_000
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20
LEADER_EPOCH = 7  # as tests/wire writes it


def _records(*offsets: int) -> list[Record]:
    return [Record(at, NOW + at, b"key %d" % at, b"value", ((b"h", b"%d" % at),)) for at in offsets]


def _dense(first: int, count: int, *, codec: int = 0) -> bytearray:
    """What our own encoder writes, put at its offset as a broker does: outside the checksum."""
    data = encode_batch(_records(*range(first, first + count)), codec=codec)
    struct.pack_into(">qii", data, 0, first, len(data) - 12, LEADER_EPOCH)
    return data


def _batches(*datas: bytes | bytearray) -> list[Batch]:
    return split_batches(memoryview(bytearray(b"".join(datas))), *AT)


def _prepare(
    *datas: bytes | bytearray, position: int = 0, aborted: tuple[tuple[int, int], ...] = ()
) -> list[CarriedBatch | int]:
    return list(prepare(_batches(*datas), position, AT, aborted=aborted))


def _only(*datas: bytes | bytearray, position: int = 0) -> CarriedBatch:
    [carried] = _prepare(*datas, position=position)
    assert isinstance(carried, CarriedBatch)
    return carried


def _contents(carried: CarriedBatch) -> list[Record]:
    """The records as they go out, with the upstream offsets that the carried batch claims for them."""
    batch = carried.batch
    records = decode_records(batch, *AT)
    runs = carried.runs or [(carried.upstream_first, len(records))]
    offsets = [first + step for first, count in runs for step in range(count)]
    return [record._replace(offset=at) for record, at in zip(records, offsets, strict=True)]


def _span(carried: CarriedBatch) -> tuple[int, int, int]:
    return carried.upstream_first, carried.upstream_last, carried.upstream_next


def _assert_sendable(carried: CarriedBatch) -> None:
    """What a broker asks of a producer's batch."""
    stamp(carried.batch, producer_id=1, producer_epoch=0, base_sequence=0)
    [batch] = split_batches(carried.batch.buffer, *AT)
    verify_crc(batch, *AT)
    assert not batch.has_holes
    assert not batch.is_log_append_time
    assert (batch.magic, batch.base_offset) == (2, 0)
    assert carried.size == len(carried.buffer) == batch.size


# -- unopened ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
def test_a_dense_batch_goes_unopened(codec: int) -> None:
    [batch] = _batches(_dense(100, 5, codec=codec))
    before = bytes(body(batch))
    [carried] = prepare([batch], 100, AT)
    assert isinstance(carried, CarriedBatch)
    assert carried.batch is batch
    assert carried.buffer is batch.buffer
    assert _span(carried) == (100, 104, 105)
    assert (carried.runs, carried.leader_epoch, carried.size) == (None, LEADER_EPOCH, batch.size)
    _assert_sendable(carried)
    assert bytes(body(batch)) == before


def test_a_batch_of_a_transaction_goes_unopened_too() -> None:
    [batch] = _batches(v2_batch(_records(100, 101), flags=TRANSACTIONAL, producer=(5, 0, 0)))
    [carried] = prepare([batch], 0, AT)
    assert isinstance(carried, CarriedBatch)
    assert carried.batch is batch


def test_several_batches_come_in_order() -> None:
    items = _prepare(_dense(100, 5), _dense(105, 1), _dense(106, 3))
    assert [_span(item) for item in items if isinstance(item, CarriedBatch)] == [
        (100, 104, 105),
        (105, 105, 106),
        (106, 108, 109),
    ]


def test_an_unopened_batch_holds_its_answers_buffer_and_a_re_encoded_one_counts_its_own_bytes() -> None:
    pool = BufferPool(1 << 20, 1)
    buffer = pool.take(1)
    items = list(prepare(_batches(_dense(100, 5), v2_batch(_records(105, 107))), 0, AT, held=buffer))
    unopened, reencoded = (item for item in items if isinstance(item, CarriedBatch))
    assert unopened.held is buffer
    assert buffer.users == 2
    assert pool.live_bytes == 1 + reencoded.size
    assert reencoded.held is not None
    reencoded.held.release()
    assert pool.live_bytes == 1


@pytest.mark.parametrize(
    ("data", "position", "unopened"),
    [
        (_dense(100, 5), 100, True),
        (_dense(100, 5), 0, True),
        (_dense(100, 5), 101, False),
        (v2_batch(_records(100, 102)), 0, False),
        (v2_batch(_records(100), last_offset=101), 0, False),
        (v2_batch(_records(100), flags=LOG_APPEND_TIME), 0, False),
        (v2_batch([], base_offset=100, last_offset=104), 0, False),
        (legacy_message(_records(100)[0], magic=1), 0, False),
    ],
)
def test_reasons_to_open_a_batch(data: bytearray, position: int, unopened: bool) -> None:
    [batch] = _batches(data)
    assert goes_unopened(batch, position) == unopened


# -- re-encoded --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
def test_holes_are_closed_and_remembered_as_runs(codec: int) -> None:
    records = _records(100, 101, 104, 105, 106, 110)
    carried = _only(v2_batch(records, codec=codec, last_offset=112))
    assert carried.runs == [(100, 2), (104, 3), (110, 1)]
    assert _span(carried) == (100, 110, 113)
    assert (carried.batch.record_count, carried.batch.codec, carried.leader_epoch) == (6, codec, LEADER_EPOCH)
    assert _contents(carried) == records
    _assert_sendable(carried)


@pytest.mark.parametrize(
    ("offsets", "base_offset", "last_offset", "span"),
    [
        ((100, 101, 102), 100, 105, (100, 102, 106)),  # the last records are gone
        ((102, 103), 100, 103, (102, 103, 104)),  # the first ones are
        ((102,), 100, 105, (102, 102, 106)),
    ],
)
def test_holes_at_the_ends_leave_one_run(
    offsets: tuple[int, ...], base_offset: int, last_offset: int, span: tuple[int, int, int]
) -> None:
    carried = _only(v2_batch(_records(*offsets), base_offset=base_offset, last_offset=last_offset))
    assert carried.runs is None
    assert _span(carried) == span
    assert _contents(carried) == _records(*offsets)


def test_a_batch_that_compaction_emptied_is_left_out() -> None:
    assert _prepare(v2_batch([], base_offset=100, last_offset=104)) == [105]


def test_append_time_becomes_create_time() -> None:
    """Consumers go on seeing the time that they saw on the source."""
    carried = _only(v2_batch(_records(100, 101), flags=LOG_APPEND_TIME, max_timestamp=NOW + 9_999))
    assert carried.runs is None
    assert [record.timestamp for record in _contents(carried)] == [NOW + 9_999] * 2
    assert carried.batch.max_timestamp == NOW + 9_999
    _assert_sendable(carried)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("wrapped", [False, True])
def test_old_formats_are_re_encoded(magic: int, wrapped: bool) -> None:
    records = [
        record._replace(headers=(), timestamp=record.timestamp if magic else -1) for record in _records(100, 101)
    ]
    if wrapped:
        items = _prepare(legacy_wrapper(records, magic=magic, codec=1))
    else:
        items = _prepare(*(legacy_message(record, magic=magic) for record in records))
    carried = [item for item in items if isinstance(item, CarriedBatch)]
    assert [record for one in carried for record in _contents(one)] == records
    assert all(one.leader_epoch == -1 and one.runs is None for one in carried)
    assert carried[-1].upstream_next == 102
    for one in carried:
        _assert_sendable(one)


def test_a_wrapped_old_batch_is_cut_at_the_position() -> None:
    records = [record._replace(headers=()) for record in _records(100, 101, 103)]
    carried = _only(legacy_wrapper(records, magic=1, codec=1), position=101)
    assert carried.runs == [(101, 1), (103, 1)]
    assert _contents(carried) == records[1:]


def test_a_partly_wanted_batch_is_cut_at_the_position() -> None:
    carried = _only(_dense(100, 5, codec=3), position=102)
    assert _span(carried) == (102, 104, 105)
    assert (carried.runs, carried.batch.codec) == (None, 3)
    assert _contents(carried) == _records(102, 103, 104)
    _assert_sendable(carried)


def test_a_partly_wanted_batch_with_holes() -> None:
    carried = _only(v2_batch(_records(100, 101, 103, 104, 108)), position=101)
    assert carried.runs == [(101, 1), (103, 2), (108, 1)]
    assert _span(carried) == (101, 108, 109)


def test_a_partly_wanted_batch_with_nothing_left() -> None:
    assert _prepare(v2_batch(_records(100, 101), last_offset=110), position=105) == [111]


def test_a_batch_before_the_position_is_passed_over() -> None:
    assert [
        _span(item) for item in _prepare(_dense(100, 5), _dense(105, 2), position=105) if not isinstance(item, int)
    ] == [(105, 106, 107)]
    assert _prepare(_dense(100, 5), position=105) == []


def test_what_came_twice_goes_once() -> None:
    items = _prepare(_dense(100, 5), _dense(100, 5), _dense(103, 4))
    assert [_span(item) for item in items if isinstance(item, CarriedBatch)] == [(100, 104, 105), (105, 106, 107)]


# -- left out ----------------------------------------------------------------------------------------------------------


def _marker(at: int, producer: int, *, commit: bool) -> bytearray:
    record = Record(at, NOW, struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 0))
    return v2_batch([record], flags=TRANSACTIONAL | CONTROL, producer=(producer, 0, -1))


def _of_transaction(producer: int, *offsets: int) -> bytearray:
    return v2_batch(_records(*offsets), flags=TRANSACTIONAL, producer=(producer, 0, 0))


def _told(items: Sequence[CarriedBatch | int]) -> list[tuple[int, int] | int]:
    return [item if isinstance(item, int) else (item.upstream_first, item.upstream_last) for item in items]


@pytest.mark.parametrize("commit", [True, False])
def test_markers_are_left_out(commit: bool) -> None:
    assert _told(_prepare(_dense(100, 2), _marker(102, 5, commit=commit), _dense(103, 1))) == [
        (100, 101),
        103,
        (103, 103),
    ]


def test_aborted_data_is_left_out_to_its_marker() -> None:
    items = _prepare(
        _of_transaction(5, 100, 101),
        _of_transaction(6, 102),  # another producer's
        _dense(103, 1),  # nobody's
        _of_transaction(5, 104),
        _marker(105, 5, commit=False),
        _of_transaction(5, 106),  # the next transaction of the same producer
        _marker(107, 5, commit=True),
        aborted=((5, 100),),
    )
    assert _told(items) == [102, (102, 102), (103, 103), 105, 106, (106, 106), 108]


def test_without_a_list_of_aborted_ones_all_data_goes() -> None:
    items = _prepare(_of_transaction(5, 100, 101), _marker(102, 5, commit=False))
    assert _told(items) == [(100, 101), 103]


def test_a_marker_before_the_position_still_ends_its_transaction() -> None:
    datas = (
        _of_transaction(5, 100),
        _marker(101, 5, commit=False),
        _of_transaction(5, 102),
        _marker(103, 5, commit=True),
    )
    assert _told(_prepare(*datas, position=102, aborted=((5, 100),))) == [(102, 102), 104]


def test_what_is_to_be_left_out_is_passed_over_like_a_marker() -> None:
    datas = (
        _dense(100, 2),
        _of_transaction(5, 102, 103),
        v2_batch(_records(104, 107), producer=(5, 0, 0)),
        _dense(108, 1),
    )
    items = list(prepare(_batches(*datas), 0, AT, left_out=lambda batch: batch.producer_id == 5))
    assert _told(items) == [(100, 101), 104, 108, (108, 108)]


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "holes", "marker", "aborted"])
def test_a_damaged_batch_is_never_signed_anew(kind: str) -> None:
    data = {
        "dense": _dense(105, 2),
        "holes": v2_batch(_records(105, 108)),
        "marker": _marker(105, 6, commit=True),
        "aborted": _of_transaction(5, 105),
    }[kind]
    data[-1] ^= 1
    items = prepare(_batches(_dense(100, 5), data, _dense(120, 1)), 0, AT, aborted=((5, 105),))
    first = next(items)
    assert isinstance(first, CarriedBatch)
    with pytest.raises(CorruptBatch) as caught:
        next(items)
    assert (caught.value.facts["topic"], caught.value.facts["partition"]) == AT
    assert caught.value.facts["offset"] == 105


def test_damage_before_the_position_does_no_harm() -> None:
    data = _dense(100, 5)
    data[-1] ^= 1
    assert _told(_prepare(data, _dense(105, 1), position=105)) == [(105, 105)]


# -- all together ------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_every_wanted_record_goes_once_in_order_with_its_offset(data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, 50))
    datas, records = [], []
    for _ in range(data.draw(st.integers(1, 4))):
        gaps = data.draw(st.lists(st.sampled_from([1, 1, 1, 2, 5]), min_size=1, max_size=6))
        offsets = [offset := offset + gap for gap in gaps]
        last = offset = offset + data.draw(st.sampled_from([0, 0, 3]))
        some = _records(*offsets)
        base = offsets[0] - data.draw(st.sampled_from([0, 0, gaps[0] - 1]))
        datas.append(v2_batch(some, codec=data.draw(st.sampled_from(CODECS)), base_offset=base, last_offset=last))
        records += some
    position = data.draw(st.integers(0, offset + 3))
    wanted = [record for record in records if record.offset >= position]
    found: list[Record] = []
    reached = position
    for item in _prepare(*datas, position=position):
        if isinstance(item, int):
            assert item > reached
            reached = item
            continue
        contents = _contents(item)
        assert reached <= item.upstream_first == contents[0].offset
        assert contents[-1].offset == item.upstream_last < item.upstream_next
        reached = item.upstream_next
        found += contents
        _assert_sendable(item)
    assert found == wanted
    assert reached == max(position, offset + 1)


def test_records_as_one_dense_batch() -> None:
    carried = carry_records(_records(5, 6, 9), 4, 2, AT)
    assert _span(carried) == (5, 9, 10)
    assert (carried.runs, carried.batch.codec, carried.leader_epoch, carried.held) == ([(5, 2), (9, 1)], 4, 2, None)
    assert _contents(carried) == _records(5, 6, 9)
