"""Records: what we write, kafka-python reads, and the other way round; every field validated."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import CorruptBatch, UnsupportedBatch
from mirrorspark.wire.record_batch import HEADER, split_batches, verify_crc
from mirrorspark.wire.records import Record, decode_records, encode_batch
from mirrorspark.wire.varint import append_varint

from .batches import CODEC_NAMES, CODECS, codecs, only_batch, record_lists, signed, thorough, v2_batch
from .kafka_python import build_v2, read_v2

NOW = 1_700_000_000_000
EVERY_KIND = [
    Record(0, NOW, b"key", b"value"),
    Record(1, NOW + 5, None, b"no key"),
    Record(2, NOW - 7, b"tombstone", None),
    Record(3, NOW, b"", b""),
    Record(4, -1, None, None),
    Record(5, NOW, b"k", b"v", ((b"same", b"1"), (b"same", b"2"), (b"null", None), (b"", b""))),
    Record(6, NOW, b"k", b"long " * 30_000, tuple((b"h%d" % n, b"x" * n) for n in range(100))),
]


@pytest.mark.parametrize("codec", CODECS, ids=CODEC_NAMES)
def test_kafka_python_reads_what_we_write(codec: int) -> None:
    assert read_v2(encode_batch(EVERY_KIND, codec=codec)) == EVERY_KIND


@pytest.mark.parametrize("codec", CODECS, ids=CODEC_NAMES)
def test_we_read_what_kafka_python_writes(codec: int) -> None:
    batch = only_batch(build_v2(EVERY_KIND, codec=codec))
    verify_crc(batch, "topic", 0)
    assert decode_records(batch, "topic", 0) == EVERY_KIND


def test_uncompressed_bytes_are_those_of_kafka_python() -> None:
    ours, theirs = encode_batch(EVERY_KIND, codec=0), build_v2(EVERY_KIND, codec=0)
    assert ours[:12] == theirs[:12]
    assert ours[16:] == theirs[16:], "all but the leader epoch, where a producer of ours says -1"


@thorough
@given(record_lists(), codecs)
def test_decode_of_encode_is_the_same_records(records: list[Record], codec: int) -> None:
    encoded = encode_batch(records, codec=codec)
    assert encoded == encode_batch(iter(records), codec=codec), "the same records give the same bytes"
    batch = only_batch(encoded)
    verify_crc(batch, "topic", 0)
    assert (batch.base_offset, batch.record_count, batch.last_offset_delta) == (0, len(records), len(records) - 1)
    assert batch.max_timestamp == max(record.timestamp for record in records)
    assert batch.base_timestamp == records[0].timestamp
    assert batch.attributes == codec
    expected = [record._replace(offset=number) for number, record in enumerate(records)]
    assert decode_records(batch, "topic", 0) == expected


@thorough
@given(record_lists(with_holes=True), codecs)
def test_offsets_are_absolute_and_holes_stay(records: list[Record], codec: int) -> None:
    batch = only_batch(v2_batch(records, codec=codec, last_offset=records[-1].offset + 3))
    assert decode_records(batch, "topic", 0) == records


def test_append_time_is_the_timestamp_of_every_record() -> None:
    batch = only_batch(v2_batch(EVERY_KIND, flags=0x08, max_timestamp=NOW + 99))
    assert {record.timestamp for record in decode_records(batch, "topic", 0)} == {NOW + 99}


def test_deltas_count_from_the_base_timestamp_also_when_it_is_a_delete_horizon() -> None:
    batch = only_batch(v2_batch(EVERY_KIND, flags=0x40, base_timestamp=NOW + 86_400_000))
    assert decode_records(batch, "topic", 0) == EVERY_KIND


@pytest.mark.parametrize("codec", CODECS, ids=CODEC_NAMES)
def test_batch_emptied_by_compaction_has_no_records(codec: int) -> None:
    with_payload = v2_batch([], base_offset=7, last_offset=9, codec=codec)
    assert decode_records(only_batch(with_payload), "topic", 0) == []
    bare = with_payload[: HEADER.size]
    bare[8:12] = (HEADER.size - 12).to_bytes(4, "big")
    assert decode_records(only_batch(bare), "topic", 0) == []


def test_batch_without_records_is_not_encoded() -> None:
    with pytest.raises(AssertionError):
        encode_batch([])


def test_unknown_codec_is_unsupported_and_says_where() -> None:
    batch = v2_batch(EVERY_KIND)
    batch[22] |= 0x05
    with pytest.raises(UnsupportedBatch) as caught:
        decode_records(only_batch(signed(batch)), "orders", 4)
    assert caught.value.facts["topic"] == "orders"


def _batch_of_payload(payload: bytes | bytearray, *, count: int = 1, last_offset_delta: int = 0) -> bytearray:
    data = bytearray(HEADER.size) + payload
    fields = (0, last_offset_delta, NOW, NOW, -1, -1, -1, count)
    HEADER.pack_into(data, 0, 100, len(data) - 12, -1, 2, 0, *fields)
    return signed(data)


def _varints(*values: int) -> bytes:
    output = bytearray()
    for value in values:
        append_varint(output, value)
    return bytes(output)


def _record(*values: int, tail: bytes = b"") -> bytes:
    """A record of these varints after its attributes, with its right length in front."""
    inner = b"\x00" + _varints(*values) + tail
    return _varints(len(inner)) + inner


GOOD = _record(0, 0, -1, -1, 0)


@pytest.mark.parametrize(
    ("payload", "count", "last_offset_delta"),
    [
        (b"", 1, 0),
        (GOOD[:-1], 1, 0),
        (GOOD + b"\x00", 1, 0),
        (GOOD, 2, 1),
        (GOOD + GOOD, 1, 1),
        (GOOD, 2**31 - 1, 2**31 - 1),
        (GOOD + GOOD, 2, 1),  # the same offset twice
        (_record(0, 1, -1, -1, 0) + GOOD, 2, 1),  # offsets falling
        (_record(0, 1, -1, -1, 0), 1, 0),  # past the last offset
        (_record(0, -1, -1, -1, 0), 1, 0),
        (_record(0, 0, -2, -1, 0), 1, 0),
        (_record(0, 0, 2**31 - 1, -1, 0), 1, 0),
        (_record(0, 0, 1, -1, 0), 1, 0),  # a key that takes the value's length for itself
        (_record(0, 0, -1, 5, 0), 1, 0),
        (_record(0, 0, -1, -1, -1), 1, 0),
        (_record(0, 0, -1, -1, 1), 1, 0),
        (_record(0, 0, -1, -1, 2**31 - 1), 1, 0),
        (_record(0, 0, -1, -1, 1, -1, -1), 1, 0),  # a header without a key
        (_record(0, 0, -1, -1, 0, tail=b"left over"), 1, 0),
        (_varints(5) + GOOD[1:], 1, 0),
        (_varints(7) + GOOD[1:] + b"\x00", 1, 0),
        (_varints(-1) + GOOD[1:], 1, 0),
        (_varints(2**31 - 1) + GOOD[1:], 1, 0),
        (b"\xff" * 20, 1, 0),
    ],
)
def test_damaged_records_are_corrupt_and_say_where(payload: bytes, count: int, last_offset_delta: int) -> None:
    data = _batch_of_payload(payload, count=count, last_offset_delta=last_offset_delta)
    [batch] = split_batches(memoryview(data), "orders", 4)
    with pytest.raises(CorruptBatch) as caught:
        decode_records(batch, "orders", 4)
    facts = caught.value.facts
    assert (facts["topic"], facts["partition"], facts["offset"]) == ("orders", 4, 100)
    assert facts["reason"]


def test_the_smallest_record_is_read() -> None:
    assert decode_records(only_batch(_batch_of_payload(GOOD)), "topic", 0) == [Record(100, NOW, None, None)]


@thorough
@given(st.binary(max_size=200), st.integers(0, 30), st.integers(0, 30))
def test_arbitrary_payloads_give_records_or_a_typed_error(payload: bytes, count: int, last_offset_delta: int) -> None:
    batch = only_batch(_batch_of_payload(payload, count=count, last_offset_delta=last_offset_delta))
    with suppress(CorruptBatch):
        assert len(decode_records(batch, "orders", 4)) == count
