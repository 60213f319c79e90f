"""Owning a partition: who wrote last, shut them out, prove what is there, and only then go on.

Invariant B: a lane appends to a partition only under a producer epoch obtained for this attempt; after an unclean end of
an earlier writer it fences that writer first, on that partition. Invariant C: the resume position is proved from the
target's log. The committed position names the last writer and whether it left cleanly; before the first append the new
owner commits its own name there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from mirrorspark.cluster.batch_appender import STALL_S_MAX
from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offset, list_offsets
from mirrorspark.cluster.topic_configs import effective_config
from mirrorspark.cluster.writer import (
    Writer,
    end_transaction,
    fence,
    find_transactional_id,
    obtain_writer,
)
from mirrorspark.errors import BrokerError, PartitionStopped
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.position import LastWriter, Position
from mirrorspark.pipeline.ledger_resumption import (
    booked_by,
    found_clean,
    go_on_with_ledger,
    set_ledger_start,
    walk_from,
)
from mirrorspark.pipeline.new_target_topic import (
    LastBooked,
    nothing_booked,
    position_on_new_topic,
    stood_on_earlier_topic,
)
from mirrorspark.pipeline.origin import OriginCheck
from mirrorspark.pipeline.tail_walk import Found, Marker, walk_tail, writers_between
from mirrorspark.pipeline.track import Track
from mirrorspark.pipeline.writers import FlowWriters, WriterRegistry
from mirrorspark.plan.desired_topics import after_deletion
from mirrorspark.settings import FlowSettings

__all__ = ["Recovery", "StillHeld", "transactional_id"]

RECOVERY_TIMEOUT_S = 60.0
NOBODY = -1
"""In place of a producer id: a last writer that is not known. Also what plain producers' batches carry."""
FENCES_MAX = 5
"""Writers that may have to be fenced one after the other on one partition before it is given up for now."""


def transactional_id(settings: FlowSettings, lane: int) -> str:
    return f"__mirrorspark-{settings.flow}-{lane}"


class StillHeld(Exception):
    """Another lane of the same generation has not let the partition go yet."""


@dataclass(frozen=True, slots=True)
class _Start:
    """Where to begin, and whom to fence before."""

    position: Position
    writer: LastWriter | None  # to be fenced; None if the last one left cleanly


