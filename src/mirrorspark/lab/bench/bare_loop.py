"""The same carrying loop without Spark: lanes as plain processes, led by the same driver code.

Started by the benchmark as ``python -m mirrorspark.lab.bench.bare_loop FILE`` to tell what Spark costs. Everything but the
way in which lanes are started is the product's: settings, plan, ``FlowRuntime``, ``worker.carry``. There are no epochs: a
lane carries until it is stopped.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
from dataclasses import replace
from multiprocessing.context import SpawnProcess
from pathlib import Path

from mirrorspark.control.flow_runtime import FlowRuntime
from mirrorspark.control.mm2_settings import load_deployment
from mirrorspark.errors import LabError
from mirrorspark.lab.child import Child
from mirrorspark.lab.mirror import Mirror
from mirrorspark.pipeline.lane import LaneSpec
from mirrorspark.pipeline.worker import carry
from mirrorspark.settings import FlowSettings

__all__ = ["BareLoop"]

ENDLESS_S = 7 * 86_400.0
JOIN_TIMEOUT_S = 20.0


class BareLoop(Mirror):
    """As ``Mirror``, but the process below it has no Spark."""

    def start(self) -> None:
        self._child = Child([sys.executable, "-m", "mirrorspark.lab.bench.bare_loop", str(self.file)], self.log, {})


class LaneProcesses:
    """In place of a Spark query: one process per lane."""

    def __init__(self, settings: FlowSettings, generation: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        specs = [LaneSpec(settings, lane, generation, 1, settings.epoch_s) for lane in range(settings.tasks_max)]
        self._lanes: list[SpawnProcess] = [
            spawn.Process(target=carry_lane, args=(spec, os.getpid()), daemon=True) for spec in specs
        ]
        self._started = False

    def start(self) -> None:
        self._started = True
        for lane in self._lanes:
            lane.start()

    def begin_no_epoch(self) -> None:
        """There are none; the plan that says ``stopping`` ends the lanes."""

    def stop(self) -> None:
        for lane in self._lanes:
            lane.join(JOIN_TIMEOUT_S)
            if lane.is_alive():
                lane.kill()
                lane.join()

    @property
    def active(self) -> bool:
        """A lane that failed ends the whole measurement: nobody starts it again here."""
        if self.failure is not None:
            raise LabError(self.failure)
        return self._started and any(lane.is_alive() for lane in self._lanes)

    @property
    def failure(self) -> str | None:
        codes = [lane.exitcode for lane in self._lanes if lane.exitcode]
        return f"a lane ended with code {codes[0]}" if codes else None


def carry_lane(spec: LaneSpec, parent: int) -> None:
    """A lane's process: carry and forget the receipts, until the plan says stop or the parent is gone."""
    for _ in carry(spec):
        if os.getppid() != parent:
            return


async def _lead(settings: FlowSettings) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    flow = FlowRuntime(replace(settings, epoch_s=ENDLESS_S), LaneProcesses)
    await flow.prepare()
    await asyncio.to_thread(flow.start_query)
    running, stopped = asyncio.ensure_future(flow.run()), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
    finally:
        running.cancel()
        stopped.cancel()
        await asyncio.gather(running, stopped, return_exceptions=True)
        await flow.stop()


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    flows = load_deployment(Path(sys.argv[1])).flows
    if len(flows) != 1:
        raise LabError(f"{sys.argv[1]} has {len(flows)} flows; the bare loop runs one")
    asyncio.run(_lead(flows[0]))


if __name__ == "__main__":
    main()
