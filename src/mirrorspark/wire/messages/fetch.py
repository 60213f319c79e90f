"""Fetch, versions 4 to 11 (topics by name) and 13 (topics by id), over memoryviews.

``encode_fetch`` gives the request's body, ``decode_fetch`` walks an answer without copying its records. Called by
``cluster.fetch_session`` and ``cluster.log_reader``. Version 12 is left out: 13 brings topic ids, and with them the
certainty that a topic which was deleted and created again is never read as if it were the old one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mirrorspark.errors import WireError

__all__ = [
    "FETCH_API_KEY",
    "FETCH_VERSION_MAX",
    "FETCH_VERSION_MIN",
    "FETCH_VERSION_TOPIC_IDS",
    "FetchAnswer",
    "FetchLimits",
    "FetchPartition",
    "FetchedPartition",
    "decode_fetch",
    "encode_fetch",
    "uses_topic_ids",
]

FETCH_API_KEY = 1
FETCH_VERSION_MIN = 4
FETCH_VERSION_BY_NAME_MAX = 11
FETCH_VERSION_TOPIC_IDS = 13
FETCH_VERSION_MAX = 13

_HEAD_V4 = struct.Struct(">iiiib")  # replica -1, max wait, min bytes, max bytes, isolation
_SESSION = struct.Struct(">ii")  # session id, session epoch
_COUNT = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_PART_V4 = struct.Struct(">iqi")  # partition, offset, partition max bytes
_PART_V5 = struct.Struct(">iqqi")  # … log start offset (-1 for consumers)
_PART_V9 = struct.Struct(">iiqqi")  # partition, current leader epoch, offset, log start, max bytes
_PART_V13 = struct.Struct(">iiqiqi")  # partition, leader epoch, offset, last fetched epoch, log start, max bytes

_ANSWER_HEAD = struct.Struct(">ihi")  # throttle, error, session id
_ANSWER_PART_V4 = struct.Struct(">ihqq")  # partition, error, high watermark, last stable offset
_ANSWER_PART_V5 = struct.Struct(">ihqqq")  # … log start offset
_ABORTED = struct.Struct(">qq")  # producer id, first offset
ANSWER_HEAD_BYTES = _ANSWER_HEAD.size
ANSWER_PART_BYTES = _ANSWER_PART_V5.size
_DIVERGING = struct.Struct(">iq")  # epoch, end offset


class FetchLimits(NamedTuple):
    """What one request may bring. Bytes and milliseconds."""

    wait_ms_max: int
    bytes_min: int
    bytes_max: int
    partition_bytes_max: int
    read_committed: bool
    rack: str = ""


class FetchPartition(NamedTuple):
    """One partition as asked for; -1 where an epoch is not known."""

    partition: int
    offset: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1


class FetchedPartition(NamedTuple):
    """One partition as answered. ``records`` is a view into the answer; ``topic`` a name or a 16-byte id."""

    topic: str | bytes
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...]
    preferred_replica: int
    records: memoryview
    diverging_epoch: int
    diverging_end: int
    at: int = -1
    """Where ``records`` begins in the answer."""


class FetchAnswer(NamedTuple):
    throttle_ms: int
    error_code: int
    session_id: int
    partitions: list[FetchedPartition]


def uses_topic_ids(version: int) -> bool:
    return version >= FETCH_VERSION_TOPIC_IDS


def encode_fetch(
    version: int,
    limits: FetchLimits,
    wanted: Mapping[str | bytes, Iterable[FetchPartition]],
    *,
    forgotten: Mapping[str | bytes, Iterable[int]] | None = None,
    session_id: int = 0,
    session_epoch: int = -1,
) -> bytes:
    """The body after the request header. ``wanted`` by topic name, or by topic id from version 13 on."""
    head = _HEAD_V4.pack(-1, limits.wait_ms_max, limits.bytes_min, limits.bytes_max, int(limits.read_committed))
    if uses_topic_ids(version):
        return head + _encode_by_id(limits, wanted, forgotten or {}, session_id, session_epoch)
    return head + _encode_by_name(version, limits, wanted, forgotten or {}, session_id, session_epoch)


def _encode_by_name(
    version: int,
    limits: FetchLimits,
    wanted: Mapping[str | bytes, Iterable[FetchPartition]],
    forgotten: Mapping[str | bytes, Iterable[int]],
    session_id: int,
    session_epoch: int,
) -> bytes:
    size = limits.partition_bytes_max
    out = [_SESSION.pack(session_id, session_epoch)] if version >= 7 else []
    out.append(_COUNT.pack(len(wanted)))
    for topic, partitions in wanted.items():
        listed = list(partitions)
        out += [_name(topic), _COUNT.pack(len(listed))]
        if version >= 9:
            out += [_PART_V9.pack(part[0], part[2], part[1], -1, size) for part in listed]
        elif version >= 5:
            out += [_PART_V5.pack(part[0], part[1], -1, size) for part in listed]
        else:
            out += [_PART_V4.pack(part[0], part[1], size) for part in listed]
    if version >= 7:
        out.append(_COUNT.pack(len(forgotten)))
        for topic, numbers in forgotten.items():
            gone = list(numbers)
            out += [_name(topic), struct.pack(f">i{len(gone)}i", len(gone), *gone)]
    if version >= 11:
        out.append(_name(limits.rack))
    return b"".join(out)


def _encode_by_id(
    limits: FetchLimits,
    wanted: Mapping[str | bytes, Iterable[FetchPartition]],
    forgotten: Mapping[str | bytes, Iterable[int]],
    session_id: int,
    session_epoch: int,
) -> bytes:
    size = limits.partition_bytes_max
    out = [_SESSION.pack(session_id, session_epoch), _uvarint(len(wanted) + 1)]
    for topic, partitions in wanted.items():
        listed = list(partitions)
        out += [_id(topic), _uvarint(len(listed) + 1)]
        out += [_PART_V13.pack(part[0], part[2], part[1], part[3], -1, size) + b"\0" for part in listed]
        out.append(b"\0")
    out.append(_uvarint(len(forgotten) + 1))
    for topic, numbers in forgotten.items():
        gone = list(numbers)
        out += [_id(topic), _uvarint(len(gone) + 1), struct.pack(f">{len(gone)}i", *gone), b"\0"]
    rack = limits.rack.encode()
    out += [_uvarint(len(rack) + 1), rack, b"\0"]
    return b"".join(out)


def decode_fetch(version: int, answer: memoryview) -> FetchAnswer:
    """Walk an answer that begins with its response header. Raises WireError on bytes that cannot be one."""
    try:
        return _decode_by_id(answer) if uses_topic_ids(version) else _decode_by_name(version, answer)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"a Fetch answer of {len(answer)} bytes cannot be read: {error}") from error


def _decode_by_name(version: int, answer: memoryview) -> FetchAnswer:
    at = 4
    if version >= 7:
        throttle, error, session = _ANSWER_HEAD.unpack_from(answer, at)
        at += 10
    else:
        (throttle,), error, session = _COUNT.unpack_from(answer, at), 0, 0
        at += 4
    (topics,) = _COUNT.unpack_from(answer, at)
    at += 4
    found: list[FetchedPartition] = []
    for _ in range(topics):
        (length,) = _SHORT.unpack_from(answer, at)
        if length < 0:  # would lead the walk backwards, perhaps for ever
            raise WireError(f"a Fetch answer claims a topic name of {length} bytes")
        topic = str(answer[at + 2 : at + 2 + length], "utf-8")
        at += 2 + length
        (count,) = _COUNT.unpack_from(answer, at)
        at += 4
        for _ in range(count):
            if version >= 5:
                partition, code, high, stable, start = _ANSWER_PART_V5.unpack_from(answer, at)
                at += 30
            else:
                (partition, code, high, stable), start = _ANSWER_PART_V4.unpack_from(answer, at), -1
                at += 22
            (listed,) = _COUNT.unpack_from(answer, at)
            at += 4
            aborted = tuple(_ABORTED.unpack_from(answer, at + 16 * i) for i in range(max(listed, 0)))
            at += 16 * len(aborted)
            preferred = -1
            if version >= 11:
                (preferred,) = _COUNT.unpack_from(answer, at)
                at += 4
            (size,) = _COUNT.unpack_from(answer, at)
            at += 4
            size = _bounded(size, answer, at)
            found.append(
                FetchedPartition(
                    topic, partition, code, high, stable, start, aborted, preferred, answer[at : at + size], -1, -1, at
                )
            )
            at += size
    return FetchAnswer(throttle, error, session, found)


def _decode_by_id(answer: memoryview) -> FetchAnswer:
    at = _skip_tags(answer, 4)
    throttle, error, session = _ANSWER_HEAD.unpack_from(answer, at)
    topics, at = _read_uvarint(answer, at + 10)
    found: list[FetchedPartition] = []
    for _ in range(topics - 1):
        topic = bytes(answer[at : at + 16])
        count, at = _read_uvarint(answer, at + 16)
        for _ in range(count - 1):
            partition, code, high, stable, start = _ANSWER_PART_V5.unpack_from(answer, at)
            aborted, at = _read_aborted(answer, at + 30)
            (preferred,) = _COUNT.unpack_from(answer, at)
            size, at = _read_uvarint(answer, at + 4)
            size = _bounded(size - 1, answer, at)
            records_at, records = at, answer[at : at + size]
            at += size
            diverging = (-1, -1)
            if answer[at]:
                diverging, at = _read_partition_tags(answer, at)
            else:
                at += 1
            found.append(
                FetchedPartition(
                    topic, partition, code, high, stable, start, aborted, preferred, records, *diverging, records_at
                )
            )
        at = _skip_tags(answer, at)
    return FetchAnswer(throttle, error, session, found)


def _read_aborted(answer: memoryview, at: int) -> tuple[tuple[tuple[int, int], ...], int]:
    listed, at = _read_uvarint(answer, at)
    aborted: list[tuple[int, int]] = []
    for _ in range(listed - 1):
        aborted.append(_ABORTED.unpack_from(answer, at))
        at = _skip_tags(answer, at + 16)
    return tuple(aborted), at


def _read_partition_tags(answer: memoryview, at: int) -> tuple[tuple[int, int], int]:
    """Tag 0 is the diverging epoch: the source's log was cut behind our position."""
    diverging = (-1, -1)
    tags, at = _read_uvarint(answer, at)
    for _ in range(tags):
        tag, at = _read_uvarint(answer, at)
        size, at = _read_uvarint(answer, at)
        if tag == 0:
            diverging = _DIVERGING.unpack_from(answer, at)
        at += size
    return diverging, at


def _bounded(size: int, answer: memoryview, at: int) -> int:
    if size > len(answer) - at:
        raise WireError(f"a Fetch answer claims {size} bytes of records where {len(answer) - at} are left")
    return max(size, 0)


def _skip_tags(view: memoryview, at: int) -> int:
    tags, at = _read_uvarint(view, at)
    for _ in range(tags):
        _, at = _read_uvarint(view, at)
        size, at = _read_uvarint(view, at)
        at += size
    return at


def _read_uvarint(view: memoryview, at: int) -> tuple[int, int]:
    byte = view[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = 0, 0
    while shift <= 28:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError("a length of more than five bytes")


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _name(topic: str | bytes) -> bytes:
    assert isinstance(topic, str)
    raw = topic.encode()
    return _SHORT.pack(len(raw)) + raw


def _id(topic: str | bytes) -> bytes:
    assert isinstance(topic, bytes)
    return topic
