"""Keeping the settings of remote topics as their source topics have them, by difference.

Each pass describes both sides once and sends only what differs, many topics in one request; nothing is sent when nothing
changed. A topic whose change the target refuses is named and not asked again until the change is another one or some time
has passed. Run by ``control.topic_sync``; the dry run asks ``differences`` alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.missing_acl import is_denial
from mirrorspark.cluster.topic_configs import alter_configs, describe_configs
from mirrorspark.errors import BrokerError
from mirrorspark.events import Event, EventKind
from mirrorspark.plan.config_rules import ConfigRules, SettingChange

__all__ = ["ConfigSync", "Drift", "again_after_s", "differences"]

REFUSED_AGAIN_S = 600.0
"""A change that was refused is tried again after so long, in case the target's rules are others now."""
DENIED_AGAIN_S = 30.0
"""The same where an ACL was missing: whoever grants it waits for that."""
TOLD_ONE_BY_ONE_MAX = 20
"""Topics with the same refusal that get an event each; more of them share one."""


@dataclass
class Drift:
    """What differs, by remote topic, and the topics that a cluster would not describe."""

    changes: dict[str, list[SettingChange]] = field(default_factory=dict)
    refused: dict[str, BrokerError] = field(default_factory=dict)
    topics: int = 0

    def to_send(self) -> dict[str, dict[str, str | None]]:
        found = {
            topic: {one.name: one.wanted for one in changes if one.is_sent} for topic, changes in self.changes.items()
        }
        return {topic: settings for topic, settings in found.items() if settings}


async def differences(
    source: ClusterClient, target: ClusterClient, rules: ConfigRules, remote_names: Mapping[str, str]
) -> Drift:
    """``remote_names`` are the pairs to compare, by source topic. Two requests for a few hundred topics."""
    drift = Drift(topics=len(remote_names))
    if not remote_names:
        return drift
    topics = sorted(remote_names)
    ours, theirs = await asyncio.gather(
        describe_configs(source, topics), describe_configs(target, [remote_names[topic] for topic in topics])
    )
    drift.refused = {remote_names[topic]: error for topic, error in ours.refused.items()} | theirs.refused
    for topic in topics:
        remote = remote_names[topic]
        if topic in ours.settings and remote in theirs.settings:
            changes = rules.changes(ours.settings[topic], theirs.settings[remote])
            if changes:
                drift.changes[remote] = changes
    return drift


class ConfigSync:
    """One flow's. ``requests`` and ``changed`` count what was sent since it began."""

    def __init__(self, source: ClusterClient, target: ClusterClient) -> None:
        self._source = source
        self._target = target
        self._refused: dict[str, tuple[dict[str, str | None], BrokerError, float]] = {}
        self.requests = 0
        self.changed = 0
        self.left: dict[str, list[SettingChange]] = {}
        """What still differs after the last pass."""

    async def sync(self, rules: ConfigRules, remote_names: Mapping[str, str]) -> list[Event]:
        """One pass; returns what a person should know."""
        drift = await differences(self._source, self._target, rules, remote_names)
        wanted = drift.to_send()
        now = time.monotonic()
        self._refused = {
            topic: known
            for topic, known in self._refused.items()
            if wanted.get(topic) == known[0] and now - known[2] < again_after_s(known[1])
        }
        sent = {topic: settings for topic, settings in wanted.items() if topic not in self._refused}
        if sent:
            done = await alter_configs(self._target, sent)
            self.requests += done.requests
            self.changed += sum(len(settings) for topic, settings in sent.items() if topic not in done.refused)
            self._refused |= {topic: (sent[topic], error, now) for topic, error in done.refused.items()}
        self.left = {
            topic: changes
            for topic, changes in drift.changes.items()
            if topic in self._refused or any(not one.is_sent for one in changes)
        }
        refused = {topic: error for topic, (_, error, _) in self._refused.items()}
        return [*_told(drift.refused, "cannot be compared: "), *_told(refused, "are not changed: ")]


def again_after_s(refusal: BrokerError) -> float:
    return DENIED_AGAIN_S if is_denial(refusal.error_code) else REFUSED_AGAIN_S


def _told(refused: Mapping[str, BrokerError], what: str) -> list[Event]:
    """One event for each topic, or one for all that share a reason. What passes by itself is left to the next pass."""
    by_code: dict[int, list[str]] = {}
    for topic, error in sorted(refused.items()):
        if not error.retriable:
            by_code.setdefault(error.error_code, []).append(topic)
    events = []
    for topics in by_code.values():
        if len(topics) <= TOLD_ONE_BY_ONE_MAX:
            events += [
                Event(EventKind.SETTINGS_REFUSED, f"its settings {what}{refused[topic]}", topic=topic)
                for topic in topics
            ]
        else:
            events.append(Event(EventKind.SETTINGS_REFUSED, _together(topics, what, refused[topics[0]])))
    return events


def _together(topics: Sequence[str], what: str, error: BrokerError) -> str:
    names = ", ".join(topics[:TOLD_ONE_BY_ONE_MAX])
    more = len(topics) - TOLD_ONE_BY_ONE_MAX
    return f"the settings of {len(topics)} topics {what}{error}; they are {names} and {more} more"
