"""What of a topic besides its records is kept equal while a flow runs: settings and ACLs, each at its own interval.

The flow's runtime calls one pass after the other; a pass that changed something, or left something different, is written
to the status topic as one record, and only when it says something new.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.acl_sync import AclSync
from mirrorspark.control.config_sync import ConfigSync
from mirrorspark.control.teller import Teller
from mirrorspark.observe.flow_status import SYNC_KEY, FlowStatus
from mirrorspark.plan.desired_topics import TopicRules
from mirrorspark.plan.lanes import Assignment
from mirrorspark.settings import FlowSettings

__all__ = ["TopicSyncJobs"]

DRIFT_SHOWN_MAX = 20
RECORD_TIMEOUT_S = 30.0


class TopicSyncJobs:
    """One flow's. Settings are given to each pass: they may be others than at the last one."""

    def __init__(
        self, source: ClusterClient, target: ClusterClient, statuses: KeyedTopic, status: FlowStatus, plans: str
    ) -> None:
        """``plans`` is the flow's plan topic."""
        self._statuses = statuses
        self._status = status
        # A reader of its own: the runtime's follows the plan.
        self._acls = AclSync(source, target, KeyedTopic(target, plans))
        self._configs = ConfigSync(source, target)
        self._tellers = {job: Teller(statuses, status) for job in (self.sync_configs.__name__, self.sync_acls.__name__)}
        self._topics = 0
        self._rules: TopicRules | None = None

    async def sync_configs(self, settings: FlowSettings, carried: Iterable[Assignment]) -> None:
        remote_names = {one.source.topic: one.remote_topic for one in carried}
        self._topics = len(remote_names)
        events = await self._configs.sync(self._rules_of(settings).configs, remote_names)
        await self._tellers[self.sync_configs.__name__].tell(events)
        await self._write()

    async def sync_acls(self, settings: FlowSettings, carried: Iterable[Assignment]) -> None:
        events = await self._acls.sync(self._rules_of(settings), sorted({one.source.topic for one in carried}))
        await self._tellers[self.sync_acls.__name__].tell(events)
        await self._write()

    def _rules_of(self, settings: FlowSettings) -> TopicRules:
        if self._rules is None or self._rules.settings is not settings:
            self._rules = TopicRules(settings)
        return self._rules

    def picture(self) -> dict[str, Any]:
        """Plain values for people and machines; equal to the last one unless something happened."""
        left = self._configs.left
        return {
            "topics": self._topics,
            "settings_changed": self._configs.changed,
            "settings_requests": self._configs.requests,
            "settings_differ": len(left),
            "drift": {topic: list(map(str, left[topic])) for topic in sorted(left)[:DRIFT_SHOWN_MAX]},
            "acls_granted": self._acls.granted,
            "acls_revoked": self._acls.revoked,
            "acls_requests": self._acls.requests,
            "acls_notice": self._acls.notice,
        }

    async def _write(self) -> None:
        picture = self.picture()
        if picture != self._status.sync:
            raw = json.dumps(picture, separators=(",", ":")).encode()
            await self._statuses.append([(SYNC_KEY.encode(), raw)], Deadline(RECORD_TIMEOUT_S))
            self._status.sync = picture
