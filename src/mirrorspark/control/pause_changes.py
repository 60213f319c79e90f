"""What a flow's pauses become when somebody pauses or resumes topics, or all of it. Pure, over a ``FlowOnTarget``.

For ``pause`` and ``resume`` on the command line, and for REST.
"""

from __future__ import annotations

from collections.abc import Collection

from mirrorspark.control.flow_on_target import FlowOnTarget
from mirrorspark.observe.flow_status import EVERYTHING

__all__ = ["paused_with", "paused_without", "remote_name"]


def remote_name(there: FlowOnTarget, topic: str) -> str | None:
    """The remote topic that is meant by a name on either side; None for one that the flow neither carries nor holds."""
    by_source = {one.source.topic: one.remote_topic for one in there.assignments}
    return topic if topic in by_source.values() or topic in there.paused else by_source.get(topic)


def paused_with(there: FlowOnTarget, topics: Collection[str]) -> frozenset[str]:
    """``topics``: remote ones; none means the whole flow."""
    return there.paused | frozenset(topics) if topics else frozenset({EVERYTHING})


def paused_without(there: FlowOnTarget, topics: Collection[str]) -> frozenset[str]:
    """Of a flow that is paused as a whole, all the others stay paused."""
    if not topics:
        return frozenset()
    held = {one.remote_topic for one in there.assignments} if EVERYTHING in there.paused else there.paused
    return frozenset(held - frozenset(topics))
