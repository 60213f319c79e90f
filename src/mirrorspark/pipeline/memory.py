"""How much a lane holds: a fetch is asked for only when its answer has room."""

from __future__ import annotations

import asyncio

from mirrorspark.cluster.buffer_pool import BufferPool
from mirrorspark.cluster.pipes import PipePool

__all__ = ["LaneMemory"]


class LaneMemory:
    """``bytes_max`` bounds buffers in use plus answers that may still come. One answer at a time always has room."""

    def __init__(self, bytes_max: int, answer_bytes_max: int, pipes: PipePool | None = None) -> None:
        self.bytes_max = bytes_max
        self.answer_bytes_max = answer_bytes_max
        # An answer carries a little more than its records: partition headers, tags.
        spares_max = max(1, bytes_max // answer_bytes_max)
        self.pool = BufferPool(answer_bytes_max + 256 * 1024, spares_max, pipes)
        self.pool.on_freed = self._freed
        self._promised = 0
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def has_room(self) -> bool:
        promised = self._promised * self.answer_bytes_max
        used = self.pool.live_bytes
        return used + promised == 0 or used + promised + self.answer_bytes_max <= self.bytes_max

    def close(self) -> None:
        """The lane's attempt is over, and what it still holds is of no use to anybody."""
        if self.pool.pipes is not None:
            self.pool.pipes.close()

    def promise(self) -> None:
        self._promised += 1

    def arrived(self) -> None:
        self._promised -= 1
        self._freed()

    async def room(self) -> None:
        while not self.has_room:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def _freed(self) -> None:
        if self._waiters and self.has_room:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
