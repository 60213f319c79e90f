"""One series of ``/metrics``: its name, what it counts and where the value comes from. Words only, no values."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["Metric", "MetricKind"]


class MetricKind(enum.Enum):
    GAUGE = "gauge"
    COUNTER = "counter"
    """Its name ends in ``_total``. Begins at nought with each start of the process."""


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    """May have ``{client}`` in it: rules of older guides put the id of a client into the name."""
    kind: MetricKind
    labels: tuple[str, ...]
    unit: str
    help: str
    origin: str = ""
    """Where the value comes from, or in what it differs from MirrorMaker 2's."""

    def __post_init__(self) -> None:
        assert self.kind is MetricKind.GAUGE or self.name.endswith("_total"), f"{self.name}: counters end in _total"