class Recovery:
    def __init__(
        self,
        source: ClusterClient,
        target: ClusterClient,
        settings: FlowSettings,
        *,
        lane: int,
        generation: int,
        positions: GroupPositions,
        remembered: Callable[[TopicPartition, TopicPartition], Awaitable[Position | None]],
        report: Callable[[Event], None],
        registry: WriterRegistry | None = None,
        origin: OriginCheck | None = None,
        has_books: Callable[[], bool] = lambda: False,
        last_booked: LastBooked = nothing_booked,
    ) -> None:
        self._source = source
        self._target = target
        self._settings = settings
        self._generation = generation
        self._own_id = transactional_id(settings, lane)
        registry = registry or WriterRegistry(target, settings.internal_replication_factor)
        self._own_writers = FlowWriters(registry, settings.flow, lane, generation)
        self._origin = origin  # with one, others are meant to write to the remote topics too
        self._positions = positions
        self._remembered = remembered
        self._has_books = has_books
        self._last_booked = last_booked
        self._report = report
        self._walks = asyncio.Semaphore(settings.limits.walks_at_once_max)
        self.writer: Writer | None = None
        self.fencing = True

    async def obtain(self, deadline: Deadline) -> Writer:
        """A producer epoch for this attempt (invariant B)."""
        try:
            self.writer = await obtain_writer(
                self._target,
                self._own_id,
                transaction_timeout_ms=self._settings.limits.transaction_timeout_ms,
                deadline=deadline,
            )
        except BrokerError as error:
            if error.error_code != ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED or self._settings.transactions:
                raise
            self.fencing = False
            self._report(
                Event(
                    EventKind.NO_FENCE,
                    f"the target forbids the transactional id {self._own_id}: a lane that is cut off cannot be fenced, so "
                    "this flow runs at least once; allow Write on that transactional id for exactly once",
                )
            )
            self.writer = await obtain_writer(self._target, None, transaction_timeout_ms=0, deadline=deadline)
        return self.writer

    async def finish_own_transaction(self, deadline: Deadline) -> None:
        """Commit what an earlier attempt of this lane left open, rather than abort it.

        What it appended is true; aborting would show it twice to those who read uncommitted. The tail walk then proves
        how far it came.
        """
        left = {
            position.writer
            for offset, text in (await self._positions.fetch_all(deadline)).values()
            if (position := Position.from_commit(offset, text)) and position.writer and not position.writer.clean
        }
        for writer in left:
            if writer.transactional_id == self._own_id:
                await self._finish(writer, deadline)

    async def _finish(self, writer: LastWriter, deadline: Deadline) -> None:
        holder = Writer(writer.transactional_id, writer.producer_id, writer.epoch)
        try:
            await end_transaction(self._target, holder, commit=True, deadline=deadline)
        except BrokerError as error:
            nothing_open = error.error_code in (
                ErrorCode.INVALID_TXN_STATE,
                ErrorCode.INVALID_PRODUCER_EPOCH,
                ErrorCode.PRODUCER_FENCED,
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            )
            if not nothing_open:
                raise

    async def own(self, tracks: list[Track]) -> dict[Track, Exception]:
        """Bring tracks to proved positions and put our name on them. Returns those that could not be, with the reason."""
        deadline = Deadline(RECOVERY_TIMEOUT_S)
        assert self.writer is not None
        committed, _ = await asyncio.gather(
            self._positions.fetch([track.remote for track in tracks], deadline),
            self._own_writers.enter(self.writer, deadline),
        )
        failed: dict[Track, Exception] = {}
        ready: dict[Track, Found] = {}
        fences: dict[str, list[tuple[Track, _Start]]] = {}

        async def prepare_one(track: Track) -> None:
            try:
                start = await self._start(track, committed.get(track.remote), deadline)
            except (PartitionStopped, StillHeld, BrokerError) as error:
                failed[track] = error
                return
            if start.writer is None:
                ready[track] = found_clean(start.position)
            else:
                fences.setdefault(start.writer.transactional_id, []).append((track, start))

        await asyncio.gather(*(prepare_one(track) for track in tracks))
        await self._distrust_clean_ends(ready, fences, failed, committed, deadline)
        for held_id, some in fences.items():
            await self._fence_and_walk(held_id, some, ready, failed, deadline)
        if ready:
            await self._positions.commit(
                {track.remote: self.signed(track, found).to_commit() for track, found in ready.items()}, deadline
            )
        for track, found in ready.items():
            go_on_with_ledger(self._target, track, found)
            track.begin(self.writer, found.upstream_next, found.downstream_end, found.leader_epoch, fenced=found.fenced)
        return failed

    async def _distrust_clean_ends(
        self,
        ready: dict[Track, Found],
        fences: dict[str, list[tuple[Track, _Start]]],
        failed: dict[Track, Exception],
        committed: Mapping[TopicPartition, tuple[int, str]],
        deadline: Deadline,
    ) -> None:
        """Invariant C holds for clean ends too: the target's log must end where the position says.

        A writer that was cut off can still sign a stale position as clean. One request per leader tells; where the log
        goes on, markers (and others' records, where those are meant to be there) are passed over, and anything else is
        fenced and walked like an unclean end.
        """
        ends = await list_offsets(self._target, [track.remote for track in ready], LATEST, deadline)
        goes_on = [track for track, found in ready.items() if ends[track.remote] > found.downstream_end]
        harmless = await asyncio.gather(
            *(self._nothing_of_ours(track, ready[track].downstream_end, ends[track.remote]) for track in goes_on)
        )
        passed_over = {track for track, nothing_of_ours in zip(goes_on, harmless, strict=True) if nothing_of_ours}
        for track, found in list(ready.items()):
            end = ends[track.remote]
            if end == found.downstream_end:
                continue
            if end < found.downstream_end:
                del ready[track]
                failed[track] = PartitionStopped(
                    f"the target's log of {track.remote} ends at {end}, but offsets up to {found.downstream_end - 1} were "
                    "acknowledged: records were lost or the topic was made anew; restore it, or start this topic over",
                    event=EventKind.TARGET_TRUNCATED,
                    topic=track.remote.topic,
                    partition=track.remote.partition,
                    offset_first=end,
                    offset_last=found.downstream_end - 1,
                )
            elif track in passed_over:
                found.downstream_end = end
            else:
                del ready[track]
                position = Position.from_commit(*committed[track.remote]) if track.remote in committed else None
                last = position.writer if position is not None else None
                suspect = last or LastWriter(self._own_id, -1, -1, 0, clean=False)
                place = Position(
                    found.upstream_next,
                    found.downstream_end,
                    track.assignment.topic_id,
                    found.leader_epoch,
                    suspect,
                    None if found.ledger_is_new else found.booked,
                )
                fences.setdefault(suspect.transactional_id, []).append((track, _Start(place, suspect)))

    async def _nothing_of_ours(self, track: Track, start: int, end: int) -> bool:
        """Whether the target's log holds markers alone from ``start`` to ``end``, or what others may write there."""
        alone = self._origin is None
        async with self._walks:
            writers = await writers_between(self._target, track.remote, start, end, one_is_enough=alone)
        if alone or not writers:
            return not writers
        await self._own_writers.read(Deadline(RECOVERY_TIMEOUT_S))  # to its end as of now: after all that was seen
        return writers.isdisjoint(self._own_writers.ids)

    def signed(self, track: Track, found: Found | None = None, *, clean: bool = False) -> Position:
        """The position as it is committed, with our name as the last writer."""
        writer = track.writer if found is None else self.writer
        assert writer is not None
        return Position(
            found.upstream_next if found else track.upstream_next,
            found.downstream_end if found else track.downstream_end,
            track.assignment.topic_id,
            found.leader_epoch if found else track.leader_epoch,
            LastWriter(writer.transactional_id or "", writer.producer_id, writer.epoch, self._generation, clean),
            booked_by(track, found),
            track.assignment.remote_id,
        )

    async def _start(self, track: Track, committed: tuple[int, str] | None, deadline: Deadline) -> _Start:
        position = Position.from_commit(*committed) if committed else None
        stood = await stood_on_earlier_topic(track, position, self._last_booked)
        if stood is not None:
            text = after_deletion(self._settings.policies)
            self._report(Event(EventKind.TARGET_TOPIC_DELETED, text, topic=track.remote.topic))
            position = await position_on_new_topic(self._source, self._target, track, stood, self._settings, deadline)
        if position is None:
            end = await list_offset(self._target, track.remote, LATEST, deadline)
            if end > 0:
                position = await self._remembered(track.source, track.remote)
            if position is None:
                return await self._first_start(track, deadline)
        if position.topic_id and track.assignment.topic_id and position.topic_id != track.assignment.topic_id:
            position = await self._recreated(track, position, deadline)
        writer = position.writer
        if writer is None or writer.clean:
            return _Start(position, None)
        sibling = writer.transactional_id != self._own_id
        if sibling and writer.generation == self._generation and not track.force_ownership:
            raise StillHeld(f"{track.remote} is still held by {writer.transactional_id}")
        return _Start(position, writer)

    async def _first_start(self, track: Track, deadline: Deadline) -> _Start:
        """No position anywhere: the source's first record, or its end where the user asked for ``latest``."""
        which = LATEST if self._settings.start_at_latest else EARLIEST
        upstream = await list_offset(self._source, track.source, which, deadline)
        first = await list_offset(self._target, track.remote, EARLIEST, deadline)
        end = await list_offset(self._target, track.remote, LATEST, deadline)
        topic_id = track.assignment.topic_id
        if first == end or self._settings.start_at_latest or self._never_wrote():
            return _Start(Position(upstream, end, topic_id, -1, None), None)
        self._report(
            Event(
                EventKind.POSITION_LOST,
                f"no position and no ledger for it, yet {end - first} offsets are on the target: comparing both logs "
                "from the beginning; what is there is not sent again",
                topic=track.remote.topic,
                partition=track.remote.partition,
                offset_first=first,
                offset_last=end - 1,
            )
        )
        nobody = LastWriter(self._own_id, -1, -1, 0, clean=False)
        return _Start(Position(upstream, first, topic_id, -1, nobody), nobody)

    def _never_wrote(self) -> bool:
        """Where others write too, a log that is not empty says nothing: the books and the registry do."""
        return self._origin is not None and (self._has_books() or self._own_writers.are_new)

    async def _recreated(self, track: Track, position: Position, deadline: Deadline) -> Position:
        """The source topic is another one than when the position was written."""
        fail = self._settings.policies.on_topic_recreated == "fail"
        event = Event(
            EventKind.TOPIC_RECREATED,
            f"{track.source.topic} was deleted and created again (on.topic.recreated="
            f"{self._settings.policies.on_topic_recreated}); "
            + ("waits for a person" if fail else "all records of the new topic are carried"),
            topic=track.source.topic,
            partition=track.source.partition,
            offset_first=position.upstream_next,
            offset_last=position.upstream_next,
            waits=fail,
        )
        if fail:
            raise PartitionStopped(
                event.text,
                event=event.kind,
                topic=event.topic,
                partition=event.partition,
                offset_first=event.offset_first,
                offset_last=event.offset_last,
            )
        self._report(event)
        first = await list_offset(self._source, track.source, EARLIEST, deadline)
        end = await list_offset(self._target, track.remote, LATEST, deadline)
        # A writer of the old topic may still be alive: fence it, but there is nothing of the new topic to compare.
        return Position(first, end, track.assignment.topic_id, -1, position.writer)

    async def _fence_and_walk(
        self,
        held_id: str,
        some: list[tuple[Track, _Start]],
        ready: dict[Track, Found],
        failed: dict[Track, Exception],
        deadline: Deadline,
    ) -> None:
        marker = await self._fence(held_id, [track for track, _ in some], some[0][1].writer, deadline)

        async def walk(track: Track, start: _Start) -> None:
            async with self._walks:
                try:
                    found = await self._walk(track, start, marker, deadline)
                    found.fenced = marker is not None and held_id == self._own_id
                    ready[track] = found
                except (PartitionStopped, BrokerError) as error:
                    failed[track] = error

        await asyncio.gather(*(walk(track, start) for track, start in some))

    async def _fence(
        self, held_id: str, tracks: list[Track], last: LastWriter | None, deadline: Deadline
    ) -> Marker | None:
        """Shut out every earlier epoch of this id on these partitions."""
        if not self.fencing or not held_id:
            return None
        if held_id == self._own_id:
            writer = self.writer
        else:
            if self._settings.transactions and last is not None:
                await self._finish(last, deadline)
            writer = await obtain_writer(
                self._target,
                held_id,
                transaction_timeout_ms=self._settings.limits.transaction_timeout_ms,
                deadline=deadline,
            )
        assert writer is not None
        await fence(self._target, writer, [track.remote for track in tracks], deadline)
        if last is not None and last.producer_id not in (-1, writer.producer_id):
            # Epochs of the old producer id were used up and the id is a new one: a marker cannot shut the old one out.
            # A writer that is still alive notices within its lease that it was superseded.
            await asyncio.sleep(STALL_S_MAX + 5.0)
        return Marker(writer.producer_id, writer.epoch)

    async def _walk(self, track: Track, start: _Start, marker: Marker | None, deadline: Deadline) -> Found:
        """Walk to the marker; a writer that turns up in the tail and was not fenced yet is fenced too."""
        assert self.writer is not None
        position = start.position
        upstream_from, downstream_from, booked = await walk_from(self._source, track.source, position, deadline)
        ours = {self.writer.producer_id, *([start.writer.producer_id] if start.writer else [])} - {NOBODY}
        fenced = {self.writer.producer_id, *([marker.producer_id] if marker else [])}
        for _ in range(FENCES_MAX):
            known = None if self._origin is None else self._own_writers.ids | ours
            found = await walk_tail(
                self._source,
                self._target,
                track.source,
                track.remote,
                upstream_next=upstream_from,
                downstream_end=downstream_from,
                leader_epoch=position.leader_epoch,
                marker=marker,
                our_writers=frozenset(ours),
                read_committed=self._settings.read_committed,
                skipped_above_bytes=await self._size_limit(track),
                origin=self._origin,
                flow_writers=known,
            )
            strangers = found.writers - fenced
            if known is not None and strangers:
                await self._own_writers.read(Deadline(RECOVERY_TIMEOUT_S))  # as of now: after all that was seen
                strangers &= self._own_writers.ids | ours
            unfenced = None
            for producer_id in sorted(strangers):
                fenced.add(producer_id)
                unfenced = await find_transactional_id(self._target, producer_id) if self.fencing else None
                if unfenced is not None and unfenced.startswith(f"__mirrorspark-{self._settings.flow}-"):
                    break
                unfenced = None
            if unfenced is None and known is not None and not strangers <= known:
                continue  # a lane that was entered meanwhile has written there: compare its batches too
            if unfenced is None:
                self._tell(track, found)
                set_ledger_start(found, position, booked)
                return found
            marker = await self._fence(unfenced, [track], None, deadline)
            if marker is not None:
                ours.add(marker.producer_id)
        raise PartitionStopped(
            f"{track.remote}: more than {FENCES_MAX} writers compete for it; trying again",
            topic=track.remote.topic,
            partition=track.remote.partition,
        )

    async def _size_limit(self, track: Track) -> int | None:
        """With on.record.too.large=skip or dead-letter, larger records may be missing on the target."""
        if self._settings.policies.on_record_too_large == "stop":
            return None
        return int(await effective_config(self._target, track.remote.topic, "max.message.bytes"))

    def _tell(self, track: Track, found: Found) -> None:
        if found.foreign_records:
            self._report(
                Event(
                    EventKind.FOREIGN_RECORDS,
                    f"{found.foreign_records} records in the target's tail are not the source's: somebody else writes there",
                    topic=track.remote.topic,
                    partition=track.remote.partition,
                    offset_first=found.downstream_end,
                    offset_last=found.downstream_end,
                )
            )
        if found.gap is not None:
            self._report(
                Event(
                    EventKind.DATA_GAP,
                    "the source's retention passed the position while the flow was down; on.data.gap="
                    f"{self._settings.policies.on_data_gap}",
                    topic=track.source.topic,
                    partition=track.source.partition,
                    offset_first=found.gap[0],
                    offset_last=found.gap[1],
                )
            )
            if self._settings.policies.on_data_gap == "fail":
                raise PartitionStopped(
                    f"{track.source}: offsets {found.gap[0]}..{found.gap[1]} are no longer on the source (on.data.gap=fail)",
                    event=EventKind.DATA_GAP,
                    topic=track.source.topic,
                    partition=track.source.partition,
                    offset_first=found.gap[0],
                    offset_last=found.gap[1],
                )
