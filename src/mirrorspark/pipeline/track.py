"""One partition on its way: what is fetched, what is sent, what is proved to be on the target.

Owned by a lane; changed only on the lane's event loop. Receipts (appended batches) are the only thing that moves
``upstream_next`` and ``downstream_end`` (invariant D).
"""

from __future__ import annotations

import enum
import time
from collections import deque

from mirrorspark.cluster.batch_appender import AppendQueue
from mirrorspark.cluster.buffer_pool import PooledBuffer
from mirrorspark.cluster.pipes import PipedBody
from mirrorspark.cluster.writer import Writer
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger_pages import LedgerPages
from mirrorspark.offsets.offset_sync import OffsetSyncs
from mirrorspark.offsets.parity import Parity
from mirrorspark.plan.lanes import Assignment
from mirrorspark.wire.record_batch import Batch, stamp

__all__ = ["CarriedBatch", "ReencodedBatch", "Span", "Track", "TrackState"]

REMEMBERED_MS = 3_600_000
"""Records younger than this keep the broker's memory of their producer (its producer.id.expiration.ms is a day)."""
LEDGER_PAGES_PENDING_MAX = 40
"""Full pages kept between two ledger writes; a topic full of holes is written sooner."""


class TrackState(enum.Enum):
    OWNING = "owning"  # being recovered, nothing is sent
    CARRYING = "carrying"
    WAITING = "waiting"  # stopped by an event; tried again from time to time
    PAUSED = "paused"
    LEAVING = "leaving"  # drains, then is released
    GONE = "gone"


class CarriedBatch:
    """A v2 batch between its fetch and its receipt."""

    is_hole = False
    """Whether it only takes offsets (``holes.Hole``): then it is never stamped, nor sent as the others are."""
    is_reencoded = False
    __slots__ = (
        "aged",
        "batch",
        "batch_sequence",
        "buffer",
        "held",
        "is_aborted",
        "leader_epoch",
        "request",
        "runs",
        "size",
        "upstream_first",
        "upstream_last",
        "upstream_next",
    )

    def __init__(
        self,
        batch: Batch,
        upstream: tuple[int, int],
        leader_epoch: int,
        held: PooledBuffer | None,
        runs: list[tuple[int, int]] | None = None,
    ) -> None:
        self.aged = False
        self.is_aborted = False  # of a transaction that was aborted on the source
        self.batch = batch
        self.buffer = batch.buffer
        self.size = len(batch.buffer)
        self.upstream_first, self.upstream_last = upstream
        self.upstream_next = upstream[1] + 1
        self.leader_epoch = leader_epoch
        self.held = held
        self.runs = runs  # (upstream first, count) of each dense stretch, where the batch had holes
        self.request: object = None
        self.batch_sequence = -1

    def parts(self) -> list[memoryview | PipedBody]:
        """Its bytes, in order: here, or partly in a pipe."""
        rest = self.batch.rest
        if rest is None:
            return [self.buffer]
        assert isinstance(rest, PipedBody)
        return rest.parts()

    def release(self) -> None:
        """It is no longer needed: neither are the bytes that it was fetched with."""
        if self.held is not None:
            self.held.release()


class ReencodedBatch(CarriedBatch):
    """One that could not go as it was."""

    is_reencoded = True
    __slots__ = ()


class Span:
    """What was appended since the last receipt row."""

    __slots__ = ("batches", "bytes", "downstream_first", "records", "records_max", "upstream_first", "upstream_last")

    def __init__(self, upstream_first: int, downstream_first: int) -> None:
        self.upstream_first = upstream_first
        self.downstream_first = downstream_first
        self.upstream_last = upstream_first
        self.records = self.batches = self.bytes = self.records_max = 0

    def add(self, upstream_last: int, records: int, size: int) -> None:
        self.upstream_last = upstream_last
        self.records += records
        self.records_max = max(self.records_max, records)
        self.bytes += size
        self.batches += 1


