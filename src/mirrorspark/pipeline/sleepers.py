"""Partitions that are left out of the fetch until their queue to the target is shorter.

A fetch cannot be called back: one that goes out for idle partitions alone waits at the source for ``fetch.max.wait.ms``,
and a partition that wakes meanwhile waits with it. So a stream gives a sleeper a moment before it asks without it, and
then asks for no longer than the sleeper has slept already. Used by ``express`` on the lane's event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from mirrorspark.pipeline.track import Track

__all__ = ["WAKE_PATIENCE_S", "Sleepers"]

WAKE_PATIENCE_S = 0.02
"""How long a fetch waits for a partition that just fell asleep: a few appends of a megabyte."""
WAIT_MS_UNBOUNDED = 1 << 30


class Sleepers:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[Track, tuple[int, float]] = {}

    def put(self, track: Track, broker: int) -> None:
        """``broker``: where it was fetched."""
        track.asleep = True
        self._since[track] = (broker, self._clock())

    def wake(self, track: Track) -> None:
        track.asleep = False
        self._since.pop(track, None)

    def patience_s(self, broker: int) -> float:
        """How long the next fetch from this broker should still be put off; 0 when it may go out."""
        slept = self._slept_s(broker)
        return max(0.0, WAKE_PATIENCE_S - slept) if slept is not None else 0.0

    def wait_ms(self, broker: int) -> int:
        """How long a fetch may wait at this broker."""
        slept = self._slept_s(broker)
        return max(1, int(slept * 1000)) if slept is not None else WAIT_MS_UNBOUNDED

    def _slept_s(self, broker: int) -> float | None:
        """Of the one that fell asleep last."""
        if not self._since:
            return None
        for track in [track for track in self._since if not track.asleep]:
            del self._since[track]  # set back meanwhile: its queue was dropped
        mine = [since for node, since in self._since.values() if node == broker]
        return self._clock() - max(mine) if mine else None
