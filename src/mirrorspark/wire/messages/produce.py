"""Produce, versions 3 to 8, over memoryviews: one batch for each partition in a request, acks=all.

The batches' own buffers are the request's body, uncopied. Called by ``cluster.batch_appender``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence, Sized
from typing import NamedTuple, TypeVar

from mirrorspark.errors import WireError

__all__ = [
    "PRODUCE_API_KEY",
    "PRODUCE_VERSION_MAX",
    "PRODUCE_VERSION_MIN",
    "Appended",
    "decode_produce",
    "encode_produce",
]

PRODUCE_API_KEY = 0
PRODUCE_VERSION_MIN = 3
PRODUCE_VERSION_MAX = 8
ACKS_ALL = -1

_SHORT = struct.Struct(">h")
_COUNT = struct.Struct(">i")
_HEAD = struct.Struct(">hi")  # acks, timeout
_PARTITION = struct.Struct(">ii")  # partition, size of the batch
_ANSWER_V3 = struct.Struct(">ihqq")  # partition, error, base offset, log append time
_ANSWER_V5 = struct.Struct(">ihqqq")  # … log start offset

Buffer = bytes | bytearray | memoryview
Piece = TypeVar("Piece", bound=Sized)
"""Of a batch: bytes, or what stands for them."""


class Appended(NamedTuple):
    """The answer for one partition."""

    topic: str
    partition: int
    error_code: int
    base_offset: int
    log_start_offset: int
    error_message: str


def encode_produce(
    batches: Mapping[str, Sequence[tuple[int, Sequence[Piece]]]],
    *,
    timeout_ms: int,
    transactional_id: str | None = None,
) -> list[Buffer | Piece]:
    """The body's parts, in order: small packed heads and, between them, the pieces of each batch as they are."""
    parts: list[Buffer | Piece] = []
    small = _nullable(transactional_id) + _HEAD.pack(ACKS_ALL, timeout_ms) + _COUNT.pack(len(batches))
    for topic, listed in batches.items():
        raw = topic.encode()
        small += _SHORT.pack(len(raw)) + raw + _COUNT.pack(len(listed))
        for partition, pieces in listed:
            parts.append(small + _PARTITION.pack(partition, sum(map(len, pieces))))
            parts += pieces
            small = b""
    if small:
        parts.append(small)
    return parts


def decode_produce(version: int, answer: memoryview) -> tuple[list[Appended], int]:
    """Every partition's outcome, and the throttle time in ms. The answer begins with its response header."""
    try:
        return _decode(version, answer)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"a Produce answer of {len(answer)} bytes cannot be read: {error}") from error


def _decode(version: int, answer: memoryview) -> tuple[list[Appended], int]:
    found: list[Appended] = []
    (topics,) = _COUNT.unpack_from(answer, 4)
    at = 8
    for _ in range(topics):
        topic, at = _string(answer, at)
        (count,) = _COUNT.unpack_from(answer, at)
        at += 4
        for _ in range(count):
            message = ""
            if version >= 5:
                partition, code, base, _, start = _ANSWER_V5.unpack_from(answer, at)
                at += 30
            else:
                (partition, code, base, _), start = _ANSWER_V3.unpack_from(answer, at), -1
                at += 22
            if version >= 8:
                message, at = _record_errors(answer, at)
            found.append(Appended(topic or "", partition, code, base, start, message))
    (throttle,) = _COUNT.unpack_from(answer, at)
    return found, throttle


def _record_errors(answer: memoryview, at: int) -> tuple[str, int]:
    (count,) = _COUNT.unpack_from(answer, at)
    at += 4
    reasons = []
    for _ in range(max(count, 0)):
        text, at = _string(answer, at + 4)
        reasons.append(text or "")
    text, at = _string(answer, at)
    return "; ".join(part for part in [text or "", *reasons[:3]] if part), at


def _string(view: memoryview, at: int) -> tuple[str | None, int]:
    (length,) = _SHORT.unpack_from(view, at)
    at += 2
    if length < 0:
        return None, at
    return str(view[at : at + length], "utf-8"), at + length


def _nullable(text: str | None) -> bytes:
    if text is None:
        return _SHORT.pack(-1)
    raw = text.encode()
    return _SHORT.pack(len(raw)) + raw
