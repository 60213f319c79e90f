"""Going on where MirrorMaker 2 left a flow, without copying anything twice: once, before the flow's lanes begin.

MirrorMaker 2 leaves three things. Its source offsets say how far it had come when it last wrote them down; after a clean
stop that is exact, after a kill up to a minute behind. Its newest offset sync names one record on both sides; from there
both logs are compared to the target's end, so that what it appended and did not write down is found. And its older syncs
become an outline in the ledger, by which groups that lag behind the takeover are translated.

What comes of it are positions, as a lane would have signed them, and ledger pages; lanes then start as ever. Partitions
that we carried last ourselves are left alone. ``flow_runtime`` calls ``take_over`` at each lead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offset, list_offsets, read_log
from mirrorspark.control.connect_offsets import ConnectOffsets
from mirrorspark.errors import BrokerError, MirrorError, PartitionStopped, RequestTimedOut
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.internal_topics import ledger_topic
from mirrorspark.offsets.ledger import LedgerPage, Run, ledger_entry
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.mm2_history import SyncHistory, outline_pages
from mirrorspark.offsets.offset_sync import OffsetSync
from mirrorspark.offsets.position import Booked, Position, positions_group
from mirrorspark.pipeline.sync_writing import offset_syncs_topic
from mirrorspark.pipeline.tail_walk import Found, walk_tail
from mirrorspark.pipeline.writers import WriterRegistry
from mirrorspark.plan.desired_topics import TopicRules
from mirrorspark.settings import FlowSettings
from mirrorspark.wire.records import decode_records

__all__ = ["Taken", "take_over"]

log = logging.getLogger("mirrorspark.flow")

READ_TIMEOUT_S = 120.0
WALKS_AT_ONCE_MAX = 8
WALK_OFFSETS_MAX = 200_000
"""From the newest sync to the target's end. MirrorMaker 2 writes one for every hundred records; a distance like this means
that it stopped writing them long ago, and comparing would take minutes."""
PAGES_PER_APPEND_MAX = 50
NAMES_TOLD_MAX = 5


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A partition that MirrorMaker 2 carried last. ``known`` is our own position from before, if there is one."""

    source: TopicPartition
    remote: TopicPartition
    stored_next: int
    known: Position | None

    @property
    def known_downstream_end(self) -> int:
        return self.known.downstream_end if self.known else 0


@dataclass(frozen=True, slots=True)
class Taken:
    """Where one partition goes on. ``unproved``: why its logs could not be compared, "" if they were."""

    source: TopicPartition
    remote: TopicPartition
    stored_next: int
    position: Position
    pages: tuple[LedgerPage, ...]
    unproved: str

    @property
    def records_not_stored(self) -> int:
        """How far the target was ahead of the stored offset, in upstream offsets: what would have been copied twice."""
        return self.position.upstream_next - self.stored_next


