"""Whether a flow needs its lanes: it does while it is behind, and for a while after. One for each flow, in ``flow_set``.

Only asked where Spark has too few slots for all (``lane_shares``): those that a flow without lag would have go to flows that
are behind. Slow to change its mind, since another number of lanes ends an epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["LaneDemand"]

BEHIND_S = 10.0
"""A flow is behind if what is missing on the target would take longer at the rate of now."""
BEHIND_FOR_S = 15.0
CALM_FOR_S = 300.0


class LaneDemand:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        """Since when it is otherwise than ``is_behind`` says."""
        self.is_behind = False

    def look(self, lag_records: int, records_per_s: float) -> bool:
        """Every few seconds, with what the flow's status says; whether it counts as behind."""
        now = self._clock()
        if (lag_records > records_per_s * BEHIND_S) == self.is_behind:
            self._since = None
            return self.is_behind
        self._since = now if self._since is None else self._since
        if now - self._since >= (CALM_FOR_S if self.is_behind else BEHIND_FOR_S):
            self.is_behind, self._since = not self.is_behind, None
        return self.is_behind
