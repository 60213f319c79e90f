"""Names and shapes of the topics that a flow keeps on its target."""

from __future__ import annotations

__all__ = ["PROGRESS_PARTITIONS", "ledger_topic", "plan_topic", "progress_topic", "status_topic"]

PROGRESS_PARTITIONS = 25
"""What Connect creates; the partitioner depends on it, so an existing topic's own count goes before it."""


def progress_topic(source: str) -> str:
    """MirrorMaker 2's own: Connect's offsets topic of the worker for this source."""
    return f"mm2-offsets.{source}.internal"


def plan_topic(source: str) -> str:
    return f"mirrorspark-plan.{source}.internal"


def status_topic(source: str) -> str:
    return f"mirrorspark-status.{source}.internal"


def ledger_topic(source: str) -> str:
    return f"mirrorspark-ledger.{source}.internal"
