"""The ledger's runs and pages, and their bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import LedgerPage, LedgerRange, Run, ledger_entry, ledger_key, parse_ledger_entry

AT = TopicPartition("east.orders", 3)
ID, REMOTE_ID = bytes(range(16)), bytes(range(16, 32))

int64s = st.integers(0, 2**60)
topics = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=60)
gaps = st.integers(0, 5) | st.integers(0, 2**40)


@st.composite
def pages(draw: st.DrawFn) -> LedgerPage:
    start, downstream_start = draw(st.integers(0, 2**40)), draw(st.integers(0, 2**40))
    up, down = start, downstream_start
    runs = []
    for _ in range(draw(st.integers(0, 8))):
        up, down = up + draw(gaps), down + draw(gaps)
        records = draw(st.integers(1, 1_000))
        missing, extra = draw(st.tuples(st.integers(0, 9), st.integers(0, 9)) | st.just((0, 0)))
        runs.append(Run(up, up + records + missing - 1, down, down + records + extra - 1, records))
        up, down = up + records + missing, down + records + extra
    return LedgerPage.of(
        runs,
        upstream_start=start,
        upstream_next=up + draw(gaps),
        downstream_start=downstream_start,
        topic_id=ID,
        remote_id=REMOTE_ID,
    )


def page_of(first: int, last: int, downstream: int) -> LedgerPage:
    run = Run(first, last, downstream, downstream + last - first, last - first + 1)
    return LedgerPage.of([run], upstream_start=first, upstream_next=last + 1, downstream_start=downstream)


def test_entry_bytes() -> None:
    runs = [Run(100, 149, 7, 56, 50), Run(151, 151, 58, 58, 1), Run(152, 161, 60, 67, 7)]
    page = LedgerPage.of(
        runs, upstream_start=98, upstream_next=163, downstream_start=7, topic_id=ID, remote_id=REMOTE_ID
    )
    key, value = ledger_entry(AT, page)
    assert key == b"\0\x0beast.orders" + bytes.fromhex("00000003 0000000000000062")
    assert value[:50] == b"\0\2" + ID + REMOTE_ID + struct.pack(">qq", 163, 7)
    # span (twice, plus one if merged), upstream gap, downstream gap[, offsets without a record, downstream ones]; zigzag
    assert value[50:] == bytes.fromhex("c801 04 00  04 02 02  2a 00 02 06 02")
    assert list(page.runs()) == runs
    assert (page.downstream_end, page.run_count) == (68, 3)


def test_the_key_does_not_change_while_a_page_grows() -> None:
    assert ledger_entry(AT, page_of(100, 149, 7))[0] == ledger_entry(AT, page_of(100, 160, 7))[0]


@given(topics, st.integers(0, 2**31 - 1), pages())
def test_an_entry_reads_back(topic: str, partition: int, page: LedgerPage) -> None:
    at = TopicPartition(topic, partition)
    assert parse_ledger_entry(*ledger_entry(at, page)) == (at, page)


def test_a_tombstone_is_no_entry() -> None:
    assert parse_ledger_entry(ledger_key(AT, 100), None) is None


def _name(length: int, text: bytes) -> bytes:
    return struct.pack(">h", length) + text + struct.pack(">iq", 3, 100)


GOOD_KEY, GOOD_VALUE = ledger_entry(AT, page_of(100, 149, 7))
HEAD = GOOD_VALUE[:50]


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
        (_name(-2, b"")[:12], GOOD_VALUE),  # a length that leads backwards
        (_name(4, b"\xff\xfe\xfd\xfc"), GOOD_VALUE),  # not UTF-8
        (b'["MirrorSourceConnector",{"cluster":"A"}]', GOOD_VALUE),
        (GOOD_KEY, b'{"offset":123}'),
        (GOOD_KEY, GOOD_VALUE[:-1]),  # ends inside a run
        (GOOD_KEY, b"\0\1" + GOOD_VALUE[2:]),  # another version
        (GOOD_KEY, HEAD[:34] + struct.pack(">qq", 99, 7)),  # ends before it begins
        (GOOD_KEY, HEAD[:34] + struct.pack(">qq", 149, 7) + GOOD_VALUE[50:]),  # ends before its run does
        (GOOD_KEY, HEAD[:34] + struct.pack(">qq", 150, -1) + GOOD_VALUE[50:]),
        (GOOD_KEY, HEAD + bytes.fromhex("00 00 00")),  # a run of nothing
        (GOOD_KEY, HEAD + bytes.fromhex("04 01 00")),  # backwards upstream
        (GOOD_KEY, HEAD + bytes.fromhex("04 00 01")),  # backwards downstream
        (GOOD_KEY, HEAD + bytes.fromhex("06 00 00 02 01")),  # more records than offsets
        (GOOD_KEY, HEAD + bytes.fromhex("fcffffffffffffffff01 00 00")),  # beyond every offset
    ],
)
def test_foreign_bytes_are_no_entry(key: bytes, value: bytes) -> None:
    assert parse_ledger_entry(key, value) is None


@given(st.binary(max_size=40), st.binary(max_size=60), st.booleans())
def test_arbitrary_bytes_never_raise(key: bytes, value: bytes, good_head: bool) -> None:
    parse_ledger_entry(key, value)
    parse_ledger_entry(GOOD_KEY, HEAD + value if good_head else value)


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
