"""Offsets of the source that lead nowhere, kept on the target (``offsets=identical``).

A source's log has holes: transaction markers, records that were taken out. In a log with the same offsets they must be
there too. A hole is filled by what no consumer is shown: data of an aborted transaction, which is carried as just that, and
the markers of empty, aborted transactions, which take one offset each. ``align`` finds the holes between prepared batches
and puts them in line with them; ``hole_filling`` fills them on the target. Pure: batches in, batches and holes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mirrorspark.cluster.batch_appender import AppendQueue
from mirrorspark.names import TopicPartition
from mirrorspark.pipeline.preparation import carry_records
from mirrorspark.pipeline.track import CarriedBatch
from mirrorspark.wire.records import Record
from mirrorspark.wire.reencoding import decode

__all__ = ["AlignedQueue", "Hole", "align", "hole_instead"]


class Hole(CarriedBatch):
    """Offsets ``upstream_first`` up to ``upstream_next``: some aborted ``batches``, then ``markers`` of one offset each.

    Shrinks while it is filled. Where there are batches, the first marker is the one that ends their transaction.
    """

    is_hole = True
    __slots__ = ("batches", "markers")

    def __init__(self, first: int, batches: list[CarriedBatch], markers: int) -> None:
        assert markers > 0, f"offset {first}: a hole ends with a marker"
        self.batches = batches
        self.markers = markers
        self.aged = self.is_aborted = False
        self.buffer = memoryview(b"")
        self.size = sum(one.size for one in batches)
        self.upstream_first = first
        self.upstream_next = first + sum(one.batch.record_count for one in batches) + markers
        self.upstream_last = self.upstream_next - 1
        self.leader_epoch = -1
        self.held = None
        self.runs = None
        self.request = None
        self.batch_sequence = -1

    @property
    def step_next(self) -> int:
        """The offset after the batches and the first marker: what one transaction fills."""
        return self.upstream_next - self.markers + 1

    def shrink(self) -> None:
        """That transaction is on the target."""
        self.upstream_first = self.step_next
        self.markers -= 1
        self.release()
        self.batches = []
        self.size = 0

    def release(self) -> None:
        for one in self.batches:
            one.release()


class AlignedQueue(AppendQueue):
    """A partition's queue in which holes are in line too. They are not sent from here; what follows waits for them."""

    __slots__ = ()

    def sendable(self) -> bool:
        return super().sendable() and self.first_hole is None

    @property
    def first_hole(self) -> Hole | None:
        """The hole that is next, if it is one."""
        first = self.waiting[0] if self.waiting else None
        return first if isinstance(first, Hole) else None


def hole_instead(carried: CarriedBatch) -> Hole:
    """In place of a batch that is left out."""
    return Hole(carried.upstream_first, [], carried.upstream_next - carried.upstream_first)


def align(items: Iterable[CarriedBatch | int], expected: int, at: TopicPartition) -> Iterator[CarriedBatch]:
    """What ``prepare`` gives (aborted data too), made so that every offset from ``expected`` on is taken exactly once.

    Batches with holes inside are cut at them. Raises what ``items`` raises.
    """
    aborted: list[CarriedBatch] = []  # in a row up to ``expected``, waiting for the marker that ends them
    try:
        for item in items:
            first = item if isinstance(item, int) else item.upstream_first
            assert first >= expected, f"{at}: offset {first} after {expected} (invariant A)"
            if first > expected:
                yield _hole(aborted, expected, first)
                aborted, expected = [], first
            if isinstance(item, int):
                continue
            if not item.is_aborted and aborted:
                yield _closed(aborted, at)
                aborted = []
            end = item.upstream_next
            for part in _dense(item, at):
                if part.upstream_first > expected:
                    yield _hole(aborted, expected, part.upstream_first)
                    aborted = []
                expected = part.upstream_next
                if part.is_aborted:
                    aborted.append(part)
                else:
                    yield part
            if end > expected:
                yield _hole(aborted, expected, end)
                aborted, expected = [], end
        if aborted:
            yield _closed(aborted, at)
            aborted = []
    finally:
        for one in aborted:  # not yielded, so nobody else will
            one.release()


def _hole(aborted: list[CarriedBatch], start: int, end: int) -> Hole:
    """Offsets ``start`` up to ``end`` are empty; what was aborted lies right before them."""
    return Hole(aborted[0].upstream_first if aborted else start, aborted, end - start)


def _closed(aborted: list[CarriedBatch], at: TopicPartition) -> Hole:
    """Aborted data with no room behind it: the marker takes the place of its last record, which nobody was to see."""
    last = aborted[-1]
    *kept, _ = _records(last, at)
    instead = _carry(kept, last, at) if kept else None
    first = aborted[0].upstream_first
    return Hole(first, [*aborted[:-1], *([instead] if instead is not None else _released(last))], 1)


def _released(carried: CarriedBatch) -> list[CarriedBatch]:
    carried.release()
    return []


def _dense(carried: CarriedBatch, at: TopicPartition) -> list[CarriedBatch]:
    """The batch itself, cut where upstream offsets are missing inside it."""
    if carried.runs is None:
        carried.upstream_next = carried.upstream_last + 1
        return [carried]
    records = _records(carried, at)
    parts: list[CarriedBatch] = []
    for _, count in carried.runs:
        parts.append(_carry(records[:count], carried, at, last=len(parts) + 1 == len(carried.runs)))
        del records[:count]
    return parts


def _records(carried: CarriedBatch, at: TopicPartition) -> list[Record]:
    """With their upstream offsets."""
    records = decode(carried.batch, *at)
    runs = carried.runs or [(carried.upstream_first, len(records))]
    offsets = (first + i for first, count in runs for i in range(count))
    return [record._replace(offset=offset) for record, offset in zip(records, offsets, strict=True)]


def _carry(records: list[Record], of: CarriedBatch, at: TopicPartition, *, last: bool = True) -> CarriedBatch:
    """These records as a batch of their own; the ``last`` one made of a batch takes over what that one held."""
    part = carry_records(records, of.batch.codec, of.leader_epoch, at)
    part.is_aborted = of.is_aborted
    if last:
        part.held, of.held = of.held, None
    return part
