"""One process that runs the flows of a file: the drop-in for ``connect-mirror-maker.sh``.

Order of a start: reach all clusters (in seconds, or a clear error), while Spark starts beside; lead each flow; start its
query. SIGTERM and SIGINT drain and end with code 0. A flow that fails or is taken over stops alone; the others go on.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from mirrorspark.control.flow_runtime import FlowRuntime, Query
from mirrorspark.control.live_view import LiveView, notices
from mirrorspark.control.mm2_settings import Deployment
from mirrorspark.errors import Fenced, MirrorError, SparkLost
from mirrorspark.settings import FlowSettings

__all__ = ["run_deployment"]

log = logging.getLogger("mirrorspark")

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_FENCED = 4
EXIT_SPARK_LOST = 5
VIEW_INTERVAL_S = 0.25


def run_deployment(deployment: Deployment, *, master: str | None = None, ui: bool = False) -> int:
    """Blocks until stopped. Returns the exit code."""
    folder = Path(tempfile.mkdtemp(prefix="mirrorspark-run-"))
    try:
        return asyncio.run(_Run(deployment, master, ui, folder).main())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Run:
    def __init__(self, deployment: Deployment, master: str | None, ui: bool, folder: Path) -> None:
        self._master = master
        self._ui = ui
        self._folder = folder
        self._lanes = sum(flow.tasks_max for flow in deployment.flows)
        self._flows = [FlowRuntime(settings, self._make_query) for settings in deployment.flows]
        self._stop = asyncio.Event()
        self._code = EXIT_OK
        self._spark: object = None

    def _make_query(self, settings: FlowSettings, generation: int) -> Query:
        from mirrorspark.pipeline.flow_query import FlowQuery
        from mirrorspark.pipeline.mirror_source import FlowOrder

        name = "".join(char if char.isalnum() else "_" for char in str(settings.flow))
        return FlowQuery(self._spark, FlowOrder(settings, generation), self._folder / name)  # type: ignore[arg-type]

    async def main(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        spark = asyncio.ensure_future(asyncio.to_thread(self._open_spark))
        try:
            await asyncio.gather(*(flow.prepare() for flow in self._flows))
        except MirrorError as error:
            sys.stderr.write(f"mirrorspark: {error.code}: {error}\n")
            await asyncio.gather(spark, return_exceptions=True)
            self._close_spark()
            return EXIT_FAILED
        self._spark = await spark
        view = LiveView([flow.status for flow in self._flows])
        for flow in self._flows:
            flow.on_event = lambda event, name=str(flow.settings.flow): view.event(name, event)  # type: ignore[misc]
        try:
            await self._run_flows(view)
        finally:
            view.close()
            self._close_spark()
        self._exit_report()
        return self._code

    def _open_spark(self) -> object:
        from mirrorspark.pipeline.session import open_session

        return open_session(self._master, lanes=self._lanes, folder=self._folder, ui=self._ui)

    def _close_spark(self) -> None:
        if self._spark is not None:
            self._spark.stop()  # type: ignore[attr-defined]

    async def _run_flows(self, view: LiveView) -> None:
        await asyncio.gather(*(asyncio.to_thread(flow.start_query) for flow in self._flows))
        running = {asyncio.ensure_future(self._lead(flow)) for flow in self._flows}
        stop = asyncio.ensure_future(self._stop.wait())
        while running and not self._stop.is_set():
            view.tick()
            await asyncio.wait([*running, stop], timeout=VIEW_INTERVAL_S, return_when=asyncio.FIRST_COMPLETED)
            running = {job for job in running if not job.done()}
        stop.cancel()
        for job in running:
            job.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        live = [flow for flow in self._flows if flow.status.state not in ("failed", "superseded")]
        await asyncio.gather(*(flow.stop() for flow in live))
        view.tick()

    async def _lead(self, flow: FlowRuntime) -> None:
        """A flow's whole life; what ends it is said here and ends only this flow."""
        try:
            await flow.run()
        except asyncio.CancelledError:
            raise
        except Fenced as error:
            sys.stderr.write(f"mirrorspark: {error.code}: {error}\n")
            self._code = EXIT_FENCED
            await flow.stop(superseded=True)
        except SparkLost as error:
            sys.stderr.write(f"mirrorspark: {error.code}: {error}; ending, so that a supervisor starts it again\n")
            self._code = EXIT_SPARK_LOST
            self._spark = None
            flow.status.state = "failed"
            self._stop.set()
        except Exception as error:
            log.exception("flow %s failed", flow.settings.flow)
            sys.stderr.write(f"mirrorspark: flow {flow.settings.flow} failed: {error}\n")
            self._code = self._code or EXIT_FAILED
            await flow.stop()
            flow.status.state = "failed"

    def _exit_report(self) -> None:
        for flow in self._flows:
            status = flow.status
            sys.stdout.write(
                f"{status.flow} {status.state}: {status.records} records, {status.bytes_carried} bytes carried, "
                f"lag {status.lag_records}, {len(status.events)} unacknowledged events\n"
            )
            for text in notices(status):
                sys.stdout.write(f"  {text}\n")
