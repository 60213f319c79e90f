"""What is really on the target: the tail of its log, walked beside the source's (invariant C).

From the last known pair of offsets on, every batch on the target is compared with what the source would give next. Equal
bytes are the common case; where batches were cut differently, records are compared one by one. What is found there is not
sent again. The walk ends at the fence's own marker, beyond which no earlier writer can append.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, LogSlice, list_offset, read_log
from mirrorspark.errors import BrokerError, PartitionStopped, RequestTimedOut
from mirrorspark.events import EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import LedgerRange
from mirrorspark.offsets.parity import Parity
from mirrorspark.offsets.position import Booked, Pen
from mirrorspark.pipeline.origin import OriginCheck
from mirrorspark.pipeline.preparation import carry_records, prepare
from mirrorspark.pipeline.track import CarriedBatch
from mirrorspark.wire.aborted import AbortedFilter
from mirrorspark.wire.record_batch import Batch, body
from mirrorspark.wire.records import Record
from mirrorspark.wire.reencoding import decode

__all__ = ["Found", "Marker", "next_wanted", "walk_tail", "writers_between"]

READ_WAIT_MS = 50
STEP_TIMEOUT_S = 60.0
"""For each step of a walk, not for the whole: a long tail takes as long as it takes."""


@dataclass(frozen=True, slots=True)
class Marker:
    """The fence's abort marker: a control batch of this producer with at least this epoch."""

    producer_id: int
    epoch: int

    def is_in(self, batch: Batch) -> bool:
        return batch.is_control and batch.producer_id == self.producer_id and batch.producer_epoch >= self.epoch


@dataclass(slots=True)
class Found:
    """Where the two logs stand after the walk."""

    upstream_next: int
    downstream_end: int
    leader_epoch: int
    ranges: list[LedgerRange] = field(default_factory=list)
    records: int = 0
    foreign_records: int = 0
    gap: tuple[int, int] | None = None
    """Upstream offsets that the source no longer has, so that nothing could be proved about them."""
    fenced: bool = False
    """Whether the fence's marker carries the epoch under which the partition is taken up."""
    writers: set[int] = field(default_factory=set)
    """Producer ids seen in the tail."""
    booked: Booked | None = None
    """Where the ledger ended before, and ``ranges`` go on; set by recovery."""
    ledger_is_new: bool = False
    """Whether the ledger says nothing of the partition yet."""
    last_pen: Pen | None = None
    """Under which name the last batch of ours in the tail was appended, and at which offset that begins."""
    last_pen_at: int = -1
    pen: Pen | None = None
    """With identical offsets: the name under which to go on, in place of a fence."""
    parity: Parity | None = None


class _SourceSide:
    """The source's next batches, prepared just as the carrying loop would."""

    def __init__(
        self,
        client: ClusterClient,
        at: TopicPartition,
        offset: int,
        read_committed: bool,
        origin: OriginCheck | None,
    ) -> None:
        self._client, self._at, self._offset = client, at, offset
        self._read_committed = read_committed
        self._origin = origin
        self.skipped_above_bytes: int | None = None
        self.seeking = False  # the target lost its oldest records to retention: look for where the rest begins
        self._ready: deque[CarriedBatch | int] = deque()
        self.records: deque[Record] = deque()  # of a batch that is being compared record by record
        self.rest: CarriedBatch | None = None

    async def peek(self) -> CarriedBatch | None:
        """The next batch to be expected, or None at the source's end."""
        while True:
            while self._ready and isinstance(self._ready[0], int):
                self._ready.popleft()
            if self._ready:
                first = self._ready[0]
                assert isinstance(first, CarriedBatch)
                return first
            found = await read_log(
                self._client,
                self._at,
                self._offset,
                deadline=Deadline(STEP_TIMEOUT_S),
                wait_ms=0,
                read_committed=self._read_committed,
            )
            if not found.batches:
                return None
            left_out = None
            if self._origin is not None:
                await self._origin.learn(found.batches)
                left_out = self._origin.is_mirrored
            self._ready.extend(prepare(found.batches, self._offset, self._at, aborted=found.aborted, left_out=left_out))
            self._offset = max(self._offset, found.batches[-1].next_offset)

    @property
    def offset(self) -> int:
        """Up to where it was read."""
        return self._offset

    def may_be_missing(self, record: Record) -> bool:
        """Whether the flow's policy would have left this record out for its size."""
        if self.skipped_above_bytes is None or self.rest is None:
            return False
        alone = carry_records([record], self.rest.batch.codec, -1, self._at)
        return alone.size > self.skipped_above_bytes

    def take(self) -> CarriedBatch:
        first = self._ready.popleft()
        assert isinstance(first, CarriedBatch)
        return first


