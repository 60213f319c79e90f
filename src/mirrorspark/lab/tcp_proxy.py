"""A TCP proxy before one port of this machine, whose line can be cut, mended and made slow.

Used by ``lab/proxied_cluster.py``: one before each broker, so that a fault hits the mirror's way to the broker and nobody
else's. A cut is silent, as a lost cable is: connections stay open, new ones are accepted, and nothing goes either way until
it is mended; then what was on its way arrives. Runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from mirrorspark.errors import LabError

__all__ = ["TcpProxy"]

CHUNK_BYTES = 64 * 1024
SLOW_CHUNK_BYTES = 4 * 1024
"""Read at once while the line is slow, so that it is slow evenly."""
START_TIMEOUT_S = 30.0


class TcpProxy:
    """``start``, then ``cut``, ``mend`` and ``limit`` at any time from any thread, ``stop`` at the end."""

    def __init__(self, port: int, target_port: int) -> None:
        self.port = port
        self.target_port = target_port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._failure: OSError | None = None
        self._ending = asyncio.Event()
        self._whole = asyncio.Event()
        self._whole.set()
        self._limit_bytes_per_s: float | None = None
        self._turn = asyncio.Lock()
        self._lines: set[asyncio.Task[None]] = set()
        self.bytes_back = 0
        """What came from the broker so far, over all connections."""

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"proxy-{self.port}", daemon=True)
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S) or self._failure is not None:
            raise LabError(f"the proxy on port {self.port} could not be started: {self._failure}")

    def stop(self) -> None:
        """Ends all connections. A proxy that never started is stopped too."""
        if self._thread is not None:
            self._call(self._ending.set)
            self._thread.join()
            self._thread = None

    def cut(self) -> None:
        """Nothing passes from now on; nobody is told."""
        self._call(self._whole.clear)

    def mend(self) -> None:
        self._call(self._whole.set)

    def limit(self, bytes_per_s: float | None) -> None:
        """What all connections together may send to the broker; None: as fast as it goes."""
        self._limit_bytes_per_s = bytes_per_s

    def _call(self, what: object) -> None:
        assert self._loop is not None, "a proxy is started before it is used"
        assert callable(what)
        self._loop.call_soon_threadsafe(what)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            server = await asyncio.start_server(self._accepted, "127.0.0.1", self.port)
        except OSError as error:
            self._failure = error
            return
        finally:
            self._started.set()
        await self._ending.wait()
        server.close()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        try:
            await self._carry(reader, writer)
        except asyncio.CancelledError:
            assert self._ending.is_set(), "a line is cancelled only when the proxy ends"
        finally:
            writer.close()
            self._lines.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._whole.wait()
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            return  # the broker is down: the connection that was accepted for it ends
        ways = [
            asyncio.ensure_future(self._pump(reader, far_writer, is_limited=True)),
            asyncio.ensure_future(self._pump(far_reader, writer, is_limited=False)),
        ]
        try:
            # When one side hangs up, the other is hung up on.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            far_writer.close()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_limited: bool) -> None:
        with suppress(OSError):  # a broken connection ends the line, as an orderly end does
            while chunk := await reader.read(SLOW_CHUNK_BYTES if self._limit_bytes_per_s else CHUNK_BYTES):
                await self._whole.wait()
                if is_limited:
                    await self._take_time(len(chunk))
                else:
                    self.bytes_back += len(chunk)
                writer.write(chunk)
                await writer.drain()

    async def _take_time(self, size: int) -> None:
        if self._limit_bytes_per_s is None:
            return
        async with self._turn:  # in turn: the limit is of all connections together
            if (limit := self._limit_bytes_per_s) is not None:
                await asyncio.sleep(size / limit)
