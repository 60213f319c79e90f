"""One time budget that several calls consume, instead of a timeout per call."""

from __future__ import annotations

import time

__all__ = ["Deadline"]


class Deadline:
    """``Deadline(30)`` ends 30 s from now on the monotonic clock."""

    __slots__ = ("_end",)

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        return max(0.0, self._end - time.monotonic())

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self._end

    def at_most(self, seconds: float) -> float:
        """The smaller of ``seconds`` and what is left."""
        return min(seconds, self.left_s)
