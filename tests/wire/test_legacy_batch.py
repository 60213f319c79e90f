"""Formats v0 and v1: plain and wrapped, as brokers hold them, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import CorruptBatch
from mirrorspark.wire.compression import compress
from mirrorspark.wire.legacy_batch import decode_legacy
from mirrorspark.wire.record_batch import split_batches, verify_crc
from mirrorspark.wire.records import Record

from .batches import legacy_message, legacy_wrapper, only_batch, record_lists, thorough
from .kafka_python import build_legacy

NOW = 1_700_000_000_000
RECORDS = [
    Record(500, NOW, b"key", b"value"),
    Record(501, NOW + 3, None, b"no key"),
    Record(503, NOW - 3, b"tombstone", None),
    Record(507, NOW, b"", b""),
    Record(508, -1, None, None),
]
MAGICS = st.sampled_from((0, 1))
WRAPPER_CODECS = st.sampled_from((1, 2, 3))


def _as_read(records: list[Record], magic: int) -> list[Record]:
    return [record._replace(timestamp=-1) for record in records] if magic == 0 else records


@thorough
@given(record_lists(with_holes=True, with_headers=False), MAGICS)
def test_plain_messages(records: list[Record], magic: int) -> None:
    answer = bytearray().join(legacy_message(record, magic=magic) for record in records)
    batches = split_batches(memoryview(answer), "topic", 0)
    for batch in batches:
        verify_crc(batch, "topic", 0)
    found = [record for batch in batches for record in decode_legacy(batch, "topic", 0)]
    assert found == _as_read(records, magic)


@thorough
@given(record_lists(with_holes=True, with_headers=False), MAGICS, WRAPPER_CODECS)
def test_wrapped_messages(records: list[Record], magic: int, codec: int) -> None:
    wrapper = only_batch(legacy_wrapper(records, magic=magic, codec=codec))
    verify_crc(wrapper, "topic", 0)
    assert wrapper.last_offset == records[-1].offset
    assert decode_legacy(wrapper, "topic", 0) == _as_read(records, magic)


def test_append_time_of_a_wrapper_is_that_of_its_records() -> None:
    wrapper = only_batch(legacy_wrapper(RECORDS, magic=1, codec=1, append_time=NOW + 99))
    assert decode_legacy(wrapper, "topic", 0) == [record._replace(timestamp=NOW + 99) for record in RECORDS]


# Not lz4 in v0: kafka-python needs xxhash for its old header. A Java vector covers it.
@pytest.mark.parametrize(("magic", "codec"), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)])
def test_we_read_what_kafka_python_writes(magic: int, codec: int) -> None:
    dense = [record._replace(offset=number) for number, record in enumerate(RECORDS)]
    answer = build_legacy(dense, magic=magic, codec=codec)
    if codec:
        answer[:8] = (len(dense) - 1).to_bytes(8, "big")  # what the broker does
    batches = split_batches(memoryview(answer), "topic", 0)
    for batch in batches:
        verify_crc(batch, "topic", 0)
    found = [record for batch in batches for record in decode_legacy(batch, "topic", 0)]
    assert found == _as_read(dense, magic)


def _wrapper_of(wrapped: bytes | None, *, magic: int = 1, codec: int = 1, offset: int = 508) -> bytearray:
    value = None if wrapped is None else compress(codec, wrapped)
    return legacy_message(Record(offset, NOW, None, value), magic=magic, attributes=codec)


PLAIN = [legacy_message(record, magic=1, offset=number) for number, record in enumerate(RECORDS)]
BAD_CHECKSUM = bytearray(PLAIN[0])
BAD_CHECKSUM[-1] ^= 1


@pytest.mark.parametrize(
    "wrapper",
    [
        _wrapper_of(None),
        _wrapper_of(b""),
        _wrapper_of(b"".join(PLAIN)[:-1]),
        _wrapper_of(b"".join(PLAIN) + b"\x00"),
        _wrapper_of(BAD_CHECKSUM),
        _wrapper_of(PLAIN[1] + PLAIN[0]),
        _wrapper_of(PLAIN[0] + PLAIN[0]),
        _wrapper_of(PLAIN[3], offset=2),
        _wrapper_of(legacy_message(RECORDS[0], magic=0)),
        _wrapper_of(legacy_message(RECORDS[0], magic=1), magic=0),
        _wrapper_of(legacy_message(RECORDS[4], magic=0), magic=0, offset=507),
        _wrapper_of(_wrapper_of(PLAIN[0])),
        _wrapper_of(PLAIN[0], codec=4),
        legacy_message(Record(508, NOW, None, b"not gzip"), magic=1, attributes=1),
    ],
    ids=[
        "no-value",
        "nothing-inside",
        "cut-off",
        "follower",
        "checksum",
        "falling-offsets",
        "same-offset",
        "before-zero",
        "v0-in-v1",
        "v1-in-v0",
        "past-the-wrapper",
        "wrapper-in-wrapper",
        "zstd",
        "not-compressed",
    ],
)
def test_damaged_wrapper_is_corrupt_at_the_wrappers_offset(wrapper: bytearray) -> None:
    batch = only_batch(wrapper)
    verify_crc(batch, "orders", 4)
    with pytest.raises(CorruptBatch) as caught:
        decode_legacy(batch, "orders", 4)
    facts = caught.value.facts
    assert (facts["topic"], facts["partition"], facts["offset"]) == ("orders", 4, batch.base_offset)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("length", [-2, 4, 2**31 - 1])
def test_damaged_key_length_is_corrupt(magic: int, length: int) -> None:
    message = legacy_message(Record(9, NOW, b"key", b"value"), magic=magic)
    key_at = 18 if magic == 0 else 26
    message[key_at : key_at + 4] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch):
        decode_legacy(only_batch(message), "orders", 4)
