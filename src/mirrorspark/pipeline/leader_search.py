"""Partitions whose leader on the source is not known just now: looked for until it is, ten times a second at most.

One search for all of a lane's partitions, on its event loop. Used by ``express``, which begins to fetch again where a leader
is found.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.errors import ClusterError
from mirrorspark.pipeline.source_refusals import RELOCATE_PAUSE_S, SourceRefusals
from mirrorspark.pipeline.track import Track

__all__ = ["LeaderSearch"]


class LeaderSearch:
    def __init__(
        self,
        source: ClusterClient,
        refusals: SourceRefusals,
        *,
        on_found: Callable[[Track], None],
        on_gone: Callable[[Track], None],
    ) -> None:
        """``on_gone``: the source has no such topic any more."""
        self._source = source
        self._refusals = refusals
        self._on_found = on_found
        self._on_gone = on_gone
        self._lost: set[Track] = set()
        self._search: asyncio.Task[None] | None = None
        self.until = float("inf")
        """No look-up begins after this moment (monotonic)."""

    def begin(self, track: Track) -> None:
        self._lost.add(track)
        track.why = self._refusals.text or "looking for its leader on the source"
        if self._search is None or self._search.done():
            self._search = asyncio.ensure_future(self._look_up())

    def give_up(self, track: Track) -> None:
        self._lost.discard(track)

    def close(self) -> asyncio.Task[None] | None:
        """Ended at once; the task is for whoever waits until it has."""
        if self._search is not None:
            self._search.cancel()
        return self._search

    async def _look_up(self) -> None:
        pause_s = RELOCATE_PAUSE_S
        while self._lost and time.monotonic() < self.until:
            await asyncio.sleep(pause_s)
            pause_s = RELOCATE_PAUSE_S
            topics = sorted({track.source.topic for track in self._lost})
            try:
                await self._source.refresh(topics)
            except ClusterError as error:
                pause_s = self._refusals.pause_after(error, RELOCATE_PAUSE_S)
                for track in self._lost:
                    track.why = self._refusals.text or f"the source does not answer: {error}"
                continue
            for track in list(self._lost):
                if self._source.leader(track.source) is not None:
                    self._lost.discard(track)
                    track.why = self._refusals.text
                    self._on_found(track)
                elif track.source.topic not in self._source.topics:
                    self._lost.discard(track)
                    self._on_gone(track)
