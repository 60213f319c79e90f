"""What a cluster lists, as ``plan`` takes it: topics seen, and what their names tell.

Called by the reconciler and the dry run; changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Mapping

from mirrorspark.cluster.cluster_client import ClusterClient, TopicMetadata
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.offsets.internal_topics import plan_topic, progress_topic
from mirrorspark.plan.desired_topics import SeenTopic
from mirrorspark.settings import FlowSettings

__all__ = ["await_visible", "inflows_of", "seen"]

VISIBLE_TIMEOUT_S = 5.0
VISIBLE_POLL_S, VISIBLE_POLL_S_MAX = 0.05, 0.5


def seen(topics: Iterable[TopicMetadata]) -> dict[str, SeenTopic]:
    """A cluster's answer as ``plan`` takes it."""
    return {
        one.name: SeenTopic(
            one.name,
            len(one.partitions),
            one.topic_id.hex() if any(one.topic_id) else "",
            one.internal,
            one.error_code,
        )
        for one in topics
    }


def inflows_of(there: Container[str], settings: FlowSettings) -> frozenset[str]:
    """The target's alias, if it is mirrored into the source: a mirror of that direction left its own topics there."""
    target = settings.flow.target
    traces = (plan_topic(target), progress_topic(target), f"{target}.checkpoints.internal", f"{target}.heartbeats")
    return frozenset({target}) if any(name in there for name in traces) else frozenset()


async def await_visible(target: ClusterClient, counts: Mapping[str, int]) -> dict[str, SeenTopic]:
    """Brokers list a topic a moment after it was made: wait for that moment rather than for the next refresh."""
    found: dict[str, SeenTopic] = {}
    deadline = Deadline(VISIBLE_TIMEOUT_S)
    pause_s = VISIBLE_POLL_S
    while missing := sorted(counts.keys() - found.keys()):
        for topic in seen(await target.refresh(missing)).values():
            if topic.error_code == 0 and topic.partitions >= counts[topic.name]:
                found[topic.name] = topic
        if deadline.passed:
            break
        if len(found) < len(counts):
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, VISIBLE_POLL_S_MAX)
    return found
