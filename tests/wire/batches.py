"""Batches and records to try the wire room on: strategies, and builders for what our own encoder never writes.

Used by the tests of this room and of the pipeline. The builders take their bytes apart as the protocol guide does, not
as the product does.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from crc32c import crc32c
from hypothesis import settings
from hypothesis import strategies as st

from mirrorspark.wire.compression import compress
from mirrorspark.wire.record_batch import HEADER, Batch, split_batches
from mirrorspark.wire.records import Record
from mirrorspark.wire.varint import append_varint, append_varlong

thorough = settings(deadline=None, max_examples=120)
brief = settings(deadline=None, max_examples=40)

CODECS = (0, 1, 2, 3, 4)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
LEGACY_CODECS = (0, 1, 2, 3)

codecs = st.sampled_from(CODECS)
timestamps = st.one_of(st.just(-1), st.integers(1_600_000_000_000, 1_800_000_000_000), st.integers(-(2**63), 2**63 - 1))
contents = st.one_of(st.none(), st.binary(max_size=30), st.binary(min_size=60, max_size=300))
headers = st.lists(st.tuples(st.binary(max_size=8), st.one_of(st.none(), st.binary(max_size=80))), max_size=4).map(
    tuple
)


@st.composite
def record_lists(draw: st.DrawFn, *, with_holes: bool = False, with_headers: bool = True) -> list[Record]:
    """One to twelve records with rising offsets, dense unless holes are asked for."""
    offset = draw(st.integers(0, 2**40))
    records = []
    for _ in range(draw(st.integers(1, 12))):
        own_headers = draw(headers) if with_headers else ()
        records.append(Record(offset, draw(timestamps), draw(contents), draw(contents), own_headers))
        offset += draw(st.integers(1, 200)) if with_holes else 1
    return records


def only_batch(data: bytes | bytearray) -> Batch:
    """The one batch that ``data`` consists of, in memory of its own."""
    [batch] = split_batches(memoryview(bytearray(data)), "topic", 3)
    assert batch.size == len(data)
    return batch


def v2_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    codec: int = 0,
    flags: int = 0,
    max_timestamp: int | None = None,
    base_timestamp: int | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytearray:
    """A batch as a broker may hold it: at its offsets, with holes, flags and producer as told."""
    base_offset = records[0].offset if base_offset is None else base_offset
    last_offset = records[-1].offset if last_offset is None else last_offset
    if base_timestamp is None:
        base_timestamp = records[0].timestamp if records else -1
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=-1)
    payload = bytearray()
    for record in records:
        encoded = _v2_record(record, base_offset, base_timestamp)
        append_varint(payload, len(encoded))
        payload += encoded
    data = bytearray(HEADER.size) + compress(codec, payload)
    last_offset_delta = last_offset - base_offset
    fields = (codec | flags, last_offset_delta, base_timestamp, max_timestamp, *producer, len(records))
    HEADER.pack_into(data, 0, base_offset, len(data) - 12, 7, 2, 0, *fields)
    return signed(data)


def _v2_record(record: Record, base_offset: int, base_timestamp: int) -> bytearray:
    output = bytearray(1)
    delta = (record.timestamp - base_timestamp) & (2**64 - 1)
    append_varlong(output, delta - 2**64 if delta >= 2**63 else delta)
    append_varint(output, record.offset - base_offset)
    pairs = ((record.key, record.value), *record.headers)
    for index, pair in enumerate(pairs):
        for part in pair:
            append_varint(output, -1 if part is None else len(part))
            output += part or b""
        if index == 0:
            append_varint(output, len(record.headers))
    return output


def signed(data: bytearray) -> bytearray:
    """The same v2 batch with the CRC that its bytes deserve."""
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    return data


def legacy_message(record: Record, *, magic: int, attributes: int = 0, offset: int | None = None) -> bytearray:
    """One message of format v0 or v1."""
    checked = struct.pack(">bb", magic, attributes)
    if magic == 1:
        checked += struct.pack(">q", record.timestamp)
    for part in (record.key, record.value):
        checked += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    offset = record.offset if offset is None else offset
    return bytearray(struct.pack(">qiI", offset, 4 + len(checked), zlib.crc32(checked)) + checked)


def legacy_wrapper(records: Sequence[Record], *, magic: int, codec: int, append_time: int | None = None) -> bytearray:
    """A compressed message around these records; with ``append_time``, as a broker stamps it: on the wrapper alone."""
    base_offset = records[0].offset if magic == 1 else 0
    wrapped = b"".join(legacy_message(record, magic=magic, offset=record.offset - base_offset) for record in records)
    timestamp = max(record.timestamp for record in records) if append_time is None else append_time
    attributes = codec | (8 if append_time is not None else 0)
    outer = Record(records[-1].offset, timestamp, None, compress(codec, wrapped))
    return legacy_message(outer, magic=magic, attributes=attributes)
