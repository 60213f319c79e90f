"""Which topics a flow wants: MirrorMaker 2's lists of names and regexes, and its rules for internal topics and cycles."""

from __future__ import annotations

import re

from mirrorspark.errors import SettingsError
from mirrorspark.plan.topic_naming import TopicNaming

__all__ = ["TopicFilter", "is_internal"]


def _compile(text: str, key: str) -> re.Pattern[str] | None:
    """Comma-separated names or regexes, joined bare as MirrorMaker 2 does it: a leading ``(?i)`` counts for all of them.

    None for an empty list.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        return None
    try:
        return re.compile("|".join(parts))
    except re.error as error:
        raise SettingsError(f"{key}={text}: not a regular expression: {error}", key=key) from error


def is_internal(topic: str, separator: str = ".") -> bool:
    return topic.startswith(("__", ".")) or topic.endswith(("-internal", ".internal", f"{separator}internal"))


class TopicFilter:
    def __init__(self, topics: str, exclude: str, naming: TopicNaming, *, target: str, key: str = "topics") -> None:
        self._include = _compile(topics, key)
        self._exclude = _compile(exclude, f"{key}.exclude")
        self._naming = naming
        self._target = target

    def refusal(self, topic: str) -> str | None:
        """Why the topic is not mirrored; None if it is."""
        if is_internal(topic, self._naming.separator):
            return "internal topic"
        if self._include is None or not self._include.fullmatch(topic):
            return "not in topics"
        if self._exclude is not None and self._exclude.fullmatch(topic):
            return "in topics.exclude"
        if self._naming.is_cycle(topic, self._target):
            return f"came from {self._target}: mirroring it back would be a cycle"
        return None
