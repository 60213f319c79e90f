"""Committing the positions of a lane's partitions that moved: the ledger first, then the positions that speak of it.

Called by the lane's clock, on its event loop. Positions are made from receipts alone (invariant D).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from mirrorspark.errors import ClusterError
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.position import Position
from mirrorspark.pipeline.bookkeeping import Bookkeeping
from mirrorspark.pipeline.express import Express
from mirrorspark.pipeline.track import Track

__all__ = ["PositionCommits"]

log = logging.getLogger("mirrorspark.lane")


class PositionCommits:
    def __init__(
        self,
        lane: int,
        books: Bookkeeping,
        express: Express,
        *,
        signed: Callable[[Track], Position],
        tracks: Mapping[TopicPartition, Track],
    ) -> None:
        """``tracks`` is the lane's own, by remote partition."""
        self._lane = lane
        self._books = books
        self._express = express
        self._signed = signed
        self._tracks = tracks

    async def commit(self) -> None:
        await self._write_ledger()
        moved = [track for track in self._tracks.values() if track.uncommitted and track.writer is not None]
        self._books.touch(moved)
        self._express.uncommitted_bytes = 0
        positions = {track.remote: self._signed(track) for track in moved}
        for track in moved:
            track.uncommitted = False
        try:
            await self._books.commit_positions(positions)
        except BaseException:
            for track in moved:
                track.uncommitted = True
            raise

    async def commit_or_warn(self) -> None:
        """``commit``; what passes by itself is tried again with the next one."""
        try:
            await self.commit()
        except ClusterError as error:
            if not error.retriable:
                raise
            log.warning("lane %d: committing positions: %s; trying again", self._lane, error)

    async def _write_ledger(self) -> None:
        """Before the positions, which say how far it tells everything. If it cannot be written they go ahead of it."""
        try:
            await self._books.write_ledger(self._tracks.values())
        except ClusterError as error:
            if not error.retriable:
                raise
            log.warning("lane %d: writing the ledger: %s; trying again", self._lane, error)
