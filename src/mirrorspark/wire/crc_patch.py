"""The CRC-32C of a message of which only the beginning was changed, without reading the rest again.

A CRC is linear: of two messages of equal length, the difference (XOR) of the CRCs depends on the difference of the messages
alone. Where that lies in a short head, it is the CRC of the head's difference, moved on by as many zero bytes as follow: a
multiplication in GF(2), done with tables for powers of two. Called by ``record_batch.stamp``; ``tests/wire`` holds it
against the plain way.
"""

from __future__ import annotations

from crc32c import crc32c

__all__ = ["patched_crc"]

_POLYNOMIAL = 0x82F63B78  # CRC-32C, reflected
_Tables = tuple[list[int], list[int], list[int], list[int]]
_moves: list[_Tables] = []
"""At k: how a CRC moves on by 2**k zero bytes, one table for each of its four bytes. Made when first needed."""


def patched_crc(crc: int, head_before: bytes | memoryview, head_after: bytes | memoryview, rest_bytes: int) -> int:
    """``crc`` is that of the old head and the rest; the answer is that of the new head (as long) and the same rest."""
    assert len(head_before) == len(head_after)
    return crc ^ _moved(crc32c(head_before) ^ crc32c(head_after), rest_bytes)


def _moved(difference: int, zero_bytes: int) -> int:
    power = 0
    while zero_bytes:
        if zero_bytes & 1:
            a, b, c, d = _move(power)
            difference = (
                a[difference & 0xFF] ^ b[difference >> 8 & 0xFF] ^ c[difference >> 16 & 0xFF] ^ d[difference >> 24]
            )
        zero_bytes >>= 1
        power += 1
    return difference


def _move(power: int) -> _Tables:
    while len(_moves) <= power:
        _moves.append(_tables(_columns(len(_moves))))
    return _moves[power]


def _columns(power: int) -> list[int]:
    """What becomes of each single bit."""
    if power == 0:
        return [_one_zero_byte(1 << bit) for bit in range(32)]
    a, b, c, d = _moves[power - 1]
    once = [a[x & 0xFF] ^ b[x >> 8 & 0xFF] ^ c[x >> 16 & 0xFF] ^ d[x >> 24] for x in (1 << bit for bit in range(32))]
    return [a[x & 0xFF] ^ b[x >> 8 & 0xFF] ^ c[x >> 16 & 0xFF] ^ d[x >> 24] for x in once]


def _one_zero_byte(register: int) -> int:
    for _ in range(8):
        register = register >> 1 ^ (_POLYNOMIAL if register & 1 else 0)
    return register


def _tables(columns: list[int]) -> _Tables:
    def table(first_bit: int) -> list[int]:
        found = [0] * 256
        for value in range(1, 256):
            low = value & -value
            found[value] = found[value ^ low] ^ columns[first_bit + low.bit_length() - 1]
        return found

    return table(0), table(8), table(16), table(24)
