"""The ledger: pages that say where upstream offsets landed downstream.

A page covers the upstream offsets from its start up to its next: each record of those that is on the target lies in one of
its runs, and what lies in none (markers, aborted data, what compaction took, what another mirror wrote) is not on the
target. So a page with no run says something too: nothing of that stretch was carried. A run is dense on both sides, offset
by offset, unless it was merged to save space (``ledger_repacking``): then it only says how many records lie in it.

Lanes write pages from receipts (``ledger_pages``), ``ledger_store`` keeps them, ``translation`` asks them. Key: remote
topic, partition, upstream start. Value: the ids of both topics (one that was made anew begins at offset 0 again), upstream
next, downstream start, runs as varints. A tombstone prunes. docs/decisions/0010 says why.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mirrorspark.errors import WireError
from mirrorspark.names import TopicPartition
from mirrorspark.wire.varint import append_varlong, decode_varlong

__all__ = ["NO_TOPIC_ID", "LedgerPage", "LedgerRange", "Run", "ledger_entry", "ledger_key", "parse_ledger_entry"]

VERSION = 2
NO_TOPIC_ID = bytes(16)
_KEY_TAIL = struct.Struct(">iq")
_VALUE = struct.Struct(">h16s16sqq")
_MERGED = 1
OFFSET_MAX = (1 << 62) - 1
"""Beyond that a number is damage, not an offset: sums of two stay within 64 bits."""


@dataclass(slots=True)
class LedgerRange:
    """A dense run while it grows: upstream ``first..last`` lies at ``downstream_first`` and on."""

    upstream_first: int
    upstream_last: int
    downstream_first: int

    @property
    def downstream_last(self) -> int:
        return self.downstream_first + self.upstream_last - self.upstream_first

    def extend(self, upstream_first: int, upstream_last: int, downstream_first: int) -> bool:
        """True if the piece continues this range on both sides."""
        if upstream_first != self.upstream_last + 1 or downstream_first != self.downstream_last + 1:
            return False
        self.upstream_last = upstream_last
        return True


class Run(NamedTuple):
    """``records`` of the upstream offsets first..last lie between the downstream offsets first..last, in order.

    The first record of a run lies at both firsts, the last one at both lasts.
    """

    upstream_first: int
    upstream_last: int
    downstream_first: int
    downstream_last: int
    records: int

    @property
    def is_dense(self) -> bool:
        """Whether every offset is known, not just the ends."""
        upstream_span = self.upstream_last - self.upstream_first + 1
        return self.records == upstream_span == self.downstream_last - self.downstream_first + 1

    def joined(self, later: Run) -> Run:
        """Both as one, with the offsets in between forgotten."""
        return Run(
            self.upstream_first,
            later.upstream_last,
            self.downstream_first,
            later.downstream_last,
            self.records + later.records,
        )


@dataclass(frozen=True, slots=True)
class LedgerPage:
    upstream_start: int
    upstream_next: int
    downstream_start: int
    downstream_end: int  # after the last run; the downstream start where there is none
    packed: bytes
    run_count: int
    topic_id: bytes = NO_TOPIC_ID  # of the source topic
    remote_id: bytes = NO_TOPIC_ID  # of the remote topic

    @classmethod
    def of(
        cls,
        runs: Iterable[Run],
        *,
        upstream_start: int,
        upstream_next: int,
        downstream_start: int,
        topic_id: bytes = NO_TOPIC_ID,
        remote_id: bytes = NO_TOPIC_ID,
    ) -> LedgerPage:
        packed = bytearray()
        up, down, count = upstream_start, downstream_start, 0
        for run in runs:
            pack_run(packed, run, up, down)
            up, down, count = run.upstream_last + 1, run.downstream_last + 1, count + 1
        assert upstream_next >= up, f"a page ends at {upstream_next}, before its last run does"
        return cls(upstream_start, upstream_next, downstream_start, down, bytes(packed), count, topic_id, remote_id)

    def runs(self) -> Iterator[Run]:
        return unpack_runs(self.packed, self.upstream_start, self.downstream_start)

    @property
    def ids(self) -> tuple[bytes, bytes]:
        return self.topic_id, self.remote_id

    def is_of(self, topic_id: bytes, remote_id: bytes) -> bool:
        """Whether it tells of these two topics; an id that is not known (old brokers) contradicts nothing."""
        return _agree(self.topic_id, topic_id) and _agree(self.remote_id, remote_id)


def _agree(one: bytes, other: bytes) -> bool:
    return one == other or NO_TOPIC_ID in (one, other)


def pack_dense(packed: bytearray, span: int, upstream_gap: int, downstream_gap: int) -> None:
    """The same for a dense run, quickly: lanes pack one for every hole."""
    if span < 32 and upstream_gap < 64 and downstream_gap < 64:  # one byte each, as most are
        packed += bytes((span << 2, upstream_gap << 1, downstream_gap << 1))
        return
    append_varlong(packed, span << 1)
    append_varlong(packed, upstream_gap)
    append_varlong(packed, downstream_gap)


def pack_run(packed: bytearray, run: Run, upstream_before: int, downstream_before: int) -> None:
    """``…_before`` are the offsets after the run before; gaps are counted from there."""
    span = run.upstream_last - run.upstream_first + 1
    dense = run.is_dense
    append_varlong(packed, span << 1 if dense else span << 1 | _MERGED)
    append_varlong(packed, run.upstream_first - upstream_before)
    append_varlong(packed, run.downstream_first - downstream_before)
    if not dense:
        append_varlong(packed, span - run.records)
        append_varlong(packed, run.downstream_last - run.downstream_first + 1 - run.records)


def unpack_runs(packed: bytes, up: int, down: int) -> Iterator[Run]:
    """Raises WireError where the bytes are not runs in ascending order."""
    place, end = 0, len(packed)
    while place < end:
        if place + 3 <= end and not (packed[place] & 0x83 or (packed[place + 1] | packed[place + 2]) & 0x81):
            # A short dense run after a short gap, each in one byte and not negative: most are.
            span = packed[place] >> 2
            first, downstream_first = up + (packed[place + 1] >> 1), down + (packed[place + 2] >> 1)
            up, down, place = first + span, downstream_first + span, place + 3
            if not span:
                raise WireError("a run of the ledger with nothing in it")
            yield Run(first, up - 1, downstream_first, down - 1, span)
            continue
        head, place = decode_varlong(packed, place)
        upstream_gap, place = decode_varlong(packed, place)
        downstream_gap, place = decode_varlong(packed, place)
        span = head >> 1
        records = downstream_span = span
        if head & _MERGED:
            missing, place = decode_varlong(packed, place)
            extra, place = decode_varlong(packed, place)
            records = span - missing
            downstream_span = records + extra
            if missing < 0 or extra < 0:
                raise WireError("a run of the ledger with more records than offsets")
        if upstream_gap < 0 or downstream_gap < 0 or records <= 0:
            raise WireError("runs of the ledger that go backwards")
        first, downstream_first = up + upstream_gap, down + downstream_gap
        up, down = first + span, downstream_first + downstream_span
        if up > OFFSET_MAX or down > OFFSET_MAX:
            raise WireError("a run of the ledger beyond every offset")
        yield Run(first, up - 1, downstream_first, down - 1, records)


def ledger_key(at: TopicPartition, upstream_start: int) -> bytes:
    name = at.topic.encode()
    return struct.pack(">h", len(name)) + name + _KEY_TAIL.pack(at.partition, upstream_start)


def ledger_entry(at: TopicPartition, page: LedgerPage) -> tuple[bytes, bytes]:
    head = _VALUE.pack(VERSION, page.topic_id, page.remote_id, page.upstream_next, page.downstream_start)
    return ledger_key(at, page.upstream_start), head + page.packed


def parse_ledger_key(key: bytes) -> tuple[TopicPartition, int] | None:
    """Remote partition and upstream start; None for bytes that are not ours."""
    if len(key) < 2:
        return None
    (length,) = struct.unpack_from(">h", key, 0)
    if length <= 0 or len(key) != 2 + length + _KEY_TAIL.size:
        return None
    partition, start = _KEY_TAIL.unpack_from(key, 2 + length)
    try:
        topic = key[2 : 2 + length].decode()
    except UnicodeDecodeError:
        return None
    return TopicPartition(topic, partition), start


def parse_ledger_entry(key: bytes, value: bytes | None) -> tuple[TopicPartition, LedgerPage] | None:
    """None for a tombstone, bytes of another version or bytes that are not ours."""
    if value is None or len(value) < _VALUE.size:
        return None
    named = parse_ledger_key(key)
    version, topic_id, remote_id, upstream_next, downstream_start = _VALUE.unpack_from(value)
    if named is None or version != VERSION:
        return None
    at, start = named
    if not (0 <= start <= upstream_next <= OFFSET_MAX and 0 <= downstream_start <= OFFSET_MAX):
        return None
    packed = value[_VALUE.size :]
    count, up, down = 0, start, downstream_start
    try:
        for run in unpack_runs(packed, start, downstream_start):
            count, up, down = count + 1, run.upstream_last + 1, run.downstream_last + 1
    except WireError:
        return None
    if up > upstream_next:
        return None
    return at, LedgerPage(start, upstream_next, downstream_start, down, packed, count, topic_id, remote_id)
