"""One process that runs the flows of a file: the drop-in for ``connect-mirror-maker.sh``.

It only joins the parts: signals, Spark, the flows (``flow_set``), edits of the file (``reload``) and the view. SIGTERM and
SIGINT drain and end with code 0. A flow that fails or is taken over stops alone; the others go on, and one that failed is
tried again.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mirrorspark.config.load import Deployment
from mirrorspark.control.ending import end_tasks
from mirrorspark.control.flow_set import FlowSet
from mirrorspark.control.jvm_watch import JvmWatch
from mirrorspark.control.live_change import Changes
from mirrorspark.control.live_view import LiveView, complain, last_words
from mirrorspark.control.metrics_endpoint import MetricsEndpoint
from mirrorspark.control.process_signals import ProcessSignals
from mirrorspark.control.reload import Reload, all_pairs
from mirrorspark.control.spark_for_flows import SparkForFlows
from mirrorspark.control.watch import FileWatch
from mirrorspark.errors import Fenced, SettingsError
from mirrorspark.events import Event
from mirrorspark.names import Flow

if TYPE_CHECKING:
    from mirrorspark.control.rest_endpoint import RestEndpoint

__all__ = ["EXIT_FAILED", "EXIT_FENCED", "EXIT_OK", "EXIT_SETTINGS", "EXIT_SPARK_LOST", "Edits", "run_deployment"]

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_SETTINGS = 2
EXIT_FENCED = 4
EXIT_SPARK_LOST = 5
VIEW_INTERVAL_S = 0.25
THREADS_MAX = 128
"""For calls that block: Spark's, and looking up host names. The default, a few, would let the names of one flow's clusters
that nobody answers for hold up all flows."""


class Edits:
    """How the file is read again. Made before it is read for the first time, so that no edit is missed."""

    def __init__(self, files: Sequence[Path], load: Callable[[], Deployment], *, is_watched: bool) -> None:
        self.name = ", ".join(str(file) for file in files)
        self.files = FileWatch(files)
        self.load = load
        self.is_watched = is_watched


def run_deployment(
    deployment: Deployment,
    *,
    master: str | None = None,
    ui: bool = False,
    conf: Mapping[str, str] | None = None,
    edits: Edits | None = None,
) -> int:
    """Blocks until stopped. Returns the exit code. Without ``edits`` SIGHUP is ignored. ``conf``: settings of Spark."""
    folder = Path(tempfile.mkdtemp(prefix="mirrorspark-run-"))
    try:
        return asyncio.run(_run(deployment, SparkForFlows(master, folder, ui=ui, conf=conf), edits))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _run(deployment: Deployment, spark: SparkForFlows, edits: Edits | None) -> int:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS_MAX, "mirrorspark"))
    run = _Run(deployment, spark, edits)
    jvm = JvmWatch(lambda: spark.session)
    metrics = MetricsEndpoint(deployment.metrics, lambda: run.flows.statuses, lambda: jvm.figures)
    try:
        metrics.open()
        rest = await run.open_rest(metrics.text)
    except SettingsError as error:
        complain(f"{error.code}: {error}")
        await metrics.close()
        return EXIT_SETTINGS
    if metrics.port is not None or rest is not None:
        jvm.start()
    try:
        await run.until_stopped(rest.close if rest is not None else None)
    finally:
        await metrics.close()
        jvm.close()
        await spark.close(run.flows.spark_lost)
    run.report()
    return run.exit_code()


class _Run:
    def __init__(self, deployment: Deployment, spark: SparkForFlows, edits: Edits | None) -> None:
        self._deployment = deployment
        self._edits = edits
        self._spark = spark
        self._signals = ProcessSignals()
        self.flows = FlowSet(spark, on_event=self._show_event, on_spark_lost=self._signals.stop.set)
        self._view: LiveView | None = None
        self._reload = edits and Reload(
            deployment,
            edits.load,
            edits.files,
            apply=self._apply,
            refuse=self.flows.refuse,
            show=self.flows.show_edit,
            is_watched=edits.is_watched,
            take=self._take,
        )
        self._changing = asyncio.Lock()
        self._restarts: set[asyncio.Task[None]] = set()

    async def open_rest(self, metrics: Callable[[], Awaitable[bytes]]) -> RestEndpoint | None:
        """None where no address is given. Raises SettingsError."""
        if not self._deployment.rest.listeners:
            return None
        from mirrorspark.control.rest_endpoint import RestEndpoint  # here: FastAPI takes a second to load

        file = self._edits.name if self._edits is not None else "the file"
        endpoint = RestEndpoint(
            self._deployment.rest,
            file,
            self.flows,
            lambda: self._deployment,
            restart=self._restart,
            metrics=metrics,
        )
        await endpoint.open()
        return endpoint

    # -- life -------------------------------------------------------------------------------------------------------

    async def until_stopped(self, close_rest: Callable[[], Awaitable[None]] | None = None) -> None:
        """Or until no flow is left that could go on."""
        self.flows.refuse(self._deployment.refused)
        for settings in all_pairs(self._deployment):
            self.flows.begin(settings)
        editing = asyncio.ensure_future(self._reload.run(self._signals.reload)) if self._reload else None
        try:
            while not self._signals.stop.is_set() and self.flows.is_worth_it:
                self._tick()
                with suppress(TimeoutError):
                    async with asyncio.timeout(VIEW_INTERVAL_S):
                        await self._signals.stop.wait()
        finally:
            if close_rest is not None:
                await close_rest()
            await end_tasks([*([editing] if editing else []), *self._restarts])
            await self.flows.stop()
            self._show()
            if self._view is not None:
                self._view.close()

    def _tick(self) -> None:
        self._show()
        if self.flows.has_begun:
            self._spark.end_early_lanes()
        self._signals.hear_reload(self._reload is not None and not self._spark.is_starting)

    async def _apply(self, changes: Changes) -> None:
        if changes.added or changes.restarted:
            self._signals.hear_reload(False)  # the first flow of all may start Spark
        async with self._changing:
            await self.flows.apply(changes)

    def _take(self, deployment: Deployment) -> None:
        """What REST shows from now on. Addresses stay as they are until the next start."""
        self._deployment = deployment

    def _restart(self, flow: Flow) -> None:
        """Asked for by REST: drain this flow and start it anew, after whatever an edit is changing."""

        async def restart() -> None:
            async with self._changing:
                life = self.flows.life_of(flow)
                if life is not None:
                    await self.flows.apply(Changes(restarted=(life.settings,)))

        task = asyncio.ensure_future(restart())
        self._restarts.add(task)
        task.add_done_callback(self._restarts.discard)

    # -- what a person sees -----------------------------------------------------------------------------------------

    def _show(self) -> None:
        """From when it is clear that there is something to show: a start that fails is one line on stderr, no table."""
        shown = self.flows.look()
        if self._view is None and any(life.has_reached for life in self.flows.lives):
            self._view = LiveView(shown)
        if self._view is not None:
            self._view.tick()

    def _show_event(self, flow: str, event: Event) -> None:
        if self._view is not None:
            self._view.event(flow, event)

    # -- the end ----------------------------------------------------------------------------------------------------

    def exit_code(self) -> int:
        """Of what is wrong at the end, the gravest: Spark, then another mirror, then a flow that failed."""
        errors = self.flows.errors
        if self.flows.spark_lost is not None:
            return EXIT_SPARK_LOST
        if any(isinstance(error, Fenced) for error in errors):
            return EXIT_FENCED
        if errors and all(isinstance(error, SettingsError) for error in errors):
            return EXIT_SETTINGS
        return EXIT_FAILED if errors else EXIT_OK

    def report(self) -> None:
        """The last word on each flow; nothing where a start failed, which one line on stderr has told."""
        lines = []
        for status in self.flows.shown if self._view is not None else []:
            lines.append(
                f"{status.flow} {status.state}: {status.records} records, {status.bytes_carried} bytes carried, "
                f"lag {status.lag_records}, {len(status.events)} unacknowledged events"
            )
            lines += [f"  {text}" for text in status.notices]
        last_words(lines)
