"""Zigzag varints, as v2 records use them: 7 bits a byte, lowest first, the sign in the lowest bit.

Called by ``records`` for every field of a record. A varint is a signed 32-bit number in at most 5 bytes, a varlong a
signed 64-bit one in at most 10; what is longer or wider is damage, never a wrapped number. May not read past the
given buffer.
"""

from __future__ import annotations

from typing import Final

from mirrorspark.wire.damage import damage

__all__ = ["append_varint", "append_varlong", "decode_varint", "decode_varlong"]

_VARINT_BITS: Final = 32
_VARLONG_BITS: Final = 64


def append_varint(output: bytearray, value: int) -> None:
    if -64 <= value < 64:  # one byte, as most lengths and deltas are: worth the shortcut, here and below
        output.append(value << 1 if value >= 0 else ~(value << 1))
        return
    assert -(1 << 31) <= value < 1 << 31, f"{value} is no 32-bit number"
    _append(output, value)


def append_varlong(output: bytearray, value: int) -> None:
    if -64 <= value < 64:
        output.append(value << 1 if value >= 0 else ~(value << 1))
        return
    assert -(1 << 63) <= value < 1 << 63, f"{value} is no 64-bit number"
    _append(output, value)


def _append(output: bytearray, value: int) -> None:
    zigzag = value << 1 if value >= 0 else ~(value << 1)
    while zigzag > 0x7F:
        output.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    output.append(zigzag)


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """The 32-bit number at ``position`` and the position after it."""
    if position < len(data) and (byte := data[position]) < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return _decode(data, position, _VARINT_BITS)


def decode_varlong(data: bytes, position: int) -> tuple[int, int]:
    """The 64-bit number at ``position`` and the position after it."""
    if position < len(data) and (byte := data[position]) < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return _decode(data, position, _VARLONG_BITS)


def _decode(data: bytes, position: int, bits: int) -> tuple[int, int]:
    zigzag = shift = 0
    try:
        while (byte := data[position]) >= 0x80:
            zigzag |= (byte & 0x7F) << shift
            shift += 7
            position += 1
            if shift >= bits:
                raise damage(f"a varint of more than {bits} bits")
    except IndexError:
        raise damage("the bytes end inside a varint") from None
    zigzag |= byte << shift
    if zigzag >> bits:
        raise damage(f"a varint of more than {bits} bits")
    return (zigzag >> 1) ^ -(zigzag & 1), position + 1