async def walk_tail(
    source: ClusterClient,
    target: ClusterClient,
    at: TopicPartition,
    remote: TopicPartition,
    *,
    upstream_next: int,
    downstream_end: int,
    leader_epoch: int,
    marker: Marker | None,
    our_writers: frozenset[int],
    read_committed: bool,
    skipped_above_bytes: int | None = None,
    origin: OriginCheck | None = None,
    flow_writers: frozenset[int] | None = None,
) -> Found:
    """Compare from the pair of offsets to the marker (or to the target's end as of now, without one).

    ``skipped_above_bytes``: single records above this size may be missing on the target (on.record.too.large).
    ``flow_writers``: the producer ids of this flow, where others are meant to write to the remote partition too; what those
    wrote is passed over, even if it looks like a record of the source. ``origin`` then tells what the flow would not carry.
    """
    found = Found(upstream_next, downstream_end, leader_epoch)
    deadline = Deadline(STEP_TIMEOUT_S)
    log_start = await list_offset(source, at, EARLIEST, deadline)
    if upstream_next < log_start:
        found.gap = (upstream_next, log_start - 1)
        found.upstream_next = log_start
    expected = _SourceSide(source, at, found.upstream_next, read_committed, origin)
    expected.skipped_above_bytes = skipped_above_bytes
    end = None if marker is not None else await list_offset(target, remote, LATEST, deadline)
    while end is None or found.downstream_end < end:
        tail = await _read_target(target, remote, found, expected)
        if tail.batches:
            deadline = Deadline(STEP_TIMEOUT_S)  # there is progress
        aborted = AbortedFilter(tail.aborted, *remote)
        for batch in tail.batches:
            drop = aborted.drops(batch)
            if batch.next_offset <= found.downstream_end:
                continue
            is_ours = flow_writers is None or batch.producer_id in flow_writers
            if batch.producer_id >= 0:
                found.writers.add(batch.producer_id)
            if is_ours and not batch.is_control and not drop:
                await _match(batch, remote, expected, found, our_writers)
                if batch.producer_id in our_writers:
                    found.last_pen, found.last_pen_at = _pen(batch), batch.base_offset
            found.downstream_end = batch.next_offset
            if marker is not None and marker.is_in(batch):
                return found
        if deadline.passed:
            raise PartitionStopped(
                f"{remote}: the fence's marker did not appear in the target's log in time; trying again",
                topic=remote.topic,
                partition=remote.partition,
            )
    return found


async def next_wanted(source: ClusterClient, at: TopicPartition, offset: int, *, read_committed: bool) -> int:
    """The first offset from ``offset`` on that holds something to carry; the end of what can be read, if nothing does."""
    first = await list_offset(source, at, EARLIEST, Deadline(STEP_TIMEOUT_S))
    side = _SourceSide(source, at, max(offset, first), read_committed, None)
    unit = await side.peek()
    return unit.upstream_first if unit is not None else side.offset


async def writers_between(
    target: ClusterClient, remote: TopicPartition, start: int, end: int, *, one_is_enough: bool
) -> set[int]:
    """Producer ids (-1: none) of the data between two offsets of the target's log. Headers only; no record is opened."""
    writers: set[int] = set()
    deadline = Deadline(STEP_TIMEOUT_S)
    while start < end and not (one_is_enough and writers):
        try:
            tail = await read_log(target, remote, start, deadline=deadline)
        except BrokerError as error:
            if error.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            first = await list_offset(target, remote, EARLIEST, deadline)
            if first <= start:
                raise  # the log ends before: not retention's doing
            start = first
            continue
        new = [batch for batch in tail.batches if batch.last_offset >= start]
        writers |= {batch.producer_id for batch in new if not batch.is_control}
        if new:
            start = new[-1].next_offset
            deadline = Deadline(STEP_TIMEOUT_S)  # there is progress
        elif deadline.passed:
            raise RequestTimedOut(f"{remote}: its log cannot be read beyond {start}, though it ends at {end}")
    return writers


def _pen(batch: Batch) -> Pen:
    next_sequence = (batch.base_sequence + batch.record_count) & 0x7FFFFFFF
    return Pen(batch.producer_id, batch.producer_epoch, next_sequence, batch.max_timestamp)


async def _read_target(target: ClusterClient, remote: TopicPartition, found: Found, expected: _SourceSide) -> LogSlice:
    deadline = Deadline(STEP_TIMEOUT_S)
    offset = found.downstream_end
    try:
        return await read_log(target, remote, offset, deadline=deadline, wait_ms=READ_WAIT_MS, read_committed=True)
    except BrokerError as error:
        if error.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise
        first = await list_offset(target, remote, EARLIEST, deadline)
        last = await list_offset(target, remote, LATEST, deadline)
        if first > offset:
            # The target's retention took the beginning of the tail: what is left must be found on the source.
            found.downstream_end = first
            expected.seeking = True
            return LogSlice([], first, last, last, ())
        raise PartitionStopped(
            f"the target's log of {remote} holds offsets {first} to {last - 1}, but {offset} was acknowledged as its end: "
            "records were lost there; restore them, or start this topic over",
            event=EventKind.TARGET_TRUNCATED,
            topic=remote.topic,
            partition=remote.partition,
            offset_first=last,
            offset_last=offset - 1,
        ) from error