class Track:
    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.source: TopicPartition = assignment.source
        self.remote: TopicPartition = assignment.remote
        self.topic_id = bytes.fromhex(assignment.topic_id) if assignment.topic_id else bytes(16)
        self.state = TrackState.OWNING
        self.why = ""
        self.retry_at = 0.0
        self.force_ownership = False  # the lane that should let it go did not, in time
        self.wanted_since = 0.0
        self.newer_than: Writer | None = None  # to be owned under a newer epoch than this writer's
        self.in_doubt = False  # what was sent last may or may not be on the target: never to be signed off as clean
        self.has_company = False  # somebody else appends to the remote partition
        self.queue = AppendQueue(self.remote)
        self.writer: Writer | None = None
        self.pen: Writer | None = None  # whose name batches carry; another than ``writer`` only with identical offsets
        self.parity: Parity | None = None  # with offsets=identical: since where, and until where
        self.identical = False  # whether each receipt must show the batch's own offset
        self.newest_ms = -1  # of the last batch on the target
        self.next_sequence = 0
        self.acknowledged_sequence = 0  # the sequence that the broker expects after the last receipt
        self.fetch_next = 0
        self.upstream_next = 0
        self.downstream_end = 0
        self.leader_epoch = -1  # of the last batch on the target
        self.fetched_epoch = -1  # of the last batch fetched
        self.high_watermark = 0
        self.unacked_bytes = 0
        self.cut_answers = 0
        self.asleep = False  # left out of the fetch session until its queue is shorter
        self.ledger = LedgerPages(self.remote, self.topic_id)
        self.syncs: OffsetSyncs | None = None  # where MirrorMaker 2's offset syncs are written too
        self.uncommitted = False
        self.unbooked = False  # there is news for the ledger
        self.progress_due = False  # and for MirrorMaker 2's progress
        self.records = 0
        self.bytes = 0
        self.reencoded = 0  # batches
        self.latency_ms = 0
        self.span: Span | None = None

    def begin(
        self,
        writer: Writer,
        upstream_next: int,
        downstream_end: int,
        leader_epoch: int,
        *,
        fenced: bool = False,
        pen: tuple[Writer, int] | None = None,
    ) -> None:
        """Take up the partition at a proved position, under an epoch obtained for this attempt (invariant B).

        ``pen``: go on in another's name, from this sequence (``parity_recovery``).
        """
        assert self.drained, f"{self.remote}: begun with batches left over"
        self.writer = writer
        self.pen, self.next_sequence = pen or (writer, 0)
        self.acknowledged_sequence = self.next_sequence
        self.fetch_next = self.upstream_next = upstream_next
        self.downstream_end = downstream_end
        self.leader_epoch = self.fetched_epoch = leader_epoch
        self.queue.blocked = False
        self.queue.forgotten = not fenced  # a fence's marker is a fresh memory
        self.state = TrackState.CARRYING
        self.in_doubt = False
        self.why = ""

    def accept(self, carried: CarriedBatch, *, transactional: bool) -> None:
        """Stamp a prepared batch with this attempt's writer and put it in line."""
        if carried.is_hole:
            self.unacked_bytes += carried.size
            self.queue.waiting.append(carried)
            return
        # An open transaction keeps the broker's memory of its producer, however old the records are.
        carried.aged = not transactional and carried.batch.max_timestamp < time.time() * 1000 - REMEMBERED_MS
        assert self.pen is not None
        assert carried.upstream_first >= self.queued_next, f"{self.remote}: batch before the last in line (invariant A)"
        stamp(
            carried.batch,
            producer_id=self.pen.producer_id,
            producer_epoch=self.pen.epoch,
            base_sequence=self.next_sequence,
            transactional=transactional,
        )
        carried.batch_sequence = self.next_sequence
        # sequences wrap from 2^31-1 to 0
        self.next_sequence = (self.next_sequence + carried.batch.record_count) & 0x7FFFFFFF
        self.unacked_bytes += carried.size
        self.queue.waiting.append(carried)

    @property
    def queued_next(self) -> int:
        """The upstream offset after everything in line."""
        last = self._last_in_line()
        return self.upstream_next if last is None else last.upstream_next

    @property
    def queued_end(self) -> int:
        """The downstream offset after everything in line, while offsets are identical."""
        last = self._last_in_line()
        return self.downstream_end if last is None else last.upstream_next

    def _last_in_line(self) -> CarriedBatch | None:
        waiting, in_flight = self.queue.waiting, self.queue.in_flight
        last = waiting[-1] if waiting else in_flight[-1] if in_flight else None
        assert last is None or isinstance(last, CarriedBatch)
        return last

    def skip_to(self, upstream_next: int) -> None:
        """What lies before is not for the target (markers, aborted data): goes with the last batch in line."""
        last = self._last_in_line()
        if last is None:
            if upstream_next > self.upstream_next:
                self.upstream_next = upstream_next
                self.uncommitted = self.unbooked = self.progress_due = True
        else:
            last.upstream_next = max(last.upstream_next, upstream_next)

    def book(self, carried: CarriedBatch, base_offset: int) -> None:
        """A receipt: the batch is on the target at ``base_offset``."""
        assert carried.upstream_first >= self.upstream_next, f"{self.remote}: receipt out of order (invariant A)"
        count = carried.batch.record_count
        self.acknowledged_sequence = (carried.batch_sequence + count) & 0x7FFFFFFF
        self.upstream_next = carried.upstream_next
        self.downstream_end = base_offset + count
        self.leader_epoch = carried.leader_epoch
        self.newest_ms = carried.batch.max_timestamp
        self.unacked_bytes -= carried.size
        self.records += count
        self.bytes += carried.size
        if carried.is_reencoded:
            self.reencoded += 1
        self.uncommitted = self.unbooked = self.progress_due = True
        if self.span is None:
            self.span = Span(carried.upstream_first, base_offset)
        self.span.add(carried.upstream_last, count, carried.size)
        if carried.runs is None:
            self._tell(carried.upstream_first, carried.upstream_last, base_offset)
        else:
            downstream = base_offset
            for first, length in carried.runs:
                self._tell(first, first + length - 1, downstream)
                downstream += length
        if carried.held is not None:
            carried.held.release()

    def _tell(self, first: int, last: int, downstream: int) -> None:
        self.ledger.add(first, last, downstream)
        if self.syncs is not None:
            self.syncs.see(first, last, downstream)

    def drop_queue(self) -> None:
        """Forget everything unanswered; it will be fetched again from ``upstream_next``."""
        assert self.queue.outstanding == 0, f"{self.remote}: batches dropped while still on the wire"
        self.queue.rewind()
        while self.queue.waiting:
            carried = self.queue.waiting.popleft()
            assert isinstance(carried, CarriedBatch)
            carried.release()
        self.unacked_bytes = 0
        self.asleep = False
        self.next_sequence = self.acknowledged_sequence  # what the broker expects after the last receipt
        self.fetch_next = self.upstream_next
        self.fetched_epoch = self.leader_epoch

    def restamp(self, sequence: int, *, transactional: bool) -> None:
        """Number the waiting batches anew from ``sequence`` on (after one of them was split or taken out)."""
        assert self.queue.outstanding == 0, f"{self.remote}: batches renumbered while still on the wire"
        assert not self.queue.in_flight, f"{self.remote}: batches renumbered while in flight"
        waiting, self.queue.waiting = self.queue.waiting, deque()
        self.next_sequence = sequence
        self.unacked_bytes = 0
        for carried in waiting:
            assert isinstance(carried, CarriedBatch)
            self.accept(carried, transactional=transactional)

    def book_hole(self, upstream_next: int) -> None:
        """Offsets up to here lead nowhere on the source, and on the target now too: to the ledger they lie at their own."""
        assert self.identical
        assert upstream_next > self.downstream_end, f"{self.remote}: a hole that was filled before"
        self.ledger.add(self.downstream_end, upstream_next - 1, self.downstream_end)
        self.upstream_next = self.downstream_end = upstream_next
        self.uncommitted = self.unbooked = self.progress_due = True

    def lose_parity(self, at: int) -> None:
        """Offsets differ from ``at`` on: holes in line are left out from now on."""
        assert self.parity is not None
        self.parity, self.identical = self.parity.lost(at), False
        waiting, self.queue.waiting = self.queue.waiting, deque()
        for carried in waiting:
            assert isinstance(carried, CarriedBatch)
            if carried.is_hole:
                self.unacked_bytes -= carried.size
                carried.release()
                self.skip_to(carried.upstream_next)
            else:
                self.queue.waiting.append(carried)
        self.uncommitted = True

    @property
    def lag_records(self) -> int:
        return max(0, self.high_watermark - self.upstream_next)

    def still_fits(self, assignment: Assignment) -> bool:
        """Whether it is about the same two topics, by their ids; what a newer plan knows of them is taken over."""
        known = self.assignment
        is_other_remote = known.remote_id and assignment.remote_id and known.remote_id != assignment.remote_id
        if assignment.topic_id != known.topic_id or is_other_remote:
            return False
        self.assignment = assignment
        return True

    @property
    def drained(self) -> bool:
        return not self.queue.waiting and not self.queue.in_flight
