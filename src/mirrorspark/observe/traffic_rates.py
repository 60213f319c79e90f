"""Counts that only grow, turned into rates over the last minute of looks. Fed at each scrape; the clock is the caller's."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

__all__ = ["TrafficRates"]

WINDOW_S = 60.0
LOOK_INTERVAL_S_MIN = 1.0
"""Looks that follow each other faster are not kept."""


class TrafficRates:
    def __init__(self, began_at: float) -> None:
        """Counts began at nought then."""
        self._looks: deque[tuple[float, dict[str, float]]] = deque([(began_at, {})])

    def look(self, now: float, counts: Mapping[str, float]) -> dict[str, float]:
        """A second, since the oldest look of the window; counts that have begun anew give nought."""
        while len(self._looks) > 1 and self._looks[1][0] <= now - WINDOW_S:
            self._looks.popleft()
        then, before = self._looks[0]
        span_s = max(now - then, LOOK_INTERVAL_S_MIN)
        if now - self._looks[-1][0] >= LOOK_INTERVAL_S_MIN:
            self._looks.append((now, dict(counts)))
        return {name: max(0.0, value - before.get(name, 0.0)) / span_s for name, value in counts.items()}
