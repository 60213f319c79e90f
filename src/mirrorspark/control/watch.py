"""Whether files have changed and come to rest: what ``--watch`` goes by.

Looked at, not listened to: one ``stat`` a second works on every file system, for a file that is written in place, for one
that is replaced, and for Kubernetes' ConfigMaps, where a symbolic link further up is swapped. A file counts as at rest
when nothing about it changed for a whole interval, so that one that is still being written is not taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["POLL_INTERVAL_S", "FileWatch"]

POLL_INTERVAL_S = 1.0

Stamp = tuple[int, int, int, int] | None


class FileWatch:
    """``poll`` once every ``POLL_INTERVAL_S``. Made before the files are read, it misses no edit.

    A folder stands for the files in it.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)
        self._taken = self._last = self._look()

    def poll(self) -> bool:
        """Whether there is something new that is at rest. True once for each edit."""
        now = self._look()
        at_rest, self._last = now == self._last, now
        if not at_rest or now == self._taken:
            return False
        self._taken = now
        return True

    def has_moved(self) -> bool:
        """Whether the files differ from those that the last ``poll`` found or looked at: they were edited since."""
        return self._look() != self._last

    def _look(self) -> tuple[tuple[Path, Stamp], ...]:
        return tuple((file, _stamp(file)) for given in self._files for file in _files_of(given))


def _files_of(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir())
    except OSError:  # no folder, or nothing at all
        return [path]


def _stamp(file: Path) -> Stamp:
    """Links are followed. None for one that is not there: that is a change, too, and reading it will say so."""
    try:
        seen = file.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size
