"""A lane's share of its flow's bandwidth limit, as it reports it, and what that means for the flow. For ``flow_status``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["HELD_RATIO_MIN", "LaneLimit", "words_of_limit"]

HELD_RATIO_MIN = 0.2
"""A lane that waited for its limit for less of the time than this is not said to be held by it."""
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class LaneLimit:
    """``held_ratio``: the part of the time between its last two reports in which the lane waited for its share."""

    bytes_per_s: float
    held_ratio: float

    @classmethod
    def of_report(cls, told: Sequence[float] | None) -> LaneLimit | None:
        """None where there is no limit, or where the lane is of a version that knows none."""
        return cls(float(told[0]), float(told[1])) if told else None

    @property
    def is_held(self) -> bool:
        return self.held_ratio >= HELD_RATIO_MIN


def words_of_limit(limits: Iterable[LaneLimit], lag_records: int) -> list[str]:
    """Why a flow is behind, if it is its limit that keeps it there: one line, or none."""
    known = list(limits)
    held = [one for one in known if one.is_held]
    if not held or lag_records <= 0:
        return []
    rate = sum(one.bytes_per_s for one in known) / MEGABYTE
    busiest = max(one.held_ratio for one in held)
    return [
        f"held by bandwidth limit: {rate:.3g} MB/s for all lanes, {len(held)} of {len(known)} waited for it "
        f"(up to {busiest:.0%} of the time); {lag_records} records are behind"
    ]
