"""Find the processes that Spark starts below a driver, so that faults can hit them by their role.

Used by ``lab/faults.py`` users and journeys. A local Spark looks like this:

    driver (Python)
    └── java ... SparkSubmit                      driver_jvms
        ├── python -m ...python_streaming_source_runner   source_runners: plans epochs
        └── python -m <daemon> pyspark.worker             task_daemons: forks the workers
            └── python (the same command line)            task_workers: one per running task
"""

from __future__ import annotations

import psutil

from mirrorspark.lab.process_tree import descendants

DAEMONS = ("pyspark.daemon", "mirrorspark.pipeline.worker_daemon")

__all__ = ["driver_jvms", "source_runners", "task_daemons", "task_workers"]


def driver_jvms(pid: int) -> list[int]:
    return [process.pid for process, line in _with_command_lines(pid) if "org.apache.spark.deploy.SparkSubmit" in line]


def source_runners(pid: int) -> list[int]:
    """The driver-side Python processes that run a streaming source's planning methods."""
    return [
        process.pid
        for process, line in _with_command_lines(pid)
        if "pyspark.sql.streaming.python_streaming_source_runner" in line
    ]


def task_daemons(pid: int) -> list[int]:
    tasks = _task_processes(pid)
    return [number for number, parent in tasks.items() if parent not in tasks]


def task_workers(pid: int) -> list[int]:
    tasks = _task_processes(pid)
    return [number for number, parent in tasks.items() if parent in tasks]


def _task_processes(pid: int) -> dict[int, int]:
    """Daemons and workers alike, with their parents: forked workers keep the daemon's command line."""
    found: dict[int, int] = {}
    for process, line in _with_command_lines(pid):
        if line[-1:] == ["pyspark.worker"] and line[-2] in DAEMONS:
            try:
                found[process.pid] = process.ppid()
            except psutil.NoSuchProcess:
                continue
    return found


def _with_command_lines(pid: int) -> list[tuple[psutil.Process, list[str]]]:
    listed: list[tuple[psutil.Process, list[str]]] = []
    for process in descendants(pid):
        try:
            listed.append((process, process.cmdline()))
        except psutil.Error:
            continue
    return listed
