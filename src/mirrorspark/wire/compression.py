"""The five codecs of Kafka, whole payloads at a time, with a limit on what comes out.

Called by ``records`` and ``legacy_batch`` to open a batch and close it again; a carried batch never comes here. What
is written is what Java clients write, and they read it: snappy in xerial's frames, lz4 in independent blocks. What is
read is also what others write. No more memory than the limit is taken, so a bomb costs an error and nothing else. May
not let an error of a library out: all damage is a WireError, an unknown codec an UnsupportedBatch.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Final, TypeAlias

import cramjam

from mirrorspark.errors import UnsupportedBatch, WireError
from mirrorspark.wire.damage import damage
from mirrorspark.wire.lz4_frame import lz4_bound, lz4_frame, with_right_header_checksum
from mirrorspark.wire.zstd_frame import zstd_bound

__all__ = ["DECOMPRESSED_BYTES_MAX", "GZIP", "LZ4", "NONE", "SNAPPY", "ZSTD", "compress", "decompress"]

DECOMPRESSED_BYTES_MAX: Final = 256 << 20

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

Bytes: TypeAlias = bytes | bytearray | memoryview

_GZIP_LEVEL: Final = 6  # Kafka's default, as is the next one
_ZSTD_LEVEL: Final = 3
_GZIP_WINDOW_BITS: Final = 31  # 15 bits, plus 16 for "with a gzip header"
_GZIP_CHUNK_BYTES: Final = 8 << 10  # at the end of a member zlib copies the rest of what it was given

_XERIAL_HEADER: Final = struct.Struct(">8sii")  # magic, version, oldest version that can read it
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_BLOCK_BYTES: Final = 32 << 10
_I32: Final = struct.Struct(">i")
_XERIAL_MAGIC_AS_LENGTH: Final = _I32.unpack_from(_XERIAL_MAGIC)[0]

_SNAPPY_RATIO_MAX: Final = 64  # a copy of at most 64 bytes takes at least 2


def compress(codec: int, data: Bytes) -> bytes:
    """The same bytes for the same input, also between processes."""
    if codec == NONE:
        return bytes(data)
    if codec == GZIP:
        compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW_BITS)
        return compressor.compress(data) + compressor.flush()
    if codec == SNAPPY:
        return _compress_snappy(data)
    if codec == LZ4:
        return lz4_frame(memoryview(data))
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))
    raise _unknown(codec)


def decompress(codec: int, data: Bytes, *, limit: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Raises WireError when ``data`` is damaged, cut off, followed by something else, or more than ``limit`` inside."""
    try:
        if codec == NONE:
            return _decompress_none(data, limit)
        if codec == GZIP:
            return _decompress_gzip(data, limit)
        if codec == SNAPPY:
            return _decompress_snappy(data, limit)
        if codec == LZ4:
            return _decompress_lz4(data, limit)
        if codec == ZSTD:
            return _decompress_zstd(data, limit)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise damage(f"codec {codec}: {error}") from error
    raise _unknown(codec)


def _unknown(codec: int) -> UnsupportedBatch:
    reason = f"codec {codec} is unknown"
    return UnsupportedBatch(reason, reason=reason)


def _too_large(limit: int) -> WireError:
    return damage(f"decompresses to more than {limit} bytes")


def _decompress_none(data: Bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise _too_large(limit)
    return bytes(data)


def _decompress_gzip(data: Bytes, limit: int) -> bytes:
    """All members, one after another, as Java reads them. By zlib, since it stops at a limit by itself."""
    view = memoryview(data)
    parts: list[bytes] = []
    left = limit
    position = 0
    at_end = False
    member = zlib.decompressobj(_GZIP_WINDOW_BITS)
    while position < len(view):
        chunk = view[position : position + _GZIP_CHUNK_BYTES]
        part = member.decompress(chunk, left + 1)  # one more than allowed, since 0 would mean no limit
        left -= len(part)
        if left < 0:
            raise _too_large(limit)
        parts.append(part)
        position += len(chunk) - len(member.unused_data)
        at_end = member.eof
        if at_end:
            member = zlib.decompressobj(_GZIP_WINDOW_BITS)
    if not at_end:
        raise damage("the gzip stream is cut off")
    return b"".join(parts)


def _compress_snappy(data: Bytes) -> bytes:
    view = memoryview(data)
    output = bytearray(_XERIAL_HEADER.pack(_XERIAL_MAGIC, 1, 1))
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        output += _I32.pack(len(block))
        output += block
    return bytes(output)


def _decompress_snappy(data: Bytes, limit: int) -> bytes:
    """xerial's frames, or one raw block, which librdkafka and others write."""
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _snappy_block(view, limit, limit)
    parts: list[bytes] = []
    left = limit
    position = _XERIAL_HEADER.size
    while position != len(view):
        if position + _I32.size > len(view):
            raise damage("the snappy stream is cut off")
        (block_bytes,) = _I32.unpack_from(view, position)
        if block_bytes == _XERIAL_MAGIC_AS_LENGTH:  # another stream was joined to the last one
            position += _XERIAL_HEADER.size
            continue
        position += _I32.size
        if not 0 < block_bytes <= len(view) - position:
            raise damage(f"a snappy block has length {block_bytes}")
        part = _snappy_block(view[position : position + block_bytes], left, limit)
        left -= len(part)
        parts.append(part)
        position += block_bytes
    return b"".join(parts)


def _snappy_block(block: memoryview, left: int, limit: int) -> bytes:
    """A raw block says its size first; the size is believed only as far as the format can have compressed so much."""
    if not block:
        raise damage("a snappy block is empty")
    size = cramjam.snappy.decompress_raw_len(block)
    if size > left:
        raise _too_large(limit)
    if size > len(block) * _SNAPPY_RATIO_MAX:
        raise damage(f"a snappy block of {len(block)} bytes claims to hold {size}")
    return bytes(cramjam.snappy.decompress_raw(block))


def _decompress_lz4(data: Bytes, limit: int) -> bytes:
    frames = bytes(data)
    bound = lz4_bound(frames)
    return _decompress_bounded(cramjam.lz4.decompress_into, with_right_header_checksum(frames), bound, limit)


def _decompress_zstd(data: Bytes, limit: int) -> bytes:
    frames = bytes(data)
    return _decompress_bounded(cramjam.zstd.decompress_into, frames, zstd_bound(frames), limit)


def _decompress_bounded(
    decompress_into: Callable[[bytes, bytearray], int], frames: bytes, bound: int, limit: int
) -> bytes:
    """``bound`` may be generous, so what exceeds the limit is tried all the same, with the limit's memory."""
    output = bytearray(min(bound, limit))
    try:
        size = decompress_into(frames, output)
    except cramjam.DecompressionError as error:
        if bound > limit:
            raise _too_large(limit) from error
        raise
    return bytes(memoryview(output)[:size])
