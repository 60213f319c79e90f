"""REST, ``/metrics`` and the page of a process that runs a file: on the file's ``listeners``, or what the command line says.

``runner`` opens one, only where an address is given: FastAPI takes a second to load. Answers come from the driver's own
event loop; nothing here can end a flow.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

from mirrorspark.cluster.server_tls import server_context, with_certificate
from mirrorspark.config.load import Deployment
from mirrorspark.config.rest_settings import LISTENERS, TLS_PREFIX
from mirrorspark.control.connect.file_connectors import FileConnectors
from mirrorspark.control.flow_set import FlowSet
from mirrorspark.control.flows.hosting import FlowsHosting
from mirrorspark.control.live_view import complain
from mirrorspark.names import Flow
from mirrorspark.rest.access import Access, read_access
from mirrorspark.rest.app import make_app
from mirrorspark.rest.server import Listener, RestServer, parse_listener
from mirrorspark.settings import RestSettings

__all__ = ["RestEndpoint", "listeners_of"]

HERE = "127.0.0.1"
_WITHOUT_HOST = re.compile(r"^((?:[A-Za-z]+://)?)(:?)([0-9]+)$")


def listeners_of(settings: RestSettings) -> list[Listener]:
    """An address without a host is this machine: what is not meant for others is not offered to them. Raises
    SettingsError."""
    return [
        parse_listener(
            _WITHOUT_HOST.sub(rf"\g<1>{HERE}:\3", text.strip()),
            LISTENERS,
            has_certificate=bool(settings.certificate or settings.tls),
        )
        for text in settings.listeners
    ]


class RestEndpoint:
    """``await open()``; ``await close()`` before the flows drain, so that nobody asks for what is ending."""

    def __init__(
        self,
        settings: RestSettings,
        file: str,
        flows: FlowSet,
        deployment: Callable[[], Deployment],
        *,
        restart: Callable[[Flow], None],
        metrics: Callable[[], Awaitable[bytes]] | None = None,
    ) -> None:
        """``deployment``: the file as it was last read. Raises SettingsError for what the settings name and is wrong."""
        self._access = read_access(Path(settings.users)) if settings.users else Access()
        self._listeners = listeners_of(settings)
        hosting = FlowsHosting("run", flows, lambda flow: deployment().effective.get(flow, ()), file=file)

        async def hold(flow: Flow, is_held: bool) -> None:
            await (hosting.pause if is_held else hosting.resume)(str(flow), ())

        connectors = FileConnectors(
            file, flows, lambda: deployment().document, hold=hold, restart=restart, worker_id=lambda: self.addresses[0]
        )
        self.app = make_app(connectors, self._access, flows=hosting, metrics=metrics)
        tls = with_certificate(settings.tls, settings.certificate, settings.key)
        prefix = "" if settings.certificate else TLS_PREFIX
        self._servers = [
            RestServer(self.app, one, server_context(tls, prefix) if one.is_tls else None) for one in self._listeners
        ]

    @property
    def addresses(self) -> list[str]:
        return [one.address for one in self._servers]

    async def open(self) -> None:
        """All of them or none. Raises SettingsError for an address that cannot be had."""
        try:
            for server in self._servers:
                await server.start()
        except BaseException:
            await self.close()
            raise
        for listener, address in zip(self._listeners, self.addresses, strict=True):
            complain(f"listening on {address}")
            if self._access.is_open and not listener.is_local:
                complain(f"warning: {listener} is open to everybody who can reach it; give --users or rest.users.file")

    async def close(self) -> None:
        for server in self._servers:
            await server.stop()