async def _match(
    batch: Batch, remote: TopicPartition, expected: _SourceSide, found: Found, our_writers: frozenset[int]
) -> None:
    """Tick off what this batch holds, or count it as somebody else's."""
    if expected.seeking:
        await _seek(batch, expected)
    # So does the first batch of a walk from MirrorMaker 2's offset sync.
    begins_inside = batch.base_offset < found.downstream_end
    if not expected.records and not begins_inside:
        unit = await expected.peek()
        if unit is not None and _same_bytes(batch, unit.batch):
            expected.take()
            _tick(found, unit.upstream_first, unit.upstream_last, batch.base_offset, unit)
            found.upstream_next = unit.upstream_next
            found.leader_epoch = unit.leader_epoch
            found.records += batch.record_count
            return
    if await _match_records(batch, remote, expected, found):
        return
    if batch.producer_id in our_writers and found.gap is None:
        raise PartitionStopped(
            f"{remote} offset {batch.base_offset}: our own earlier writer left a batch there that the source does not have "
            f"at offset {found.upstream_next}: the source's log has changed",
            event=EventKind.SOURCE_TRUNCATED,
            topic=remote.topic,
            partition=remote.partition,
            offset_first=found.upstream_next,
            offset_last=found.upstream_next,
        )
    found.foreign_records += batch.record_count


async def _seek(batch: Batch, expected: _SourceSide) -> None:
    """Pass over the source's batches whose copies the target's retention has taken."""
    expected.seeking = False
    while (unit := await expected.peek()) is not None and not _same_bytes(batch, unit.batch):
        expected.take()


async def _match_records(batch: Batch, remote: TopicPartition, expected: _SourceSide, found: Found) -> bool:
    """Record by record, for batches that were cut differently. All of the batch's records match, or none counts."""
    records = [record for record in decode(batch, *remote) if record.offset >= found.downstream_end]
    any_time = batch.is_log_append_time  # the target stamps its own time
    taken: list[Record] = []
    ticked: list[Record] = []
    for record in records:
        while True:
            if not expected.records:
                unit = await expected.peek()
                if unit is None or not _load_records(expected, unit):
                    expected.records.extendleft(reversed(taken))
                    return False
            if _same_record(record, expected.records[0], any_time):
                break
            if not expected.may_be_missing(expected.records[0]):
                expected.records.extendleft(reversed(taken))
                return False
            taken.append(expected.records.popleft())
        ticked.append(expected.records[0])
        taken.append(expected.records.popleft())
    for record, one in zip(records, ticked, strict=True):
        _tick(found, one.offset, one.offset, record.offset, None)
    rest = expected.rest
    assert rest is not None
    found.upstream_next = expected.records[0].offset if expected.records else rest.upstream_next
    found.leader_epoch = rest.leader_epoch
    found.records += len(records)
    return True


def _load_records(expected: _SourceSide, unit: CarriedBatch) -> bool:
    """Open the source's next batch; its records get their upstream offsets back from its runs."""
    records = decode(unit.batch, "", -1)
    runs = unit.runs or [(unit.upstream_first, len(records))]
    offsets = [first + i for first, count in runs for i in range(count)]
    expected.take()
    expected.rest = unit
    expected.records = deque(record._replace(offset=offset) for record, offset in zip(records, offsets, strict=True))
    return bool(expected.records)


def _same_bytes(one: Batch, other: Batch) -> bool:
    """``one`` lies on the target; where that stamps its own time, times say nothing."""
    same_time = one.base_timestamp == other.base_timestamp and one.max_timestamp == other.max_timestamp
    return (
        one.record_count == other.record_count
        and (same_time or one.is_log_append_time)
        and one.codec == other.codec
        and bytes(body(one)) == bytes(body(other))
    )


def _same_record(one: Record, other: Record, any_time: bool) -> bool:
    return (
        one.key == other.key
        and one.value == other.value
        and (any_time or one.timestamp == other.timestamp)
        and one.headers == other.headers
    )


def _tick(found: Found, first: int, last: int, downstream: int, unit: CarriedBatch | None) -> None:
    runs = unit.runs if unit is not None and unit.runs else [(first, last - first + 1)]
    for start, count in runs:
        if not (found.ranges and found.ranges[-1].extend(start, start + count - 1, downstream)):
            found.ranges.append(LedgerRange(start, start + count - 1, downstream))
        downstream += count
