"""A lane's share of its flow's limit: when the next fetch may go out, and how much it may bring.

A token bucket at the fetch, so that nothing is read that may not be sent. An answer is paid for when it is here, by the
bytes of its whole batches; one that brought more than there was leaves a debt, and no fetch goes out until that is paid.
Used by ``express`` on the lane's event loop. Waiting here holds up fetches alone: appends, commits, reports and plans
have tasks of their own. Without a limit nothing is counted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

__all__ = ["FetchPace"]

BURST_S = 0.5
"""What a lane may save up while its source is idle, in seconds of its share. Also the longest round trip to the source
that does not cost throughput."""
ANSWER_S = 0.1
"""What a fetch may always ask for, in seconds of the share."""
ANSWER_BYTES_MIN = 16 * 1024
"""A broker gives a whole batch in any case; asking for less only cuts more batches off."""
LOOK_AGAIN_S = 1.0
"""Nobody waits for longer without looking whether there is still something to fetch."""


class FetchPace:
    """``bytes_per_s`` is None without a limit."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.bytes_per_s: float | None = None
        self._tokens = 0.0
        self._filled_at = clock()
        self._changed = asyncio.Event()
        self._waiting = 0
        self._held_since = 0.0
        self._held_s = 0.0
        self._holds = 0
        self._bytes = 0
        self._told = (clock(), 0.0)

    # -- the limit --------------------------------------------------------------------------------------------------

    def set_rate(self, bytes_per_s: float) -> None:
        """0: no limit. Takes effect at once, also for who waits; a debt is worth as many seconds as before."""
        new = float(bytes_per_s) if bytes_per_s > 0 else None
        if new == self.bytes_per_s:
            return
        old = self.bytes_per_s
        self._fill()
        self.bytes_per_s = new
        self._tokens = min(self._tokens * new / old, self.burst_bytes) if new and old else 0.0
        self._wake()

    def end(self) -> None:
        """Who waits looks whether there is still something to do."""
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    @property
    def burst_bytes(self) -> float:
        return max((self.bytes_per_s or 0.0) * BURST_S, ANSWER_BYTES_MIN)

    # -- the fetch --------------------------------------------------------------------------------------------------

    @property
    def may_ask(self) -> bool:
        if self.bytes_per_s is None:
            return True
        self._fill()
        return self._tokens > 0

    def answer_bytes(self, bytes_max: int) -> int:
        """How much a fetch that goes out now may bring."""
        if self.bytes_per_s is None:
            return bytes_max
        self._fill()
        wanted = max(self._tokens, self.bytes_per_s * ANSWER_S, ANSWER_BYTES_MIN)
        return min(bytes_max, int(wanted))

    def took(self, size: int) -> None:
        """An answer brought so many bytes of whole batches."""
        if self.bytes_per_s is not None:
            self._fill()
            self._tokens -= size
            self._bytes += size

    async def turn(self, until: float) -> None:
        """Waits until a fetch may go out, the limit changes, all ends, or ``until`` (by the clock); then look again."""
        changed = self._changed
        wait_s = max(0.0, min(self._wait_s(), until - self._clock(), LOOK_AGAIN_S))
        self._begin_hold()
        try:
            async with asyncio.timeout(wait_s):
                await changed.wait()
        except TimeoutError:
            pass
        finally:
            self._end_hold()

    def _wait_s(self) -> float:
        if self.may_ask:
            return 0.0
        assert self.bytes_per_s is not None
        return -self._tokens / self.bytes_per_s + 0.001

    def _fill(self) -> None:
        now = self._clock()
        if self.bytes_per_s is not None:
            grown = self._tokens + (now - self._filled_at) * self.bytes_per_s
            self._tokens = min(grown, self.burst_bytes)
        self._filled_at = now

    # -- what is told of it -----------------------------------------------------------------------------------------

    def _begin_hold(self) -> None:
        if not self._waiting:
            self._held_since = self._clock()
            self._holds += 1
        self._waiting += 1

    def _end_hold(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._held_s += self._clock() - self._held_since

    @property
    def held_s(self) -> float:
        """For how long fetches waited for the limit, since the attempt began; streams that waited together count once."""
        return self._held_s + (self._clock() - self._held_since if self._waiting else 0.0)

    @property
    def counts(self) -> Mapping[str, float]:
        """Sums since the attempt began, for the lane's report."""
        return {"limited_bytes": self._bytes, "limit_holds": self._holds, "limit_held_s": round(self.held_s, 3)}

    def told(self) -> list[float] | None:
        """For a report: the share, and the part of the time since the last report in which it held fetches back."""
        now, held_s = self._clock(), self.held_s
        (then, before), self._told = self._told, (now, held_s)
        if self.bytes_per_s is None:
            return None
        return [self.bytes_per_s, round(min(1.0, (held_s - before) / max(now - then, 0.001)), 3)]
