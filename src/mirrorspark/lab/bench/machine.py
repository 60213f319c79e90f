"""What the machine does while a party carries: CPU time of the brokers and of strangers, memory that is not shared.

Used by the throughput phase beside ``lab/process_tree.py``. Strangers' CPU time is there to tell a quiet run from one that
somebody else disturbed.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from mirrorspark.lab.process_tree import descendants

__all__ = ["CpuTimes", "PssWatch", "cpu_times", "describe_machine"]

PSS_EVERY_S = 1.0
"""The kernel walks a process's page tables to add it up: not more often than needed."""


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """CPU seconds since boot or since the start of the process."""

    all_s: float
    stolen_s: float
    brokers_s: float
    bench_s: float


def cpu_times(brokers: Sequence[int]) -> CpuTimes:
    """``brokers`` are their process ids."""
    machine = psutil.cpu_times()
    idle_s = machine.idle + getattr(machine, "iowait", 0.0)
    stolen_s = getattr(machine, "steal", 0.0)
    # A guest's time is part of the user's.
    twice_s = getattr(machine, "guest", 0.0) + getattr(machine, "guest_nice", 0.0)
    brokers_s = sum(_own_cpu_s(psutil.Process(pid)) for pid in brokers)
    return CpuTimes(sum(machine) - idle_s - stolen_s - twice_s, stolen_s, brokers_s, _own_cpu_s(psutil.Process()))


def _own_cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


class PssWatch:
    """The peak of the proportional set size of a process and all below it; None where the kernel does not tell.

    A page that n processes share counts as 1/n for each, so forked workers are not counted several times.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pss-watch", daemon=True)
        self.peak_bytes: int | None = None

    def __enter__(self) -> PssWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def look(self) -> None:
        sizes = [_pss_bytes(pid) for pid in (self._pid, *(process.pid for process in descendants(self._pid)))]
        known = [size for size in sizes if size is not None]
        if known:
            self.peak_bytes = max(self.peak_bytes or 0, sum(known))

    def _watch(self) -> None:
        while not self._ending.wait(PSS_EVERY_S):
            self.look()


def _pss_bytes(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return None


def describe_machine() -> dict[str, str | int | float]:
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
    }
