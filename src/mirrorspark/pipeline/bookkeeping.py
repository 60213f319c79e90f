"""Writing down what receipts prove: positions, ledger, MirrorMaker 2's progress, status (invariant D: from receipts only).

Positions go out every second or after so many bytes, the books (ledger and progress) less often; all cost per partition
that moved, nothing per idle one. Called by the lane's clock.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.log_reader import LATEST, list_offset
from mirrorspark.events import Event
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.internal_topics import PROGRESS_PARTITIONS, ledger_topic, progress_topic, status_topic
from mirrorspark.offsets.ledger import LedgerRange, ledger_entry, parse_ledger_entry
from mirrorspark.offsets.position import LastWriter, Position
from mirrorspark.offsets.progress import parse_progress, progress_entry
from mirrorspark.pipeline.receipt import Receipt
from mirrorspark.pipeline.track import Track, TrackState
from mirrorspark.settings import FlowSettings

__all__ = ["Bookkeeping", "LaneReport"]

BOOKS_TIMEOUT_S = 30.0
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
        self, target: ClusterClient, settings: FlowSettings, positions: GroupPositions, *, lane: int, generation: int
    ) -> None:
        source = settings.flow.source
        self._target = target
        self._settings = settings
        self._positions = positions
        self._lane = lane
        self._generation = generation
        self._status = KeyedTopic(target, status_topic(source))
        self._ledger = KeyedTopic(target, ledger_topic(source))
        known = target.topics.get(progress_topic(source))
        self.progress = KeyedTopic(
            target, progress_topic(source), len(known.partitions) if known and known.partitions else PROGRESS_PARTITIONS
        )
        self._remembered: dict[TopicPartition, list[LedgerRange]] | None = None
        self._progressed: dict[TopicPartition, int] = {}
        self._events: list[Event] = []
        self._untold: set[Track] = set()
        self._started_ms = int(time.time() * 1000)
        self.records = 0
        self.bytes = 0

    async def remembered(self, source: TopicPartition, remote: TopicPartition) -> Position | None:
        """A lost position from the ledger, else from MirrorMaker 2's progress."""
        deadline = Deadline(BOOKS_TIMEOUT_S)
        if self._remembered is None:
            await self._read_books(deadline)
        assert self._remembered is not None
        nobody = LastWriter(f"__mirrorspark-{self._settings.flow}-{self._lane}", -1, -1, 0, clean=False)
        end = await list_offset(self._target, remote, LATEST, deadline)
        # Ranges beyond the target's end tell of an earlier topic of that name.
        true = [span for span in self._remembered.get(remote, []) if span.downstream_last < end]
        if true:
            span = max(true, key=lambda one: one.downstream_last)
            topic_id = span.topic_id.hex() if any(span.topic_id) else ""
            return Position(span.upstream_last + 1, span.downstream_last + 1, topic_id, -1, nobody)
        last = self._progressed.get(source)
        if last is not None:
            return Position(last + 1, end, "", -1, None)
        return None

    async def _read_books(self, deadline: Deadline) -> None:
        found: dict[TopicPartition, list[LedgerRange]] = {}
        for key, value in (await self._ledger.read_all(deadline)).items():
            parsed = parse_ledger_entry(key, value)
            if parsed is not None:
                found.setdefault(parsed[0], []).append(parsed[1])
        for key, value in (await self.progress.read_all(deadline)).items():
            entry = parse_progress(key, value, self._settings.flow.source)
            if entry is not None and entry[2] is not None:
                self._progressed[TopicPartition(entry[0], entry[1])] = entry[2]
        self._remembered = found

    async def commit_positions(self, positions: dict[TopicPartition, Position]) -> None:
        if positions:
            await self._positions.commit(
                {remote: position.to_commit() for remote, position in positions.items()}, Deadline(BOOKS_TIMEOUT_S)
            )

    def progress_entries(self, tracks: Iterable[Track]) -> list[tuple[bytes, bytes | None]]:
        source = self._settings.flow.source
        return [
            progress_entry(source, track.source.topic, track.source.partition, track.upstream_next - 1)
            for track in tracks
            if track.unbooked
        ]

    async def write_ledger(self, tracks: Iterable[Track]) -> None:
        """Closed ranges once, the open one with its new end."""
        entries: list[tuple[bytes, bytes | None]] = []
        for track in tracks:
            if track.unbooked:
                entries += [ledger_entry(track.remote, span) for span in track.ranges]
                while len(track.ranges) > 1:
                    track.ranges.popleft()
                track.unbooked = False
        for first in range(0, len(entries), 5_000):
            await self._ledger.append(entries[first : first + 5_000], Deadline(BOOKS_TIMEOUT_S))

    async def write_books(self, tracks: Iterable[Track]) -> None:
        moved = [track for track in tracks if track.unbooked]
        if not moved:
            return
        entries = self.progress_entries(moved)
        await self.write_ledger(moved)
        await self.progress.append(entries, Deadline(BOOKS_TIMEOUT_S))

    def note(self, event: Event) -> None:
        self._events.append(event)

    def touch(self, tracks: Iterable[Track]) -> None:
        """These have news for the next report."""
        self._untold.update(tracks)

    def receipts(self, tracks: Iterable[Track]) -> list[Receipt]:
        now = int(time.time() * 1000)
        rows = []
        for track in tracks:
            span, track.span = track.span, None
            if span is not None:
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
        self, state: str, tracks: dict[TopicPartition, Track], held_bytes: int, troubles: Mapping[TopicPartition, str]
    ) -> None:
        """One status record for the lane, and the events since the last one."""
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
                ]
                for track in told
            ],
        }
        events = list(self._events)
        entries: list[tuple[bytes, bytes | None]] = [(event.key.encode(), event.to_json()) for event in events]
        entries.append((LaneReport.key(self._lane), json.dumps(text, separators=(",", ":")).encode()))
        await self._status.append(entries, Deadline(BOOKS_TIMEOUT_S))
        del self._events[: len(events)]


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
