"""The records inside a v2 batch: read out of one, or written into a new one.

Called by ``reencoding`` for a batch that cannot go as it is, and by rooms that read or write Kafka's small internal
topics. May not trust a byte: whatever is wrong with a batch, the answer is a CorruptBatch with its place, and no
memory is taken on the word of a length or a count alone. Does not check the batch's CRC; ``verify_crc`` does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from crc32c import crc32c

from mirrorspark.errors import WireError
from mirrorspark.wire.compression import NONE, compress, decompress
from mirrorspark.wire.damage import damage, locate
from mirrorspark.wire.record_batch import HEADER, Batch
from mirrorspark.wire.varint import append_varint, append_varlong, decode_varint, decode_varlong

__all__ = ["Header", "Record", "decode_records", "encode_batch"]

Header = tuple[bytes, bytes | None]

# length, attributes, timestamp delta, offset delta, key length, value length, header count: a byte each at least
_RECORD_BYTES_MIN: Final = 7
_HEADER_BYTES_MIN: Final = 2  # key length, value length

_LENGTH_END: Final = struct.calcsize(">qi")
_CRC_AT: Final = struct.calcsize(">qiib")
_CRC: Final = struct.Struct(">I")


class Record(NamedTuple):
    """One record as a consumer sees it. ``timestamp`` is milliseconds, -1 for none; a header's key is its raw bytes."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def decode_records(batch: Batch, topic: str, partition: int) -> list[Record]:
    """The batch's records in order, offsets absolute. Empty for a batch that compaction has emptied."""
    assert batch.magic == 2, "a legacy message is opened by legacy_batch"
    if batch.record_count == 0 and batch.size == HEADER.size:
        return []
    try:
        data = decompress(batch.codec, batch.whole()[HEADER.size :])
        return _decode_all(data, batch)
    except WireError as error:
        raise locate(error, topic, partition, batch.base_offset) from error


def _decode_all(data: bytes, batch: Batch) -> list[Record]:
    if batch.record_count * _RECORD_BYTES_MIN > len(data):
        raise damage(f"{len(data)} bytes cannot hold {batch.record_count} records")
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    # The broker that stamps a batch with its own time leaves the records' deltas as they were.
    append_time = batch.max_timestamp if batch.is_log_append_time else None
    records: list[Record] = []
    position = 0
    delta_before = -1
    for _ in range(batch.record_count):
        offset_delta, timestamp_delta, key, value, headers, position = _decode_record(data, position)
        if not delta_before < offset_delta <= batch.last_offset_delta:
            raise damage(f"offset delta {offset_delta} after {delta_before}, of at most {batch.last_offset_delta}")
        delta_before = offset_delta
        timestamp = _as_int64(base_timestamp + timestamp_delta) if append_time is None else append_time
        records.append(Record(base_offset + offset_delta, timestamp, key, value, headers))
    if position != len(data):
        raise damage(f"{len(data) - position} bytes follow the last record")
    return records


def _decode_record(data: bytes, position: int) -> tuple[int, int, bytes | None, bytes | None, tuple[Header, ...], int]:
    """Offset delta, timestamp delta, key, value, headers of the record at ``position``, and the position after it."""
    length, position = decode_varint(data, position)
    end = position + length
    if length < _RECORD_BYTES_MIN - 1 or end > len(data):
        raise damage(f"a record has length {length}, {len(data) - position} bytes are left")
    position += 1  # attributes, of which none is defined
    timestamp_delta, position = decode_varlong(data, position)
    offset_delta, position = decode_varint(data, position)
    key, position = _decode_bytes(data, position, end)
    value, position = _decode_bytes(data, position, end)
    header_count, position = decode_varint(data, position)
    headers: tuple[Header, ...] = ()
    if header_count:
        headers, position = _decode_headers(data, position, end, header_count)
    if position != end:
        raise damage(f"a record of length {length} ends {position - end} bytes off its end")
    return offset_delta, timestamp_delta, key, value, headers, position


def _decode_headers(data: bytes, position: int, end: int, count: int) -> tuple[tuple[Header, ...], int]:
    if not 0 < count * _HEADER_BYTES_MIN <= end - position:
        raise damage(f"{end - position} bytes cannot hold {count} headers")
    headers: list[Header] = []
    for _ in range(count):
        key, position = _decode_bytes(data, position, end)
        if key is None:
            raise damage("a header has no key")
        value, position = _decode_bytes(data, position, end)
        headers.append((key, value))
    return tuple(headers), position


def _decode_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    """A length and that many bytes, all before ``end``; -1 stands for null."""
    length, position = decode_varint(data, position)
    if length == -1:
        return None, position
    if length < 0 or position + length > end:
        raise damage(f"a key, value or header has length {length}, {end - position} bytes are left")
    return data[position : position + length], position + length


def encode_batch(records: Iterable[Record], *, codec: int = NONE) -> bytearray:
    """A dense v2 batch of these records, in this order: base offset 0, CreateTime, no producer, the CRC set.

    The records' own offsets are not looked at. The same records always give the same bytes.
    """
    listed = list(records)
    assert listed, "a broker takes no batch without records"
    base_timestamp = listed[0].timestamp
    payload = bytearray()
    for offset_delta, record in enumerate(listed):
        encoded = _encode_record(record, offset_delta, base_timestamp)
        append_varint(payload, len(encoded))
        payload += encoded
    batch = bytearray(HEADER.size) + compress(codec, payload)
    last_offset_delta = len(listed) - 1
    max_timestamp = max(record.timestamp for record in listed)
    after_crc = (codec, last_offset_delta, base_timestamp, max_timestamp, -1, -1, -1, len(listed))
    HEADER.pack_into(batch, 0, 0, len(batch) - _LENGTH_END, -1, 2, 0, *after_crc)
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_AT + _CRC.size :]))
    return batch


def _encode_record(record: Record, offset_delta: int, base_timestamp: int) -> bytearray:
    output = bytearray(1)  # attributes
    append_varlong(output, _as_int64(record.timestamp - base_timestamp))
    append_varint(output, offset_delta)
    _append_bytes(output, record.key)
    _append_bytes(output, record.value)
    append_varint(output, len(record.headers))
    for key, value in record.headers:
        _append_bytes(output, key)
        _append_bytes(output, value)
    return output


def _append_bytes(output: bytearray, value: bytes | None) -> None:
    if value is None:
        append_varint(output, -1)
    else:
        append_varint(output, len(value))
        output += value


def _as_int64(number: int) -> int:
    """Wrapped around, as Java's arithmetic does it: a delta between far timestamps comes back to the timestamp."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
