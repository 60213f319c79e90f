"""``start.at.topic.NAME``: where single topics begin. ``load`` asks once for each flow. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mirrorspark.config.catalogue import PLAIN
from mirrorspark.config.findings import Findings
from mirrorspark.config.flow_settings import BuiltFlow
from mirrorspark.config.levels import Effective
from mirrorspark.config.start_words import topic_start_word
from mirrorspark.errors import SettingsError
from mirrorspark.plan.replication_policy import policy_for
from mirrorspark.plan.topic_filter import Refusal, TopicFilter

__all__ = ["check_start", "with_start_topics"]

_FAMILY = "start.at.topic.*"
_PREFIX = _FAMILY.removesuffix("*")


def with_start_topics(built: BuiltFlow, keys: Iterable[str]) -> BuiltFlow:
    """``keys``: all of the document. What a value says wrong is told by ``key_check``; here it is left out."""
    names = sorted({name for key in keys if (name := _topic_of(built, key))})
    asked = [built.levels.plain(replace(PLAIN[_FAMILY], name=f"{_PREFIX}{name}")) for name in names]
    found = [(one, word) for one in asked if one.entry is not None and (word := _word(one.value or ""))]
    topics = tuple((one.name.removeprefix(_PREFIX), word) for one, word in found)
    settings = replace(built.settings, start_at_topics=topics)
    return replace(built, settings=settings, effective=(*built.effective, *(one for one, _ in found)))


def _topic_of(built: BuiltFlow, key: str) -> str:
    flow = built.settings.flow
    for place in (_PREFIX, f"{flow}.{_PREFIX}", f"{flow}.MirrorSourceConnector.{_PREFIX}"):
        if key.startswith(place):
            return key.removeprefix(place)
    return ""


def _word(value: str) -> str:
    try:
        return topic_start_word(value)
    except ValueError:
        return ""


def check_start(built: BuiltFlow, findings: Findings) -> None:
    """Words that nobody would go by, and nobody would notice."""
    start, reset = built.levels.plain(PLAIN["start.at"]), built.levels.consumer("auto.offset.reset")
    if (start.value or "").strip() and start.entry is not None and reset.entry is not None:
        same = (start.value or "").strip().lower() == (reset.value or "").strip().lower()
        if not same:
            findings.warn(reset.entry.key, f"has no effect: {start.entry.key} says where partitions begin")
    for found in built.effective:
        if found.name.startswith(_PREFIX) and (why := _why_not_wanted(built, found)):
            assert found.entry is not None
            findings.warn(found.entry.key, f"has no effect: {built.settings.flow} does not carry the topic, {why}")


def _why_not_wanted(built: BuiltFlow, found: Effective) -> str:
    """Only of keys that stand at the flow's own level: at the top they may be meant for another flow."""
    if found.entry is None or not found.entry.key.startswith(f"{built.settings.flow}."):
        return ""
    try:
        wanted = TopicFilter.of(built.settings, policy_for(built.settings))
    except SettingsError:
        return ""  # told already
    refused = wanted.refusal(found.name.removeprefix(_PREFIX))
    return str(refused) if refused is not None and refused.reason is not Refusal.LOOKS_LIKE_CYCLE else ""
