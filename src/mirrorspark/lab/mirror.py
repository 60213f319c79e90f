"""Our own mirror as a process of its own, as an operator runs it: ``mirrorspark run FILE``.

Used by journeys, the demo, chaos and benchmarks. Knows which of its processes is what, so that each can be killed.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from mirrorspark.errors import LabError
from mirrorspark.lab.child import Child
from mirrorspark.lab.clients import wait_for
from mirrorspark.lab.process_tree import kill_tree
from mirrorspark.lab.spark_processes import driver_jvms, task_workers

__all__ = ["Mirror", "mirror_properties"]

START_DEADLINE_S = 180.0

TOLD_LINES_MAX = 120
"""How much of its log an error that ends a ``with`` of it carries along."""


def mirror_properties(
    source: tuple[str, str], target: tuple[str, str], *, tasks_max: int = 2, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """An mm2.properties of one flow; ``source`` and ``target`` are (alias, bootstrap)."""
    return {
        "clusters": f"{source[0]}, {target[0]}",
        f"{source[0]}.bootstrap.servers": source[1],
        f"{target[0]}.bootstrap.servers": target[1],
        f"{source[0]}->{target[0]}.enabled": "true",
        f"{source[0]}->{target[0]}.topics": ".*",
        "replication.factor": "1",
        "tasks.max": str(tasks_max),
        **(extra or {}),
    }


class Mirror:
    """Start, stop, kill; ``lane_workers`` and ``jvms`` are its processes inside Spark."""

    def __init__(
        self, properties: Mapping[str, str], *, folder: Path | None = None, arguments: Sequence[str] = ()
    ) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="mirrorspark-mirror-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / "mm2.properties"
        self.file.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
        self.log = self.folder / "mirror.log"
        self._arguments = list(arguments)
        self._child: Child | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "mirrorspark", "run", str(self.file), *self._arguments]
        self._child = Child(command, self.log, {})

    @property
    def _running(self) -> Child:
        if self._child is None:
            raise LabError("the mirror has not been started")
        return self._child

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def is_alive(self) -> bool:
        return self._child is not None and self._child.is_alive

    @property
    def exit_code(self) -> int | None:
        return self._running.exit_code

    def wait_ended(self, deadline_s: float) -> int:
        wait_for(lambda: not self.is_alive, "the mirror to end", deadline_s)
        code = self.exit_code
        assert code is not None
        return code

    def wait_carrying(self, deadline_s: float = START_DEADLINE_S) -> None:
        """Until lanes have reported that they carry."""

        def carries() -> bool:
            if not self.is_alive:
                raise LabError(f"the mirror ended with code {self.exit_code}:\n{self.log_tail()}")
            told = self.log_tail(200)
            return any(f" {state} lanes=" in told for state in ("running", "degraded", "idle"))

        wait_for(carries, "the mirror to carry", deadline_s)

    def stop(self, timeout_s: float = 90.0) -> int:
        """SIGTERM; the exit code."""
        self._running.stop(timeout_s)
        code = self.exit_code
        assert code is not None
        return code

    def hang_up(self) -> None:
        psutil.Process(self.pid).send_signal(signal.SIGHUP)

    def kill_driver(self) -> None:
        """The Python driver alone; Spark's JVM and the lanes notice on their own."""
        self._running.kill()

    def kill_everything(self) -> None:
        if self._child is not None:
            kill_tree(self._child.pid)

    def jvms(self) -> list[int]:
        """Spark's JVM: driver and, in local mode, executor."""
        return driver_jvms(self.pid)

    def lane_workers(self) -> list[int]:
        """The Python workers in which lanes run."""
        return task_workers(self.pid)

    def log_tail(self, lines: int = 30) -> str:
        return self._running.log_tail(lines)

    def __enter__(self) -> Mirror:
        self.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and self._child is not None:
            error.add_note(f"the mirror's last lines, of {self.log}:\n{self.log_tail(TOLD_LINES_MAX)}")
        if self.is_alive:
            self.stop()
        self.kill_everything()
