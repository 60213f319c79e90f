"""A flow without Spark: the same driver and the same lanes, each lane in a plain process of its own.

Used by journeys that are not about Spark (no JVM to start) and wherever a lane's own CPU and memory are to be seen. The
driver's ``FlowRuntime`` runs in a thread here; ``LaneProcesses`` stands in for the Spark query: one process per lane, epoch
after epoch, and a process that dies is started again, as Spark would do.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import logging
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from multiprocessing.connection import wait as wait_for_one
from pathlib import Path
from typing import Any, TypeVar

from mirrorspark.control.flow_runtime import FlowRuntime
from mirrorspark.errors import LabError
from mirrorspark.events import Event
from mirrorspark.lab.clients import wait_for
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.pipeline.lane import LaneSpec
from mirrorspark.settings import FlowSettings

__all__ = ["FlowWithoutSpark", "LaneProcesses"]

START_DEADLINE_S = 120.0
STOP_DEADLINE_S = 90.0
LANES_END_DEADLINE_S = 30.0
NO_LANE_PAUSE_S = 0.1

T = TypeVar("T")

_context = multiprocessing.get_context("forkserver")
# Imported once, before lanes are forked: a lane starts in a moment.
_context.set_forkserver_preload(["mirrorspark.pipeline.worker", "mirrorspark.lab.flow_without_spark"])


def _run_lane(
    settings: FlowSettings, lane: int, generation: int, stop_mark: Path, log_file: Path, patches: Mapping[str, object]
) -> None:
    """A lane's process: epoch after epoch until the mark is there, or until whoever started it is gone."""
    from mirrorspark.pipeline.worker import carry

    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        wait_for_one([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(
        filename=log_file, level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(message)s"
    )
    for place, value in patches.items():
        module, _, name = place.rpartition(".")
        setattr(importlib.import_module(module), name, value)
    for epoch in itertools.count(1):
        if stop_mark.exists():
            return
        number = _lanes_mark(stop_mark)
        lanes, resized = map(int, number.read_text().split()) if number.exists() else (0, None)
        if lanes and lane >= lanes:
            time.sleep(NO_LANE_PAUSE_S)
            continue
        try:
            for _ in carry(LaneSpec(settings, lane, generation, epoch, settings.epoch_s, resized)):
                pass
        except BaseException:
            logging.exception("lane %d ended", lane)
            raise


def _lanes_mark(stop_mark: Path) -> Path:
    """A file beside it that says how many lanes the next epoch has, and by which version of the plan."""
    return stop_mark.with_name(stop_mark.name.replace("stop", "lanes"))


class LaneProcesses:
    """What ``FlowRuntime`` needs of a query. ``patches`` set module constants inside the lanes, by dotted name."""

    def __init__(
        self, settings: FlowSettings, generation: int, folder: Path, patches: Mapping[str, object] | None = None
    ) -> None:
        self._settings = settings
        self._generation = generation
        self._folder = folder
        self._patches = dict(patches or {})
        self._stop_mark = folder / f"stop-{generation}"
        self._processes: dict[int, Any] = {}
        self._supervisors: list[threading.Thread] = []
        self._abandoned = False
        self.starts = 0

    def start(self) -> None:
        for lane in range(self._settings.tasks_max):
            thread = threading.Thread(target=self._supervise, args=(lane,), name=f"lane-{lane}", daemon=True)
            self._supervisors.append(thread)
            thread.start()

    def carry_with(self, lanes: int, resized: int) -> None:
        """There is a process for each lane that the flow may have; those beyond the number wait for their turn."""
        mark = _lanes_mark(self._stop_mark)
        made = mark.with_suffix(".new")
        made.write_text(f"{lanes} {resized}")
        made.replace(mark)

    def _supervise(self, lane: int) -> None:
        """Start the lane again whenever it dies, until there is to be no further epoch."""
        while not self._stop_mark.exists() and not self._abandoned:
            arguments = (
                *(self._settings, lane, self._generation, self._stop_mark),
                *(self._folder / f"lane-{lane}.log", self._patches),
            )
            process = _context.Process(target=_run_lane, args=arguments, daemon=True)
            process.start()
            self.starts += 1
            self._processes[lane] = process
            process.join()

    @property
    def pids(self) -> dict[int, int]:
        """Of the lanes that run now."""
        return {lane: process.pid for lane, process in self._processes.items() if process.is_alive()}

    def begin_no_epoch(self) -> None:
        self._stop_mark.touch()

    def stop(self) -> None:
        self._stop_mark.touch()
        end = time.monotonic() + LANES_END_DEADLINE_S
        for thread in self._supervisors:
            thread.join(max(0.0, end - time.monotonic()))
        self.kill()

    def kill(self, *, restart: bool = False) -> None:
        """SIGKILL all lanes; with ``restart`` their successors start at once."""
        self._abandoned = self._abandoned or not restart
        for process in list(self._processes.values()):
            process.kill()
        if not restart:
            for thread in self._supervisors:
                thread.join(LANES_END_DEADLINE_S)

    @property
    def active(self) -> bool:
        return any(thread.is_alive() for thread in self._supervisors)

    @property
    def failure(self) -> str | None:
        return None


class FlowWithoutSpark:
    """``with FlowWithoutSpark(settings) as flow: ...`` carries from enter to exit; ``stop`` drains as SIGTERM does."""

    def __init__(
        self, settings: FlowSettings, *, folder: Path | None = None, patches: Mapping[str, object] | None = None
    ) -> None:
        self.settings = settings
        self.folder = folder or Path(tempfile.mkdtemp(prefix="mirrorspark-flow-"))
        self.lanes: LaneProcesses | None = None
        self.failure: BaseException | None = None
        self._patches = patches
        self._runtime: FlowRuntime | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._leave = asyncio.Event()
        self._crash = False

    @property
    def runtime(self) -> FlowRuntime:
        if self._runtime is None:
            raise LabError(f"flow {self.settings.flow} has not been started")
        return self._runtime

    @property
    def status(self) -> FlowStatus:
        return self.runtime.status

    @property
    def events(self) -> list[Event]:
        """What the status topic holds, as the driver read it."""
        return list(self.status.events.values())

    def start(self) -> None:
        """Returns when lanes have reported that they carry."""
        self._thread = threading.Thread(target=self._main, name=f"flow-{self.settings.flow}", daemon=True)
        self._thread.start()
        self._started.wait(START_DEADLINE_S)
        self._raise_failure()

        def all_report() -> bool:
            self._raise_failure()
            lanes = self.status.lanes
            return len(lanes) == self.settings.tasks_max and all(one.state == "carrying" for one in lanes.values())

        wait_for(all_report, f"the lanes of {self.settings.flow}", START_DEADLINE_S)

    def stop(self) -> None:
        """Drain and end; raises what ended the flow before, if something did."""
        self._end()
        self._raise_failure()

    def kill(self) -> None:
        """Driver and lanes at once, nothing signed off: a power cut."""
        if self.lanes is not None:
            self.lanes.kill()
        self._crash = True
        self._end()

    def wait_ended(self, deadline_s: float) -> None:
        """Until the flow has ended by itself; ``failure`` says why."""
        assert self._thread is not None
        self._thread.join(deadline_s)
        if self._thread.is_alive():
            raise LabError(f"flow {self.settings.flow} did not end within {deadline_s:.0f} s")

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float = 60.0) -> T:
        """Run a coroutine in the driver's loop."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def log_text(self) -> str:
        """What the lanes logged, for a failure's message."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("lane-*.log")))

    def __enter__(self) -> FlowWithoutSpark:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise LabError(f"flow {self.settings.flow} ended: {self.failure!r}\n{self.log_text()}") from self.failure

    def _end(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            return
        if self._loop is not None:
            with suppress(RuntimeError):  # it ended by itself a moment ago
                self._loop.call_soon_threadsafe(self._leave.set)
        self._thread.join(STOP_DEADLINE_S)
        if self._thread.is_alive():
            raise LabError(f"flow {self.settings.flow} did not stop within {STOP_DEADLINE_S:.0f} s\n{self.log_text()}")

    def _main(self) -> None:
        try:
            asyncio.run(self._lead())
        except Exception as error:  # noqa: BLE001  (raised again by whoever waits for the flow)
            self.failure = error
        finally:
            self._started.set()

    def _make_lanes(self, settings: FlowSettings, generation: int) -> LaneProcesses:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lanes = LaneProcesses(settings, generation, self.folder, self._patches)
        return self.lanes

    async def _lead(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._runtime = runtime = FlowRuntime(self.settings, self._make_lanes)
        await runtime.prepare()
        await asyncio.to_thread(runtime.start_query)
        running = asyncio.ensure_future(runtime.run())
        leave = asyncio.ensure_future(self._leave.wait())
        self._started.set()
        await asyncio.wait([running, leave], return_when=asyncio.FIRST_COMPLETED)
        if self._crash:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            return
        ended = running.done()
        running.cancel()
        (why,) = await asyncio.gather(running, return_exceptions=True)
        await runtime.stop(superseded=ended)
        if ended and isinstance(why, BaseException):
            raise why
