"""After an unclean end, without a fence's marker (``offsets=identical``): the marker would take an offset.

The last writer may still be alive, and must not append anything twice beside its successor. Two ways, both proved by the
log, both without a trace in it:

- **its pen**: the successor goes on under the same producer id and epoch, from the next sequence. Whatever both of them
  send, the broker appends once: a repeat is recognised by its sequence, and one that does not fit is refused.
- **its lease**, where the broker may have forgotten the sequences (docs/decisions/0006): the successor has taken a newer
  epoch from the coordinator, and waits for as long as a lane may send without having asked whether it is still the newest.

The claim, the committed position under the successor's own name, is made in both. Called by ``recovery``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mirrorspark.cluster.batch_appender import STALL_S_MAX
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.writer import obtain_writer
from mirrorspark.errors import BrokerError, PartitionStopped
from mirrorspark.offsets.position import LastWriter, Pen, Position
from mirrorspark.pipeline.hole_filling import HoleFilling
from mirrorspark.pipeline.identical import IdenticalOffsets
from mirrorspark.pipeline.tail_walk import Found
from mirrorspark.pipeline.track import REMEMBERED_MS, Track

__all__ = ["ParityRecovery", "Start"]

log = logging.getLogger("mirrorspark.lane")

LEASE_S = STALL_S_MAX + 5.0
"""A lane sends nothing once it has not known for 30 s that it is the newest; the rest is for what is on the wire."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin, and whom to fence before."""

    position: Position
    writer: LastWriter | None  # to be fenced; None if the last one left cleanly


class ParityRecovery:
    def __init__(
        self,
        target: ClusterClient,
        own_id: str,
        identical: IdenticalOffsets,
        holes: HoleFilling,
        *,
        transaction_timeout_ms: int,
        walk: Callable[[Track, Start, Deadline], Awaitable[Found]],
        walks: asyncio.Semaphore,
    ) -> None:
        self._target = target
        self._own_id = own_id
        self._identical = identical
        self._holes = holes
        self._transaction_timeout_ms = transaction_timeout_ms
        self._walk = walk
        self._walks = walks

    async def keeps(self, track: Track, start: Start) -> bool:
        """Whether parity may go on: it held, and so the last writer has a lease; or nobody is known to have been one."""
        parity, writer = start.position.parity, start.writer
        if parity is not None:
            return parity.holds
        nobody = writer is not None and writer.producer_id < 0
        return nobody and not await self._identical.why_not(track)

    async def take_over(
        self,
        held_id: str,
        some: list[tuple[Track, Start]],
        ready: dict[Track, Found],
        failed: dict[Track, Exception],
        deadline: Deadline,
    ) -> None:
        await self._supersede(held_id, deadline)
        waiting: list[tuple[Track, Start]] = []

        async def prove(track: Track, start: Start, *, waited: bool) -> None:
            async with self._walks:
                try:
                    found = await self._walk(track, start, deadline)
                except (PartitionStopped, BrokerError) as error:
                    failed[track] = error
                    return
            found.pen = None if waited else pen_to_go_on_with(start.position, found)
            if found.pen is None and not waited:
                waiting.append((track, start))
            else:
                ready[track] = found

        await asyncio.gather(*(prove(track, start, waited=False) for track, start in some))
        if waiting:
            log.warning(
                "%s: waiting %.0f s for the lease of the last writer of %d partitions", held_id, LEASE_S, len(waiting)
            )
            await asyncio.sleep(LEASE_S)
            await asyncio.gather(*(prove(track, start, waited=True) for track, start in waiting))

    async def _supersede(self, held_id: str, deadline: Deadline) -> None:
        """A newer epoch of both of its ids: it will know; what its filler left open ends with the marker that was due."""
        if held_id == self._own_id:
            if self._holes.broken:
                async with self._holes.turn:
                    await self._identical.filler.obtain(deadline)
                    self._holes.broken = False
            return
        await self._identical.filler.end_open_of(held_id, deadline)
        await obtain_writer(
            self._target, held_id, transaction_timeout_ms=self._transaction_timeout_ms, deadline=deadline
        )


def pen_to_go_on_with(position: Position, found: Found) -> Pen | None:
    """The last writer's, as the log shows it; None where the broker may not remember it, or the log shows another's."""
    pen = position.pen
    if pen is None:
        return None
    last = found.last_pen if found.last_pen_at >= position.downstream_end else None
    if last is not None and (last.producer_id, last.epoch) != (pen.producer_id, pen.epoch):
        return None
    now = last or pen
    unused = now.next_sequence == 0 and now.newest_ms < 0
    return now if unused or now.newest_ms >= time.time() * 1000 - REMEMBERED_MS else None
