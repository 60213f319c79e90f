"""A flow's state as its lanes report it: folded from the status topic by the driver, shown by view and exit report."""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from mirrorspark.events import Event
from mirrorspark.names import TopicPartition

__all__ = ["FlowStatus", "PartitionStatus"]

RATE_WINDOW_S = 5.0
LANE_SILENT_S = 15.0
"""A lane that has not reported for so long is shown as silent, never as running."""


@dataclass(slots=True)
class PartitionStatus:
    upstream_next: int = 0
    downstream_end: int = 0
    high_watermark: int = 0
    records: int = 0
    bytes: int = 0
    latency_ms: int = 0
    state: str = ""
    lane: int = -1

    @property
    def lag_records(self) -> int:
        return max(0, self.high_watermark - self.upstream_next)


@dataclass
class LaneStatus:
    state: str
    since_ms: int
    at_ms: int
    partitions: int
    held_bytes: int
    waiting: dict[str, str]


@dataclass
class FlowStatus:
    """``records`` and ``bytes_carried`` count what this driver saw carried since it started."""

    flow: str
    state: str = "starting"
    records: int = 0
    bytes_carried: int = 0
    lanes: dict[int, LaneStatus] = field(default_factory=dict)
    partitions: dict[TopicPartition, PartitionStatus] = field(default_factory=dict)
    events: dict[str, Event] = field(default_factory=dict)
    failure: str = ""
    last_append_at: float = 0.0
    _rates: deque[tuple[float, int, int]] = field(default_factory=lambda: deque(maxlen=256))
    _bytes_before: dict[TopicPartition, tuple[float, int]] = field(default_factory=dict)

    def fold(self, key: bytes, value: bytes | None) -> Event | None:
        """Take in one status record. Returns the event, if it was a new one."""
        name = key.decode()
        if name.startswith("event/"):
            if value is None:
                self.events.pop(name, None)
                return None
            event = Event.from_json(value)
            is_new = name not in self.events
            self.events[name] = event
            return event if is_new else None
        if name.startswith("lane/") and value is not None:
            self._fold_lane(json.loads(value))
        return None

    def _fold_lane(self, report: dict[str, Any]) -> None:
        index = report["lane"]
        before = self.lanes.get(index)
        new_attempt = before is None or before.since_ms != report["since_ms"]
        self.lanes[index] = LaneStatus(
            report["state"],
            report["since_ms"],
            report["at_ms"],
            report["partitions"],
            report["held_bytes"],
            report["waiting"],
        )
        for topic, partition, upstream, downstream, high, records, size, latency, state in report["moved"]:
            at = TopicPartition(topic, partition)
            known = self.partitions.setdefault(at, PartitionStatus())
            # Counters begin at nought in each attempt of a lane.
            restarted = new_attempt or known.lane != index or records < known.records
            moved = records - (0 if restarted else known.records)
            if moved > 0:
                self.last_append_at = time.monotonic()
            self.records += moved
            self.bytes_carried += size - (0 if restarted else known.bytes)
            self.partitions[at] = PartitionStatus(upstream, downstream, high, records, size, latency, state, index)
        self._rates.append((time.monotonic(), self.records, self.bytes_carried))

    def forget_reports(self) -> None:
        """What was told before this driver led the flow is no news; events stay."""
        self.lanes.clear()
        self.partitions.clear()
        self.records = self.bytes_carried = 0
        self._rates.clear()

    @property
    def rates(self) -> tuple[float, float]:
        """Records and bytes a second over the last few seconds."""
        now = time.monotonic()
        while len(self._rates) > 2 and self._rates[0][0] < now - RATE_WINDOW_S:
            self._rates.popleft()
        if len(self._rates) < 2:
            return 0.0, 0.0
        (start, records, size), (end, records_now, size_now) = self._rates[0], self._rates[-1]
        span = max(end - start, 0.001)
        return (records_now - records) / span, (size_now - size) / span

    def partition_rates(self) -> dict[TopicPartition, float]:
        """Bytes a second for each partition since the last call; what the spread over lanes goes by."""
        now = time.monotonic()
        found = {}
        for at, status in self.partitions.items():
            then, size = self._bytes_before.get(at, (now, status.bytes))
            if now > then and status.bytes >= size:
                found[at] = (status.bytes - size) / (now - then)
            self._bytes_before[at] = (now, status.bytes)
        return found

    @property
    def lag_records(self) -> int:
        return sum(status.lag_records for status in self.partitions.values())

    @property
    def latency_ms(self) -> int:
        active = [status.latency_ms for status in self.partitions.values() if status.records]
        return max(active, default=0)

    @property
    def waiting(self) -> dict[str, str]:
        return {place: why for lane in self.lanes.values() for place, why in lane.waiting.items()}

    @property
    def verdict(self) -> str:
        """The state in one word; never "running" where something is not."""
        if self.state != "running":
            return self.state
        now_ms = time.time() * 1000
        if not self.lanes:
            return "starting"
        if any(now_ms - lane.at_ms > LANE_SILENT_S * 1000 for lane in self.lanes.values()):
            return "silent"
        return "degraded" if self.waiting or self.events else "running"
