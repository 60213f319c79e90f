"""What a group committed, as brokers keep it in ``__consumer_offsets``: the bytes of its keys and values.

``control.group_sync`` reads a source's records by it. Groups of both protocols write these; what else lies in that topic
(group metadata, members, assignments) is none of our business and gives None. Only knows the bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from mirrorspark.errors import WireError
from mirrorspark.names import TopicPartition

__all__ = ["CONSUMER_OFFSETS_TOPIC", "Commit", "CommitRecord", "log_partition_of", "parse_commit"]

CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
KEY_VERSIONS = (0, 1)
"""Of a committed offset. 2 is a group's metadata; from 3 on come members and assignments of the newer protocols."""
VALUE_VERSION_MAX = 4
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Commit:
    """Where a group goes on in one partition. ``committed_ms`` is the broker's time, -1 where nobody knows it."""

    offset: int
    metadata: str = ""
    committed_ms: int = -1


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One record: what the group committed there, or None if its offset was deleted or has expired."""

    group: str
    at: TopicPartition
    commit: Commit | None


def parse_commit(key: bytes | None, value: bytes | None) -> CommitRecord | None:
    """None for a record of another kind. Raises WireError for a commit that cannot be read."""
    if key is None or len(key) < _SHORT.size:
        return None
    (version,) = _SHORT.unpack_from(key)
    if version not in KEY_VERSIONS:
        return None
    try:
        group, at = _string(key, _SHORT.size)
        topic, at = _string(key, at)
        (partition,) = _INT.unpack_from(key, at)
        commit = None if value is None else _commit(value)
    except (struct.error, UnicodeDecodeError, IndexError, ValueError) as error:
        raise WireError(f"a committed offset in {CONSUMER_OFFSETS_TOPIC} cannot be read: {error}") from error
    return CommitRecord(group, TopicPartition(topic, partition), commit)


def log_partition_of(group: str, partitions: int) -> int:
    """Which partition of the topic holds a group: Java's hash of the name, its sign dropped."""
    number = 0
    raw = group.encode("utf-16-be", "surrogatepass")
    for (unit,) in struct.iter_unpack(">H", raw):
        number = (31 * number + unit) & 0xFFFFFFFF
    signed = number - (1 << 32) if number >= 1 << 31 else number
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def _commit(value: bytes) -> Commit:
    (version,) = _SHORT.unpack_from(value)
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise ValueError(f"its value has version {version}, known are 0 to {VALUE_VERSION_MAX}")
    (offset,) = _LONG.unpack_from(value, 2)
    at = 2 + _LONG.size + (_INT.size if version >= 3 else 0)  # from 3 on with the leader epoch
    metadata, at = _compact_string(value, at) if version >= 4 else _string(value, at)
    (committed_ms,) = _LONG.unpack_from(value, at)
    return Commit(offset, metadata, committed_ms)


def _string(raw: bytes, at: int) -> tuple[str, int]:
    (length,) = _SHORT.unpack_from(raw, at)
    return _text(raw, at + _SHORT.size, length)


def _compact_string(raw: bytes, at: int) -> tuple[str, int]:
    """Length plus one as an unsigned varint, of at most five bytes."""
    length = shift = 0
    while True:
        byte = raw[at]
        at += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return _text(raw, at, length - 1)
        if shift > 28:
            raise ValueError("a length of more than five bytes")


def _text(raw: bytes, at: int, length: int) -> tuple[str, int]:
    if length < 0 or at + length > len(raw):
        raise ValueError(f"a text of {length} bytes where {len(raw) - at} are left")
    return raw[at : at + length].decode(), at + length
