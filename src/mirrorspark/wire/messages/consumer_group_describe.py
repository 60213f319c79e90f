"""ConsumerGroupDescribe (KIP-848): whether a group of the newer consumer protocol has members, asked of one group at a time.

kafka-python has no schema for it, and only the beginning of the answer is needed. Called by ``cluster.group_admin``.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from mirrorspark.errors import WireError

__all__ = [
    "CONSUMER_GROUP_DESCRIBE_API_KEY",
    "CONSUMER_GROUP_DESCRIBE_VERSION",
    "DescribedConsumerGroup",
    "decode_consumer_group_describe",
    "encode_consumer_group_describe",
]

CONSUMER_GROUP_DESCRIBE_API_KEY = 69
CONSUMER_GROUP_DESCRIBE_VERSION = 0
"""Newer ones only add fields to members, which are counted and not read."""
_SHORT = struct.Struct(">h")
_EPOCHS_BYTES = 8
_CORRELATION_BYTES = 4
_THROTTLE_BYTES = 4


class DescribedConsumerGroup(NamedTuple):
    error_code: int
    state: str
    members: int


def encode_consumer_group_describe(group: str) -> bytes:
    """The body for one group, without its authorized operations."""
    name = group.encode()
    return b"\x02" + _uvarint(len(name) + 1) + name + b"\x00" + b"\x00"


def decode_consumer_group_describe(answer: memoryview) -> DescribedConsumerGroup:
    """Of the answer's first group, from the response header on. Raises WireError for what is no such answer."""
    raw = bytes(answer)
    try:
        at = _skip_tags(raw, _CORRELATION_BYTES) + _THROTTLE_BYTES
        groups, at = _read_uvarint(raw, at)
        if groups != 2:
            raise WireError(f"a ConsumerGroupDescribe answer tells of {groups - 1} groups, asked was for one")
        (error_code,) = _SHORT.unpack_from(raw, at)
        _, at = _read_text(raw, at + _SHORT.size)
        _, at = _read_text(raw, at)
        state, at = _read_text(raw, at)
        _, at = _read_text(raw, at + _EPOCHS_BYTES)
        members, _ = _read_uvarint(raw, at)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"a ConsumerGroupDescribe answer cannot be read: {error}") from error
    return DescribedConsumerGroup(error_code, state, max(0, members - 1))


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_uvarint(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise WireError("a length of more than five bytes")


def _read_text(raw: bytes, at: int) -> tuple[str, int]:
    """Null counts as empty."""
    length, at = _read_uvarint(raw, at)
    end = at + max(0, length - 1)
    if end > len(raw):
        raise WireError(f"a text of {length - 1} bytes where {len(raw) - at} are left")
    return raw[at:end].decode(), end


def _skip_tags(raw: bytes, at: int) -> int:
    tags, at = _read_uvarint(raw, at)
    for _ in range(tags):
        _, at = _read_uvarint(raw, at)
        size, at = _read_uvarint(raw, at)
        at += size
    return at
