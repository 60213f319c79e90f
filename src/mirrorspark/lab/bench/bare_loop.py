"""The same carrying loop without Spark, as a process: what Spark costs is the difference.

Started by the benchmark as ``python -m mirrorspark.lab.bench.bare_loop FILE``. Everything but the way in which lanes are
started is the product's: settings, plan, driver, ``worker.carry``. There are no epochs: a lane carries until it is stopped.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

from mirrorspark.config.load import load_deployment
from mirrorspark.errors import LabError
from mirrorspark.lab.child import Child
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.mirror import Mirror

__all__ = ["BareLoop"]

ENDLESS_S = 7 * 86_400.0


class BareLoop(Mirror):
    """As ``Mirror``, but the process below it has no Spark."""

    def start(self) -> None:
        self._child = Child([sys.executable, "-m", "mirrorspark.lab.bench.bare_loop", str(self.file)], self.log, {})


def run(file: Path) -> None:
    """Until SIGTERM. A lane that dies ends the whole run: one that was started again would be no measurement."""
    flows = load_deployment(file).flows
    if len(flows) != 1:
        raise LabError(f"{file} has {len(flows)} flows; the bare loop runs one")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    settings = replace(flows[0], epoch_s=ENDLESS_S)
    with FlowWithoutSpark(settings, folder=file.parent) as flow:
        assert flow.lanes is not None
        while not stop.wait(0.5):
            if flow.failure is not None or flow.lanes.starts > settings.tasks_max:
                raise LabError(f"the flow or a lane of it ended: {flow.failure!r}\n{flow.log_text()}")
        flow.stop()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    run(Path(sys.argv[1]))
