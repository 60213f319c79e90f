"""kafka-python's record code as a second opinion, with pyarrow's codecs under it so that no code is shared with ours.

Used by the tests of this folder only. kafka-python looks for codec packages that this project does not need; pyarrow,
which it needs anyway, stands in for them.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pyarrow

from mirrorspark.wire.records import Record

with warnings.catch_warnings():
    # It loads its schemas by a function that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import codec as kafka_codec
    from kafka.record import default_records, legacy_records
    from kafka.record.util import decode_varint

__all__ = ["build_legacy", "build_v2", "decode_varint", "read_v2"]


def build_v2(records: Sequence[Record], *, codec: int) -> bytearray:
    builder = default_records.DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 30)
    for delta, record in enumerate(records):
        headers = [(key.decode(), value) for key, value in record.headers]
        builder.append(delta, record.timestamp, record.key, record.value, headers)
    with _codecs():
        return bytearray(builder.build())


def build_legacy(records: Sequence[Record], *, magic: int, codec: int) -> bytearray:
    """As its producer sends it: offsets from 0, and a wrapper with offset 0, for the broker to set right."""
    builder = legacy_records.LegacyRecordBatchBuilder(magic, codec, 1 << 30)
    for delta, record in enumerate(records):
        builder.append(delta, record.timestamp, record.key, record.value)
    with _codecs():
        return bytearray(builder.build())


def read_v2(data: bytes | bytearray) -> list[Record]:
    with _codecs():
        batch = default_records.DefaultRecordBatch(bytes(data))
        assert batch.validate_crc()
        return [
            Record(
                found.offset,
                found.timestamp,
                found.key,
                found.value,
                tuple((key.encode(), value) for key, value in found.headers),
            )
            for found in batch
        ]


@contextmanager
def _codecs() -> Iterator[None]:
    lz4 = {"lz4_encode": _Lz4.compress, "lz4_decode": _Lz4.decompress}
    with (
        mock.patch.multiple(kafka_codec, snappy=_Snappy, zstd=_Zstd, lz4=_Lz4),
        mock.patch.multiple(default_records, **lz4),
        mock.patch.multiple(legacy_records, **lz4),
    ):
        yield


def _expand(name: str, data: bytes) -> bytes:
    return bytes(pyarrow.CompressedInputStream(pyarrow.BufferReader(data), name).read())


class _Snappy:
    """Stands in for python-snappy."""

    @staticmethod
    def compress(data: bytes) -> bytes:
        return bytes(pyarrow.Codec("snappy").compress(data, asbytes=True))

    @staticmethod
    def decompress(data: bytes) -> bytes:
        size = shift = 0
        for byte in data:
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return bytes(pyarrow.Codec("snappy").decompress(data, decompressed_size=size, asbytes=True))


class _Lz4:
    """Stands in for lz4.frame."""

    @staticmethod
    def compress(data: bytes) -> bytes:
        return bytes(pyarrow.Codec("lz4").compress(bytes(data), asbytes=True))

    @staticmethod
    def decompress(data: bytes) -> bytes:
        return _expand("lz4", bytes(data))


class _Zstd:
    """Stands in for zstandard."""

    class ZstdCompressor:
        def compress(self, data: bytes) -> bytes:
            return bytes(pyarrow.Codec("zstd").compress(bytes(data), asbytes=True))

    class ZstdDecompressor:
        @contextmanager
        def stream_reader(self, source: io.BytesIO, **_: Any) -> Iterator[io.BytesIO]:
            yield io.BytesIO(_expand("zstd", source.read()))
