"""The replication policies that come with mirrorspark: how topics are called on the target, and what names tell.

``replication_policy.policy_for`` builds them. ``DefaultNaming`` and ``IdentityNaming`` answer as MirrorMaker 2's policies
do (4.3.1), but for aliases that contain the separator: those are recognised here. Own policies may derive from them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HEARTBEATS", "DefaultNaming", "IdentityNaming", "NamingFacts", "SameNaming"]

HEARTBEATS = "heartbeats"
"""The topic that every mirror writes its heartbeats to, whatever the separator."""


@dataclass(frozen=True, slots=True)
class NamingFacts:
    """What a policy may know. ``aliases`` are the clusters of the deployment as far as they are known."""

    source: str
    target: str
    separator: str = "."
    internal_separator_enabled: bool = True
    aliases: frozenset[str] = frozenset()

    @property
    def internal_separator(self) -> str:
        return self.separator if self.internal_separator_enabled else "."


class DefaultNaming:
    """DefaultReplicationPolicy: alias, separator, topic."""

    def __init__(self, facts: NamingFacts) -> None:
        self.facts = facts
        known = {facts.source, facts.target, *facts.aliases}
        # The longest first: of us and us.west, the topic us.west.orders came from us.west.
        self._prefixes = [(alias, alias + facts.separator) for alias in sorted(known, key=len, reverse=True)]

    @property
    def needs_origin_check(self) -> bool:
        return False

    def remote(self, topic: str) -> str:
        return f"{self.facts.source}{self.facts.separator}{topic}"

    def source_of(self, topic: str) -> str | None:
        found = self._split(topic)
        return found[0] if found else None

    def upstream(self, topic: str) -> str | None:
        found = self._split(topic)
        return found[1] if found else None

    def is_internal(self, topic: str) -> bool:
        """Kafka's own, MirrorMaker 2's own and ours. Others that end with ``.internal`` are left to topics.exclude."""
        suffix = f"{self.facts.internal_separator}internal"
        is_kafkas = topic.startswith(("__", "."))
        is_a_mirrors = topic.startswith("mm2") and topic.endswith(suffix)
        is_ours = topic.startswith("mirrorspark-") and topic.endswith(".internal")
        return is_kafkas or is_a_mirrors or is_ours or self.is_checkpoints(topic)

    def is_checkpoints(self, topic: str) -> bool:
        return topic.endswith(self.checkpoints_topic(""))

    def checkpoints_topic(self, alias: str) -> str:
        separator = self.facts.internal_separator
        return f"{alias}{separator}checkpoints{separator}internal"

    def offset_syncs_topic(self, alias: str) -> str:
        separator = self.facts.internal_separator
        return f"mm2-offset-syncs{separator}{alias}{separator}internal"

    def _split(self, topic: str) -> tuple[str, str] | None:
        """(alias, upstream topic). A known alias goes before MirrorMaker 2's rule, the part before the first separator."""
        for alias, prefix in self._prefixes:
            if topic.startswith(prefix) and self._has_more(topic[len(prefix) :]):
                return alias, topic[len(prefix) :]
        if not self.facts.separator:
            return None
        alias, separator, rest = topic.partition(self.facts.separator)
        return (alias, rest) if separator and self._has_more(rest) else None

    def _has_more(self, rest: str) -> bool:
        """Whether there is anything but separators, which Java's split drops at the end."""
        separator = self.facts.separator
        return bool(rest.replace(separator, "") if separator else rest)


class IdentityNaming(DefaultNaming):
    """IdentityReplicationPolicy: names stay, so they tell nothing, and nothing in them stops a loop.

    As in MirrorMaker 2, every topic counts as one from the source, and names that end with ``heartbeats`` (``my-heartbeats``
    too) follow the default policy.
    """

    def remote(self, topic: str) -> str:
        return super().remote(topic) if self._is_renamed(topic) else topic

    def source_of(self, topic: str) -> str | None:
        return super().source_of(topic) if self._is_renamed(topic) else self.facts.source

    def upstream(self, topic: str) -> str | None:
        return super().upstream(topic) if self._is_renamed(topic) else topic

    def _is_renamed(self, topic: str) -> bool:
        return topic.endswith(HEARTBEATS)


class SameNaming(DefaultNaming):
    """``same-name``: names stay and loops are cut, since lanes leave out what a mirror wrote (by its producer id).

    Only the heartbeats topics themselves get a prefix: without it nobody could tell from where a heartbeat came.
    """

    @property
    def needs_origin_check(self) -> bool:
        return True

    def remote(self, topic: str) -> str:
        return super().remote(topic) if self._is_heartbeats(topic) else topic

    def source_of(self, topic: str) -> str | None:
        return super().source_of(topic) if self._is_heartbeats(topic) else None

    def upstream(self, topic: str) -> str | None:
        return super().upstream(topic) if self._is_heartbeats(topic) else None

    def _is_heartbeats(self, topic: str) -> bool:
        found: tuple[str, str] | None = ("", topic)
        while found and topic != HEARTBEATS:
            found = self._split(topic)
            topic = found[1] if found else topic
        return topic == HEARTBEATS
