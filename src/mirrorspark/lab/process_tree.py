"""CPU time and memory of a process and everything below it, also of children that have ended.

Used by benchmarks for "CPU per record" and peak memory, and by ``lab/faults.py`` to find whom to hit.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from dataclasses import dataclass

import psutil

__all__ = ["ProcessTree", "Usage", "descendants", "kill_tree"]

SAMPLE_EVERY_S = 0.2
KILL_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Since the watch began: CPU seconds of all processes; memory now and at its peak; how many run now.

    Memory is the sum of resident sets: pages that forked workers share are counted for each.
    """

    cpu_s: float
    rss_bytes: int
    rss_bytes_peak: int
    processes: int


class ProcessTree:
    """Watches a tree in a thread: ``with ProcessTree(pid) as tree: ...``, then ``tree.usage()``.

    ``exclude`` are processes below it that are not meant, with their subtrees (the brokers that a benchmark started).

    CPU time is known in two ways, each of which may miss some: what every process was last seen to have used (misses
    what it did after the last look), and what living processes have used or inherited from children they waited for
    (misses orphans). The larger one counts.
    """

    def __init__(self, pid: int | None = None, *, exclude: Collection[int] = ()) -> None:
        self._root = psutil.Process(pid if pid is not None else os.getpid())
        self._exclude = frozenset(exclude)
        self._heirs_of_excluded = {_parent_of(other) for other in exclude}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        # The start time belongs to the key since process ids are used again.
        self._seen_cpu_s: dict[tuple[int, float], float] = {}
        self._inherited_cpu_s = 0.0
        self._rss_bytes = self._rss_bytes_peak = self._processes = 0
        self._seen_cpu_s_before = self._inherited_cpu_s_before = 0.0

    def __enter__(self) -> ProcessTree:
        self._sample()
        self._seen_cpu_s_before = sum(self._seen_cpu_s.values())
        self._inherited_cpu_s_before = self._inherited_cpu_s
        self._thread = threading.Thread(target=self._watch, name="process-tree", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        self._sample()

    def usage(self) -> Usage:
        """Up to now, or up to the end of the ``with`` block."""
        if not self._ending.is_set():
            self._sample()
        with self._lock:
            seen_cpu_s = sum(self._seen_cpu_s.values()) - self._seen_cpu_s_before
            inherited_cpu_s = self._inherited_cpu_s - self._inherited_cpu_s_before
            return Usage(max(seen_cpu_s, inherited_cpu_s), self._rss_bytes, self._rss_bytes_peak, self._processes)

    def _watch(self) -> None:
        while not self._ending.wait(SAMPLE_EVERY_S):
            self._sample()

    def _sample(self) -> None:
        with self._lock:
            rss_bytes, inherited_cpu_s, count = 0, 0.0, 0
            for process in [self._root, *descendants(self._root.pid, exclude=self._exclude)]:
                try:
                    with process.oneshot():
                        times, rss = process.cpu_times(), process.memory_info().rss
                        key = (process.pid, process.create_time())
                except psutil.Error:
                    continue
                own_cpu_s = times.user + times.system
                self._seen_cpu_s[key] = own_cpu_s
                inherited_cpu_s += own_cpu_s
                if process.pid not in self._heirs_of_excluded:
                    inherited_cpu_s += times.children_user + times.children_system
                rss_bytes += rss
                count += 1
            self._inherited_cpu_s = max(self._inherited_cpu_s, inherited_cpu_s)
            self._rss_bytes, self._processes = rss_bytes, count
            self._rss_bytes_peak = max(self._rss_bytes_peak, rss_bytes)


def _parent_of(pid: int) -> int | None:
    try:
        return int(psutil.Process(pid).ppid())
    except psutil.Error:
        return None


def descendants(pid: int, *, exclude: Collection[int] = ()) -> list[psutil.Process]:
    """All processes below ``pid``, without the excluded ones and what is below those."""
    try:
        found = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    unwanted = set(exclude)
    for other in exclude:
        unwanted.update(process.pid for process in descendants(other))
    return [process for process in found if process.pid not in unwanted]


def kill_tree(pid: int) -> None:
    """SIGKILL a process and everything below it, the parent first so that it cannot start more."""
    try:
        root = psutil.Process(pid)
        below = root.children(recursive=True)
    except psutil.NoSuchProcess:
        return
    for process in [root, *below]:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs([root, *below], timeout=KILL_TIMEOUT_S)
