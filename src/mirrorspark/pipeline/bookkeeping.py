"""Writing down what receipts prove: positions, ledger, MirrorMaker 2's progress, status (invariant D: from receipts only).

Positions go out every second or after so many bytes, the books (ledger and progress) less often; all cost per partition
that moved, nothing per idle one. Called by the lane's clock.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.log_reader import LATEST, list_offset
from mirrorspark.errors import BrokerError
from mirrorspark.events import Event
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.internal_topics import PROGRESS_PARTITIONS, ledger_topic, progress_topic_of, status_topic
from mirrorspark.offsets.ledger import NO_TOPIC_ID
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.position import Booked, LastWriter, Position
from mirrorspark.offsets.progress import parse_progress, progress_entry
from mirrorspark.pipeline.receipt import Receipt
from mirrorspark.pipeline.sync_writing import SyncWriting
from mirrorspark.pipeline.track import Track, TrackState
from mirrorspark.pipeline.traffic_report import TrafficReport
from mirrorspark.settings import FlowSettings

__all__ = ["Bookkeeping", "LaneReport"]

log = logging.getLogger("mirrorspark.lane")

BOOKS_TIMEOUT_S = 30.0
LEDGER_APPEND_BYTES_MAX = 256 * 1024
"""Pages in one batch of the ledger topic; well below what a topic takes by default."""
WAITING_REPORTED_MAX = 100
PARTITIONS_REPORTED_MAX = 500
"""Partitions told in one report; the rest follows in the next ones."""


class LaneReport:
    """What a lane says of itself every second; one record on the status topic, newest wins."""

    @staticmethod
    def key(lane: int) -> bytes:
        return f"lane/{lane}".encode()


class Bookkeeping:
    def __init__(
        self,
        source: ClusterClient,
        target: ClusterClient,
        settings: FlowSettings,
        positions: GroupPositions,
        *,
        lane: int,
        generation: int,
    ) -> None:
        self._target = target
        self._settings = settings
        self._positions = positions
        self._lane = lane
        self._generation = generation
        self._status = KeyedTopic(target, status_topic(settings.flow.books))
        self._ledger = KeyedTopic(target, ledger_topic(settings.flow.books))
        self._progress: KeyedTopic | None = None
        self._ledger_turn = asyncio.Lock()
        self._syncs = SyncWriting(source, target, settings, self.note)
        self._remembered: LedgerStore | None = None
        self._progressed: dict[TopicPartition, int] = {}
        self._events: list[Event] = []
        self._untold: set[Track] = set()
        self._started_ms = int(time.time() * 1000)
        self._cpu_began_s = time.process_time()
        self._counts: Counter[str] = Counter()
        self._traffic = {"source": TrafficReport(source), "target": TrafficReport(target)}
        self.records = 0
        self.bytes = 0

    @property
    def progress(self) -> KeyedTopic:
        """With as many partitions as it has: Java looks for a key where that number puts it."""
        if self._progress is None:
            name = progress_topic_of(self._settings)
            known = self._target.topics.get(name)
            if known is None or not known.partitions:
                return KeyedTopic(self._target, name, PROGRESS_PARTITIONS)  # not seen just now
            self._progress = KeyedTopic(self._target, name, len(known.partitions))
        return self._progress

    async def remembered(self, source: TopicPartition, remote: TopicPartition) -> Position | None:
        """A lost position from the ledger, else from MirrorMaker 2's progress."""
        deadline = Deadline(BOOKS_TIMEOUT_S)
        if self._remembered is None:
            await self._read_books(deadline)
        assert self._remembered is not None
        nobody = LastWriter(f"__mirrorspark-{self._settings.flow}-{self._lane}", -1, -1, 0, clean=False)
        end = await list_offset(self._target, remote, LATEST, deadline)
        page = self._remembered.newest(remote)
        known = self._target.topics.get(remote.topic)
        # Pages of another topic id, or beyond the target's end, tell of an earlier topic of that name.
        remote_id = known.topic_id if known is not None else NO_TOPIC_ID
        if page is not None and page.downstream_end <= end and page.is_of(page.topic_id, remote_id):
            topic_id = page.topic_id.hex() if any(page.topic_id) else ""
            booked = Booked(page.upstream_next, page.downstream_end)
            return Position(page.upstream_next, page.downstream_end, topic_id, -1, nobody, booked)
        last = self._progressed.get(source)
        if last is not None:
            return Position(last + 1, end, "", -1, None)
        return None

    async def last_booked(self, source: TopicPartition, remote: TopicPartition) -> Position | None:
        """How far the flow came with this partition by ledger or progress, whichever remote topic that was about."""
        deadline = Deadline(BOOKS_TIMEOUT_S)
        if self._remembered is None:
            await self._read_books(deadline)
        else:
            for key, value in await self._ledger.catch_up(deadline):
                self._remembered.fold(key, value)
        assert self._remembered is not None
        page = self._remembered.newest(remote)
        if page is not None:
            return Position(page.upstream_next, 0, page.topic_id.hex() if any(page.topic_id) else "", -1, None)
        last = self._progressed.get(source)
        return None if last is None else Position(last + 1, 0, "", -1, None)

    def has_books(self) -> bool:
        """Whether ledger or progress tell of any partition at all; asked after ``remembered``."""
        return bool((self._remembered is not None and self._remembered.partition_count) or self._progressed)

    async def _read_books(self, deadline: Deadline) -> None:
        found = LedgerStore()
        for key, value in await self._ledger.catch_up(deadline):  # in order: newer pages win
            found.fold(key, value)
        for key, value in (await self.progress.read_all(deadline)).items():
            entry = parse_progress(key, value, self._settings.flow.source, self._settings.connect.connector)
            if entry is not None and entry[2] is not None:
                self._progressed[TopicPartition(entry[0], entry[1])] = entry[2]
        self._remembered = found

    async def commit_positions(self, positions: dict[TopicPartition, Position]) -> None:
        if not positions:
            return
        began_at, is_done = time.monotonic(), False
        try:
            await self._positions.commit(
                {remote: position.to_commit() for remote, position in positions.items()}, Deadline(BOOKS_TIMEOUT_S)
            )
            is_done = True
        finally:
            self._count_commit(int((time.monotonic() - began_at) * 1000), is_done)

    def _count_commit(self, took_ms: int, is_done: bool) -> None:
        self._counts["commits"] += 1
        self._counts["commits_failed"] += not is_done
        self._counts["commit_ms"] += took_ms
        self._counts["commit_ms_max"] = max(self._counts["commit_ms_max"], took_ms)

    def count(self, what: str) -> None:
        """One more of something that only others see happen: a transaction, a record set aside."""
        self._counts[what] += 1

    async def sign_off(self, positions: dict[TopicPartition, Position]) -> None:
        """``commit_positions`` at a partition's end. Of a topic that was deleted there is none to keep."""
        try:
            await self.commit_positions(positions)
        except BrokerError as error:
            if error.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            topics = await self._target.refresh(sorted({remote.topic for remote in positions}))
            left = {topic.name for topic in topics if topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            log.warning("lane %d: %s; going on with those that are left", self._lane, error)
            await self.commit_positions({remote: one for remote, one in positions.items() if remote.topic in left})

    def progress_entries(self, tracks: Iterable[Track]) -> list[tuple[bytes, bytes | None]]:
        source, connector = self._settings.flow.source, self._settings.connect.connector
        return [
            progress_entry(source, track.source.topic, track.source.partition, track.upstream_next - 1, connector)
            for track in tracks
            if track.progress_due and track.upstream_next > 0
        ]

    async def write_ledger(self, tracks: Collection[Track]) -> None:
        """Full pages once, the open one as it has grown. Positions that are committed afterwards say that it is done."""
        self._syncs.write(tracks, delayed=False)
        async with self._ledger_turn:
            drafts = [
                (track, track.ledger.draft(track.upstream_next, track.downstream_end))
                for track in tracks
                if track.unbooked
            ]
            await self._append_ledger([entry for _, draft in drafts for entry in draft.entries])
            for track, draft in drafts:
                track.ledger.confirm(draft)
                track.unbooked = draft.booked.upstream_next != track.upstream_next
                track.uncommitted = True

    async def _append_ledger(self, entries: list[tuple[bytes, bytes | None]]) -> None:
        some: list[tuple[bytes, bytes | None]] = []
        size = 0
        for entry in entries:
            some.append(entry)
            size += len(entry[0]) + len(entry[1] or b"")
            if size >= LEDGER_APPEND_BYTES_MAX:
                await self._ledger.append(some, Deadline(BOOKS_TIMEOUT_S))
                some, size = [], 0
        if some:
            await self._ledger.append(some, Deadline(BOOKS_TIMEOUT_S))

    async def write_progress(self, tracks: Collection[Track]) -> None:
        """Where MirrorMaker 2 would look for it, and with it the syncs that it would have kept back so far."""
        self._syncs.write(tracks, delayed=True)
        moved = [track for track in tracks if track.progress_due]
        entries = self.progress_entries(moved)
        for track in moved:
            track.progress_due = False
        try:
            if entries:
                await self.progress.append(entries, Deadline(BOOKS_TIMEOUT_S))
        except BaseException:
            for track in moved:
                track.progress_due = True
            raise

    async def close_with(self, tracks: Collection[Track]) -> None:
        """What these carried last, as they are let go."""
        await self.write_progress(tracks)
        await self._syncs.finish(tracks)

    def close(self) -> None:
        self._syncs.close()

    def note(self, event: Event) -> None:
        self._events.append(event)

    def take_up(self, track: Track) -> None:
        """It carries from now on."""
        self._syncs.begin(track)
        self.touch([track])

    def touch(self, tracks: Iterable[Track]) -> None:
        """These have news for the next report."""
        self._untold.update(tracks)

    def receipts(self, tracks: Iterable[Track]) -> list[Receipt]:
        now = int(time.time() * 1000)
        rows = []
        for track in tracks:
            span, track.span = track.span, None
            if span is not None:
                self._counts["batches"] += span.batches
                self._counts["batch_records_max"] = max(self._counts["batch_records_max"], span.records_max)
                rows.append(
                    Receipt(
                        self._lane,
                        track.remote.topic,
                        track.remote.partition,
                        span.upstream_first,
                        span.upstream_last,
                        span.downstream_first,
                        span.records,
                        span.batches,
                        span.bytes,
                        track.latency_ms,
                        now,
                    )
                )
        return rows

    @property
    def has_events(self) -> bool:
        return bool(self._events)

    async def report(
        self,
        state: str,
        tracks: dict[TopicPartition, Track],
        held_bytes: int,
        troubles: Mapping[TopicPartition, str],
        skipped_by_origin: Mapping[str, list[int]],
        counted: Mapping[str, float],
        limit: list[float] | None = None,
    ) -> None:
        """One status record for the lane, and the events since the last one. ``counted``: what its recovery and its fetches
        counted. ``limit``: its share of the flow's limit, and the part of the time in which that held it back."""
        told = [self._untold.pop() for _ in range(min(len(self._untold), PARTITIONS_REPORTED_MAX))]
        text = {
            "lane": self._lane,
            "generation": self._generation,
            "state": state,
            "since_ms": self._started_ms,
            "at_ms": int(time.time() * 1000),
            "partitions": len(tracks),
            "held_bytes": held_bytes,
            "waiting": _waiting(tracks, troubles),
            "skipped_by_origin": skipped_by_origin,  # flow that wrote it -> batches, records
            "identical": _identical(tracks),
            "limit": limit,
            "counts": {
                "cpu_s": round(time.process_time() - self._cpu_began_s, 3),
                **self._counts,
                **counted,
                **self._traffic["source"].fetches(),
            },
            "traffic": {side: one.rows() for side, one in self._traffic.items()},  # broker -> traffic_report.COLUMNS
            "moved": [
                [
                    track.remote.topic,
                    track.remote.partition,
                    track.upstream_next,
                    track.downstream_end,
                    track.high_watermark,
                    track.records,
                    track.bytes,
                    track.latency_ms,
                    track.state.value,
                    track.reencoded,
                ]
                for track in told
            ],
        }
        events = list(self._events)
        entries: list[tuple[bytes, bytes | None]] = [(event.key.encode(), event.to_json()) for event in events]
        entries.append((LaneReport.key(self._lane), json.dumps(text, separators=(",", ":")).encode()))
        await self._status.append(entries, Deadline(BOOKS_TIMEOUT_S))
        del self._events[: len(events)]


def _identical(tracks: Mapping[TopicPartition, Track]) -> list[int] | None:
    """Partitions whose offsets are identical, and those where that was lost; None where nobody asked for it."""
    asked = [track.parity for track in tracks.values() if track.parity is not None]
    return [sum(parity.holds for parity in asked), sum(not parity.holds for parity in asked)] if asked else None


def _waiting(tracks: Mapping[TopicPartition, Track], troubles: Mapping[TopicPartition, str]) -> dict[str, str]:
    """Partitions that do not flow, and why; the first hundred of them."""
    found = {str(track.remote): track.why for track in tracks.values() if track.why}
    found |= {str(at): f"cannot be appended to: {why}" for at, why in troubles.items() if str(at) not in found}
    found |= {
        str(track.remote): "waiting"
        for track in tracks.values()
        if track.state is TrackState.WAITING and str(track.remote) not in found
    }
    if len(found) <= WAITING_REPORTED_MAX:
        return found
    first = dict(sorted(found.items())[:WAITING_REPORTED_MAX])
    first["others"] = f"{len(found) - WAITING_REPORTED_MAX} more partitions wait"
    return first
