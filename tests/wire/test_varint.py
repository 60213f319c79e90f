"""Varints: known bytes, every width, and refusal of what is too long, too wide or cut off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import WireError
from mirrorspark.wire.varint import append_varint, append_varlong, decode_varint, decode_varlong

from .batches import thorough
from .kafka_python import decode_varint as kafka_python_decode

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (8191, "fe7f"),
        (-8193, "818001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
    ],
)
def test_known_values_have_known_bytes(value: int, encoded: str) -> None:
    output = bytearray()
    append_varint(output, value)
    assert output.hex() == encoded
    assert decode_varint(bytes(output), 0) == (value, len(output))


@thorough
@given(INT32, st.binary(max_size=3))
def test_varint_round_trip(value: int, around: bytes) -> None:
    output = bytearray(around)
    append_varint(output, value)
    end = len(output)
    output += around
    assert decode_varint(bytes(output), len(around)) == (value, end)
    assert decode_varlong(bytes(output), len(around)) == (value, end)
    assert end - len(around) <= 5


@thorough
@given(INT64)
def test_varlong_round_trip_agrees_with_kafka_python(value: int) -> None:
    output = bytearray()
    append_varlong(output, value)
    assert len(output) <= 10
    assert decode_varlong(bytes(output), 0) == (value, len(output))
    assert kafka_python_decode(output)[0] == value


@thorough
@given(INT64)
def test_varint_refuses_what_is_wider_than_32_bits(value: int) -> None:
    output = bytearray()
    append_varlong(output, value)
    if -(2**31) <= value < 2**31:
        assert decode_varint(bytes(output), 0)[0] == value
    else:
        with pytest.raises(WireError):
            decode_varint(bytes(output), 0)


@pytest.mark.parametrize("encoded", ["", "80", "ffff", "ffffffffff"])
def test_cut_off_or_endless_is_refused(encoded: str) -> None:
    for decode in (decode_varint, decode_varlong):
        with pytest.raises(WireError):
            decode(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["ff" * 10, "ff" * 9 + "02", "80" * 11 + "00"])
def test_varlong_refuses_more_than_64_bits(encoded: str) -> None:
    with pytest.raises(WireError):
        decode_varlong(bytes.fromhex(encoded), 0)


def test_position_past_the_end_is_refused() -> None:
    with pytest.raises(WireError):
        decode_varint(b"\x00", 1)
