"""What one partition carried since this process began, and how fast: fed by ``flow_status`` from the lanes' reports.

A lane's own counters begin at nought with each attempt; these go on.
"""

from __future__ import annotations

from mirrorspark.observe.sampled_window import SampledWindow

__all__ = ["CarriedSeries"]


class CarriedSeries:
    __slots__ = ("byte_window", "bytes", "latency_ms", "latency_window", "record_window", "records", "reencoded")

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.reencoded = 0
        """Batches that could not go as they are."""
        self.latency_ms: int | None = None
        """Of the last batch; None until one came."""
        self.record_window = SampledWindow()
        self.byte_window = SampledWindow()
        self.latency_window = SampledWindow()

    def add(self, now: float, records: int, size: int, reencoded: int) -> None:
        self.records += records
        self.bytes += size
        self.reencoded += reencoded
        self.record_window.add(now, records)
        self.byte_window.add(now, size)

    def see_latency(self, now: float, latency_ms: int) -> None:
        self.latency_ms = latency_ms
        self.latency_window.add(now, latency_ms)
