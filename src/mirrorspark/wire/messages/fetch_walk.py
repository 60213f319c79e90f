"""A Fetch answer (version 13) walked while it comes in: which of its bytes must be read, and which need not be.

``walk_fetch`` asks for what it needs to go on, and names the large batches that will go to the target as they are: of these
the header is enough. Called by ``cluster.passing_answer``; ``decode_fetch`` reads the answer once it is there.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator

from mirrorspark.errors import WireError
from mirrorspark.wire.messages.fetch import ANSWER_HEAD_BYTES, ANSWER_PART_BYTES
from mirrorspark.wire.record_batch import HEADER, size_if_carried

__all__ = ["Stretch", "walk_fetch"]

Stretch = tuple[int, int]
"""(begin, end): with a begin of -1 all bytes up to ``end`` are needed now; else a batch lies there, and what follows its
header may stay where it is."""

_ABORTED_BYTES = 16
_TOPIC_ID_BYTES = 16
_AHEAD_BYTES = 112
"""After a partition's records: room for the next one's head and the header of its first batch, to be read together."""


def walk_fetch(answer: memoryview, batch_bytes_min: int) -> Iterator[Stretch]:
    """Stretches in order. ``answer`` is where the bytes come to; those that were asked for are there at the next step.

    It ends early where the bytes make no sense; what is left is then to be read as a whole.
    """
    try:
        yield from _walk(answer, batch_bytes_min)
    except (struct.error, IndexError, WireError):
        return  # ``decode_fetch`` will say what is wrong


def _walk(answer: memoryview, batch_bytes_min: int) -> Iterator[Stretch]:
    at = yield from _skip_tags(answer, 4)
    topics, at = yield from _uvarint(answer, at + ANSWER_HEAD_BYTES)
    for _ in range(topics - 1):
        partitions, at = yield from _uvarint(answer, at + _TOPIC_ID_BYTES)
        for _ in range(partitions - 1):
            aborted, at = yield from _uvarint(answer, at + ANSWER_PART_BYTES)
            for _ in range(aborted - 1):
                at = yield from _skip_tags(answer, at + _ABORTED_BYTES)
            size, at = yield from _uvarint(answer, at + 4)
            end = min(at + max(size - 1, 0), len(answer))
            yield from _batches(answer, at, end, batch_bytes_min)
            at = yield from _skip_tags(answer, end)
        at = yield from _skip_tags(answer, at)


def _batches(answer: memoryview, at: int, end: int, batch_bytes_min: int) -> Iterator[Stretch]:
    while end - at >= HEADER.size:
        yield -1, at + HEADER.size
        size, is_carried = size_if_carried(answer, at, end)
        if not size:
            break
        if is_carried and size >= batch_bytes_min:
            yield at, at + size
        else:
            yield -1, at + size
        at += size
    yield -1, min(end + _AHEAD_BYTES, len(answer))


def _skip_tags(answer: memoryview, at: int) -> Generator[Stretch, None, int]:
    tags, at = yield from _uvarint(answer, at)
    for _ in range(tags):
        _, at = yield from _uvarint(answer, at)
        size, at = yield from _uvarint(answer, at)
        at += size
    return at


def _uvarint(answer: memoryview, at: int) -> Generator[Stretch, None, tuple[int, int]]:
    value = shift = 0
    while shift <= 28:
        yield -1, at + 1
        byte = answer[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError("a length of more than five bytes")
