"""A Fetch answer of which large batches pass: their headers are read, the rest of them stays in the kernel.

Made by a connection when a long answer begins and its pool has pipes. ``walk_fetch`` says what comes next; bytes are then
received into the answer's buffer, or moved into a pipe that stands for their place in it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

from mirrorspark.cluster.buffer_pool import PooledBuffer
from mirrorspark.cluster.pipes import PipedBody, PipePool, waiting_bytes
from mirrorspark.wire.messages.fetch_walk import Stretch, walk_fetch

__all__ = ["PASSING_BATCH_BYTES_MIN", "PassingAnswer"]

PASSING_BATCH_BYTES_MIN = 128 * 1024
"""A batch that passes takes a few calls more than one that is copied. Chosen, not measured: batches of a megabyte and of
some hundred kilobytes were."""


class PassingAnswer:
    """Receives one answer. ``is_complete`` once all of it has come, wherever it lies."""

    def __init__(self, answer: PooledBuffer, received: int, pipes: PipePool) -> None:
        self.answer = answer
        self._view = answer.view
        self._pipes = pipes
        self._walk: Iterator[Stretch] = walk_fetch(answer.view, PASSING_BATCH_BYTES_MIN)
        self._at = received
        self._until = 0
        self._body: PipedBody | None = None
        self.may_have_more = True
        """Whether all came that was asked for, so that there may be more to receive at once."""
        self._step()

    @property
    def is_complete(self) -> bool:
        return self._at == len(self._view)

    def receive(self, sock: socket.socket) -> int:
        """How many bytes came; 0 at the connection's end. Raises BlockingIOError when there are none now."""
        body, wanted = self._body, self._until - self._at
        if body is None:
            received = sock.recv_into(self._view[self._at : self._until])
        else:
            assert body.pipe is not None
            try:
                received = body.pipe.take_from(sock, wanted)
            except BlockingIOError:
                if not len(body) or not waiting_bytes(sock):
                    raise
                self._body = None  # the pipe is full: what is left of the batch is read as usual
                return self.receive(sock)
            body.end += received
        self.may_have_more = received == wanted
        self._at += received
        if self._at >= self._until:
            self._step()
        return received

    def _step(self) -> None:
        """On to the next stretch that has not come yet."""
        self._body = None
        while self._at >= self._until and not self.is_complete:
            begin, self._until = next(self._walk, (-1, len(self._view)))
            self._until = min(self._until, len(self._view))
            if begin >= 0 and self._until > self._at and (pipe := self._pipes.take()) is not None:
                batch = self._view[begin : self._until]
                self._body = self.answer.piped[begin] = PipedBody(self._pipes, pipe, batch, self._at - begin)
