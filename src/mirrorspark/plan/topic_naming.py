"""Names of remote topics: MirrorMaker 2's default policy (alias, separator, topic) and its identity policy."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TopicNaming"]


@dataclass(frozen=True, slots=True)
class TopicNaming:
    source: str
    separator: str = "."
    identity: bool = False

    def remote(self, topic: str) -> str:
        return topic if self.identity else f"{self.source}{self.separator}{topic}"

    def origin(self, topic: str) -> tuple[str, str] | None:
        """(alias, upstream topic) of a remote topic's name; None if it does not look like one."""
        alias, separator, rest = topic.partition(self.separator)
        return (alias, rest) if separator and rest else None

    def is_cycle(self, topic: str, target: str) -> bool:
        """Whether the topic has been on the target already, by its name."""
        if self.identity:
            return False
        while found := self.origin(topic):
            alias, topic = found
            if alias == target:
                return True
        return False
