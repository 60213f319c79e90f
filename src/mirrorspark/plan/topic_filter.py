"""Which topics a flow wants, by MirrorMaker 2's rules: lists, internal topics, heartbeats and cycles; each no has its name.

``control.reconcile`` and ``mirrorspark plan`` ask ``refusal`` for every topic of the source.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from mirrorspark.plan.cycle_guard import hops_since
from mirrorspark.plan.name_list import NameList
from mirrorspark.plan.replication_policy import ReplicationPolicy, is_heartbeats
from mirrorspark.settings import FlowSettings

__all__ = ["Refusal", "TopicFilter", "TopicRefused"]


class Refusal(StrEnum):
    """Why a topic is not mirrored. The values are for machines and stay as they are."""

    INTERNAL = "internal"
    NOT_INCLUDED = "not-included"
    EXCLUDED = "excluded"
    CYCLE = "cycle"
    LOOKS_LIKE_CYCLE = "looks-like-cycle"


@dataclass(frozen=True, slots=True)
class TopicRefused:
    reason: Refusal
    text: str

    def __str__(self) -> str:
        return self.text


class TopicFilter:
    def __init__(
        self,
        topics: str,
        exclude: str,
        policy: ReplicationPolicy,
        *,
        target: str,
        source: str = "the source",
        key: str = "topics",
        heartbeats_replicated: bool = True,
        inflows: Collection[str] = (),
    ) -> None:
        """``inflows`` are the clusters that flows lead from into this one's source. Raises SettingsError for a bad list."""
        self._include = NameList.read(topics, key)
        self._exclude = NameList.read(exclude, f"{key}.exclude")
        self._policy = policy
        self._target = target
        self._source = source
        self._key = key
        self._heartbeats_replicated = heartbeats_replicated
        self._inflows = frozenset(inflows)

    @classmethod
    def of(cls, settings: FlowSettings, policy: ReplicationPolicy, inflows: Collection[str] = ()) -> TopicFilter:
        return cls(
            settings.topics,
            settings.topics_exclude,
            policy,
            target=settings.flow.target,
            source=settings.flow.source,
            heartbeats_replicated=settings.heartbeats.replicated,
            inflows=inflows,
        )

    def refusal(self, topic: str) -> TopicRefused | None:
        """Why the topic is not mirrored; None if it is."""
        if self._policy.is_internal(topic):
            return TopicRefused(Refusal.INTERNAL, "internal topic of Kafka or of a mirror")
        if not (self._heartbeats_replicated and is_heartbeats(self._policy, topic)):
            if not self._include.matches(topic):
                return TopicRefused(Refusal.NOT_INCLUDED, f"not in {self._key}")
            if self._exclude.matches(topic):
                return TopicRefused(Refusal.EXCLUDED, f"in {self._key}.exclude")
        return self._cycle(topic)

    def _cycle(self, topic: str) -> TopicRefused | None:
        hops = hops_since(self._policy, topic, self._target)
        if hops is None:
            return None
        if hops > 1 or self._target in self._inflows:
            return TopicRefused(Refusal.CYCLE, f"came from {self._target}: mirroring it back would be a cycle")
        return TopicRefused(
            Refusal.LOOKS_LIKE_CYCLE,
            f"looks like it came from {self._target}, by its name. If it is a topic of {self._source} itself: rename it, "
            f"or give the flow another replication.policy.separator or the cluster {self._target} another alias",
        )
