"""How often the lanes of a flow were given out, and how long it took until all of them carried: Connect's rebalances.

Fed by ``flow_status``: a handout begins with a lead and is complete when each of its lanes has reported. The clock is the
caller's.
"""

from __future__ import annotations

__all__ = ["LaneHandouts"]


class LaneHandouts:
    __slots__ = ("_began_at", "completed", "completed_at", "longest_s", "total_s")

    def __init__(self) -> None:
        self.completed = 0
        self.completed_at: float | None = None
        self.total_s = 0.0
        self.longest_s = 0.0
        self._began_at: float | None = None

    def begin(self, now: float) -> None:
        self._began_at = now

    def complete(self, now: float) -> None:
        """All lanes have reported; told as often as one likes, counted once for each beginning."""
        if self._began_at is None:
            return
        took_s, self._began_at = max(0.0, now - self._began_at), None
        self.completed += 1
        self.completed_at = now
        self.total_s += took_s
        self.longest_s = max(self.longest_s, took_s)
