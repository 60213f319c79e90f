"""The application on a port, inside the caller's event loop. ``control.connect`` starts and stops it.

Signals stay with the process. Clients that connect and send nothing are dropped, so that they cannot hold the port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ssl import SSLContext
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from mirrorspark.errors import MirrorError, SettingsError

__all__ = ["Listener", "RestServer", "parse_listener"]

HEADERS_S_MAX = 15.0
"""From a connection to the end of its first request's headers."""
IDLE_S_MAX = 30
"""Between two requests of a connection."""
CONNECTIONS_MAX = 1_000
STOP_S_MAX = 5
START_POLL_S = 0.02
PORT_DEFAULT = 8083
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Listener:
    """``is_tls``: https. Its key is the caller's to bring (``RestServer``): no secret lies here."""

    host: str = "127.0.0.1"
    port: int = PORT_DEFAULT
    is_tls: bool = False

    @property
    def is_local(self) -> bool:
        return self.host in LOCAL_HOSTS

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}"


def parse_listener(text: str, key: str, *, has_certificate: bool = False) -> Listener:
    """``host:port`` (https where there is a certificate), ``http://host:port`` or https; Connect's ``http://:8083`` is all
    addresses. Raises SettingsError."""
    scheme, separator, rest = text.strip().rpartition("://")
    scheme = scheme.lower() if separator else ("https" if has_certificate else "http")
    host, colon, port = rest.rpartition(":")
    if scheme not in ("http", "https") or not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise SettingsError(f"{key}: {text!r} is not host:port, http://host:port or https://host:port", key=key)
    if scheme == "https" and not has_certificate:
        raise SettingsError(
            f"{key}: https needs a certificate and its key: listeners.https.ssl.keystore.location, or --tls-certificate",
            key=key,
        )
    return Listener(host.strip("[]") or "0.0.0.0", int(port), scheme == "https")


class _Protocol(H11Protocol):
    """Drops who does not send a whole request's headers in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._headers_timer = self.loop.call_later(HEADERS_S_MAX, self._drop_if_silent)

    def _drop_if_silent(self) -> None:
        has_asked = getattr(self, "cycle", None) is not None
        if not has_asked and not self.transport.is_closing():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_timer.cancel()
        super().connection_lost(exc)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the process's own."""
        yield


class RestServer:
    """``await start()`` returns when it listens, or raises SettingsError; ``await stop()``."""

    def __init__(self, app: FastAPI, listener: Listener, tls: SSLContext | None = None) -> None:
        """``tls``: where the listener is https."""
        assert listener.is_tls == (tls is not None), f"{listener}: a certificate for https, none for http"
        self._listener = listener
        self._on_stop = getattr(app.state, "on_stop", ())
        self._server = _Server(
            uvicorn.Config(
                app,
                host=listener.host,
                port=listener.port,
                http=_Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=CONNECTIONS_MAX,
                timeout_keep_alive=IDLE_S_MAX,
                timeout_graceful_shutdown=STOP_S_MAX,
            )
        )
        self._server.config.load()
        self._server.config.ssl = tls  # uvicorn itself reads PEM files only
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._serving = asyncio.ensure_future(self._serve())
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
                raise MirrorError(f"{self._listener}: the server ended as it started")
            await asyncio.sleep(START_POLL_S)

    async def _serve(self) -> None:
        try:
            await self._server.serve()
        except SystemExit:  # uvicorn's way to say that the port cannot be had; the log has the reason
            raise SettingsError(
                f"{self._listener}: cannot be listened on; is the port in use?", key="listeners"
            ) from None
        except OSError as error:
            raise SettingsError(f"{self._listener}: {error}", key="listeners") from None

    @property
    def address(self) -> str:
        """``host:port``, with the port that was got where 0 was asked for."""
        port = self._listener.port
        for server in self._server.servers:
            port = server.sockets[0].getsockname()[1]
        host = f"[{self._listener.host}]" if ":" in self._listener.host else self._listener.host
        return f"{host}:{port}"

    async def stop(self) -> None:
        """Whoever listens for ever is told first; others have STOP_S_MAX to be answered."""
        if self._serving is None:
            return
        for tell in self._on_stop:
            tell()
        self._server.should_exit = True
        await asyncio.wait([self._serving])
