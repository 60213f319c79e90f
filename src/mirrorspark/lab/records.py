"""Records of every awkward shape that Kafka allows, each with an identity, each made from a seed.

Used by ``lab/workload.py``; tests use ``digest`` and ``identity_of`` to look at single records. The same seed,
partition and sequence make the same record, in whatever order they are asked for.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

__all__ = ["CODECS", "DIGEST_BYTES", "NOW_MS", "Headers", "Record", "digest", "identity_of", "make_record"]

Headers = Sequence[tuple[str, bytes | None]]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
DIGEST_BYTES = 16
IDENTITY_HEADER = "n"
LARGE_VALUE_BYTES = 900_000

NOW_MS = 1_767_225_600_000

_HOUR_MS = 3_600_000
_YEAR_MS = 31_536_000_000


@dataclass(frozen=True, slots=True)
class Record:
    """One record and the codec of the producer that should send it."""

    partition: int
    sequence: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    codec: str


def make_record(seed: int, partition: int, sequence: int, *, now_ms: int = NOW_MS, has_ancient: bool = True) -> Record:
    """The record with this identity. Sequence 1 of each partition is a large one; later ones are rare.

    With ``has_ancient`` some are stamped 1970; without, those are half a day old. See ``Workload`` for the reason.
    """
    dice = random.Random(f"{seed}/{partition}/{sequence}")
    plain = Record(
        partition=partition,
        sequence=sequence,
        key=b"key-%d" % dice.randrange(1000),
        value=dice.randbytes(dice.randrange(1, 300)),
        headers=((IDENTITY_HEADER, f"{partition}:{sequence}".encode()),),
        timestamp_ms=now_ms + sequence,
        codec=dice.choice(CODECS),
    )
    if sequence == 1 or dice.random() < 0.000_2:
        return _large(plain, dice)
    shape = dice.choice([*_SHAPES, _ancient if has_ancient else _half_a_day_old])
    return shape(plain, dice)


def identity_of(headers: Headers | None) -> tuple[int, int] | None:
    """Partition and sequence that a record says it has; None when it says nothing readable."""
    for name, value in headers or ():
        if name == IDENTITY_HEADER and value is not None:
            partition, colon, sequence = value.partition(b":")
            if colon and partition.isdigit() and sequence.isdigit():
                return int(partition), int(sequence)
            return None
    return None


def digest(key: bytes | None, value: bytes | None, headers: Headers | None, timestamp_ms: int) -> bytes:
    """Everything a consumer sees of a record but its place, in 16 bytes. Null and empty differ, order counts."""
    told = blake2b(struct.pack(">q", timestamp_ms), digest_size=DIGEST_BYTES)
    for field in (key, value):
        _tell(told, field)
    for name, content in headers or ():
        _tell(told, name.encode())
        _tell(told, content)
    return told.digest()


def _tell(told: blake2b, field: bytes | None) -> None:
    told.update(struct.pack(">i", -1 if field is None else len(field)))
    if field is not None:
        told.update(field)


Shaper = Callable[[Record, random.Random], Record]


def _with_headers(record: Record, *more: tuple[str, bytes | None]) -> Record:
    return replace(record, headers=record.headers + more)


def _large(record: Record, dice: random.Random) -> Record:
    # Half of it repeats, so that codecs have something to do and the value is still large on the wire.
    half = dice.randbytes(LARGE_VALUE_BYTES // 2)
    return replace(record, value=half + half[:1000] * (len(half) // 1000))


def _header_first(record: Record, dice: random.Random) -> Record:
    return replace(record, headers=(("trace", dice.randbytes(16)), *record.headers))


def _ancient(record: Record, dice: random.Random) -> Record:
    return replace(record, timestamp_ms=1 + dice.randrange(_YEAR_MS))


def _half_a_day_old(record: Record, dice: random.Random) -> Record:
    return replace(record, timestamp_ms=record.timestamp_ms - 12 * _HOUR_MS)


_SHAPES: tuple[Shaper, ...] = (
    lambda record, dice: record,
    lambda record, dice: replace(record, value=b'{"n": %d, "text": "%s"}' % (record.sequence, b"abc " * 50)),
    lambda record, dice: replace(record, key=None),
    lambda record, dice: replace(record, key=b""),
    lambda record, dice: replace(record, value=None),
    lambda record, dice: replace(record, value=b""),
    lambda record, dice: replace(record, key=None, value=None),
    lambda record, dice: replace(record, key=b"", value=b""),
    lambda record, dice: replace(record, key=dice.randbytes(2000)),
    lambda record, dice: _with_headers(record, ("same", b"1"), ("same", b"2"), ("same", b"1")),
    lambda record, dice: _with_headers(record, ("null", None), ("empty", b""), ("null", None)),
    lambda record, dice: _with_headers(record, ("", b"a header without a name")),
    lambda record, dice: _with_headers(record, ("größe 長さ", dice.randbytes(40))),
    lambda record, dice: _with_headers(record, *((f"h{number}", b"x" * number) for number in range(50))),
    _header_first,
    lambda record, dice: replace(record, timestamp_ms=record.timestamp_ms + _YEAR_MS * (1 + dice.randrange(70))),
)
