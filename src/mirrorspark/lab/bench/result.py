"""All that a comparison has found so far, filled as it goes, so that an interrupted one can be reported too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirrorspark.lab.bench.latency import Latency
from mirrorspark.lab.bench.throughput import Carry

__all__ = ["Comparison", "Preload"]


@dataclass(frozen=True, slots=True)
class Preload:
    """A source topic as it lies in the broker's log."""

    shape: str
    records: int
    batches: int
    stored_bytes: int
    seconds: float

    @property
    def batch_bytes_mean(self) -> float:
        return self.stored_bytes / max(self.batches, 1)


@dataclass
class Comparison:
    """``settings`` and ``machine`` say what the figures depend on; ``notes`` what a reader must know."""

    settings: dict[str, object] = field(default_factory=dict)
    machine: Mapping[str, object] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    preloads: list[Preload] = field(default_factory=list)
    carries: list[Carry] = field(default_factory=list)
    starts: list[Carry] = field(default_factory=list)
    """Of a topic with few records: only their ``startup_s`` counts."""
    latencies: list[Latency] = field(default_factory=list)
    is_complete: bool = False
