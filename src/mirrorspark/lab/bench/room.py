"""Where the brokers' data goes, and how many records fit there.

Asked once at the start. Memory (``/dev/shm``) is preferred: the disk's write-back hits every party alike, but it drowns the
ratios between them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from mirrorspark.errors import LabError
from mirrorspark.lab.bench.shapes import Load

__all__ = ["Room", "find_room", "fit"]

SHARED_MEMORY = Path("/dev/shm")
MEMORY_KEPT_BYTES = 7_000_000_000
"""Left to processes when data lies in memory: two brokers, and a MirrorMaker 2 with its heap."""
DISK_KEPT_BYTES = 1_000_000_000
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})


@dataclass(frozen=True, slots=True)
class Room:
    folder: Path
    free_bytes: int
    is_memory: bool

    def __str__(self) -> str:
        kind = "in memory" if self.is_memory else "on disk"
        return f"{self.folder} ({kind}, room for {self.free_bytes / 1e9:.1f} GB)"


def find_room(given: Path | None, loads: Sequence[Load]) -> Room:
    """The given folder; else memory or the temporary folder, whichever holds the run, or holds more of it."""
    if given is not None:
        if not given.is_dir():
            raise LabError(f"--folder {given}: there is no such folder")
        return _look_at(given)
    places = [SHARED_MEMORY] if SHARED_MEMORY.is_dir() else []
    rooms = [_look_at(place) for place in (*places, Path(tempfile.gettempdir()))]
    for room in rooms:
        if room.free_bytes >= _needed_bytes(loads):
            return room
    return max(rooms, key=lambda room: room.free_bytes)


def fit(loads: Sequence[Load], room: Room) -> tuple[list[Load], list[str]]:
    """Fewer records where there is too little room, and a note about each such load. One load lies there at a time."""
    fitting, notes = [], []
    for load in loads:
        if load.room_bytes > room.free_bytes:
            small = load.scaled(max(0.0, room.free_bytes / load.room_bytes))
            notes.append(
                f"{load.shape.label}: {small.records:,} records instead of {load.records:,}, "
                f"which would need {load.room_bytes / 1e9:.1f} GB in {room}"
            )
            load = small
        fitting.append(load)
    return fitting, notes


def _needed_bytes(loads: Sequence[Load]) -> int:
    return max((load.room_bytes for load in loads), default=0)


def _look_at(folder: Path) -> Room:
    free_bytes = shutil.disk_usage(folder).free - DISK_KEPT_BYTES
    is_memory = _file_system(folder) in _IN_MEMORY
    if is_memory:
        free_bytes = min(free_bytes, psutil.virtual_memory().available - MEMORY_KEPT_BYTES)
    return Room(folder, max(0, free_bytes), is_memory)


def _file_system(folder: Path) -> str:
    """By the mount that is nearest above the folder."""
    path = folder.resolve()
    above = [part for part in psutil.disk_partitions(all=True) if path.is_relative_to(part.mountpoint)]
    return str(max(above, key=lambda part: len(part.mountpoint)).fstype) if above else ""
