"""Receive buffers that are used again: no page faults per answer, and a count of what is in use.

Used by the fetch connections. A buffer goes back when the last batch that lies in it was acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mirrorspark.cluster.pipes import PipedBody, PipePool
from mirrorspark.wire.record_batch import Batch

__all__ = ["BufferPool", "PooledBuffer"]

SMALL_ANSWER_BYTES = 64 * 1024
"""Answers up to this size get memory of their own; holding a big buffer for a trickle would waste it."""


class PooledBuffer:
    """One answer's memory, counted by those who still need it."""

    __slots__ = ("_pool", "_storage", "piped", "users", "view")

    def __init__(self, pool: BufferPool, storage: bytearray, size: int) -> None:
        self._pool = pool
        self._storage = storage
        self.view = memoryview(storage)[:size]
        self.piped: dict[int, PipedBody] = {}
        """Batches that are not here as a whole, by where they begin: the kernel has the rest."""
        self.users = 1

    def adopt(self, storage: bytearray) -> PooledBuffer:
        """Memory that was made from this answer (a re-encoded batch), counted in the same pool until released."""
        self._pool.live_bytes += len(storage)
        return PooledBuffer(self._pool, storage, len(storage))

    def join(self, batches: Iterable[Batch], at: int) -> None:
        """Tell batches that lie here in a row from ``at`` on which of them are not here as a whole."""
        for batch in batches:
            batch.rest = self.piped.get(at)
            at += batch.size

    def hold(self) -> None:
        self.users += 1

    def release(self) -> None:
        self.users -= 1
        assert self.users >= 0, "buffer released twice"
        if self.users == 0:
            for body in self.piped.values():
                body.drop()
            self._pool._take_back(self._storage)


class BufferPool:
    """Buffers of one size, at most ``spares_max`` kept; other sizes get memory of their own.

    ``pipes``: large batches of Fetch answers need not be read; they may lie there (``passing_answer``).
    """

    def __init__(self, buffer_bytes: int, spares_max: int, pipes: PipePool | None = None) -> None:
        self.buffer_bytes = buffer_bytes
        self.pipes = pipes
        self.spares_max = spares_max
        self.live_bytes = 0
        self.on_freed: Callable[[], None] | None = None
        self._spares: list[bytearray] = []

    def take(self, size: int) -> PooledBuffer:
        if size <= SMALL_ANSWER_BYTES or size > self.buffer_bytes:
            storage = bytearray(size)
        else:
            storage = self._spares.pop() if self._spares else bytearray(self.buffer_bytes)
        self.live_bytes += len(storage)
        return PooledBuffer(self, storage, size)

    def _take_back(self, storage: bytearray) -> None:
        self.live_bytes -= len(storage)
        if len(storage) == self.buffer_bytes and len(self._spares) < self.spares_max:
            self._spares.append(storage)
        if self.on_freed is not None:
            self.on_freed()
