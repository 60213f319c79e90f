"""Heartbeats of one pair of clusters: a record on the target every interval, as MirrorMaker 2's heartbeat connector does.

``flow_set`` runs one job for each pair that emits, whether the pair has a flow or not. Nothing else depends on it: what
fails here is shown in the pair's status, tried again, and never ends a flow. It has a connection of its own, so that it
beats while the flow is started anew.
"""

from __future__ import annotations

import asyncio
import logging
import time

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_admin import NewTopic, create_topics
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.flow_runtime import reach_cluster
from mirrorspark.errors import MirrorError
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC, Heartbeat
from mirrorspark.settings import FlowSettings
from mirrorspark.wire.records import Record, encode_batch

__all__ = ["EMITTING_HEARTBEATS", "HeartbeatJob"]

log = logging.getLogger("mirrorspark.heartbeats")

EMITTING_HEARTBEATS = "heartbeats"
APPEND_TIMEOUT_S = 15.0
RETRY_PAUSE_S_MIN = 1.0
RETRY_PAUSE_S_MAX = 60.0


class HeartbeatJob:
    """``run`` beats until it is cancelled."""

    def __init__(self, settings: FlowSettings, status: FlowStatus) -> None:
        self._settings = settings
        self._status = status
        self._pause_s = RETRY_PAUSE_S_MIN

    async def run(self) -> None:
        while True:
            try:
                await self._beat_for_ever()
            except Exception as error:  # noqa: BLE001  (told, and tried again)
                self._tell(error)
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(self._pause_s * 2, RETRY_PAUSE_S_MAX)

    async def _beat_for_ever(self) -> None:
        settings = self._settings
        client = ClusterClient(settings.target, f"mirrorspark|{settings.flow}|heartbeats")
        try:
            await reach_cluster(client)
            await self._make_topic(client)
            topic = KeyedTopic(client, HEARTBEATS_TOPIC)
            while True:
                await self._beat(topic)
                self._pause_s = RETRY_PAUSE_S_MIN
                await asyncio.sleep(settings.heartbeats.interval_s)
        finally:
            client.close()

    async def _make_topic(self, client: ClusterClient) -> None:
        """One that is there is taken as it is, also one that may only be written."""
        (found,) = await client.refresh([HEARTBEATS_TOPIC])
        if found.error_code in (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            return
        factor = min(self._settings.heartbeats.replication_factor, max(1, len(client.nodes)))
        refused = await create_topics(client, [NewTopic(HEARTBEATS_TOPIC, 1, factor, {"cleanup.policy": "compact"})])
        if refused:
            raise refused[HEARTBEATS_TOPIC]

    async def _beat(self, topic: KeyedTopic) -> None:
        """The record's own timestamp is the one in its value."""
        now_ms = int(time.time() * 1000)
        beat = Heartbeat(self._settings.flow.source, self._settings.flow.target, now_ms)
        batch = encode_batch([Record(0, now_ms, beat.key, beat.value)])
        await topic.append_batch(0, batch, Deadline(APPEND_TIMEOUT_S))
        self._status.heartbeat_sent_at = self._status.clock()
        self._status.heartbeats_sent += 1
        self._status.clear(EMITTING_HEARTBEATS)

    def _tell(self, error: Exception) -> None:
        """In the log once, not with each vain try."""
        flow = self._settings.flow
        text = (
            f"{error if isinstance(error, MirrorError) else repr(error)}; {flow.target} gets no heartbeats for {flow} "
            f"until that is mended. Records do not depend on it; {flow}.emit.heartbeats.enabled = false turns them off"
        )
        if self._status.failures.get(EMITTING_HEARTBEATS) != text:
            log.warning("%s: heartbeats: %s", flow, text, exc_info=None if isinstance(error, MirrorError) else error)
        self._status.fail(EMITTING_HEARTBEATS, text)
