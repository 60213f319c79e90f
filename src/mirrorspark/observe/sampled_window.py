"""Least, largest, mean and rate of the last minute, in two samples of half a minute, as Kafka's own sensors have it.

Kept for each partition that moves: a few numbers, however often it is fed. The clock is the caller's.
"""

from __future__ import annotations

__all__ = ["SAMPLE_S", "SampledWindow"]

SAMPLE_S = 30.0
SAMPLES = 2
_SPAN_S_MIN = 1.0
"""A rate over less would be noise."""


class _Sample:
    __slots__ = ("begin", "count", "high", "low", "total")

    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.count = 0
        self.total = 0.0
        self.low = float("inf")
        self.high = float("-inf")


class SampledWindow:
    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: list[_Sample] = []

    def add(self, now: float, value: float) -> None:
        if not self._samples or now - self._samples[-1].begin >= SAMPLE_S:
            self._samples = [*self._samples[-(SAMPLES - 1) :], _Sample(now)]
        sample = self._samples[-1]
        sample.count += 1
        sample.total += value
        sample.low = min(sample.low, value)
        sample.high = max(sample.high, value)

    def _live(self, now: float) -> list[_Sample]:
        return [one for one in self._samples if now - one.begin < SAMPLES * SAMPLE_S]

    def low(self, now: float) -> float | None:
        return min((one.low for one in self._live(now)), default=None)

    def high(self, now: float) -> float | None:
        return max((one.high for one in self._live(now)), default=None)

    def mean(self, now: float) -> float | None:
        live = self._live(now)
        return sum(one.total for one in live) / sum(one.count for one in live) if live else None

    def rate(self, now: float) -> float:
        """A second; 0 where nothing was added in the last minute."""
        live = self._live(now)
        return sum(one.total for one in live) / max(now - live[0].begin, _SPAN_S_MIN) if live else 0.0
