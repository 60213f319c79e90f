"""Bytes on their way through that the kernel keeps: in pipes, not in our memory.

A large batch that goes as it is need not be copied to us and back. ``splice`` moves references to its pages from the
source's socket into a pipe, ``tee`` doubles them, and ``splice`` hands the double to the target's socket; the pipe keeps
its own until the batch is acknowledged, so that it can be sent again, or read after all (decision 0013).
Used by the fetch connections of lanes (``passing_answer``) and by whatever sends (``connection``). Linux only; elsewhere,
and where the system gives no pipe of this size, bytes are copied as usual.
"""

from __future__ import annotations

import ctypes
import fcntl
import logging
import os
import socket
import struct
import termios

__all__ = ["Outlet", "Pipe", "PipePool", "PipedBody", "waiting_bytes"]

PIPE_BYTES = 1024 * 1024
"""What an ordinary user may ask for (fs.pipe-max-size). It is a number of slots, one for each piece of a page: where pieces
are small it holds less."""
PIPES_MAX = 24
"""Of a lane, those in use and spares; a user may have 64 of this size in all (fs.pipe-user-pages-soft)."""

_SPLICE = getattr(os, "SPLICE_F_MOVE", 1) | getattr(os, "SPLICE_F_NONBLOCK", 2)
_SPLICE_MORE = getattr(os, "SPLICE_F_MORE", 4)
_INT = struct.Struct("i")

_log = logging.getLogger(__name__)
_libc = ctypes.CDLL(None, use_errno=True)


class Pipe:
    """Its two ends."""

    __slots__ = ("reader", "writer")

    def __init__(self) -> None:
        """Raises OSError where the system gives none of this size."""
        self.reader, self.writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Whatever still lies in it is gone, and who uses it gets an OSError."""
        ends, self.reader, self.writer = (self.reader, self.writer), -1, -1
        for end in ends:
            if end >= 0:
                os.close(end)

    def take_from(self, sock: socket.socket, size: int) -> int:
        """Move up to ``size`` bytes in; 0 at the connection's end. BlockingIOError: nothing there, or no slot free."""
        return os.splice(sock.fileno(), self.writer, size, flags=_SPLICE)

    def give_to(self, sock: socket.socket, size: int, *, more: bool) -> int:
        """Move up to ``size`` bytes out. BlockingIOError: the socket takes nothing now."""
        return os.splice(self.reader, sock.fileno(), size, flags=_SPLICE | (_SPLICE_MORE if more else 0))

    def double(self, into: Pipe, size: int) -> int:
        """Let another, empty pipe hold the same bytes as well; fewer than ``size`` where it has not room for all."""
        doubled: int = _libc.tee(self.reader, into.writer, ctypes.c_size_t(size), _SPLICE)
        if doubled < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        return doubled

    def read_into(self, view: memoryview) -> None:
        """All of it that ``view`` has room for, which must be in it."""
        while view:
            view = view[os.readv(self.reader, [view]) :]

    def throw_away(self, size: int) -> None:
        while size:
            size -= os.splice(self.reader, _nothing(), size, flags=_SPLICE)


class PipePool:
    """Pipes that are used again, ``pipes_max`` at the most."""

    def __init__(self, pipes_max: int = PIPES_MAX) -> None:
        self._left = pipes_max if hasattr(os, "splice") and hasattr(_libc, "tee") else 0
        self._made: list[Pipe] = []
        self._spares: list[Pipe] = []

    def take(self) -> Pipe | None:
        """An empty one; None where all are in use or the system gives no more."""
        if self._spares:
            return self._spares.pop()
        if self._left <= 0:
            return None
        try:
            pipe = Pipe()
        except OSError as error:
            self._left = 0
            _log.warning(
                "no more pipes of %d bytes (%s; see fs.pipe-user-pages-soft and the limit of open files): "
                "some large batches are copied on their way, which costs CPU time and nothing else",
                PIPE_BYTES,
                error.strerror,
            )
            return None
        self._left -= 1
        self._made.append(pipe)
        return pipe

    def give_back(self, pipe: Pipe, left: int) -> None:
        """``left`` bytes are still in it, which nobody needs."""
        if self._made:
            pipe.throw_away(left)
            self._spares.append(pipe)

    def close(self) -> None:
        """At once, those in use too: whoever goes on with one loses its connection, as in a crash."""
        for pipe in self._made:
            pipe.close()
        self._left = 0
        self._made.clear()
        self._spares.clear()

    __del__ = close


class PipedBody:
    """The part of a batch that lies in a pipe: ``begin`` to ``end`` of its bytes. The others lie in ``view``."""

    __slots__ = ("_is_gone", "_pool", "begin", "end", "pipe", "view")

    def __init__(self, pool: PipePool, pipe: Pipe, view: memoryview, begin: int) -> None:
        """``view`` is the whole batch's place in its answer."""
        self._pool = pool
        self.pipe: Pipe | None = pipe
        self.view = view
        self.begin = self.end = begin
        self._is_gone = False

    def __len__(self) -> int:
        return self.end - self.begin

    def parts(self) -> list[memoryview | PipedBody]:
        """The whole batch, in the order in which it is sent."""
        found: list[memoryview | PipedBody] = [self.view[: self.begin], self]
        return found if self.end == len(self.view) else [*found, self.view[self.end :]]

    def read(self) -> memoryview:
        """Its bytes, from the pipe if they are still there."""
        assert not self._is_gone, "a batch is sent that was given up"
        self.fill()
        return self.view[self.begin : self.end]

    def fill(self) -> None:
        """Read what is in the pipe, so that the batch lies in ``view`` as a whole."""
        if self.pipe is not None:
            self.pipe.read_into(self.view[self.begin : self.end])
            self._pool.give_back(self.pipe, 0)
            self.pipe = None

    def drop(self) -> None:
        """Nobody needs it any more."""
        if self.pipe is not None:
            self._pool.give_back(self.pipe, len(self))
            self.pipe = None
            self._is_gone = True


class Outlet:
    """The way out of pipes to one socket: what is sent is a double, so that the body itself can be sent again."""

    def __init__(self) -> None:
        self._pool = PipePool(1)
        self._doubles: Pipe | None = None
        self._left = 0

    def can_send(self, body: PipedBody) -> bool:
        """Begin with a body; False where it cannot go this way, and has to be read."""
        if self._left:
            return True
        if body.pipe is None:
            return False
        if self._doubles is None:
            self._doubles = self._pool.take()
            if self._doubles is None:
                return False
        doubled = body.pipe.double(self._doubles, len(body))
        if doubled < len(body):
            self._doubles.throw_away(doubled)
            return False
        self._left = doubled
        return True

    def close(self) -> None:
        self._pool.close()

    def send(self, sock: socket.socket, *, more: bool) -> None:
        """All of what was begun with. Raises BlockingIOError when the socket takes no more for now: call again later."""
        assert self._doubles is not None
        while self._left:
            self._left -= self._doubles.give_to(sock, self._left, more=more)


def waiting_bytes(sock: socket.socket) -> int:
    """How many bytes have come and are not read."""
    return int(_INT.unpack(fcntl.ioctl(sock.fileno(), termios.FIONREAD, bytes(_INT.size)))[0])


_opened: list[int] = []


def _nothing() -> int:
    """/dev/null, opened once."""
    if not _opened:
        _opened.append(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))
    return _opened[0]
