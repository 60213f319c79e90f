"""Bounds of a request, held before any route sees it: how long its body is, and how long it takes to come.

Also hands the path on as it was sent (``addresses`` decodes its parts): a name may hold ``%2F``. Plain ASGI.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LimitGate", "RequestLimits"]


@dataclass(frozen=True)
class RequestLimits:
    body_bytes_max: int = 4 * 1024 * 1024
    """A connector's configuration is a few kilobytes; offsets of 10,000 partitions are about 1 MB."""
    body_s_max: float = 20.0
    """From a request's headers to the end of its body."""


class LimitGate:
    def __init__(self, app: ASGIApp, limits: RequestLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if raw := scope.get("raw_path"):
            scope = {**scope, "path": raw.decode("latin-1")}
        try:
            body = await self._body(scope, receive)
        except _Refused as refused:
            answer = JSONResponse({"error_code": refused.status, "message": str(refused)}, refused.status)
            answer.headers["Connection"] = "close"
            await answer(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _Replay(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """None if the client left."""
        most = self._limits.body_bytes_max
        length = dict(scope["headers"]).get(b"content-length", b"")
        if length.isdigit() and int(length) > most:
            raise _Refused(413, f"the body has {int(length)} bytes; at most {most} are taken")
        found = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s_max):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    found += message.get("body", b"")
                    if len(found) > most:
                        raise _Refused(413, f"the body is longer than {most} bytes")
                    if not message.get("more_body"):
                        return bytes(found)
        except TimeoutError:
            raise _Refused(408, f"the body did not come within {self._limits.body_s_max:g} s") from None


class _Refused(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Replay:
    """``receive`` for the application: the body once, then whatever the server says (a client that leaves)."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._message: dict[str, Any] | None = {"type": "http.request", "body": body, "more_body": False}
        self._receive = receive

    async def __call__(self) -> Message:
        message, self._message = self._message, None
        return message if message is not None else await self._receive()
