"""LZ4's frame format, as far as a codec library leaves it to us: written for Java, measured before it is opened.

Called by ``compression`` alone. Java reads only frames whose blocks are independent, which the library does not
write; Kafka before 0.10 wrote frames with a wrong header checksum, which the library does not read; and a frame need
not state its size, which the library takes no limit for. May not decompress.
"""

from __future__ import annotations

import struct
from typing import Final

import cramjam

from mirrorspark.wire.damage import damage

__all__ = ["lz4_bound", "lz4_frame", "with_right_header_checksum"]

_MAGIC: Final = b"\x04\x22\x4d\x18"
_FLAGS_AT: Final = len(_MAGIC)
_BLOCK_BYTES_AT: Final = _FLAGS_AT + 1
_U32: Final = struct.Struct("<I")

_BLOCK_CHECKSUM: Final = 0x10
_CONTENT_SIZE: Final = 0x08
_CONTENT_CHECKSUM: Final = 0x04
_DICTIONARY_ID: Final = 0x01
_STORED: Final = 0x80000000

_BLOCK_BYTES_MAX: Final = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
_RATIO_MAX: Final = 255

# Version 1, independent blocks, no checksums; blocks of at most 64 KiB; the checksum of these two.
_WRITTEN_HEADER: Final = _MAGIC + b"\x60\x40\x82"
_WRITTEN_BLOCK_BYTES: Final = 64 << 10


def lz4_frame(data: memoryview) -> bytes:
    """``data`` compressed, as Kafka's own Java writer frames it."""
    output = bytearray(_WRITTEN_HEADER)
    for start in range(0, len(data), _WRITTEN_BLOCK_BYTES):
        plain = data[start : start + _WRITTEN_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            output += _U32.pack(len(block))
            output += block
        else:
            output += _U32.pack(len(plain) | _STORED)
            output += plain
    output += _U32.pack(0)
    return bytes(output)


def lz4_bound(frames: bytes) -> int:
    """The most bytes that these frames, which must end where ``frames`` ends, can hold."""
    bound = position = 0
    try:
        while True:
            held, position = _walk_frame(frames, position)
            bound += held
            if position == len(frames):
                return bound
    except (struct.error, IndexError):
        raise damage("the lz4 stream is cut off") from None


def _walk_frame(frames: bytes, position: int) -> tuple[int, int]:
    """The most bytes that the frame at ``position`` can hold, and where it ends."""
    if not frames.startswith(_MAGIC, position):
        raise damage("not an lz4 frame")
    flags = frames[position + _FLAGS_AT]
    block_bytes_max = _BLOCK_BYTES_MAX.get(frames[position + _BLOCK_BYTES_AT] >> 4 & 0x07)
    if block_bytes_max is None:
        raise damage("an lz4 frame names an unknown block size")
    checksum_bytes = 4 if flags & _BLOCK_CHECKSUM else 0
    position = _header_end(frames, position)
    bound = 0
    while block := _U32.unpack_from(frames, position)[0]:
        block_bytes = block & ~_STORED
        bound += min(block_bytes if block & _STORED else block_bytes * _RATIO_MAX, block_bytes_max)
        position += _U32.size + block_bytes + checksum_bytes
    return bound, position + _U32.size + (4 if flags & _CONTENT_CHECKSUM else 0)


def _header_end(frames: bytes, position: int) -> int:
    flags = frames[position + _FLAGS_AT]
    content_size_bytes = 8 if flags & _CONTENT_SIZE else 0
    dictionary_id_bytes = 4 if flags & _DICTIONARY_ID else 0
    return position + _BLOCK_BYTES_AT + 1 + content_size_bytes + dictionary_id_bytes + 1


def with_right_header_checksum(frames: bytes) -> bytes:
    """Kafka before 0.10 summed the magic number too. Any checksum is set right: the batch's CRC covers the header."""
    checksum_at = _header_end(frames, 0) - 1
    checksum = _xxh32(frames[_FLAGS_AT:checksum_at]) >> 8 & 0xFF
    if frames[checksum_at] == checksum:
        return frames
    return frames[:checksum_at] + bytes((checksum,)) + frames[checksum_at + 1 :]


def _xxh32(data: bytes) -> int:
    """XXH32 with seed 0 of less than 16 bytes, for which the algorithm needs none of its lanes."""
    assert len(data) < 16, "a frame descriptor has at most 14 bytes"
    prime_1, prime_2, prime_3, prime_4, prime_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    mask = 0xFFFFFFFF
    words_end = len(data) & ~3
    value = prime_5 + len(data)
    for position in range(0, words_end, 4):
        value = value + _U32.unpack_from(data, position)[0] * prime_3 & mask
        value = (value << 17 | value >> 15) * prime_4 & mask
    for byte in data[words_end:]:
        value = value + byte * prime_5 & mask
        value = (value << 11 | value >> 21) * prime_1 & mask
    value = (value ^ value >> 15) * prime_2 & mask
    value = (value ^ value >> 13) * prime_3 & mask
    return value ^ value >> 16
