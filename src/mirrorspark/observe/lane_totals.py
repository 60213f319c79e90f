"""One lane over all of its attempts: counters that go on, and the pause between two epochs.

Fed by ``flow_status``; a lane's own counters begin at nought with each attempt, known by the time it began.
"""

from __future__ import annotations

from collections.abc import Mapping

from mirrorspark.observe.sampled_window import SampledWindow

__all__ = ["LaneTotals", "traffic_counts"]

CARRYING = "carrying"
TRAFFIC_COLUMNS = ("requests", "answers", "bytes_out", "bytes_in", "answer_ms")
"""Of a broker's row in a report (``pipeline.traffic_report``)."""


def traffic_counts(traffic: Mapping[str, Mapping[str, list[float]]]) -> dict[str, float]:
    """A report's rows by side and broker, as counts with a name each."""
    return {
        f"{side}/{node}/{column}": value
        for side, rows in traffic.items()
        for node, row in rows.items()
        for column, value in zip(TRAFFIC_COLUMNS, row, strict=False)
    }


class LaneTotals:
    __slots__ = (
        *("_attempt", "_before", "_carried", "_ended_ms"),
        *("attempt_began_ms", "attempts", "attempts_carried", "bytes", "counts", "held_window", "pause_s", "records"),
    )

    def __init__(self) -> None:
        self.attempts = 0
        self.attempts_carried = 0
        self.records = 0
        self.bytes = 0
        self.pause_s: float | None = None
        """From the last report of one attempt to its successor's first as carrying, by the lanes' clocks."""
        self.counts: dict[str, float] = {}
        self.attempt_began_ms = 0
        """By the lane's clock."""
        self.held_window = SampledWindow()
        """Bytes fetched and not yet acknowledged, by its reports."""
        self._attempt: int | None = None
        self._before: dict[str, float] = {}
        self._carried = False
        self._ended_ms: int | None = None

    def take(self, since_ms: int, at_ms: int, state: str, counts: Mapping[str, float]) -> None:
        """A report. ``counts`` are sums since the attempt began; names with ``_max`` are the largest so far."""
        if since_ms != self._attempt:
            self._attempt, self._before, self._carried = since_ms, {}, False
            self.attempt_began_ms = since_ms
            self.attempts += 1
        if state == CARRYING and not self._carried:
            self._carried = True
            self.attempts_carried += 1
            if self._ended_ms is not None:
                self.pause_s = max(0.0, (at_ms - self._ended_ms) / 1000)
                self._ended_ms = None
        if state != CARRYING and self._carried:
            self._ended_ms = at_ms
        self._add(counts)

    def carry(self, records: int, size: int) -> None:
        self.records += records
        self.bytes += size

    def _add(self, counts: Mapping[str, float]) -> None:
        for name, value in counts.items():
            if name.endswith("_max"):
                self.counts[name] = max(self.counts.get(name, 0.0), value)
            else:
                more = max(0.0, value - self._before.get(name, 0.0))
                self.counts[name] = self.counts.get(name, 0.0) + more
        self._before = dict(counts)

    def __getitem__(self, name: str) -> float:
        return self.counts.get(name, 0.0)

    @property
    def fetch_ms_avg(self) -> float:
        return self["fetch_ms"] / self["fetches"] if self["fetches"] else 0.0

    def nodes(self, side: str) -> dict[str, dict[str, float]]:
        """What went to and came from the brokers of the source or of the target; by broker, then by column."""
        found: dict[str, dict[str, float]] = {}
        for name, value in self.counts.items():
            if name.startswith(f"{side}/"):
                _, node, column = name.split("/")
                found.setdefault(node, dict.fromkeys(TRAFFIC_COLUMNS, 0.0))[column] = value
        return found
