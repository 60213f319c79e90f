"""How large a zstd stream can become, read from its frame and block headers.

Called by ``compression`` alone, which allocates that much: a frame need not state its size (Java's writer does not),
and the library takes no limit. May not decompress.
"""

from __future__ import annotations

import struct
from typing import Final

from mirrorspark.wire.damage import damage

__all__ = ["zstd_bound"]

_U32: Final = struct.Struct("<I")
_MAGIC: Final = 0xFD2FB528
_SKIPPABLE: Final = 0x184D2A50
_SKIPPABLE_MASK: Final = 0xFFFFFFF0

# The frame descriptor: two bits for the content size, one flag each, two bits for the dictionary id.
_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
_SINGLE_SEGMENT: Final = 0x20
_CHECKSUM: Final = 0x04
_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)

_BLOCK_BYTES_MAX: Final = 128 << 10
_BLOCK_HEADER_BYTES: Final = 3
_RAW, _RLE, _COMPRESSED, _RESERVED = range(4)


def zstd_bound(frames: bytes) -> int:
    """The most bytes that these frames, which must end where ``frames`` ends, can hold."""
    bound = position = 0
    try:
        while True:
            held, position = _walk_frame(frames, position)
            bound += held
            if position == len(frames):
                return bound
    except (struct.error, IndexError):
        raise damage("the zstd stream is cut off") from None


def _walk_frame(frames: bytes, position: int) -> tuple[int, int]:
    """The most bytes that the frame at ``position`` can hold, and where it ends."""
    (magic,) = _U32.unpack_from(frames, position)
    position += _U32.size
    if magic & _SKIPPABLE_MASK == _SKIPPABLE:
        (skipped_bytes,) = _U32.unpack_from(frames, position)
        return 0, position + _U32.size + skipped_bytes
    if magic != _MAGIC:
        raise damage("not a zstd frame")
    descriptor = frames[position]
    single_segment = descriptor & _SINGLE_SEGMENT
    window_bytes = 0 if single_segment else 1
    content_size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6] or (1 if single_segment else 0)
    position += 1 + window_bytes + _DICTIONARY_ID_BYTES[descriptor & 0x03] + content_size_bytes
    bound = 0
    is_last = False
    while not is_last:
        block_header = int.from_bytes((frames[position], frames[position + 1], frames[position + 2]), "little")
        is_last, kind, block_bytes = block_header & 1 == 1, block_header >> 1 & 0x03, block_header >> 3
        if kind == _RESERVED:
            raise damage("a zstd frame holds a block of an unknown kind")
        bound += _BLOCK_BYTES_MAX if kind == _COMPRESSED else min(block_bytes, _BLOCK_BYTES_MAX)
        position += _BLOCK_HEADER_BYTES + (1 if kind == _RLE else block_bytes)
    return bound, position + (4 if descriptor & _CHECKSUM else 0)
