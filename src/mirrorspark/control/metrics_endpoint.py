"""``/metrics`` of a process that runs flows: prometheus-client's own server in a thread, figures from the driver's loop.

``runner`` opens one where the file or ``--metrics`` names an address. Flows are read inside the event loop, so that nothing
changes under a scrape; the text is made in the server's thread, so that a large one does not hold up the driver.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest, start_http_server
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from mirrorspark.errors import SettingsError
from mirrorspark.observe.flow_collector import FlowCollector
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.observe.jvm_figures import JvmFigures
from mirrorspark.observe.sheet import Sheet
from mirrorspark.settings import MetricsSettings

__all__ = ["MetricsEndpoint"]

COLLECT_TIMEOUT_S = 10.0
"""A driver whose loop stands still for so long gives no figures; the scrape fails, which is what an alert must see."""
END_TIMEOUT_S = 5.0


class _InLoop(Collector):
    """Collects in the loop, for a caller in another thread."""

    def __init__(self, collector: FlowCollector, loop: asyncio.AbstractEventLoop) -> None:
        self._collector = collector
        self._loop = loop

    def describe(self) -> list[Family]:
        return []

    def collect(self) -> Iterator[Family]:
        async def fill() -> Sheet:
            return self._collector.fill()

        return asyncio.run_coroutine_threadsafe(fill(), self._loop).result(COLLECT_TIMEOUT_S).families()


class MetricsEndpoint:
    """``open`` and ``close`` inside the event loop."""

    def __init__(
        self,
        settings: MetricsSettings,
        statuses: Callable[[], Iterable[FlowStatus]],
        jvm: Callable[[], JvmFigures | None] = lambda: None,
    ) -> None:
        """``jvm``: what Spark's JVM says of itself (``jvm_watch``)."""
        self._settings = settings
        self._collector = FlowCollector(statuses, settings, jvm)
        self._server: WSGIServer | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Does nothing without an address. Raises SettingsError where the address cannot be had."""
        if self._settings.listener is None:
            return
        host, port = self._settings.listener
        try:
            self._server, self._thread = start_http_server(port, host, self._registry())
        except OSError as error:
            raise SettingsError(
                f"metrics.listener = {host}:{port}: {error.strerror or error}; give another address, there or by --metrics",
                key="metrics.listener",
            ) from error

    def _registry(self) -> CollectorRegistry:
        registry = CollectorRegistry()
        registry.register(_InLoop(self._collector, asyncio.get_running_loop()))
        ProcessCollector(registry=registry)
        return registry

    async def text(self) -> bytes:
        """The same answer for a server in the driver's own loop (``rest``), whether or not there is an address."""
        return await asyncio.to_thread(generate_latest, self._registry())

    @property
    def port(self) -> int | None:
        """The one that was bound, if any: 0 in the settings means any."""
        return None if self._server is None else int(self._server.server_port)

    async def close(self) -> None:
        """Scrapes that are under way are answered first, if the driver still answers them."""
        server, self._server = self._server, None
        if server is None or self._thread is None:
            return
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        await asyncio.to_thread(self._thread.join, END_TIMEOUT_S)
