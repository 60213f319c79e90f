"""``/mirrorspark/v1/stream``: all flows about once a second, as server-sent events, to a bounded number of listeners.

One snapshot serves all who listen, and is made only while somebody does. A listener that falls behind misses snapshots, one
that takes nothing at all is dropped: nothing is queued for anybody. ``close`` ends all of them when the server ends.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from mirrorspark.rest.connector_host import Refusal
from mirrorspark.rest.flows import PREFIX
from mirrorspark.rest.flows_host import FlowsHost
from mirrorspark.rest.request_schemas import FLOW_REFUSALS

__all__ = ["FlowStream", "stream_routes"]

INTERVAL_S = 1.0
FRESH_S = 0.5
"""A snapshot of so long ago serves one more listener."""
LISTENERS_MAX = 50
SEND_S_MAX = 10.0
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}


class FlowStream:
    def __init__(self, host: FlowsHost) -> None:
        self._host = host
        self._made_at = float("-inf")
        self._snapshot = b""
        self._closed = asyncio.Event()
        self.listeners = 0

    def close(self) -> None:
        self._closed.set()

    def check_room(self) -> None:
        if self.listeners >= LISTENERS_MAX:
            raise Refusal(f"{LISTENERS_MAX} listen already; try again later, or poll {PREFIX}/flows", 503)

    def snapshot(self) -> bytes:
        now = time.monotonic()
        if now - self._made_at >= min(FRESH_S, INTERVAL_S):
            text = json.dumps(asdict(self._host.flows()), separators=(",", ":"))
            self._snapshot, self._made_at = f"event: flows\ndata: {text}\n\n".encode(), now
        return self._snapshot

    async def tell(self, send: Send, left: asyncio.Future[None]) -> None:
        """Until the listener has left (``left``) or the server ends."""
        closing = asyncio.ensure_future(self._closed.wait())
        try:
            while not left.done() and not closing.done():
                await _send(send, self.snapshot())
                ends: list[asyncio.Future[Any]] = [left, closing]
                await asyncio.wait(ends, timeout=INTERVAL_S, return_when=asyncio.FIRST_COMPLETED)
            if not left.done():
                await _send(send, b"event: bye\ndata: {}\n\n", is_last=True)
        finally:
            await _end(closing)


async def _end(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def _send(send: Send, body: bytes, *, is_last: bool = False) -> None:
    async with asyncio.timeout(SEND_S_MAX):
        await send({"type": "http.response.body", "body": body, "more_body": not is_last})


class _StreamAnswer(Response):
    """Holds a place among the listeners for as long as it is being sent."""

    media_type = "text/event-stream"

    def __init__(self, stream: FlowStream) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._stream.listeners += 1
        left = asyncio.ensure_future(_until_left(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._stream.tell(send, left)
        except TimeoutError:
            pass  # takes nothing: the connection ends here, and a browser comes again
        finally:
            self._stream.listeners -= 1
            await _end(left)


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def stream_routes(stream: FlowStream) -> APIRouter:
    routes = APIRouter(prefix=PREFIX, tags=["flows"], responses=FLOW_REFUSALS)

    @routes.get("/stream", response_class=_StreamAnswer, include_in_schema=False)
    async def listen() -> Response:
        stream.check_room()
        return _StreamAnswer(stream)

    return routes
