"""Filling holes on the target, for all partitions of a lane whose next thing in line is one (``offsets=identical``).

One transaction after the other, each over all partitions that wait: aborted data goes into it where there is any, then it is
aborted, which puts one marker into each partition. A hole is booked when the log is seen to end behind it. What goes wrong
half-way is nothing to be mended here: the partition is owned anew, and goes on wherever its log ends.
On the lane's event loop; may not touch a partition that has batches in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import LATEST, list_offsets
from mirrorspark.errors import BrokerError, ClusterError, RequestTimedOut
from mirrorspark.names import TopicPartition
from mirrorspark.pipeline.filler_writer import FillerWriter
from mirrorspark.pipeline.holes import AlignedQueue, Hole
from mirrorspark.pipeline.track import Track, TrackState

__all__ = ["HOLE_MARKERS_MAX", "HoleFilling"]

HOLE_MARKERS_MAX = 1_000
"""Offsets in a row without anything to carry in their place; each takes a transaction of its own."""
FILL_TIMEOUT_S = 30.0
"""Below the transaction's own timeout, after which the coordinator would abort it."""
NOT_TAKEN = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.INVALID_RECORD,
)
"""A batch for its own sake; any other refusal is about who writes."""
MARKER_POLL_S = 0.001
MARKER_POLL_S_MAX = 0.02


class HoleFilling:
    def __init__(
        self,
        target: ClusterClient,
        filler: FillerWriter,
        *,
        on_filled: Callable[[Track], None],
        on_doubt: Callable[[Track, str], None],
        on_lost: Callable[[Track, int, str], None],
    ) -> None:
        self._target = target
        self._filler = filler
        self._on_filled = on_filled
        self._on_doubt = on_doubt
        self._on_lost = on_lost
        self._due: dict[Track, None] = {}
        self._news = asyncio.Event()
        self.turn = asyncio.Lock()
        """Held while a transaction is open; who obtains the filler's writer anew takes it first."""
        self.filled = 0
        self.broken = False
        """Whether a transaction may have been left open: its writer must be obtained anew."""

    def look(self, track: Track) -> None:
        """Called when something of the track went out or was put in line: perhaps a hole is next."""
        if _next_hole(track) is not None:
            self._due[track] = None
            self._news.set()

    async def run(self) -> None:
        """For as long as the lane carries; cancelled at its end."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._due:
                due, self._due = list(self._due), {}
                async with self.turn:
                    await self._fill_all(due)

    async def _fill_all(self, due: list[Track]) -> None:
        holes: dict[Track, Hole] = {}
        for track in due:
            hole = _next_hole(track)
            if hole is None:
                continue  # dropped or lost meanwhile
            if hole.markers > HOLE_MARKERS_MAX:
                text = f"{hole.markers} offsets in a row hold nothing on the source, more than {HOLE_MARKERS_MAX}"
                self._lose(track, track.downstream_end, text)
            else:
                holes[track] = hole
        if holes and not await self._fill_together(holes):
            for track, hole in holes.items():
                await self._fill_together({track: hole})

    async def _fill_together(self, holes: dict[Track, Hole]) -> bool:
        """False if the target does not take these partitions together: one of them is refused, the others need not be."""
        deadline = Deadline(FILL_TIMEOUT_S)
        for track in holes:
            track.queue.outstanding += 1  # nobody may drop or renumber its queue now
        failure: ClusterError | None = None
        ends: dict[TopicPartition, int] = {}
        try:
            await self._filler.begin([track.remote for track in holes], deadline)
            for track, hole in holes.items():
                await self._append_aborted(track, hole, deadline)
            await self._filler.abort(deadline)
            wanted = {track.remote: hole.step_next for track, hole in holes.items()}
            ends = await self._ends_behind(wanted, deadline)
        except BrokerError as error:
            if len(holes) > 1 and error.facts.get("request") == "AddPartitionsToTxn":
                return False
            failure = error
        except ClusterError as error:
            failure = error
        finally:
            for track in holes:
                track.queue.outstanding -= 1
        for track, hole in holes.items():
            if failure is not None:
                self.broken = True
                self._on_doubt(track, f"a hole in its log could not be filled: {failure}")
            else:
                self._settle(track, hole, ends[track.remote])
        return True

    async def _append_aborted(self, track: Track, hole: Hole, deadline: Deadline) -> None:
        """What the target does not take (a batch too large for it) is no loss: markers take its place."""
        for one in hole.batches:
            try:
                await self._filler.append(track.remote, one.batch, deadline, transactional=True)
            except BrokerError as error:
                if error.error_code not in NOT_TAKEN:
                    raise
                hole.markers += one.batch.record_count

    async def _ends_behind(self, wanted: dict[TopicPartition, int], deadline: Deadline) -> dict[TopicPartition, int]:
        """Where the logs end, once all of them have come as far as wanted: markers arrive a little after their order."""
        ends: dict[TopicPartition, int] = {}
        pause = MARKER_POLL_S
        while missing := [at for at, end in wanted.items() if ends.get(at, -1) < end]:
            if ends:
                await asyncio.sleep(pause)
                pause = min(2 * pause, MARKER_POLL_S_MAX)
            if deadline.passed:
                raise RequestTimedOut(f"{missing[0]}: the marker at offset {wanted[missing[0]] - 1} does not come")
            ends |= await list_offsets(self._target, missing, LATEST, deadline)
        return ends

    def _settle(self, track: Track, hole: Hole, end: int) -> None:
        if end != hole.step_next:
            expected = hole.upstream_first
            track.downstream_end = max(track.downstream_end, end)
            self._lose(
                track, expected, f"its log ends at {end} instead of {hole.step_next}: somebody else appended to it"
            )
            return
        self.filled += 1
        track.unacked_bytes -= hole.size
        hole.shrink()
        track.book_hole(hole.upstream_first)
        if not hole.markers:
            track.queue.waiting.popleft()
        self.look(track)
        self._on_filled(track)

    def _lose(self, track: Track, at: int, why: str) -> None:
        self._on_lost(track, at, why)
        self._on_filled(track)


def _next_hole(track: Track) -> Hole | None:
    queue = track.queue
    if not track.identical or not isinstance(queue, AlignedQueue) or track.state is TrackState.GONE:
        return None
    if queue.in_flight or queue.outstanding or queue.blocked:
        return None
    return queue.first_hole
