"""What keeps records from going round: topics that have been on the target already, and flows that form an endless loop.

``topic_filter`` asks ``hops_since``, the reading of a configuration calls ``endless_circle``. Names and settings only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mirrorspark.plan.name_list import NameList
from mirrorspark.plan.replication_policy import HOPS_MAX, ReplicationPolicy
from mirrorspark.settings import FlowSettings

__all__ = ["endless_circle", "hops_since"]


def hops_since(policy: ReplicationPolicy, topic: str, cluster: str) -> int | None:
    """How many mirrors lie between the topic and the cluster, by the name: 1 for ``cluster.t``. None if it was not there."""
    for hops in range(1, HOPS_MAX):
        source, before = policy.source_of(topic), policy.upstream(topic)
        if source is None:
            return None
        if source == cluster:
            return hops
        if before is None or before == topic:
            return None
        topic = before
    return None


# -- flows -------------------------------------------------------------------------------------------------------------


def endless_circle(flows: Sequence[FlowSettings]) -> list[FlowSettings] | None:
    """Flows that lead back to their beginning, with an identity flow among them and nothing that stops a topic.

    The default policy stops a topic whose name says that it came from there. The identity policy leaves no trace in the
    name, so a circle is endless unless two default flows follow each other somewhere in it. The policy same-name keeps
    names too, but its lanes leave out what a mirror wrote: a circle in which all that keep names are such comes to an end.
    One identity flow among them is enough to write records a second time, so it is not let pass.
    """
    by_source: dict[str, list[FlowSettings]] = {}
    for flow in flows:
        by_source.setdefault(flow.flow.source, []).append(flow)
    for first in flows:
        if first.naming.policy == "identity" and (circle := _circle([first], by_source)):
            return circle
    return None


def _circle(path: list[FlowSettings], by_source: Mapping[str, list[FlowSettings]]) -> list[FlowSettings] | None:
    """A way on from the path's end back to its start on which no topic is stopped."""
    for flow in by_source.get(path[-1].flow.target, []):
        stopped = not (path[-1].keeps_names or flow.keeps_names) or _are_apart(path[-1], flow)
        if stopped or flow.flow.target in [one.flow.target for one in path]:
            continue
        if flow.flow.target == path[0].flow.source:
            return [*path, flow]
        if found := _circle([*path, flow], by_source):
            return found
    return None


def _are_apart(one: FlowSettings, other: FlowSettings) -> bool:
    """Whether both list plain topic names of which none is in both."""
    mine, others = (NameList.read(flow.topics, "topics") for flow in (one, other))
    if mine.plain_names is None or others.plain_names is None:
        return False
    return not any(others.matches(name) for name in mine.plain_names) and not any(
        mine.matches(name) for name in others.plain_names
    )
