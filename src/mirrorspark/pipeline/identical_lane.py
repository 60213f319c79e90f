"""What a lane has more with ``offsets=identical``: a second writer, holes to fill, and a lease to renew.

Made by the lane; ties ``identical``, ``hole_filling`` and the carrying loop together, on the lane's event loop.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.writer import Writer
from mirrorspark.errors import ClusterError
from mirrorspark.events import Event
from mirrorspark.pipeline.express import Express
from mirrorspark.pipeline.filler_writer import FillerWriter
from mirrorspark.pipeline.hole_filling import HoleFilling
from mirrorspark.pipeline.identical import IdenticalOffsets
from mirrorspark.pipeline.recovery import transactional_id
from mirrorspark.pipeline.track import Track
from mirrorspark.pipeline.trouble import Trouble
from mirrorspark.pipeline.troubles import Troubles
from mirrorspark.pipeline.writers import FlowWriters, WriterRegistry
from mirrorspark.settings import FlowSettings

__all__ = ["IdenticalLane"]

log = logging.getLogger("mirrorspark.lane")

ASK_INTERVAL_S = 2.0
"""Between two questions whether this attempt is still the newest; far less than the lease (``parity_recovery``)."""


class IdenticalLane:
    def __init__(
        self,
        source: ClusterClient,
        target: ClusterClient,
        settings: FlowSettings,
        *,
        lane: int,
        generation: int,
        registry: WriterRegistry,
        report: Callable[[Event], None],
        impossible: str,
    ) -> None:
        own_id = transactional_id(settings, lane)
        self._filler = FillerWriter(target, own_id, settings.writer_timeout_ms)
        self._registered = FlowWriters(registry, settings.flow, lane, generation)
        self.offsets = IdenticalOffsets(source, target, settings, self._filler, report=report, impossible=impossible)
        self.holes = HoleFilling(
            target, self._filler, on_filled=self._go_on, on_doubt=self._doubt, on_lost=self.offsets.lose
        )
        self._express: Express | None = None
        self._troubles: Troubles | None = None
        self._renewed_at = 0.0
        self._was_older = False  # by the last answer; once may be an epoch that the lane itself is just obtaining

    def carry_with(self, express: Express, troubles: Troubles) -> None:
        self._express, self._troubles = express, troubles
        express.holes = self.holes

    async def start(self, own: Writer, deadline: Deadline) -> None:
        """Before the first partition is owned. What the target does not allow makes identical offsets impossible."""
        if self.offsets.impossible:
            return
        try:
            self._renewed_at = time.monotonic()
            await self.offsets.is_newest(own)
            await self._registered.enter(await self._filler.obtain(deadline), deadline)
        except ClusterError as error:
            if error.retriable:
                raise
            self.offsets.impossible = f"the target does not allow what it needs: {error}"

    async def renewed(self, own: Writer) -> float | None:
        """The moment as of which this attempt is known to be the newest of its lane; None if it no longer is."""
        asked_at = time.monotonic()
        if self.offsets.impossible:
            return asked_at
        if asked_at - self._renewed_at >= ASK_INTERVAL_S:
            try:
                is_newest = await self.offsets.is_newest(own)
            except ClusterError as error:
                if not error.retriable:
                    raise
                log.warning("is this attempt still the newest? %s; asking again", error)
                return self._renewed_at
            if is_newest:
                self._renewed_at = asked_at
            elif self._was_older:
                return None
            self._was_older = not is_newest
        return self._renewed_at

    def _go_on(self, track: Track) -> None:
        assert self._express is not None
        self._express.go_on(track)

    def _doubt(self, track: Track, why: str) -> None:
        assert self._troubles is not None
        track.queue.blocked = True
        self._troubles.meet(track, Trouble("target", text=why, doubtful=True))
