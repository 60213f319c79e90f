"""One process that runs the flows of a file: the drop-in for ``connect-mirror-maker.sh``.

Order of a start: reach the clusters (in seconds, or a clear error) while Spark starts beside; only when both are there is
a flow led and its query started. SIGTERM and SIGINT drain and end with code 0. A flow that fails or is taken over stops
alone; the others go on, and one that failed is tried again.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mirrorspark.control.ending import end_tasks
from mirrorspark.control.flow_life import FlowLife
from mirrorspark.control.flow_runtime import Query
from mirrorspark.control.live_view import LiveView, complain
from mirrorspark.control.mm2_settings import Deployment
from mirrorspark.control.spark_start import SparkStart
from mirrorspark.errors import Fenced, SettingsError, SparkLost
from mirrorspark.pipeline.bridge import Bridge
from mirrorspark.pipeline.flow_order import FlowOrder
from mirrorspark.pipeline.spark_master import local_slots
from mirrorspark.settings import FlowSettings

__all__ = ["EXIT_FAILED", "EXIT_FENCED", "EXIT_OK", "EXIT_SETTINGS", "EXIT_SPARK_LOST", "run_deployment"]

log = logging.getLogger("mirrorspark")

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_SETTINGS = 2
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
        self._lane_count = sum(flow.tasks_max for flow in deployment.flows)
        self._bridge: Bridge | None = None
        self._flows = [
            FlowLife(settings, self._make_query, self._spark_is_up, self._begin_early) for settings in deployment.flows
        ]
        self._stop = asyncio.Event()
        self._spark: SparkStart | None = None
        self._spark_lost: SparkLost | None = None
        self._view: LiveView | None = None

    # -- Spark ------------------------------------------------------------------------------------------------------

    def _open_session(self) -> Any:
        from mirrorspark.pipeline.session import open_session

        return open_session(self._master, lanes=self._lane_count, folder=self._folder, ui=self._ui)

    async def _spark_is_up(self) -> object:
        assert self._spark is not None
        return await self._spark.session()

    def _make_query(self, settings: FlowSettings, generation: int) -> Query:
        """Called in a thread, when Spark is up."""
        from mirrorspark.pipeline.flow_query import FlowQuery

        assert self._spark is not None
        name = "".join(char if char.isalnum() else "_" for char in str(settings.flow))
        return FlowQuery(self._spark.up, FlowOrder(settings, generation), self._folder / name)

    def _begin_early(self, settings: FlowSettings, generation: int) -> bool:
        assert self._bridge is not None
        return self._bridge.carry(FlowOrder(settings, generation))

    # -- life -------------------------------------------------------------------------------------------------------

    async def main(self) -> int:
        self._hear_signals()
        self._warn_of_few_slots()
        self._bridge = Bridge()
        self._spark = SparkStart(_load_spark, self._open_session, _kill_starting_jvm)
        try:
            await self._run_flows()
        finally:
            await asyncio.to_thread(self._bridge.close)
            if self._view is not None:
                self._view.close()
            if self._spark_lost is None:
                self._spark.close()
            else:
                self._spark.abandon()
        if self._view is not None:
            self._exit_report()
        return self._exit_code()

    def _hear_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        # Spark's JVM inherits what is ignored when it starts: a terminal that hangs up must not take it away either.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _hear_hang_up(self) -> None:
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGHUP, log.warning, "SIGHUP: reload is not there yet; going on with the file as it was at the start"
        )

    def _warn_of_few_slots(self) -> None:
        slots = local_slots(self._master)
        if slots is not None and slots < self._lane_count:
            complain(
                f"warning: --master {self._master} runs {slots} tasks at a time, but the flows have "
                f"{self._lane_count} lanes: some will wait for ever. Use local[{self._lane_count}], or a lower tasks.max"
            )

    async def _run_flows(self) -> None:
        """Show and watch until told to stop, or until no flow is left that could go on."""
        jobs = {asyncio.ensure_future(flow.live()): flow for flow in self._flows}
        stop = asyncio.ensure_future(self._stop.wait())
        watched: set[asyncio.Future[Any]] = {stop, *jobs}
        hears_hang_up = False
        while not self._stop.is_set() and self._is_worth_it(jobs):
            self._show()
            self._end_bridge()
            if self._spark is not None and self._spark.is_up and not hears_hang_up:
                hears_hang_up = True
                self._hear_hang_up()
            done, _ = await asyncio.wait(watched, timeout=VIEW_INTERVAL_S, return_when=asyncio.FIRST_COMPLETED)
            watched -= done
            for job in done - {stop}:
                self._ended(job)
        await end_tasks([stop, *jobs])
        await asyncio.gather(*(flow.stop() for flow in self._flows))
        self._show()

    def _end_bridge(self) -> None:
        """When Spark has every flow that could be started; a flow that comes later starts with Spark at once."""
        assert self._bridge is not None
        if all(flow.has_led or flow.error is not None for flow in self._flows):
            self._bridge.hang_up()

    def _ended(self, job: asyncio.Future[Any]) -> None:
        """A flow's life ends by itself only when it was taken over (told there) or when Spark is gone."""
        error = job.exception()
        if isinstance(error, SparkLost):
            if self._spark_lost is None:
                complain(f"{error.code}: {error}")
            self._spark_lost = error
            self._stop.set()
        elif error is not None:
            log.error("a flow's life ended", exc_info=error)

    def _is_worth_it(self, jobs: Mapping[asyncio.Task[None], FlowLife]) -> bool:
        """At the start one flow without an error is enough; later, one whose error passes by itself is, too."""
        alive = [flow for job, flow in jobs.items() if not job.done()]
        if any(flow.error is None for flow in alive):
            return True
        return any(flow.has_led for flow in self._flows) and not all(flow.is_hopeless for flow in alive)

    def _show(self) -> None:
        """From when it is clear that there is something to show: a start that fails is one line on stderr, no table."""
        if self._view is None and any(flow.has_reached for flow in self._flows):
            view = self._view = LiveView([flow.status for flow in self._flows])
            for flow in self._flows:
                name = str(flow.settings.flow)
                flow.on_event = lambda event, name=name: view.event(name, event)  # type: ignore[misc]
        if self._view is not None:
            self._view.tick()

    # -- the end ----------------------------------------------------------------------------------------------------

    def _exit_code(self) -> int:
        """Of what is wrong at the end, the gravest: Spark, then another mirror, then a flow that failed."""
        errors = [flow.error for flow in self._flows if flow.error is not None]
        if self._spark_lost is not None:
            return EXIT_SPARK_LOST
        if any(isinstance(error, Fenced) for error in errors):
            return EXIT_FENCED
        if errors and all(isinstance(error, SettingsError) for error in errors):
            return EXIT_SETTINGS
        return EXIT_FAILED if errors else EXIT_OK

    def _exit_report(self) -> None:
        lines = []
        for flow in self._flows:
            status = flow.status
            lines.append(
                f"{status.flow} {status.state}: {status.records} records, {status.bytes_carried} bytes carried, "
                f"lag {status.lag_records}, {len(status.events)} unacknowledged events"
            )
            lines += [f"  {text}" for text in status.notices]
        with suppress(OSError):
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            sys.stdout.flush()


def _load_spark() -> None:
    importlib.import_module("mirrorspark.pipeline.flow_query")


def _kill_starting_jvm() -> None:
    from mirrorspark.pipeline.session import kill_starting_jvm

    kill_starting_jvm()