@dataclass(frozen=True, slots=True)
class _Logs:
    """First and next offset of a partition's log on both sides."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


async def take_over(
    source: ClusterClient, target: ClusterClient, settings: FlowSettings
) -> tuple[list[Taken], list[Event]]:
    """What was taken over, and what a person should know of it. Both empty for a flow that MirrorMaker 2 did not carry."""
    takeover = _Takeover(source, target, settings)
    taken = await takeover.run()
    if taken:
        more = sum(one.records_not_stored for one in taken)
        found = f", and {more} offsets that were on {target.alias} but not in its stored offsets" if more else ""
        log.info("%s: %d partitions taken over from MirrorMaker 2%s", settings.flow, len(taken), found)
    return taken, _events(taken)


def _events(taken: Sequence[Taken]) -> list[Event]:
    unproved = [one for one in taken if one.unproved]
    if not unproved:
        return []
    names = ", ".join(str(one.source) for one in unproved[:NAMES_TOLD_MAX])
    more = f" and {len(unproved) - NAMES_TOLD_MAX} more" if len(unproved) > NAMES_TOLD_MAX else ""
    text = (
        f"taken over from MirrorMaker 2 at its stored offsets, without comparing the logs: {names}{more} "
        f"({unproved[0].unproved}). If it was stopped in order nothing is copied twice; if it was killed, what it copied "
        "since it last stored offsets (a minute by default) is"
    )
    return [Event(EventKind.TAKEOVER_UNPROVED, text)]


class _Takeover:
    def __init__(self, source: ClusterClient, target: ClusterClient, settings: FlowSettings) -> None:
        self._source = source
        self._target = target
        self._settings = settings
        self._rules = TopicRules(settings)
        self._deadline = Deadline(READ_TIMEOUT_S)
        self._stored = ConnectOffsets(target, settings)
        self._positions = GroupPositions(target, positions_group(settings.flow))
        self._walks = asyncio.Semaphore(WALKS_AT_ONCE_MAX)

    async def run(self) -> list[Taken]:
        """1. who is ahead, 2. what its syncs say, 3. compare, 4. write: the ledger before the positions, as lanes do."""
        candidates = await self._candidates()
        if not candidates:
            return []
        history = await self._read_syncs({one.source for one in candidates})
        candidates = await self._without_our_own(candidates, history)
        logs = await self._logs(candidates)
        taken = await asyncio.gather(*(self._take(one, logs[one.remote], history) for one in candidates))
        await self._write(taken)
        return taken

    # -- who is ahead -----------------------------------------------------------------------------------------------

    async def _candidates(self) -> list[_Candidate]:
        """Partitions whose stored offset is ahead of all that we know ourselves."""
        if not await self._stored.open(self._deadline):
            return []
        stored = {at: last for at, last in (await self._stored.read(self._deadline)).items() if self._is_carried(at)}
        if not stored:
            return []
        committed = await self._positions.fetch_all(self._deadline)
        remotes = {at: TopicPartition(self._rules.policy.remote(at.topic), at.partition) for at in stored}
        ours = {at: Position.from_commit(*committed[remote]) for at, remote in remotes.items() if remote in committed}
        ahead = [at for at, last in stored.items() if (own := ours.get(at)) is None or last >= own.upstream_next]
        if not ahead:
            return []
        await self._source.refresh(sorted({at.topic for at in ahead}), self._deadline)
        await self._target.refresh(sorted({remotes[at].topic for at in ahead}), self._deadline)
        ahead = [at for at in ahead if self._is_still_there(at, remotes[at], ours.get(at))]
        booked = await self._booked([remotes[at] for at in ahead if ours.get(at) is None])
        return [
            _Candidate(at, remotes[at], stored[at] + 1, ours.get(at))
            for at in ahead
            if booked.get(remotes[at], -1) < stored[at] + 1
        ]

    def _is_carried(self, at: TopicPartition) -> bool:
        return self._rules.chosen.refusal(at.topic) is None

    def _is_still_there(self, at: TopicPartition, remote: TopicPartition, ours: Position | None) -> bool:
        """On both sides, and both topics are the ones that our own position is about: else lanes know what to say."""
        if self._source.leader(at) is None or self._target.leader(remote) is None:
            return False
        if ours is None:
            return True
        topic_id, remote_id = _id_of(self._source, at).hex(), _id_of(self._target, remote).hex()
        return ours.topic_id in ("", topic_id) and ours.remote_id in ("", remote_id)

    async def _booked(self, remotes: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """How far our ledger goes, for partitions whose positions are forgotten."""
        topic = KeyedTopic(self._target, ledger_topic(self._settings.flow.books))
        if not remotes or (await self._target.refresh([topic.topic], self._deadline))[0].error_code:
            return {}
        store = LedgerStore()
        for key, value in await topic.catch_up(self._deadline):
            store.fold(key, value)
        return {remote: page.upstream_next for remote in remotes if (page := store.newest(remote)) is not None}

    async def _without_our_own(self, candidates: list[_Candidate], history: SyncHistory) -> list[_Candidate]:
        """A lane of ours that was killed may leave stored offsets ahead of its position; lanes prove those themselves.

        Whoever wrote the record of the newest sync tells: our producer ids are in the registry.
        """
        doubtful = [one for one in candidates if one.known and one.known.writer and not one.known.writer.clean]
        if not doubtful:
            return candidates
        registry = WriterRegistry(self._target, self._settings.internal_replication_factor)
        await registry.read(self._deadline)
        ids = {writer.producer_id for writer in registry.of_flow(self._settings.flow)}
        ours = set()
        for one in doubtful:
            syncs = history.syncs(one.source, downstream_from=one.known_downstream_end)
            if not syncs or await self._writer_at(one.remote, syncs[-1].downstream) in (None, *ids):
                ours.add(one.source)
        return [one for one in candidates if one.source not in ours]

    async def _writer_at(self, remote: TopicPartition, offset: int) -> int | None:
        """Producer id of the batch that holds the offset (-1: a plain producer); None if there is none."""
        end = await list_offset(self._target, remote, LATEST, self._deadline)
        if offset >= end:
            return None
        found = await read_log(self._target, remote, offset, deadline=self._deadline)
        return next((batch.producer_id for batch in found.batches if batch.last_offset >= offset), None)

    # -- what it knew -----------------------------------------------------------------------------------------------

    async def _read_syncs(self, wanted: Collection[TopicPartition]) -> SyncHistory:
        """From the topic's beginning. Where it cannot be read there is no comparison, and translation begins now."""
        history = SyncHistory(wanted)
        client = self._target if self._settings.group_sync.offset_syncs_on_target else self._source
        at = TopicPartition(offset_syncs_topic(self._settings), 0)  # MirrorMaker 2 writes to no other
        try:
            (topic,) = await client.refresh([at.topic], self._deadline)
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return history
            if topic.error_code:
                raise broker_error(topic.error_code, "Metadata", f"topic {at.topic} on {client.alias}", before="Fetch")
            start = await list_offset(client, at, EARLIEST, self._deadline)
            end = await list_offset(client, at, LATEST, self._deadline)
            while start < end:
                found = await read_log(client, at, start, deadline=self._deadline)
                for batch in found.batches:
                    if not batch.is_control:
                        for record in decode_records(batch, *at):
                            history.fold(record.key, record.value)
                    start = max(start, batch.next_offset)
                if not found.batches and self._deadline.passed:
                    raise RequestTimedOut(f"{at}: read to {start}, but its end {end} does not come")
        except BrokerError as error:
            log.warning("%s: offset syncs cannot be read: %s", self._settings.flow, error)
        if history.damaged:
            log.warning("%s: %d records of %s are no offset syncs", self._settings.flow, history.damaged, at.topic)
        return history

    async def _logs(self, candidates: Sequence[_Candidate]) -> dict[TopicPartition, _Logs]:
        sources, remotes = [one.source for one in candidates], [one.remote for one in candidates]
        source_starts = await list_offsets(self._source, sources, EARLIEST, self._deadline)
        source_ends = await list_offsets(self._source, sources, LATEST, self._deadline)
        target_starts = await list_offsets(self._target, remotes, EARLIEST, self._deadline)
        target_ends = await list_offsets(self._target, remotes, LATEST, self._deadline)
        return {
            one.remote: _Logs(
                source_starts[one.source], source_ends[one.source], target_starts[one.remote], target_ends[one.remote]
            )
            for one in candidates
        }

    # -- compare ----------------------------------------------------------------------------------------------------

    async def _take(self, one: _Candidate, logs: _Logs, history: SyncHistory) -> Taken:
        syncs = history.syncs(one.source, downstream_from=one.known_downstream_end)
        syncs = [sync for sync in syncs if sync.downstream < logs.target_end]
        why = _why_not_compared(syncs[-1] if syncs else None, logs)
        if not why:
            found = await self._walk(one, syncs[-1])
            if isinstance(found, Found) and _is_proof(found, one.stored_next):
                return self._taken(one, found.upstream_next, found.downstream_end, syncs, found)
            why = found if isinstance(found, str) else "records on the target are not the source's next ones"
        older = [sync for sync in syncs if sync.upstream < one.stored_next]
        return self._taken(one, one.stored_next, logs.target_end, older, None, why)

    async def _walk(self, one: _Candidate, sync: OffsetSync) -> Found | str:
        async with self._walks:
            try:
                return await walk_tail(
                    self._source,
                    self._target,
                    one.source,
                    one.remote,
                    upstream_next=sync.upstream,
                    downstream_end=sync.downstream,
                    leader_epoch=-1,
                    marker=None,
                    our_writers=frozenset(),
                    read_committed=self._settings.read_committed,
                )
            except (PartitionStopped, BrokerError) as error:
                return str(error)

    def _taken(
        self,
        one: _Candidate,
        upstream_next: int,
        downstream_end: int,
        syncs: Sequence[OffsetSync],
        found: Found | None,
        unproved: str = "",
    ) -> Taken:
        topic_id, remote_id = _id_of(self._source, one.source), _id_of(self._target, one.remote)
        pages: list[LedgerPage] = []
        if found is not None:  # the newest pair begins what is known exactly
            newest = syncs[-1]
            if syncs[:-1]:
                pages = outline_pages(
                    syncs[:-1], newest.upstream, newest.downstream, topic_id=topic_id, remote_id=remote_id
                )
            pages.append(_exact_page(found, newest, topic_id, remote_id))
        elif syncs:
            pages = outline_pages(syncs, upstream_next, downstream_end, topic_id=topic_id, remote_id=remote_id)
        position = Position(
            upstream_next,
            downstream_end,
            topic_id.hex() if any(topic_id) else "",
            found.leader_epoch if found else -1,
            None,
            Booked(upstream_next, downstream_end) if pages else None,
            remote_id.hex() if any(remote_id) else "",
        )
        return Taken(one.source, one.remote, one.stored_next, position, tuple(pages), unproved)

    # -- write ------------------------------------------------------------------------------------------------------

    async def _write(self, taken: Sequence[Taken]) -> None:
        ledger = KeyedTopic(self._target, ledger_topic(self._settings.flow.books))
        pages = [ledger_entry(one.remote, page) for one in taken for page in one.pages]
        for first in range(0, len(pages), PAGES_PER_APPEND_MAX):
            await ledger.append(pages[first : first + PAGES_PER_APPEND_MAX], self._deadline)
        ahead = {one.source: one.position.upstream_next - 1 for one in taken if one.records_not_stored}
        await self._stored.write(ahead, self._deadline)
        await self._positions.commit({one.remote: one.position.to_commit() for one in taken}, self._deadline)


