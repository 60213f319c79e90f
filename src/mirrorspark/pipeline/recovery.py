"""Owning a partition: who wrote last, shut them out, prove what is there, and only then go on.

Invariant B: a lane appends to a partition only under a producer epoch obtained for this attempt; after an unclean end of
an earlier writer it fences that writer first, on that partition. Invariant C: the resume position is proved from the
target's log. The committed position names the last writer and whether it left cleanly; before the first append the new
owner commits its own name there, and only then makes sure that it still is the one to do so (``entitlement``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from mirrorspark.cluster.batch_appender import STALL_S_MAX
from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offset
from mirrorspark.cluster.topic_configs import effective_config
from mirrorspark.cluster.writer import (
    Writer,
    fence,
    find_transactional_id,
    obtain_writer,
)
from mirrorspark.errors import BrokerError, PartitionStopped
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.parity import Parity
from mirrorspark.offsets.position import LastWriter, Pen, Position
from mirrorspark.pipeline.clean_ends import distrust_clean_ends
from mirrorspark.pipeline.entitlement import Entitlement
from mirrorspark.pipeline.first_place import begins_at_latest, first_offsets, lost_position, recreated
from mirrorspark.pipeline.hole_filling import HoleFilling
from mirrorspark.pipeline.identical import IdenticalOffsets, is_being_raised
from mirrorspark.pipeline.ledger_resumption import (
    booked_by,
    found_clean,
    go_on_with_ledger,
    set_ledger_start,
    walk_from,
)
from mirrorspark.pipeline.left_open import finish_left_open, finish_transaction
from mirrorspark.pipeline.new_target_topic import (
    LastBooked,
    nothing_booked,
    position_on_new_topic,
    stood_on_earlier_topic,
)
from mirrorspark.pipeline.origin import OriginCheck
from mirrorspark.pipeline.parity_recovery import ParityRecovery, Start
from mirrorspark.pipeline.tail_walk import Found, Marker, walk_tail, writers_between
from mirrorspark.pipeline.track import Track
from mirrorspark.pipeline.walk_report import tell_found
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
    """Another lane of the same generation has not let the partition go yet; or we have to look again."""


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
        identical: IdenticalOffsets | None = None,
        holes: HoleFilling | None = None,
        entitlement: Entitlement | None = None,
    ) -> None:
        self._entitlement = entitlement or Entitlement(target)
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
        self._identical = identical
        self._parity: ParityRecovery | None = None
        if identical is not None and holes is not None:
            self._parity = ParityRecovery(
                target,
                self._own_id,
                identical,
                holes,
                transaction_timeout_ms=settings.writer_timeout_ms,
                walk=self._walk_to_end,
                walks=self._walks,
            )
        self.writer: Writer | None = None
        self.fencing = True
        self.counts = {"fences": 0, "duplicates_avoided": 0}  # partitions, offsets

    async def obtain(self, deadline: Deadline) -> Writer:
        """A producer epoch for this attempt (invariant B); a newer one, if it has one. Raises Fenced: ``entitlement``."""
        if self.writer is not None:
            await self._entitlement.may_obtain(self.writer, deadline)
        try:
            self.writer = await obtain_writer(
                self._target,
                self._own_id,
                transaction_timeout_ms=self._settings.writer_timeout_ms,
                deadline=deadline,
            )
        except BrokerError as error:
            if error.error_code != ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED or self._settings.transactions:
                raise
            self.fencing = False
            self._report(
                Event(
                    EventKind.NO_FENCE,
                    f"the target forbids the transactional id {self._own_id}: {error}. Until the next attempt after that a "
                    "lane that is cut off cannot be fenced, so this flow runs at least once",
                )
            )
            self.writer = await obtain_writer(self._target, None, transaction_timeout_ms=0, deadline=deadline)
        return self.writer

    async def finish_own_transaction(self, deadline: Deadline) -> None:
        """Commit what an earlier attempt of this lane left open, rather than abort it."""
        await finish_left_open(self._target, self._positions, self._own_id, deadline)

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
        fences: dict[str, list[tuple[Track, Start]]] = {}
        places: dict[Track, Position] = {}

        async def prepare_one(track: Track) -> None:
            try:
                start = await self._start(track, committed.get(track.remote), deadline)
            except (PartitionStopped, StillHeld, BrokerError) as error:
                failed[track] = error
                return
            places[track] = start.position
            if start.writer is None:
                ready[track] = found_clean(start.position)
            else:
                fences.setdefault(start.writer.transactional_id, []).append((track, start))

        await asyncio.gather(*(prepare_one(track) for track in tracks))
        if self._identical is not None:
            deadline = Deadline(RECOVERY_TIMEOUT_S)  # bringing partitions to their level takes as long as it takes
        for track in await distrust_clean_ends(self._target, ready, failed, self._nothing_of_ours, deadline):
            start = self._doubtful(ready.pop(track), track, places[track])
            assert start.writer is not None
            fences.setdefault(start.writer.transactional_id, []).append((track, start))
        for held_id, some in fences.items():
            await self._take_over(held_id, some, ready, failed, deadline)
        if self._identical is not None:
            await asyncio.gather(*(self._judge(track, found, places[track]) for track, found in ready.items()))
        if ready:
            await self._positions.commit(
                {track.remote: self.signed(track, found).to_commit() for track, found in ready.items()}, deadline
            )
            if not await self._entitlement.holds(self.writer, deadline):
                await self.obtain(deadline)
                return {**failed, **{track: StillHeld(f"{track.remote}: a newer epoch is needed") for track in ready}}
        for track, found in ready.items():
            self._begin(track, found)
        return failed

    async def _take_over(
        self,
        held_id: str,
        some: list[tuple[Track, Start]],
        ready: dict[Track, Found],
        failed: dict[Track, Exception],
        deadline: Deadline,
    ) -> None:
        """From a writer that did not leave cleanly: with a fence, or where that would cost identical offsets, without."""
        if self._parity is not None:
            kept = [one for one in some if await self._parity.keeps(*one)]
            some = [one for one in some if one not in kept]
            if kept:
                await self._parity.take_over(held_id, kept, ready, failed, deadline)
        if some:
            await self._fence_and_walk(held_id, some, ready, failed, deadline)

    async def _judge(self, track: Track, found: Found, position: Position) -> None:
        assert self._identical is not None
        async with self._walks:
            await self._identical.judge(track, found, position.parity)

    def _begin(self, track: Track, found: Found) -> None:
        assert self.writer is not None
        if self._identical is not None:
            self._identical.take_up(track, found)
        go_on_with_ledger(self._target, track, found)
        pen = found.pen
        track.begin(
            self.writer,
            found.upstream_next,
            found.downstream_end,
            found.leader_epoch,
            fenced=found.fenced,
            pen=(Writer("", pen.producer_id, pen.epoch), pen.next_sequence) if pen is not None else None,
        )
        track.newest_ms = pen.newest_ms if pen is not None else -1

    def _doubtful(self, found: Found, track: Track, position: Position | None) -> Start:
        """A clean end behind which something of ours may follow: to be treated like an unclean one."""
        last = position.writer if position is not None else None
        suspect = last or LastWriter(self._own_id, -1, -1, 0, clean=False)
        place = Position(
            found.upstream_next,
            found.downstream_end,
            track.assignment.topic_id,
            found.leader_epoch,
            suspect,
            None if found.ledger_is_new else found.booked,
            parity=position.parity if position is not None else None,
            pen=position.pen if position is not None else None,
        )
        return Start(place, suspect)

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
            *self._parity_of(track, found),
        )

    def _parity_of(self, track: Track, found: Found | None) -> tuple[Parity | None, Pen | None]:
        parity = track.parity if found is None else found.parity
        if parity is None or not parity.holds:
            return parity, None
        if found is not None:
            assert self.writer is not None
            return parity, found.pen or Pen(self.writer.producer_id, self.writer.epoch, 0, -1)
        assert track.pen is not None
        return parity, Pen(track.pen.producer_id, track.pen.epoch, track.acknowledged_sequence, track.newest_ms)

    async def _start(self, track: Track, committed: tuple[int, str] | None, deadline: Deadline) -> Start:
        position = Position.from_commit(*committed) if committed else None
        if self._identical is not None:
            await self._identical.why_not(track)  # may not be asked: the partition waits, here and nowhere later
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
        writer = position.writer if position.writer is not None and not position.writer.clean else None
        siblings = writer is not None and writer.transactional_id != self._own_id
        if siblings and writer and writer.generation == self._generation and not track.force_ownership:
            raise StillHeld(f"{track.remote} is still held by {writer.transactional_id}")
        if stood is not None or is_being_raised(position):
            position = await self._raised(track, position)
        return Start(position, writer)

    async def _first_start(self, track: Track, deadline: Deadline) -> Start:
        """No position anywhere."""
        upstream, first, end = await first_offsets(
            self._source, self._target, track, self._settings, deadline, self._report
        )
        topic_id = track.assignment.topic_id
        if first == end or begins_at_latest(self._settings, track.source) or self._never_wrote():
            position = Position(upstream, end, topic_id, -1, None)
            return Start(await self._raised(track, position), None)
        self._report(lost_position(track, first, end))
        if self._identical is not None and upstream <= end and not await self._identical.why_not(track):
            upstream = first = max(upstream, first)  # there both logs would hold the same
        nobody = LastWriter(self._own_id, NOBODY, -1, 0, clean=False)
        return Start(Position(upstream, first, topic_id, -1, nobody), nobody)

    async def _raised(self, track: Track, position: Position) -> Position:
        if self._identical is None:
            return position
        async with self._walks:
            return await self._identical.raised(track, position, self._claim) or position

    async def _claim(self, track: Track, position: Position) -> None:
        """Put our name on a position before the first append."""
        assert self.writer is not None
        writer = self.writer
        own = LastWriter(writer.transactional_id, writer.producer_id, writer.epoch, self._generation, clean=False)
        claimed = replace(position, writer=own, remote_id=track.assignment.remote_id)
        await self._positions.commit({track.remote: claimed.to_commit()}, Deadline(RECOVERY_TIMEOUT_S))

    def _never_wrote(self) -> bool:
        """Where others write too, a log that is not empty says nothing: the books and the registry do."""
        return self._origin is not None and (self._has_books() or self._own_writers.are_new)

    async def _recreated(self, track: Track, position: Position, deadline: Deadline) -> Position:
        """The source topic is another one than when the position was written."""
        event = recreated(track, position, self._settings.policies)
        self._report(event)
        first = await list_offset(self._source, track.source, EARLIEST, deadline)
        end = await list_offset(self._target, track.remote, LATEST, deadline)
        parity = position.parity
        if self._identical is not None and parity is not None and parity.holds:
            parity = self._identical.ended(track, parity, end, "the source topic was made anew")
        # A writer of the old topic may still be alive: fence it, but there is nothing of the new topic to compare.
        return Position(first, end, track.assignment.topic_id, -1, position.writer, parity=parity)

    async def _fence_and_walk(
        self,
        held_id: str,
        some: list[tuple[Track, Start]],
        ready: dict[Track, Found],
        failed: dict[Track, Exception],
        deadline: Deadline,
    ) -> None:
        marker = await self._fence(held_id, [track for track, _ in some], some[0][1].writer, deadline)

        async def walk(track: Track, start: Start) -> None:
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
                await finish_transaction(self._target, last, deadline)
            writer = await obtain_writer(
                self._target,
                held_id,
                transaction_timeout_ms=self._settings.writer_timeout_ms,
                deadline=deadline,
            )
        assert writer is not None
        await fence(self._target, writer, [track.remote for track in tracks], deadline)
        self.counts["fences"] += len(tracks)
        if last is not None and last.producer_id not in (-1, writer.producer_id):
            # Epochs of the old producer id were used up and the id is a new one: a marker cannot shut the old one out.
            # A writer that is still alive notices within its lease that it was superseded.
            await asyncio.sleep(STALL_S_MAX + 5.0)
        return Marker(writer.producer_id, writer.epoch)

    async def _walk(self, track: Track, start: Start, marker: Marker | None, deadline: Deadline) -> Found:
        """Walk to the marker; a writer that turns up in the tail and was not fenced yet is fenced too."""
        assert self.writer is not None
        position = start.position
        upstream_from, downstream_from, booked = await walk_from(self._source, track.source, position, deadline)
        ours = {self.writer.producer_id, *([start.writer.producer_id] if start.writer else [])} - {NOBODY}
        fenced = {self.writer.producer_id, *([marker.producer_id] if marker else [])}
        for _ in range(FENCES_MAX):
            known = None if self._origin is None else self._own_writers.ids | ours
            place = upstream_from, downstream_from, position.leader_epoch
            found = await self._compare(track, place, marker, frozenset(ours), known)
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
                tell_found(track, found, self._settings.policies, self._report)
                set_ledger_start(found, position, booked)
                self.counts["duplicates_avoided"] += max(0, found.upstream_next - position.upstream_next)
                return found
            marker = await self._fence(unfenced, [track], None, deadline)
            if marker is not None:
                ours.add(marker.producer_id)
        raise PartitionStopped(
            f"{track.remote}: more than {FENCES_MAX} writers compete for it; trying again",
            topic=track.remote.topic,
            partition=track.remote.partition,
        )

    async def _walk_to_end(self, track: Track, start: Start, deadline: Deadline) -> Found:
        """Walk to the target's end as of now, where no marker may be put: see ``parity_recovery``."""
        position = start.position
        upstream_from, downstream_from, booked = await walk_from(self._source, track.source, position, deadline)
        await self._own_writers.read(deadline)
        ours = self._own_writers.ids | ({position.pen.producer_id} if position.pen is not None else set())
        place = upstream_from, downstream_from, position.leader_epoch
        found = await self._compare(track, place, None, frozenset(ours), None)
        tell_found(track, found, self._settings.policies, self._report)
        set_ledger_start(found, position, booked)
        return found

    async def _compare(
        self,
        track: Track,
        place: tuple[int, int, int],
        marker: Marker | None,
        ours: frozenset[int],
        flow_writers: frozenset[int] | None,
    ) -> Found:
        """``place``: upstream next, downstream end and leader epoch to begin with."""
        upstream_next, downstream_end, leader_epoch = place
        return await walk_tail(
            self._source,
            self._target,
            track.source,
            track.remote,
            upstream_next=upstream_next,
            downstream_end=downstream_end,
            leader_epoch=leader_epoch,
            marker=marker,
            our_writers=ours,
            read_committed=self._settings.read_committed,
            skipped_above_bytes=await self._size_limit(track),
            origin=self._origin,
            flow_writers=flow_writers,
        )

    async def _size_limit(self, track: Track) -> int | None:
        """With on.record.too.large=skip or dead-letter, larger records may be missing on the target."""
        if self._settings.policies.on_record_too_large == "stop":
            return None
        return int(await effective_config(self._target, track.remote.topic, "max.message.bytes"))
