"""How long records wait for their copy: the longest stalls, for the whole topic and for a single partition.

Used by chaos runs. The source's side is what the workload got acknowledged. The target's side is read from the brokers' own
log files, batch headers only: a client would have to find its way round the same fault as the mirror, and its search would
be counted. A record has arrived when it lies in a replica's log; markers are no records. Runs in a thread of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mirrorspark.lab.ledger import Ledger
from mirrorspark.wire.record_batch import HEADER

__all__ = ["Stall", "StallWatch"]

SAMPLE_EVERY_S = 0.05
STALL_S_MIN = 0.2
"""Shorter ones are the ordinary way of a record."""
ANYWHERE = -1
_CONTROL = 0x20
_MAGIC = 2
_LENGTH_ENDS_AT = 12


@dataclass(frozen=True, slots=True)
class Stall:
    """From when to when records of a partition (or of all: ``ANYWHERE``) waited and none came. Monotonic seconds."""

    partition: int
    began: float
    ended: float

    @property
    def lasted_s(self) -> float:
        return self.ended - self.began


class _Wait:
    """Of one partition, or of all together: since when something waits."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.since: float | None = None
        self._acknowledged = self._arrived = 0

    def look(self, now: float, acknowledged: int, arrived: int) -> Stall | None:
        """Whether a wait ended by an arrival. What is still behind waits from then on."""
        found = None
        if arrived > self._arrived:
            found = Stall(self.partition, self.since, now) if self.since is not None else None
            self.since = now if acknowledged > arrived else None
        elif self.since is None and acknowledged > max(arrived, self._acknowledged):
            self.since = now
        self._acknowledged, self._arrived = acknowledged, arrived
        return found


class _ReplicaLog:
    """One replica's log, read header by header as it grows; begun again when it was cut or replaced.

    Records of all ages make brokers roll segments often: they are read one after the other, by their names.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segment = ""
        self._inode = -1
        self._position = 0

    def new_batches(self) -> list[tuple[int, int]]:
        """(last offset, records) of the batches that came since, without markers."""
        found: list[tuple[int, int]] = []
        try:
            segments = sorted(name for name in os.listdir(self._folder) if name.endswith(".log"))
        except FileNotFoundError:
            segments = []  # the replica is gone, or not there yet
        if self._segment not in segments:
            self._segment, self._inode = "", -1
        for name in segments:
            if name >= self._segment:
                if name > self._segment:
                    self._segment, self._inode = name, -1
                self._read(found)
        return found

    def _read(self, found: list[tuple[int, int]]) -> None:
        """The current segment from where it was left."""
        try:
            log = os.open(self._folder / self._segment, os.O_RDONLY)
        except FileNotFoundError:
            return  # deleted since it was listed
        try:
            state = os.fstat(log)
            if state.st_ino != self._inode or state.st_size < self._position:
                self._inode, self._position = state.st_ino, 0
            while self._position + HEADER.size <= state.st_size:
                header = HEADER.unpack(os.pread(log, HEADER.size, self._position))
                base_offset, length, magic, attributes = header[0], header[1], header[3], header[5]
                if magic != _MAGIC or length <= 0:
                    self._position = 0  # another log than before: from its beginning, next time
                    break
                if self._position + _LENGTH_ENDS_AT + length > state.st_size:
                    break
                self._position += _LENGTH_ENDS_AT + length
                if not attributes & _CONTROL:
                    found.append((base_offset + header[6], header[-1]))
        finally:
            os.close(log)


class StallWatch:
    """``with StallWatch(ledger, folders, remote) as watch: ... watch.longest(began, ended)``."""

    def __init__(self, ledger: Ledger, folders: Callable[[], list[Path]], remote_topic: str) -> None:
        """``folders``: the data folders of the target's brokers as of now."""
        self._ledger = ledger
        self._folders = folders
        self._topic = remote_topic
        partitions = range(ledger.partitions)
        self._waits = [_Wait(number) for number in (*partitions, ANYWHERE)]
        self._logs: dict[tuple[Path, int], _ReplicaLog] = {}
        self._offset_last = [-1 for _ in partitions]
        self._arrived = [0 for _ in partitions]
        self._stalls: list[Stall] = []
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stall-watch", daemon=True)

    def __enter__(self) -> StallWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    @property
    def behind(self) -> dict[int, int]:
        """How many acknowledged records of each partition have not arrived. Those in doubt make it a little less."""
        with self._lock:
            return {number: max(0, len(book) - self._arrived[number]) for number, book in enumerate(self._ledger.books)}

    def missing(self, wanted: Sequence[int]) -> dict[int, int]:
        """By partition, how many of so many records have not arrived; partitions that have them all are left out."""
        with self._lock:
            return {
                number: count - self._arrived[number]
                for number, count in enumerate(wanted)
                if count > self._arrived[number]
            }

    def longest(self, began: float, ended: float) -> tuple[float, float]:
        """The longest stall anywhere and that of the worst partition, of those that touch this time."""
        with self._lock:
            now = time.monotonic()
            still = [Stall(wait.partition, wait.since, now) for wait in self._waits if wait.since is not None]
            touching = [one for one in (*self._stalls, *still) if one.began < ended and one.ended > began]
        anywhere = max((one.lasted_s for one in touching if one.partition == ANYWHERE), default=0.0)
        partition = max((one.lasted_s for one in touching if one.partition != ANYWHERE), default=0.0)
        return anywhere, max(anywhere, partition)

    def _watch(self) -> None:
        while not self._ending.wait(SAMPLE_EVERY_S):
            self.sample()

    def sample(self) -> None:
        with self._lock:
            for folder in self._folders():
                for number in range(self._ledger.partitions):
                    self._read(folder, number)
            now = time.monotonic()
            acknowledged = [len(book) for book in self._ledger.books]
            for wait in self._waits:
                there = wait.partition
                counts = (sum(acknowledged), sum(self._arrived))
                if there != ANYWHERE:
                    counts = (acknowledged[there], self._arrived[there])
                stall = wait.look(now, *counts)
                if stall is not None and stall.lasted_s >= STALL_S_MIN:
                    self._stalls.append(stall)

    def _read(self, folder: Path, number: int) -> None:
        log = self._logs.get((folder, number))
        if log is None:
            log = self._logs[folder, number] = _ReplicaLog(folder / f"{self._topic}-{number}")
        for offset_last, records in log.new_batches():
            if offset_last > self._offset_last[number]:
                self._offset_last[number] = offset_last
                self._arrived[number] += records
