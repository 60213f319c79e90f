"""Names and shapes of the topics that a flow keeps on its target."""

from __future__ import annotations

from mirrorspark.settings import FlowSettings

__all__ = [
    "BANDWIDTH_KEY",
    "PLAN_KEY",
    "PROGRESS_PARTITIONS",
    "WRITERS_TOPIC",
    "ledger_topic",
    "plan_topic",
    "progress_topic",
    "progress_topic_of",
    "status_topic",
]

PLAN_KEY = b"plan"
"""Of the plan on the plan topic: nothing but a mirror's driver may write it."""
BANDWIDTH_KEY = b"bandwidth"
"""On the plan topic: how a flow's limit is divided over its lanes; small, and written more often than the plan."""
PROGRESS_PARTITIONS = 25
"""What Connect creates; the partitioner depends on it, so an existing topic's own count goes before it."""
WRITERS_TOPIC = "mirrorspark-writers.internal"
"""Which producer ids belong to mirrors: one for a whole cluster, entered by every flow that writes there."""


def progress_topic(source: str) -> str:
    """MirrorMaker 2's own: Connect's offsets topic of the worker for this source."""
    return f"mm2-offsets.{source}.internal"


def progress_topic_of(settings: FlowSettings) -> str:
    """Where this flow's progress is: a worker on Connect may have a topic of another name."""
    return settings.connect.offsets_topic or progress_topic(settings.flow.source)


def plan_topic(source: str) -> str:
    return f"mirrorspark-plan.{source}.internal"


def status_topic(source: str) -> str:
    return f"mirrorspark-status.{source}.internal"


def ledger_topic(source: str) -> str:
    return f"mirrorspark-ledger.{source}.internal"
