"""Where the source's logs end, as the driver saw it, and since when what is not carried yet has been there.

Written by ``control.lag_watch``, read by the collector. The time of a partition's lag is taken from the looks themselves:
the first look that found more than is carried now says since when, which needs no record to be read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from mirrorspark.names import TopicPartition
from mirrorspark.observe.sampled_window import SampledWindow

__all__ = ["SourceEnds"]

LOOKS_KEPT_MAX = 64
"""Of a partition that is behind; beyond that every second one is dropped, so that days fit."""


class SourceEnds:
    def __init__(self) -> None:
        self.looked_at: float | None = None
        """When all ends were last known."""
        self.asked_at = float("-inf")
        """When somebody last wanted to know: nobody looks where nobody asks."""
        self._looks: dict[TopicPartition, deque[tuple[float, int]]] = {}
        self._lags: dict[TopicPartition, SampledWindow] = {}
        self.starts: Mapping[TopicPartition, int] = {}
        """Where the source's logs begin, by remote partition, as of the last look at that."""

    def take(self, now: float, ends: Mapping[TopicPartition, int], carried_to: Mapping[TopicPartition, int]) -> None:
        """One look at all of them, by remote partition; those that are no longer there are forgotten."""
        self.looked_at = now
        for gone in self._looks.keys() - ends.keys():
            del self._looks[gone]
            self._lags.pop(gone, None)
        for at, end in ends.items():
            looks = self._looks.setdefault(at, deque())
            if looks and end < looks[-1][1]:
                looks.clear()  # the log was cut, or is another one
            if not looks or end > looks[-1][1]:
                looks.append((now, end))
            self._forget_carried(looks, carried_to.get(at, 0))
            self._lags.setdefault(at, SampledWindow()).add(now, max(0, end - carried_to.get(at, 0)))

    def lags_of(self, at: TopicPartition, now: float) -> tuple[float, float] | None:
        """Mean and largest lag of the last minute's looks; None if nobody looked."""
        window = self._lags.get(at)
        if window is None or (mean := window.mean(now)) is None or (high := window.high(now)) is None:
            return None
        return mean, high

    @staticmethod
    def _forget_carried(looks: deque[tuple[float, int]], carried_to: int) -> None:
        while len(looks) > 1 and looks[0][1] <= carried_to:
            looks.popleft()
        if len(looks) > LOOKS_KEPT_MAX:
            kept = [looks[0], *list(looks)[1:-1:2], looks[-1]]
            looks.clear()
            looks.extend(kept)

    def end_of(self, at: TopicPartition) -> int | None:
        looks = self._looks.get(at)
        return looks[-1][1] if looks else None

    def waiting_s(self, at: TopicPartition, carried_to: int, now: float) -> float | None:
        """Since when something is there that is not carried; 0 if nothing is, None if nobody looked."""
        looks = self._looks.get(at)
        if not looks:
            return None
        return next((now - seen_at for seen_at, end in looks if end > carried_to), 0.0)
