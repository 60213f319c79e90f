"""A Java program as a child process that never outlives us and never hears our Ctrl-C.

Used by ``lab/broker.py``, ``lab/zookeeper.py`` and ``lab/mirror_maker.py``. A shell starts the program and leaves a
watcher behind that reads from a pipe of ours: when this process ends in whatever way, the pipe closes and the watcher
kills the program.
That needs no signal set up between fork and exec, which would be unsafe with threads and would fire at the end of the
*thread* that started the child.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mirrorspark.errors import LabError
from mirrorspark.java_home import java_home
from mirrorspark.lab.jars import kafka_class_path
from mirrorspark.lab.kafka_version import LATEST, KafkaVersion

__all__ = ["QUICK_START", "Child", "JavaProgram"]

QUICK_START = ("-XX:TieredStopAtLevel=1",)
"""For a JVM whose speed nobody measures: less is compiled."""

STOP_TIMEOUT_S = 30.0

# The watcher leaves quietly when it reads a line, and kills when it reads an end of file. $$ is the program's own id,
# since exec keeps it.
_SCRIPT = 'exec 3<&0 </dev/null; (read _ <&3 || kill -9 $$) >/dev/null 2>&1 & exec "$@" 3<&-'


class Child:
    """One running process: signals to it, its end, the last lines of its log."""

    def __init__(self, command: Sequence[str | Path], log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "child", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,
                bufsize=0,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def pause(self) -> None:
        """Returns when it stands still: until each of its threads has, it may still answer."""
        self._signal(signal.SIGSTOP)
        until = time.monotonic() + STOP_TIMEOUT_S
        while not all(_state(task) in "TZX" for task in Path(f"/proc/{self.pid}/task").glob("*/stat")):
            if time.monotonic() > until:
                raise LabError(f"process {self.pid} did not stop within {STOP_TIMEOUT_S:.0f} s")
            time.sleep(0.001)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once, as a power cut would; returns when it is gone."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._dismiss_watcher()

    def ask_to_stop(self) -> None:
        """SIGTERM; does not wait. A paused process is resumed first, else it would not hear."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Ask, wait, and kill if asking was not enough. True when it ended by itself."""
        self.ask_to_stop()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        self._dismiss_watcher()
        return True

    def log_tail(self, lines: int = 20) -> str:
        with self.log.open(errors="replace") as text:
            return "".join(deque(text, maxlen=lines))

    def _signal(self, number: int) -> None:
        # Popen asks first whether the process has ended, so a reused id is never hit.
        self._process.send_signal(number)

    def _dismiss_watcher(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        if pipe.closed:
            return
        with pipe, suppress(BrokenPipeError):
            # Broken when the watcher was killed too, by someone who killed the whole process group.
            pipe.write(b"done\n")


def _state(stat: Path) -> str:
    """Of a thread, in the kernel's letters; of one that is gone, dead."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "X"


class JavaProgram:
    """A main class from Kafka's jars, with arguments, heap and log: makes a ``Child`` each time it is started."""

    def __init__(
        self,
        main_class: str,
        arguments: Sequence[str | Path],
        *,
        folder: Path,
        log: Path,
        kafka: KafkaVersion = LATEST,
    ) -> None:
        self.main_class = main_class
        self.arguments = list(arguments)
        self.folder = folder
        self.log = log
        self.kafka = kafka

    def start(self, jvm_flags: Sequence[str]) -> Child:
        java = java_home() / "bin" / "java"
        flags = [*jvm_flags, "-Djava.awt.headless=true", self.kafka.log_binding.configure(self.folder)]
        environment = {"CLASSPATH": kafka_class_path(self.kafka)}
        try:
            return Child([java, *flags, self.main_class, *self.arguments], self.log, environment)
        except OSError as error:
            raise LabError(f"{java} could not be started: {error}") from error
