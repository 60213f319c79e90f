"""Which partitions a lane still has to own, and owning them: in batches, under a new epoch where one is needed.

A partition that another lane of the same driver holds is waited for; a lane that does not let go in time is fenced there.
Used by the lane alone, on its event loop.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.errors import ClusterError, MirrorError, NewerFormat
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.position import Position
from mirrorspark.pipeline.express import Express
from mirrorspark.pipeline.recovery import Recovery, StillHeld
from mirrorspark.pipeline.track import Track, TrackState
from mirrorspark.pipeline.troubles import Troubles

__all__ = ["Ownership"]

log = logging.getLogger("mirrorspark.lane")

RELEASE_POLL_S = 0.1
REQUEST_TIMEOUT_S = 60.0
OWN_TOGETHER_MAX = 500
"""Partitions owned in one go: bounds one OffsetCommit and the time until the first of many partitions flows."""
RETRY_OWNING_S = 30.0
LEADER_AGAIN_S = 0.5
"""A partition without leader is looked at again after so long."""
SUCCESSOR_INTERVAL_S = 2.0
"""Between two looks whether a newer attempt of this lane has put its name on a partition."""


class Ownership:
    def __init__(
        self,
        lane: int,
        generation: int,
        source: ClusterClient,
        target: ClusterClient,
        recovery: Recovery,
        troubles: Troubles,
        *,
        positions: GroupPositions,
        release_wait_ms_max: int,
        turn: asyncio.Lock,
        begin: Callable[[Track], None],
        release: Callable[[list[Track]], Awaitable[None]],
        superseded: Callable[[str], None],
        guard: Callable[[Awaitable[None]], Awaitable[None]],
    ) -> None:
        self._lane = lane
        self._generation = generation
        self._source = source
        self._target = target
        self._recovery = recovery
        self._troubles = troubles
        self._positions = positions
        self._release_wait_ms_max = release_wait_ms_max
        self._turn = turn
        self._begin = begin
        self._release = release
        self._superseded = superseded
        self._guard = guard
        self._wanted: set[Track] = set()
        self._leaving: set[TopicPartition] = set()
        self._task: asyncio.Future[None] | None = None

    @property
    def tasks(self) -> list[asyncio.Future[None]]:
        return [self._task] if self._task is not None else []

    def want(self, track: Track) -> None:
        self._wanted.add(track)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._guard(self._own_wanted()))

    def let_go(self, track: Track) -> None:
        """It is being released; the same partition is not owned again before that is over."""
        self._wanted.discard(track)
        self._leaving.add(track.remote)

    def released(self, track: Track) -> None:
        self._leaving.discard(track.remote)

    def retry(self, tracks: Iterable[Track], express: Express) -> None:
        """Waiting partitions whose time has come."""
        now = time.monotonic()
        for track in list(tracks):
            if track.state is not TrackState.WAITING or track.retry_at > now or track.queue.outstanding:
                continue
            if track.writer is None:
                track.retry_at = now + RETRY_OWNING_S
                self.want(track)
            else:
                track.drop_queue()
                track.queue.blocked = False
                track.state = TrackState.CARRYING
                express.resume(track)

    async def is_lost(self, track: Track) -> bool:
        """Whether a newer attempt or driver has put its name on the partition; then this attempt is over."""
        committed = await self._positions.fetch([track.remote], Deadline(REQUEST_TIMEOUT_S))
        try:
            found = Position.from_commit(*committed[track.remote]) if track.remote in committed else None
        except NewerFormat as error:
            self._superseded(f"lane {self._lane}: {track.remote} is owned by a newer mirrorspark: {error}")
            return True
        writer = found.writer if found else None
        own = self._recovery.writer
        assert own is not None
        if writer is None:
            return False
        newer_driver = writer.generation > self._generation
        newer_attempt = writer.transactional_id == own.transactional_id and (writer.producer_id, writer.epoch) > (
            own.producer_id,
            own.epoch,
        )
        if newer_driver or newer_attempt:
            self._superseded(f"lane {self._lane} has a newer attempt, which owns {track.remote}")
        return newer_driver or newer_attempt

    async def notice_successor(self, tracks: Mapping[TopicPartition, Track], end: asyncio.Event) -> None:
        """A lane that has nothing to send is told by no broker that a newer attempt has taken its place: it looks itself."""
        while not end.is_set():
            await asyncio.sleep(SUCCESSOR_INTERVAL_S)
            carried = [track for track in tracks.values() if track.state is TrackState.CARRYING]
            try:
                if carried and await self.is_lost(random.choice(carried)):
                    return
            except ClusterError as error:
                if not error.retriable:
                    raise
                log.warning("lane %d: looking for a newer attempt: %s; trying again", self._lane, error)

    async def _own_wanted(self) -> None:
        while self._wanted:
            some = [track for track in self._wanted if track.remote not in self._leaving][:OWN_TOGETHER_MAX]
            if not some:
                await asyncio.sleep(RELEASE_POLL_S)
                continue
            try:
                await self._refresh_leaders(some)
                some = self._with_leaders(some)
                failed = await self._own(some)
            except ClusterError as error:
                if not error.retriable:
                    raise
                log.warning("lane %d: owning partitions: %s; trying again", self._lane, error)
                await asyncio.sleep(1.0)
                continue
            await self._settle(some, failed)

    def _with_leaders(self, tracks: list[Track]) -> list[Track]:
        """Those that have one on both clusters. The others wait by themselves: a topic that is gone, or a broker that is
        down, must not keep those from flowing that are well."""
        able = []
        for track in tracks:
            sides = (self._source, track.source), (self._target, track.remote)
            leaderless = next(((client, at) for client, at in sides if client.leader(at) is None), None)
            if leaderless is None:
                able.append(track)
                continue
            client, at = leaderless
            problem = client.no_leader(at, "ListOffsets")
            self._wanted.discard(track)
            self._troubles.stopped(track, problem)
            if problem.retriable:
                track.retry_at = time.monotonic() + LEADER_AGAIN_S
        return able

    async def _own(self, tracks: list[Track]) -> dict[Track, Exception]:
        if not tracks:
            return {}
        for track in tracks:
            waited_ms = (time.monotonic() - track.wanted_since) * 1000
            track.force_ownership = waited_ms > self._release_wait_ms_max
        # Owning uses the lane's own transactional id: never while its transaction is open.
        async with self._turn:
            if any(track.newer_than is not None and track.newer_than == self._recovery.writer for track in tracks):
                await self._recovery.obtain(Deadline(REQUEST_TIMEOUT_S))
            return await self._recovery.own(tracks)

    async def _settle(self, tracks: list[Track], failed: dict[Track, Exception]) -> None:
        held = False
        for track in tracks:
            problem = failed.get(track)
            if track not in self._wanted:  # let go meanwhile
                if problem is None:
                    await self._release([track])
            elif isinstance(problem, StillHeld):
                held = True
            else:
                self._wanted.discard(track)
                if problem is None:
                    self._begin(track)
                elif isinstance(problem, MirrorError):
                    self._troubles.stopped(track, problem)
                else:
                    raise problem
        if held:
            await asyncio.sleep(RELEASE_POLL_S)

    async def _refresh_leaders(self, tracks: list[Track]) -> None:
        for client, topics in (
            (self._source, {t.source.topic for t in tracks if self._source.leader(t.source) is None}),
            (self._target, {t.remote.topic for t in tracks if self._target.leader(t.remote) is None}),
        ):
            if topics:
                await client.refresh(sorted(topics))