def _why_not_compared(newest: OffsetSync | None, logs: _Logs) -> str:
    if newest is None:
        return "there is no offset sync of it"
    if not logs.source_start <= newest.upstream < logs.source_end:
        return f"the source no longer has offset {newest.upstream}, of which the newest offset sync tells"
    if newest.downstream < logs.target_start:
        return f"the target no longer has offset {newest.downstream}, of which the newest offset sync tells"
    if logs.target_end - newest.downstream > WALK_OFFSETS_MAX:
        return f"the newest offset sync lies {logs.target_end - newest.downstream} offsets before the end"
    return ""


def _is_proof(found: Found, stored_next: int) -> bool:
    """Every record after the sync is the source's next one, up to what was stored at least."""
    return found.records > 0 and not found.foreign_records and not found.gap and found.upstream_next >= stored_next


def _exact_page(found: Found, newest: OffsetSync, topic_id: bytes, remote_id: bytes) -> LedgerPage:
    runs = [
        Run(one.upstream_first, one.upstream_last, one.downstream_first, one.downstream_last, span)
        for one in found.ranges
        if (span := one.upstream_last - one.upstream_first + 1)
    ]
    return LedgerPage.of(
        runs,
        upstream_start=newest.upstream,
        upstream_next=found.upstream_next,
        downstream_start=newest.downstream,
        topic_id=topic_id,
        remote_id=remote_id,
    )


def _id_of(client: ClusterClient, at: TopicPartition) -> bytes:
    known = client.topics.get(at.topic)
    if known is None:
        raise MirrorError(f"{at} is not on cluster {client.alias} any more")
    return known.topic_id
