"""The ledger's ranges and their bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import LedgerRange, ledger_entry, parse_ledger_entry

AT = TopicPartition("east.orders", 3)

int32s, int64s = st.integers(0, 2**31 - 1), st.integers(0, 2**62 - 1)
topics = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=60)


def test_entry_bytes() -> None:
    key, value = ledger_entry(AT, LedgerRange(100, 149, 7))
    assert key == b"\0\x0beast.orders" + bytes.fromhex("00000003 0000000000000064")
    assert value == bytes.fromhex("0001 0000000000000095 0000000000000007") + bytes(16)


def test_the_key_does_not_change_while_a_range_grows() -> None:
    span = LedgerRange(100, 149, 7)
    key, value = ledger_entry(AT, span)
    assert span.extend(150, 160, 57)
    grown_key, grown_value = ledger_entry(AT, span)
    assert grown_key == key
    assert grown_value != value


@given(topics, int32s, int64s, int64s, int64s)
def test_an_entry_reads_back(topic: str, partition: int, first: int, length: int, downstream: int) -> None:
    at = TopicPartition(topic, partition)
    span = LedgerRange(first, first + length, downstream, bytes(range(16)))
    assert parse_ledger_entry(*ledger_entry(at, span)) == (at, span)


def test_a_tombstone_is_no_entry() -> None:
    key, _ = ledger_entry(AT, LedgerRange(100, 149, 7))
    assert parse_ledger_entry(key, None) is None


def _name(length: int, text: bytes) -> bytes:
    return struct.pack(">h", length) + text + struct.pack(">iq", 3, 100)


GOOD_KEY, GOOD_VALUE = ledger_entry(AT, LedgerRange(100, 149, 7))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", GOOD_VALUE),
        (b"\0", GOOD_VALUE),
        (GOOD_KEY[:-1], GOOD_VALUE),
        (GOOD_KEY + b"\0", GOOD_VALUE),
        (_name(4, b"name"), b""),
        (_name(5, b"name"), GOOD_VALUE),
        (_name(0, b""), GOOD_VALUE),
        (_name(-2, b"")[:12], struct.pack(">hqq", 1, 2**62, 7)),  # a length that leads backwards
        (_name(4, b"\xff\xfe\xfd\xfc"), GOOD_VALUE),  # not UTF-8
        (b'["MirrorSourceConnector",{"cluster":"A"}]', GOOD_VALUE),
        (GOOD_KEY, b'{"offset":123}'),
        (GOOD_KEY, GOOD_VALUE[:-1]),
        (GOOD_KEY, b"\0\2" + GOOD_VALUE[2:]),  # another version
        (GOOD_KEY, struct.pack(">hqq", 1, 99, 7)),  # ends before it begins
    ],
)
def test_foreign_bytes_are_no_entry(key: bytes, value: bytes) -> None:
    assert parse_ledger_entry(key, value) is None


@given(st.binary(max_size=40), st.binary(max_size=20) | st.binary(min_size=16, max_size=16).map(b"\0\1".__add__))
def test_arbitrary_bytes_never_raise(key: bytes, value: bytes) -> None:
    parse_ledger_entry(key, value)


@given(st.integers(0, len(GOOD_KEY) - 1), st.integers(0, 255))
def test_flipped_keys_never_raise(at: int, value: int) -> None:
    key = bytearray(GOOD_KEY)
    key[at] = value
    parse_ledger_entry(bytes(key), GOOD_VALUE)


def test_ends_of_a_range() -> None:
    assert LedgerRange(100, 149, 7).downstream_last == 56
    assert LedgerRange(100, 100, 7).downstream_last == 7


def test_a_piece_that_continues_on_both_sides_extends() -> None:
    span = LedgerRange(100, 149, 7)
    assert span.extend(150, 150, 57)
    assert span == LedgerRange(100, 150, 7)
    assert span.downstream_last == 57


@pytest.mark.parametrize(
    "piece",
    [
        (151, 160, 57),  # a hole upstream
        (150, 160, 58),  # a marker downstream
        (151, 160, 58),  # both moved on by one: still no dense range
        (149, 160, 57),  # overlaps
        (100, 149, 7),  # the same once more
        (150, 160, 7),
    ],
)
def test_any_other_piece_does_not(piece: tuple[int, int, int]) -> None:
    span = LedgerRange(100, 149, 7)
    assert not span.extend(*piece)
    assert span == LedgerRange(100, 149, 7)


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=20), int64s, int64s)
def test_dense_pieces_make_one_range(lengths: list[int], upstream: int, downstream: int) -> None:
    span = LedgerRange(upstream, upstream + lengths[0] - 1, downstream)
    for length in lengths[1:]:
        first = span.upstream_last + 1
        assert span.extend(first, first + length - 1, span.downstream_last + 1)
    assert span == LedgerRange(upstream, upstream + sum(lengths) - 1, downstream)
    assert span.downstream_last == downstream + sum(lengths) - 1
