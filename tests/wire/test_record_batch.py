"""Finding, checking and stamping batches: what goes through unopened, and what is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import CorruptBatch, UnsupportedBatch
from mirrorspark.wire.record_batch import HEADER, Batch, body, split_batches, stamp, verify_crc
from mirrorspark.wire.records import Record, decode_records, encode_batch

from .batches import codecs, legacy_message, legacy_wrapper, only_batch, record_lists, signed, thorough, v2_batch
from .kafka_python import read_v2

RECORDS = [Record(100 + n, 1_700_000_000_000 + n, b"key", b"value %d" % n, ((b"h", None),)) for n in range(5)]
LENGTH_AT, MAGIC_AT, DELTA_AT, COUNT_AT = 8, 16, 23, 57


def _split(data: bytes | bytearray) -> list[Batch]:
    return split_batches(memoryview(bytearray(data)), "orders", 4)


def _split_and_verify(data: bytearray) -> None:
    for batch in _split(data):
        verify_crc(batch, "orders", 4)


def _edited(data: bytes | bytearray, form: str, position: int, value: int) -> bytearray:
    edited = bytearray(data)
    struct.pack_into(form, edited, position, value)
    return edited


def test_header_has_61_bytes() -> None:
    assert HEADER.size == 61


def test_header_fields_are_read() -> None:
    batch = only_batch(v2_batch(RECORDS, codec=3, flags=0x10, producer=(9_000, 4, 77)))
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (100, 104, 105)
    assert (batch.leader_epoch, batch.magic, batch.codec, batch.record_count) == (7, 2, 3, 5)
    assert (batch.base_timestamp, batch.max_timestamp) == (1_700_000_000_000, 1_700_000_000_004)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9_000, 4, 77)
    assert batch.is_transactional
    assert not any((batch.is_control, batch.is_log_append_time, batch.has_delete_horizon))
    assert not any((batch.has_holes, batch.is_legacy))
    assert "100..104" in repr(batch)


@pytest.mark.parametrize(
    ("flag", "name"),
    [(0x08, "is_log_append_time"), (0x10, "is_transactional"), (0x20, "is_control"), (0x40, "has_delete_horizon")],
)
def test_each_flag_has_its_property(flag: int, name: str) -> None:
    names = ("is_log_append_time", "is_transactional", "is_control", "has_delete_horizon")
    batch = only_batch(v2_batch(RECORDS, flags=flag))
    assert [other for other in names if getattr(batch, other)] == [name]


def test_holes_are_seen() -> None:
    assert only_batch(v2_batch(RECORDS[::2])).has_holes
    assert only_batch(v2_batch(RECORDS, last_offset=105)).has_holes
    assert only_batch(v2_batch([], base_offset=100, last_offset=104)).has_holes, "compaction left nothing"


def test_batches_of_all_formats_in_one_answer() -> None:
    v0, v1 = legacy_message(RECORDS[0], magic=0), legacy_message(RECORDS[1], magic=1)
    wrapper = legacy_wrapper(RECORDS[2:4], magic=1, codec=1, append_time=1_700_000_009_999)
    last = v2_batch(RECORDS[4:])
    batches = _split(v0 + v1 + wrapper + last + v0)
    assert [batch.magic for batch in batches] == [0, 1, 1, 2, 0]
    assert [batch.base_offset for batch in batches] == [100, 101, 103, 104, 100]
    assert [batch.last_offset for batch in batches] == [100, 101, 103, 104, 100]
    assert [batch.record_count for batch in batches] == [1, 1, -1, 1, 1]
    assert [batch.max_timestamp for batch in batches[:3]] == [-1, 1_700_000_000_001, 1_700_000_009_999]
    assert batches[2].is_log_append_time
    assert [batch.is_legacy for batch in batches] == [True, True, True, False, True]
    for batch in batches:
        verify_crc(batch, "orders", 4)


@pytest.mark.parametrize(
    "last", [v2_batch(RECORDS), legacy_message(RECORDS[0], magic=0), legacy_message(RECORDS[0], magic=1)]
)
def test_cut_off_last_batch_is_left_out(last: bytearray) -> None:
    whole = v2_batch(RECORDS)
    for end in range(len(last)):
        assert [batch.size for batch in _split(whole + last[:end])] == [len(whole)]
    assert len(_split(whole + last)) == 2


def test_nothing_is_no_batches() -> None:
    assert _split(b"") == []


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 48])
def test_impossible_length_is_corrupt_and_says_where(length: int) -> None:
    with pytest.raises(CorruptBatch) as caught:
        _split(v2_batch(RECORDS) + _edited(v2_batch(RECORDS), ">i", LENGTH_AT, length))
    assert caught.value.facts["topic"] == "orders"
    assert caught.value.facts["partition"] == 4
    assert caught.value.facts["offset"] == 100
    assert str(length) in caught.value.facts["reason"]


@pytest.mark.parametrize("magic", [0, 1])
def test_impossible_length_of_a_legacy_message_is_corrupt(magic: int) -> None:
    message = legacy_message(RECORDS[0], magic=magic)
    for length in (-1, 0, 13 if magic == 0 else 21):
        with pytest.raises(CorruptBatch):
            _split(_edited(message, ">i", LENGTH_AT, length))


@pytest.mark.parametrize("magic", [-128, -1, 3, 4, 127])
def test_unknown_format_is_unsupported(magic: int) -> None:
    with pytest.raises(UnsupportedBatch) as caught:
        _split(_edited(v2_batch(RECORDS), ">b", MAGIC_AT, magic))
    assert caught.value.facts["offset"] == 100


@pytest.mark.parametrize(("form", "position"), [(">q", 0), (">i", DELTA_AT), (">i", COUNT_AT)])
def test_negative_offset_delta_or_count_is_corrupt(form: str, position: int) -> None:
    with pytest.raises(CorruptBatch):
        _split(_edited(v2_batch(RECORDS), form, position, -1))


@pytest.mark.parametrize(
    "data",
    [v2_batch(RECORDS, codec=4), legacy_message(RECORDS[0], magic=0), legacy_message(RECORDS[0], magic=1)],
    ids=["v2", "v0", "v1"],
)
def test_every_flipped_bit_under_the_checksum_is_found(data: bytearray) -> None:
    checked_from = 17 if data[MAGIC_AT] == 2 else 12
    for position in range(checked_from, len(data)):
        if position == MAGIC_AT:
            continue
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        with pytest.raises(CorruptBatch) as caught:
            _split_and_verify(damaged)
        assert caught.value.facts["offset"] == 100


@thorough
@given(
    record_lists(), codecs, st.integers(0, 2**62), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1), st.booleans()
)
def test_stamp_keeps_the_body_and_signs(
    records: list[Record], codec: int, producer_id: int, epoch: int, sequence: int, transactional: bool
) -> None:
    source = v2_batch(records, codec=codec, flags=0x50, producer=(3, 2, 1))
    batch = only_batch(source)
    body_before = bytes(body(batch))
    stamp(batch, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional)
    carried = only_batch(batch.buffer)
    verify_crc(carried, "orders", 4)
    assert body(carried) == body_before
    assert body_before == bytes(source[57:])
    assert (carried.base_offset, carried.leader_epoch) == (0, -1)
    assert (carried.producer_id, carried.producer_epoch, carried.base_sequence) == (producer_id, epoch, sequence)
    assert carried.attributes == codec | (0x10 if transactional else 0)
    assert (carried.base_timestamp, carried.max_timestamp) == (batch.base_timestamp, batch.max_timestamp)
    assert batch.base_offset == records[0].offset, "the batch object still says where it came from"
    expected = [record._replace(offset=record.offset - records[0].offset) for record in records]
    assert decode_records(carried, "orders", 4) == expected


def test_stamp_works_in_the_memory_that_was_split_and_can_be_repeated() -> None:
    answer = bytearray(v2_batch(RECORDS) + v2_batch(RECORDS, codec=1))
    batches = split_batches(memoryview(answer), "orders", 4)
    for attempt in range(2):
        for number, batch in enumerate(batches):
            stamp(batch, producer_id=8, producer_epoch=attempt, base_sequence=number * 5)
    carried = split_batches(memoryview(answer), "orders", 4)
    assert [batch.base_sequence for batch in carried] == [0, 5]
    assert [batch.producer_epoch for batch in carried] == [1, 1]
    for batch in carried:
        verify_crc(batch, "orders", 4)
        assert [record.value for record in read_v2(batch.buffer)] == [record.value for record in RECORDS]


def test_stamp_keeps_the_timestamp_type() -> None:
    batch = only_batch(v2_batch(RECORDS, flags=0x08))
    stamp(batch, producer_id=1, producer_epoch=0, base_sequence=0)
    assert only_batch(batch.buffer).is_log_append_time


@pytest.mark.parametrize(
    "data",
    [v2_batch(RECORDS, flags=0x20), v2_batch(RECORDS[::2]), legacy_message(RECORDS[0], magic=1)],
    ids=["control", "holes", "legacy"],
)
def test_stamp_asserts_that_the_batch_may_go_as_it_is(data: bytearray) -> None:
    with pytest.raises(AssertionError):
        stamp(only_batch(data), producer_id=1, producer_epoch=0, base_sequence=0)


def test_encoded_batch_is_what_stamp_takes() -> None:
    batch = only_batch(encode_batch(RECORDS, codec=2))
    assert (batch.base_offset, batch.leader_epoch, batch.producer_id, batch.base_sequence) == (0, -1, -1, -1)
    stamp(batch, producer_id=1, producer_epoch=0, base_sequence=0)
    verify_crc(only_batch(batch.buffer), "orders", 4)


def test_signed_helper_agrees_with_verify() -> None:
    verify_crc(only_batch(signed(_edited(v2_batch(RECORDS), ">i", COUNT_AT, 4))), "orders", 4)
