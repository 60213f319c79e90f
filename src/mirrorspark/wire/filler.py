"""Batches of empty records that only take offsets: how an empty partition is brought to a wanted level.

Called by ``pipeline.start_level``. A broker takes no batch whose last offset does not fit its number of records, so each
offset costs a record; those have neither key nor value, and are put together by the block of 64, never one by one.
"""

from __future__ import annotations

import struct
from typing import Final

from crc32c import crc32c

from mirrorspark.wire.compression import ZSTD, compress
from mirrorspark.wire.record_batch import HEADER

__all__ = ["FILLER_RECORDS_MAX", "filler_batch"]

FILLER_RECORDS_MAX: Final = 1_000_000
"""In one batch: about 0.8 MB in zstd, below what a topic takes by default (max.message.bytes, 1 MiB)."""

_BLOCK: Final = 64  # offset deltas that differ in their lowest seven bits alone (zigzag doubles them)
_FIRST_BYTES: Final = [bytes([low | 0x80]) for low in range(0, 0x80, 2)]
_BEFORE_DELTA: Final = b"\0\0"  # attributes, timestamp delta
_AFTER_DELTA: Final = b"\1\1\0"  # no key, no value, no headers
_LENGTH_END: Final = struct.calcsize(">qi")
_CRC_AT: Final = struct.calcsize(">qiib")
_CRC: Final = struct.Struct(">I")


def filler_batch(count: int, timestamp_ms: int) -> bytearray:
    """A dense v2 batch of ``count`` records without key and value, in zstd, no producer, the CRC set."""
    assert 0 < count <= FILLER_RECORDS_MAX, count
    batch = bytearray(HEADER.size) + compress(ZSTD, _records(count))
    after_crc = (ZSTD, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count)
    HEADER.pack_into(batch, 0, 0, len(batch) - _LENGTH_END, -1, 2, 0, *after_crc)
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_AT + _CRC.size :]))
    return batch


def _records(count: int) -> bytes:
    blocks = [b"".join(_record(bytes([delta << 1])) for delta in range(min(count, _BLOCK)))]
    whole, rest = divmod(count, _BLOCK)
    blocks += [_block(number) for number in range(1, whole)]
    if whole and rest:
        last = _block(whole)
        blocks.append(last[: len(last) // _BLOCK * rest])
    return b"".join(blocks)


def _block(number: int) -> bytes:
    """The records with deltas ``64 * number`` and on: all of one length, alike but for the first byte of the delta."""
    head, tail = _around(_varint(number))
    return head + (tail + head).join(_FIRST_BYTES) + tail


def _around(high: bytes) -> tuple[bytes, bytes]:
    """What stands before and after the first byte of a delta whose other bytes are ``high``."""
    length = len(_BEFORE_DELTA) + 1 + len(high) + len(_AFTER_DELTA)
    return bytes([length << 1]) + _BEFORE_DELTA, high + _AFTER_DELTA


def _record(delta: bytes) -> bytes:
    body = _BEFORE_DELTA + delta + _AFTER_DELTA
    return bytes([len(body) << 1]) + body


def _varint(number: int) -> bytes:
    """Unsigned; what is left of a delta above its lowest seven bits."""
    output = bytearray()
    while number > 0x7F:
        output.append(number & 0x7F | 0x80)
        number >>= 7
    output.append(number)
    return bytes(output)
