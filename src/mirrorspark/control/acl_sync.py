"""Keeping the ACLs of remote topics as their source topics have them, by difference.

What the mirror granted is written down on the flow's plan topic, before it is granted: only that may be revoked, so what
others put on the target stays whatever happens. Run by ``control.topic_sync``; the dry run asks ``look`` alone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.topic_acls import AclsChanged, create_acls, delete_acls, describe_acls
from mirrorspark.control.config_sync import again_after_s
from mirrorspark.errors import BrokerError
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicAcl
from mirrorspark.plan.acl_rules import AclChanges, AclNote, AclRules, acl_changes
from mirrorspark.plan.desired_topics import TopicRules

__all__ = ["ACLS_KEY", "AclLook", "AclSync", "format_granted", "look_at_acls", "parse_granted"]

log = logging.getLogger("mirrorspark.flow")

ACLS_KEY = b"acls"
"""Of the record on the plan topic that lists what the mirror granted."""
VERSION = 1
RECORD_TIMEOUT_S = 30.0
NAMES_TOLD_MAX = 5


def format_granted(granted: Iterable[TopicAcl]) -> bytes:
    return json.dumps({"v": VERSION, "granted": sorted(granted)}, separators=(",", ":")).encode()


def parse_granted(raw: bytes | None) -> frozenset[TopicAcl]:
    """What the record says; nothing where it cannot be read, so that nothing is ever revoked by guess."""
    try:
        text: dict[str, Any] = json.loads(raw) if raw else {"v": VERSION, "granted": []}
        if text["v"] == VERSION:
            return frozenset(TopicAcl(*map(str, one)) for one in text["granted"])
        log.warning("the record of granted ACLs is of version %s: none of them will be revoked", text["v"])
    except (ValueError, KeyError, TypeError) as error:
        log.warning("the record of granted ACLs cannot be read (%r): none of them will be revoked", error)
    return frozenset()


@dataclass
class AclLook:
    """Both sides compared. ``notice`` says why there is nothing to compare, ``refused`` who shows no ACLs to us."""

    changes: AclChanges = field(default_factory=AclChanges)
    notes: dict[TopicAcl, AclNote] = field(default_factory=dict)
    notice: str = ""
    refused: dict[str, BrokerError] = field(default_factory=dict)


async def look_at_acls(
    source: ClusterClient,
    target: ClusterClient,
    rules: TopicRules,
    topics: Iterable[str],
    granted: frozenset[TopicAcl],
) -> AclLook:
    """What should change. Raises BrokerError for what passes by itself."""
    sides: dict[str, set[TopicAcl]] = {}
    look = AclLook()
    found = await asyncio.gather(describe_acls(source), describe_acls(target), return_exceptions=True)
    for client, answer in zip((source, target), found, strict=True):
        if isinstance(answer, BrokerError) and answer.error_code == ErrorCode.SECURITY_DISABLED:
            look.notice = look.notice or f"cluster {client.alias} has no authorizer: no ACLs are synced"
        elif isinstance(answer, BrokerError) and not answer.retriable:
            look.refused[client.alias] = answer
        elif isinstance(answer, BaseException):
            raise answer
        else:
            sides[client.alias] = answer
    if len(sides) == 2:
        sync = rules.settings.topic_sync
        acl_rules = AclRules(rules.wants, rules.policy.remote, tuple(topics), sync.acls_prefixed)
        wanted, look.notes = acl_rules.wanted(sides[source.alias])
        look.changes = acl_changes(wanted, sides[target.alias], granted, revoke=sync.acls_revoke)
    return look


class AclSync:
    """One flow's. ``requests`` counts what was sent to change ACLs since it began."""

    def __init__(self, source: ClusterClient, target: ClusterClient, plans: KeyedTopic) -> None:
        self._source = source
        self._target = target
        self._plans = plans
        self._granted: frozenset[TopicAcl] | None = None
        self._refused: dict[TopicAcl, tuple[BrokerError, float]] = {}
        self._noted: set[str] = set()
        self.requests = 0
        self.granted = 0
        self.revoked = 0
        self.notice = ""

    async def sync(self, rules: TopicRules, topics: Iterable[str]) -> list[Event]:
        """One pass; returns what a person should know."""
        if self._granted is None:
            newest = await self._plans.read_all(Deadline(RECORD_TIMEOUT_S))
            self._granted = parse_granted(newest.get(ACLS_KEY))
        look = await look_at_acls(self._source, self._target, rules, topics, self._granted)
        self.notice = look.notice
        self._log_once(look)
        await self._carry_out(look.changes)
        return self._told(look)

    async def _carry_out(self, changes: AclChanges) -> None:
        now = time.monotonic()
        asked = changes.grant | changes.revoke
        self._refused = {
            acl: known
            for acl, known in self._refused.items()
            if acl in asked and now - known[1] < again_after_s(known[0])
        }
        grant, revoke = changes.grant - self._refused.keys(), changes.revoke - self._refused.keys()
        assert self._granted is not None
        if grant:
            await self._record(self._granted | grant)
            self._note(await create_acls(self._target, grant), now)
            self.granted += len(grant - self._refused.keys())
        if revoke:
            self._note(await delete_acls(self._target, revoke), now)
            self.revoked += len(revoke - self._refused.keys())
        not_granted = changes.grant & self._refused.keys()
        not_revoked = changes.revoke & self._refused.keys()
        await self._record((changes.granted - not_granted) | not_revoked)

    def _note(self, done: AclsChanged, now: float) -> None:
        self.requests += done.requests
        self._refused |= {acl: (error, now) for acl, error in done.refused.items()}

    async def _record(self, granted: frozenset[TopicAcl]) -> None:
        if granted != self._granted:
            await self._plans.append([(ACLS_KEY, format_granted(granted))], Deadline(RECORD_TIMEOUT_S))
            self._granted = granted

    def _log_once(self, look: AclLook) -> None:
        """What is not on the target as on the source: said once, in the log; the dry run lists all of it."""
        texts = [look.notice] if look.notice else []
        for acl, note in sorted(look.notes.items()):
            if note in (AclNote.ALL_TOPICS_BECOMES_PREFIX, AclNote.REACHES_ALL_TOPICS, AclNote.PREFIX_UNSUITED):
                texts.append(f"ACL on the source: {acl}: {note.words}")
        for text in texts:
            if text not in self._noted:
                self._noted.add(text)
                log.warning("%s->%s: %s", self._source.alias, self._target.alias, text)

    def _told(self, look: AclLook) -> list[Event]:
        events = []
        if look.refused:
            who = " and ".join(
                f"cluster {alias} does not show its ACLs: {error}" for alias, error in look.refused.items()
            )
            needed = "Alter" if self._target.alias in look.refused else "Describe"
            text = f"{who}; allow {needed} on the cluster, or set sync.topic.acls.enabled=false"
            events.append(Event(EventKind.ACLS_REFUSED, text))
        by_code: dict[int, list[TopicAcl]] = {}
        for acl, (error, _) in sorted(self._refused.items()):
            by_code.setdefault(error.error_code, []).append(acl)
        for acls in by_code.values():
            names = "; ".join(map(str, acls[:NAMES_TOLD_MAX]))
            more = f" and {len(acls) - NAMES_TOLD_MAX} more" if len(acls) > NAMES_TOLD_MAX else ""
            error = self._refused[acls[0]][0]
            text = (
                f"cluster {self._target.alias} does not change {len(acls)} ACLs: {error}; they are {names}{more}. Allow "
                "Alter on the cluster, or set sync.topic.acls.enabled=false"
            )
            events.append(Event(EventKind.ACLS_REFUSED, text, topic=acls[0].name))
        return events
