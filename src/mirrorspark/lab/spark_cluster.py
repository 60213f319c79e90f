"""A standalone Spark cluster from PySpark's own files: a master and workers on 127.0.0.x, to be killed and started again.

Used by journeys and the benchmark. Workers know nothing of the driver's world: a clean environment, working and temporary
folders of their own, and a Python that has the third-party packages but not mirrorspark, which comes with the application.
Each worker has an address of its own, so that Spark takes them for different machines. Ends only what it started.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import signal
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote

import psutil

from mirrorspark.errors import LabError
from mirrorspark.java_home import java_home
from mirrorspark.lab.child import Child
from mirrorspark.lab.clients import wait_for
from mirrorspark.lab.cluster_of_brokers import free_port
from mirrorspark.lab.process_tree import descendants, kill_tree
from mirrorspark.lab.spark_processes import task_workers

__all__ = ["LANE_PACKAGES", "SparkCluster", "SparkWorker", "conf_arguments", "pack_environment"]

START_DEADLINE_S = 120.0
REGISTERED = "Successfully registered with master"
MASTER_UP = "I have been elected leader"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
MEMORY_MB = 2_048
"""Of a worker, as far as Spark counts: it is not taken, only divided among executors."""
DAEMON_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
LANE_PACKAGES = (
    *("crc32c", "cramjam", "kafka-python", "numpy", "pyarrow", "uvloop", "cryptography", "cffi", "pycparser"),
    *("pandas", "python-dateutil", "pytz", "tzdata"),
)
"""What lanes need beside PySpark, which Spark's workers have, and our own code, which comes by another way."""


class SparkWorker:
    """One worker's process and what is below it. ``folder`` is all that it has on disk."""

    def __init__(self, host: str, folder: Path, command: list[str]) -> None:
        self.host = host
        self.folder = folder
        self._command = command
        self._child: Child | None = None

    def launch(self) -> None:
        """Returns at once; ``wait_registered`` waits."""
        (self.folder / "worker.log").unlink(missing_ok=True)
        self._child = Child(self._command, self.folder / "worker.log", {})

    def wait_registered(self, deadline_s: float = START_DEADLINE_S) -> None:
        wait_for(lambda: REGISTERED in self._told(), f"the Spark worker on {self.host} to register", deadline_s)

    def _told(self) -> str:
        if self._child is None or not self._child.is_alive:
            raise LabError(f"the Spark worker on {self.host} is not running: see {self.folder}/worker.log")
        return (self.folder / "worker.log").read_text(errors="replace")

    @property
    def is_alive(self) -> bool:
        return self._child is not None and self._child.is_alive

    @property
    def executors(self) -> list[int]:
        """Their JVMs."""
        return [process.pid for process in self._below() if EXECUTOR in _command_line(process)]

    @property
    def lane_workers(self) -> list[int]:
        """The Python workers in which lanes run."""
        return task_workers(self._child.pid) if self._child is not None and self._child.is_alive else []

    def _below(self) -> list[psutil.Process]:
        return descendants(self._child.pid) if self._child is not None and self._child.is_alive else []

    def kill_executors(self) -> int:
        """SIGKILL of each executor's JVM alone; how many. Its Python is left to notice."""
        hit = self.executors
        for pid in hit:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(hit)

    def kill(self) -> None:
        """As a machine that is gone: the worker, its executors and their Python, at once."""
        if self._child is not None and self._child.is_alive:
            kill_tree(self._child.pid)
            self._child.kill()

    def restart(self) -> None:
        self.kill()
        self.launch()
        self.wait_registered()


