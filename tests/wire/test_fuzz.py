"""Damage of every kind, on every format and codec: the outcome is the right records or a WireError, and nothing else.

Two ways in. Damage on the way (``test_damage_on_the_way``) leaves the checksum as it was, and must never give wrong
records. Damage at the origin (``test_damage_that_was_signed``) carries a right checksum, so anything may be inside:
what can be read must be re-encoded faithfully, what cannot must be refused in our own words.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import MirrorError, WireError
from mirrorspark.wire.aborted import control_type
from mirrorspark.wire.record_batch import Batch, split_batches, stamp, verify_crc
from mirrorspark.wire.records import Record, decode_records
from mirrorspark.wire.reencoding import decode, reencode, split_batch

from .batches import CODECS, LEGACY_CODECS, brief, legacy_message, legacy_wrapper, only_batch, signed, v2_batch

NOW = 1_700_000_000_000
RECORDS = [
    Record(1_000, NOW, b"key", b"value"),
    Record(1_001, NOW + 7, None, b"the same words, over and over; " * 40),
    Record(1_004, NOW - 7, b"tombstone", None),
    Record(1_005, NOW, b"", b""),
]
HEADERS = ((b"a", b"1"), (b"a", b"2"), (b"b", None))


def _seeds() -> dict[str, bytearray]:
    with_headers = [record._replace(headers=HEADERS) for record in RECORDS]
    seeds = {f"v2-{codec}": v2_batch(with_headers, codec=codec) for codec in CODECS}
    for magic in (0, 1):
        plain = bytearray().join(legacy_message(record, magic=magic) for record in RECORDS)
        seeds[f"v{magic}-0"] = plain
        for codec in LEGACY_CODECS[1:]:
            seeds[f"v{magic}-{codec}"] = legacy_wrapper(RECORDS, magic=magic, codec=codec)
    return seeds


SEEDS = _seeds()
every_seed = pytest.mark.parametrize("name", SEEDS)

EXTREMES = (0, 1, -1, 2, 48, 49, 127, 128, 2**15 - 1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
FORMS = {">b": 8, ">h": 16, ">i": 32, ">q": 64}


def _flip(data: bytearray, at: int, value: int) -> None:
    data[at % len(data)] ^= 1 << value % 8


def _cut(data: bytearray, at: int, value: int) -> None:
    del data[at % len(data) + 1 :]


def _remove(data: bytearray, at: int, value: int) -> None:
    start = at % len(data)
    if len(data) > 40:
        del data[start : start + 1 + value % 8]


def _insert(data: bytearray, at: int, value: int) -> None:
    start = at % len(data)
    data[start:start] = bytes((value % 256,)) * (1 + value % 5)


def _overwrite(data: bytearray, at: int, value: int) -> None:
    """An extreme number of 1, 2, 4 or 8 bytes, most often somewhere in the header."""
    form, bits = list(FORMS.items())[value % len(FORMS)]
    number = EXTREMES[value // len(FORMS) % len(EXTREMES)]
    position = at % min(len(data), 80)
    if position + bits // 8 <= len(data):
        wrapped = (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        struct.pack_into(form, data, position, wrapped)


Damage = tuple[Callable[[bytearray, int, int], None], int, int]
damages = st.lists(
    st.tuples(
        st.sampled_from((_flip, _cut, _remove, _insert, _overwrite)), st.integers(0, 5_000), st.integers(0, 5_000)
    ),
    min_size=1,
    max_size=4,
)


def _damaged(name: str, steps: list[Damage]) -> bytearray:
    data = bytearray(SEEDS[name])
    for change, at, value in steps:
        if data:
            change(data, at, value)
    return data


def _contents(records: list[Record]) -> list[Record]:
    return [record._replace(offset=0) for record in records]


def _original(name: str) -> list[Record]:
    batches = split_batches(memoryview(SEEDS[name]), "topic", 0)
    return [record for batch in batches for record in decode(batch, "topic", 0)]


@every_seed
@brief
@given(steps=damages)
def test_damage_on_the_way(name: str, steps: list[Damage]) -> None:
    found: list[Record] = []
    try:
        for batch in split_batches(memoryview(_damaged(name, steps)), "topic", 0):
            verify_crc(batch, "topic", 0)
            found += decode(batch, "topic", 0)
    except WireError:
        return
    # Offsets lie outside every checksum, and a message that is cut off is left out: the rest must be as it was.
    original = _contents(_original(name))
    assert all(content in original for content in _contents(found))
    if name.startswith("v2"):
        assert _contents(found) in ([], original)


@every_seed
@brief
@given(steps=damages)
def test_damage_that_was_signed(name: str, steps: list[Damage]) -> None:
    data = _damaged(name, steps)
    try:
        _sign_first(data)
        batches = split_batches(memoryview(data), "topic", 0)
    except WireError:
        return
    for batch in batches:
        _try_everything(batch)


def _sign_first(data: bytearray) -> None:
    """The first batch in ``data`` gets the length and checksum that its bytes deserve."""
    if len(data) < 26:
        return
    if data[16] == 2 and len(data) >= 61:
        struct.pack_into(">i", data, 8, len(data) - 12)
        signed(data)
    elif data[16] < 2:
        [size] = struct.unpack_from(">i", data, 8)
        end = 12 + size if 14 <= size <= len(data) - 12 else len(data)
        struct.pack_into(">iI", data, 8, end - 12, zlib.crc32(memoryview(data)[16:end]))


def _try_everything(batch: Batch) -> None:
    try:
        if batch.is_control:
            assert control_type(batch, "topic", 0) in ("abort", "commit", "other")
            return
        records = decode(batch, "topic", 0)
        encoded = reencode(batch, "topic", 0)
        halves = split_batch(batch, "topic", 0)
    except WireError as error:
        _assert_located(error)
        return
    if batch.magic == 2 and not batch.has_holes:
        stamp(batch, producer_id=1, producer_epoch=0, base_sequence=0)
        verify_crc(only_batch(batch.buffer), "topic", 0)
    if records:
        assert _contents(decode_records(only_batch(encoded), "topic", 0)) == _contents(records)
    found = [record for half in halves for record in decode_records(only_batch(half), "topic", 0)]
    assert _contents(found) == _contents(records)


def _assert_located(error: MirrorError) -> None:
    assert error.facts["topic"] == "topic"
    assert {"partition", "offset", "reason"} <= set(error.facts)


@brief
@given(st.binary(max_size=400))
def test_arbitrary_bytes(data: bytes) -> None:
    try:
        batches = split_batches(memoryview(bytearray(data)), "topic", 0)
    except WireError as error:
        _assert_located(error)
        return
    for batch in batches:
        _try_everything(batch)
