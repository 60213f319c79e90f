"""Rules between flows: circles in which a record would go round for ever, and two flows into one remote topic."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from mirrorspark.config.catalogue import PLAIN
from mirrorspark.config.findings import Findings
from mirrorspark.config.flow_settings import BuiltFlow
from mirrorspark.plan.cycle_guard import endless_circle
from mirrorspark.plan.java_regex import RegexRefused, compile_java
from mirrorspark.settings import FlowSettings

__all__ = ["check_loops", "check_shared_topics"]

_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
_POLICY = "replication.policy.class"
NAMES_SHOWN_MAX = 5


# -- loops -------------------------------------------------------------------------------------------------------------


def check_loops(flows: Sequence[BuiltFlow], findings: Findings) -> None:
    circle = endless_circle([flow.settings for flow in flows])
    if circle is None:
        return
    key = next(_policy_key(flow) for flow in flows if flow.settings is circle[0])
    findings.error(
        key,
        f"with IdentityReplicationPolicy the flows {', '.join(str(flow.flow) for flow in circle)} would carry each record "
        "round in a loop for ever. Use mirrorspark.SameNameReplicationPolicy for all of them, which keeps names and leaves "
        f"out what a mirror wrote; or enable one direction only ({circle[-1].flow}.enabled = false), use "
        "DefaultReplicationPolicy, or give both directions plain topic names that differ",
    )


def _policy_key(flow: BuiltFlow) -> str:
    entry = flow.levels.plain(PLAIN[_POLICY]).entry
    return entry.key if entry is not None else _POLICY


def _are_apart(one: FlowSettings, other: FlowSettings) -> bool:
    """Whether both list plain topic names of which none is in both."""
    names, others = _parts(one.topics), _parts(other.topics)
    if not _are_plain(names) or not _are_plain(others):
        return False
    return not any(re.fullmatch(a, b) or re.fullmatch(b, a) for a in names for b in others)


def _parts(topics: str) -> list[str]:
    return [part.strip() for part in topics.split(",") if part.strip()]


def _are_plain(names: Sequence[str]) -> bool:
    return all(_PLAIN_NAME.fullmatch(name) for name in names)


# -- two flows into one topic --------------------------------------------------------------------------------------------


def check_shared_topics(flows: Sequence[BuiltFlow], findings: Findings) -> None:
    """Records of two sources in one topic cannot be told apart, and neither flow could prove what it wrote there."""
    for one, other in itertools.combinations(flows, 2):
        if one.settings.flow.target != other.settings.flow.target:
            continue
        if not (one.settings.keeps_names and other.settings.keeps_names):
            shared = _remote_names(one.settings) & _remote_names(other.settings)
        else:
            shared = _names_in_both(one.settings, other.settings)
            if not shared and _may_overlap(one.settings, other.settings):
                findings.warn(
                    _topics_key(other),
                    f"{one.settings.flow} and {other.settings.flow} keep topic names: a topic that both clusters have and "
                    "both lists match would be written by both. Give lists that cannot match the same name",
                )
        if shared:
            some = ", ".join(sorted(shared)[:NAMES_SHOWN_MAX])
            more = f" and {len(shared) - NAMES_SHOWN_MAX} more" if len(shared) > NAMES_SHOWN_MAX else ""
            findings.error(
                _topics_key(other),
                f"{one.settings.flow} and {other.settings.flow} would both write to {some}{more} on "
                f"{one.settings.flow.target}. Take the topic out of one of them, or use DefaultReplicationPolicy",
            )


def _topics_key(flow: BuiltFlow) -> str:
    entry = flow.levels.plain(PLAIN["topics"]).entry
    return entry.key if entry is not None else f"{flow.settings.flow}.topics"


def _plain_names(settings: FlowSettings) -> set[str]:
    """The topics of the list that are plain names and not excluded."""
    try:
        excluded = compile_java("|".join(_parts(settings.topics_exclude)) or "(?!)")
    except RegexRefused:
        return set()  # told already
    return {name for name in _parts(settings.topics) if _PLAIN_NAME.fullmatch(name) and not excluded.matches(name)}


def _remote_names(settings: FlowSettings) -> set[str]:
    names = _plain_names(settings)
    if settings.keeps_names:
        return names
    if settings.naming.policy != "default":
        return set()  # an own policy's names are its own affair
    return {f"{settings.flow.source}{settings.naming.separator}{name}" for name in names}


def _names_in_both(one: FlowSettings, other: FlowSettings) -> set[str]:
    return _plain_names(one) & _plain_names(other)


def _may_overlap(one: FlowSettings, other: FlowSettings) -> bool:
    """Whether a pattern on one side may match what the other side has."""
    if _are_apart(one, other):
        return False
    names, others = _parts(one.topics), _parts(other.topics)
    if not names or not others:
        return False
    if _are_plain(names) == _are_plain(others):
        return not _are_plain(names)
    plain, pattern = (one, other) if _are_plain(names) else (other, one)
    try:
        matcher = compile_java("|".join(_parts(pattern.topics)))
    except RegexRefused:
        return False
    return any(matcher.matches(name) for name in _plain_names(plain))
