"""The process behind ``mirrorspark serve``: REST, connectors, flows and Spark, joined; signals end it in order.

Connectors come from Kafka, so a process that was killed is started again and goes on. The server answers while connectors
are still being read (``/health``: starting).
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.server_tls import server_context
from mirrorspark.control.connect.hosting import Hosting
from mirrorspark.control.connect.topics import ConnectTopics
from mirrorspark.control.connect.worker_file import WorkerSettings
from mirrorspark.control.ending import end_tasks
from mirrorspark.control.flow_runtime import reach_cluster
from mirrorspark.control.flow_set import FlowSet, QuerySource
from mirrorspark.control.flows.hosting import FlowsHosting
from mirrorspark.control.jvm_watch import JvmWatch
from mirrorspark.control.metrics_endpoint import MetricsEndpoint
from mirrorspark.control.process_signals import ProcessSignals
from mirrorspark.control.runner import EXIT_OK, EXIT_SPARK_LOST, THREADS_MAX
from mirrorspark.control.spark_for_flows import SparkForFlows
from mirrorspark.errors import MirrorError
from mirrorspark.events import Event
from mirrorspark.log_lines import say
from mirrorspark.observe.jvm_figures import JvmFigures
from mirrorspark.rest.access import Access
from mirrorspark.rest.app import make_app
from mirrorspark.rest.server import RestServer
from mirrorspark.settings import MetricsSettings

__all__ = ["Serving", "serve_connectors"]

log = logging.getLogger("mirrorspark.connect")

TICK_S = 0.25
RETRY_PAUSE_S = 2.0


def serve_connectors(
    settings: WorkerSettings,
    access: Access,
    *,
    master: str | None = None,
    ui: bool = False,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Blocks until a signal. Returns the exit code; raises what keeps it from starting. ``conf``: settings of Spark."""
    folder = Path(tempfile.mkdtemp(prefix="mirrorspark-serve-"))
    try:
        return asyncio.run(_serve(settings, access, SparkForFlows(master, folder, ui=ui, conf=conf)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _serve(settings: WorkerSettings, access: Access, spark: SparkForFlows) -> int:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS_MAX, "mirrorspark"))
    signals = ProcessSignals()
    jvm = JvmWatch(lambda: spark.session)
    serving = Serving(settings, access, spark, lambda: jvm.figures)
    serving.flows.on_spark_lost = signals.stop.set
    serving.flows.on_event = _log_event
    jvm.start()
    try:
        await serving.start()
        say(f"listening on {serving.address}", code="server.listening", address=serving.address)
        while not signals.stop.is_set():
            if serving.flows.has_begun:
                spark.end_early_lanes()
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await signals.stop.wait()
    finally:
        await serving.stop()
        jvm.close()
        await spark.close(serving.flows.spark_lost)
    return EXIT_OK if serving.flows.spark_lost is None else EXIT_SPARK_LOST


def _log_event(flow: str, event: Event) -> None:
    log.warning("%s: %s", flow, event)


class Serving:
    """Everything but the process: tests run it in their own loop, with lanes of their own."""

    def __init__(
        self,
        settings: WorkerSettings,
        access: Access,
        spark: QuerySource,
        jvm: Callable[[], JvmFigures | None] = lambda: None,
    ) -> None:
        """``jvm``: what Spark's JVM says of itself, for ``/metrics``."""
        self.flows = FlowSet(spark)
        self._client = ClusterClient(settings.cluster, "mirrorspark|connect")
        self.hosting = Hosting(
            self._client,
            ConnectTopics(self._client, settings.topics),
            self.flows,
            worker=settings.flows,
            worker_id=lambda: self.address,
        )
        flows = FlowsHosting("serve", self.flows, self.hosting.effective, hold=self.hosting.hold)
        metrics = MetricsEndpoint(MetricsSettings(), lambda: self.flows.statuses, jvm)
        app = make_app(self.hosting, access, flows=flows, metrics=metrics.text)
        tls = server_context(settings.tls) if settings.listener.is_tls else None
        self._server = RestServer(app, settings.listener, tls)
        self._reading: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        return self._server.address

    async def start(self) -> None:
        """Raises SettingsError for a port that cannot be had, ClusterError for a Kafka that is not there at the start."""
        await reach_cluster(self._client)
        await self._server.start()
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        while True:
            try:
                await self.hosting.start()
                return
            except MirrorError as error:
                self.hosting.fault = "" if error.retriable else error.message
                log.warning("connectors cannot be read: %s; tried again in %g s", error, RETRY_PAUSE_S)
                await asyncio.sleep(RETRY_PAUSE_S)

    async def stop(self) -> None:
        """No more answers, then no more changes, then the flows drain."""
        await self._server.stop()
        await end_tasks([self._reading] if self._reading else [])
        await self.hosting.stop()
        await self.flows.stop()
        self._client.close()
