"""A receipt: proof that a stretch of one partition was appended."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Receipt"]


class Receipt(NamedTuple):
    """Proof of append: upstream first and last, downstream first, how much, and how late."""

    lane: int
    topic: str
    partition: int
    upstream_first: int
    upstream_last: int
    downstream_first: int
    records: int
    batches: int
    bytes: int
    latency_ms: int
    at_ms: int
