"""Messages of formats v0 and v1, which old topics still hold: one record each, or a compressed one that wraps many.

Called by ``reencoding``: a broker of today takes only v2, so such a message never goes as it is. Inside a wrapper v0
has absolute offsets, v1 has relative ones, whose base only the wrapper's own offset (that of its last record)
reveals. May not trust a byte: damage is a CorruptBatch with its place. The CRCs of wrapped messages are checked here,
the outer one by ``verify_crc``.
"""

from __future__ import annotations

import struct
from typing import Final

from mirrorspark.errors import WireError
from mirrorspark.wire.compression import NONE, ZSTD, decompress
from mirrorspark.wire.damage import damage, locate
from mirrorspark.wire.record_batch import Batch, split_batches, verify_crc
from mirrorspark.wire.records import Record

__all__ = ["decode_legacy"]

# What stands before key and value, by magic: offset, size, crc, magic, attributes, and in v1 the timestamp.
_KEY_AT: Final = (struct.calcsize(">qiIbb"), struct.calcsize(">qiIbbq"))
_LENGTH: Final = struct.Struct(">i")


def decode_legacy(batch: Batch, topic: str, partition: int) -> list[Record]:
    """The record of a plain message, or those in a wrapper: offsets absolute, timestamp -1 in v0, which has none."""
    assert batch.is_legacy, "a v2 batch is opened by records"
    try:
        if batch.codec == NONE:
            return [_decode_message(batch, batch.base_offset, batch.base_timestamp)]
        return _decode_wrapper(batch, topic, partition)
    except WireError as error:
        raise locate(error, topic, partition, batch.base_offset) from error


def _decode_wrapper(wrapper: Batch, topic: str, partition: int) -> list[Record]:
    if wrapper.codec == ZSTD:
        raise damage("zstd in a format that came before it")
    messages = _wrapped_messages(wrapper, topic, partition)
    last_offset = messages[-1].base_offset
    base_offset = wrapper.base_offset - last_offset if wrapper.magic == 1 else 0
    if base_offset < 0 or base_offset + last_offset > wrapper.base_offset:
        raise damage(f"a wrapped message has offset {last_offset}")
    records: list[Record] = []
    offset_before = -1
    for message in messages:
        if message.base_offset <= offset_before:
            raise damage(f"a wrapped message has offset {message.base_offset} after {offset_before}")
        offset_before = message.base_offset
        timestamp = wrapper.base_timestamp if wrapper.is_log_append_time else message.base_timestamp
        records.append(_decode_message(message, base_offset + message.base_offset, timestamp))
    return records


def _wrapped_messages(wrapper: Batch, topic: str, partition: int) -> list[Batch]:
    _, value = _key_and_value(wrapper)
    if value is None:
        raise damage("a compressed message has no value")
    data = decompress(wrapper.codec, value)
    messages = split_batches(memoryview(data), topic, partition)
    if not messages or sum(message.size for message in messages) != len(data):
        raise damage("the wrapped messages are cut off")
    for message in messages:
        if message.magic != wrapper.magic or message.codec != NONE:
            raise damage(f"format v{message.magic}, codec {message.codec} inside a message of format v{wrapper.magic}")
        verify_crc(message, topic, partition)
    return messages


def _decode_message(message: Batch, offset: int, timestamp: int) -> Record:
    key, value = _key_and_value(message)
    return Record(offset, timestamp, key, value)


def _key_and_value(message: Batch) -> tuple[bytes | None, bytes | None]:
    key, position = _read_bytes(message.buffer, _KEY_AT[message.magic])
    value, position = _read_bytes(message.buffer, position)
    if position != message.size:
        raise damage(f"{message.size - position} bytes follow a message's value")
    return key, value


def _read_bytes(buffer: memoryview, position: int) -> tuple[bytes | None, int]:
    """A length and that many bytes; -1 stands for null."""
    if position + _LENGTH.size > len(buffer):
        raise damage("a message ends before its value")
    (length,) = _LENGTH.unpack_from(buffer, position)
    position += _LENGTH.size
    if length == -1:
        return None, position
    if not 0 <= length <= len(buffer) - position:
        raise damage(f"a key or value has length {length}, {len(buffer) - position} bytes are left")
    return bytes(buffer[position : position + length]), position + length
