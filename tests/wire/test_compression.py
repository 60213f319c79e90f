"""Codecs: round trips, what other clients write, joined streams, limits, and damage."""

from __future__ import annotations

import gzip
import io
import random
import struct
from contextlib import suppress

import cramjam
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import UnsupportedBatch, WireError
from mirrorspark.wire.compression import GZIP, LZ4, SNAPPY, ZSTD, compress, decompress

from .batches import CODEC_NAMES, CODECS, codecs, thorough

REAL_CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
TEXT = b"the same words, over and over; " * 9_000
NOISE = random.Random(7).randbytes(300_000)


@thorough
@given(codecs, st.binary(max_size=2_000), st.integers(1, 200))
def test_round_trip(codec: int, data: bytes, repeated: int) -> None:
    data *= repeated
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", CODECS, ids=CODEC_NAMES)
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE, TEXT + NOISE], ids=["empty", "one", "text", "noise", "both"])
def test_round_trip_of_many_blocks_from_any_buffer(codec: int, data: bytes) -> None:
    compressed = compress(codec, bytearray(data))
    assert compressed == compress(codec, memoryview(data)), "the same input gives the same bytes"
    around = bytearray(b"<" + compressed + b">")
    assert decompress(codec, memoryview(around)[1:-1]) == data


def test_gzip_reads_all_members() -> None:
    assert decompress(GZIP, gzip.compress(TEXT) + compress(GZIP, b"") + gzip.compress(b"end")) == TEXT + b"end"


def test_gzip_of_very_many_members_takes_linear_time() -> None:
    member = compress(GZIP, b"a")
    assert decompress(GZIP, member * 20_000) == b"a" * 20_000


def test_zstd_reads_all_frames_and_skips_skippable_ones() -> None:
    skippable = struct.pack("<II", 0x184D2A53, 5) + b"noise"
    frames = compress(ZSTD, TEXT) + skippable + compress(ZSTD, b"end")
    assert decompress(ZSTD, frames) == TEXT + b"end"


def test_zstd_reads_frames_without_a_stated_size() -> None:
    output = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(output, "zstd") as stream:
        for start in range(0, len(TEXT), 1_000):
            stream.write(TEXT[start : start + 1_000])
    assert decompress(ZSTD, output.getvalue().to_pybytes()) == TEXT


def test_snappy_reads_a_raw_block_and_joined_streams() -> None:
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT
    assert decompress(SNAPPY, compress(SNAPPY, TEXT) + compress(SNAPPY, b"end")) == TEXT + b"end"


def test_snappy_is_written_as_java_writes_it() -> None:
    compressed = compress(SNAPPY, TEXT)
    assert compressed.startswith(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1))
    (block_bytes,) = struct.unpack_from(">i", compressed, 16)
    assert bytes(cramjam.snappy.decompress_raw(compressed[20 : 20 + block_bytes])) == TEXT[: 32 << 10]


def test_lz4_is_written_in_independent_blocks_since_java_reads_no_others() -> None:
    compressed = compress(LZ4, TEXT)
    assert compressed.startswith(bytes.fromhex("04224d18 60 40 82"))
    assert bytes(cramjam.lz4.decompress(compressed)) == TEXT


def test_lz4_reads_linked_blocks_checksums_and_joined_frames() -> None:
    linked = bytes(cramjam.lz4.compress(TEXT))
    assert linked[4] & 0x20 == 0, "the library writes linked blocks, which is why we do not use its writer"
    with_size = bytes(pyarrow.Codec("lz4").compress(TEXT, asbytes=True))
    assert decompress(LZ4, linked + compress(LZ4, b"middle") + with_size) == TEXT + b"middle" + TEXT


def test_lz4_reads_the_wrong_header_checksum_of_old_kafka() -> None:
    compressed = bytearray(compress(LZ4, TEXT))
    compressed[6] = 0x1A  # what Kafka before 0.10 wrote: the sum of magic and flags
    assert decompress(LZ4, compressed) == TEXT


@pytest.mark.parametrize("codec", CODECS, ids=CODEC_NAMES)
def test_limit_is_exact_and_typed(codec: int) -> None:
    compressed = compress(codec, TEXT)
    assert decompress(codec, compressed, limit=len(TEXT)) == TEXT
    for limit in (len(TEXT) - 1, 100, 0):
        with pytest.raises(WireError, match="more than"):
            decompress(codec, compressed, limit=limit)
    assert decompress(codec, compress(codec, b""), limit=0) == b""


@pytest.mark.parametrize("codec", REAL_CODECS, ids=CODEC_NAMES[1:])
def test_bomb_is_refused(codec: int) -> None:
    bomb = compress(codec, bytes(64 << 20))
    with pytest.raises(WireError):
        decompress(codec, bomb, limit=1 << 20)


def test_snappy_that_claims_gigabytes_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(WireError):
        decompress(SNAPPY, b"\xff\xff\xff\xff\x0fabc")
    with pytest.raises(WireError, match="claims"):
        decompress(SNAPPY, b"\xff\xff\xff\x7f" + b"abc", limit=1 << 40)


@pytest.mark.parametrize("codec", REAL_CODECS, ids=CODEC_NAMES[1:])
def test_cut_off_streams_and_followers_are_refused(codec: int) -> None:
    compressed = compress(codec, TEXT[:5_000] + NOISE[:2_000])
    for end in (*range(20), *range(len(compressed) - 20, len(compressed))):
        if codec == SNAPPY and end == 16:
            continue  # xerial's header alone is an empty stream
        with pytest.raises(WireError):
            decompress(codec, compressed[:end])
    with pytest.raises(WireError):
        decompress(codec, compressed + b"more")


@pytest.mark.parametrize("codec", [-1, 5, 6, 7])
def test_unknown_codec_is_unsupported(codec: int) -> None:
    with pytest.raises(UnsupportedBatch):
        compress(codec, b"")
    with pytest.raises(UnsupportedBatch):
        decompress(codec, b"")


@thorough
@given(st.sampled_from(REAL_CODECS), st.binary(max_size=300))
def test_arbitrary_bytes_never_give_another_error(codec: int, data: bytes) -> None:
    with suppress(WireError):
        decompress(codec, data, limit=1 << 20)


def test_python_gzip_reads_ours() -> None:
    assert gzip.GzipFile(fileobj=io.BytesIO(compress(GZIP, TEXT))).read() == TEXT