class SparkCluster:
    """``with SparkCluster(workers=2, cores=2) as spark: Mirror(…, arguments=spark.arguments)``."""

    def __init__(
        self, *, workers: int = 2, cores: int = 1, folder: Path | None = None, awaits_workers: bool = True
    ) -> None:
        """Without ``awaits_workers`` it is up with its master; a driver gets executors as they come."""
        self._awaits_workers = awaits_workers
        self._is_own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="mirrorspark-spark-"))
        self.address = f"spark://127.0.0.1:{free_port()}"
        self.python = _write_python(self.folder / "python")
        self._master: Child | None = None
        self.workers = [self._worker(number, cores) for number in range(1, workers + 1)]

    def _worker(self, number: int, cores: int) -> SparkWorker:
        host, folder = f"127.0.0.{number}", self.folder / f"worker-{number}"
        arguments = ["--host", host, "--port", "0", "--webui-port", "0", "--cores", str(cores)]
        arguments += ["--memory", f"{MEMORY_MB}M", "--work-dir", str(folder / "work"), self.address]
        return SparkWorker(host, folder, _command(folder, "org.apache.spark.deploy.worker.Worker", arguments))

    @property
    def arguments(self) -> list[str]:
        """Of ``mirrorspark run``: this master, and the Python that its workers have."""
        return ["--master", self.address, *conf_arguments({**self.conf, "spark.pyspark.python": str(self.python)})]

    @property
    def conf(self) -> dict[str, str]:
        """What a driver on this machine needs to be found by the workers."""
        return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

    @property
    def executors(self) -> list[int]:
        return [pid for worker in self.workers for pid in worker.executors]

    @property
    def lane_workers(self) -> list[int]:
        return [pid for worker in self.workers for pid in worker.lane_workers]

    def start(self) -> None:
        folder = self.folder / "master"
        port = self.address.rpartition(":")[2]
        arguments = ["--host", "127.0.0.1", "--port", port, "--webui-port", "0"]
        self._master = Child(
            _command(folder, "org.apache.spark.deploy.master.Master", arguments), folder / "master.log", {}
        )
        for worker in self.workers:
            worker.launch()  # they try until the master answers
        wait_for(lambda: MASTER_UP in (folder / "master.log").read_text(), "Spark's master to lead", START_DEADLINE_S)
        for worker in self.workers if self._awaits_workers else ():
            worker.wait_registered()

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        if self._master is not None and self._master.is_alive:
            self._master.kill()
        if self._is_own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> SparkCluster:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            error.add_note(f"the executors' last words:\n{self.last_words()}")
        self.close()

    def last_words(self, lines: int = 15) -> str:
        """Of every executor's Python and JVM."""
        found = sorted(self.folder.glob("worker-*/work/*/*/stderr"))
        return "\n".join(
            f"{log.relative_to(self.folder)}:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
            for log in found
        )


def conf_arguments(conf: Mapping[str, str]) -> list[str]:
    return [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]


def pack_environment(archive: Path) -> Path:
    """What lanes need of this Python's packages as one archive for ``spark.archives``: docs/operating/spark.md.

    Plain folders, to be put on ``PYTHONPATH``: no script in it knows a path, so it works wherever it is unpacked.
    """
    with tarfile.open(archive, "w") as packed:
        for name in LANE_PACKAGES:
            for file in importlib.metadata.files(name) or ():
                if not file.parts[0].startswith("..") and file.locate().exists():  # type: ignore[attr-defined]
                    packed.add(str(file.locate()), arcname=str(file))
    return archive


def _command(folder: Path, main_class: str, arguments: list[str]) -> list[str]:
    """Spark's own script, in a clean environment and a folder of its own."""
    home = spark_home()
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    environment = {
        "PATH": SYSTEM_PATH,
        "HOME": str(folder),
        "TMPDIR": str(folder / "tmp"),
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{DAEMON_FLAGS} -Djava.io.tmpdir={folder / 'tmp'}",
        "SPARK_HOME": str(home),
        "LANG": "C.UTF-8",
    }
    words = [f"{name}={value}" for name, value in environment.items()]
    script = str(home / "bin" / "spark-class")
    return ["/usr/bin/env", "-i", "-C", str(folder), *words, "/bin/bash", script, main_class, *arguments]


def spark_home() -> Path:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise LabError("PySpark is not installed here: there is no Spark to start a cluster from")
    return Path(found.origin).parent


def _write_python(folder: Path) -> Path:
    """The workers' Python: with our third-party packages, but without what an installation adds by ``.pth`` files, and so
    without mirrorspark."""
    folder.mkdir(parents=True, exist_ok=True)
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    script = folder / "lane-python"
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:"{quote(sysconfig.get_path("purelib"))} exec {quote(str(base))} "$@"\n'
    )
    script.chmod(0o755)
    return script


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
