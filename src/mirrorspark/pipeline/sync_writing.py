"""Offset syncs in MirrorMaker 2's topic, beside the work: they never hold up data, and what goes wrong is told once.

One at a time, from the lane's clock: ``write`` starts a task unless the last one is still busy, ``finish`` waits for it
and writes the newest pair of each partition that is let go. The topic lies on the source or on the target
(``offset-syncs.topic.location``); the driver makes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.errors import ClusterError
from mirrorspark.events import Event, EventKind
from mirrorspark.offsets.offset_sync import OffsetSync, OffsetSyncs
from mirrorspark.pipeline.track import Track
from mirrorspark.plan.replication_policy import policy_for
from mirrorspark.settings import FlowSettings

__all__ = ["SyncWriting", "offset_syncs_topic"]

WRITE_TIMEOUT_S = 3.0
"""After that the syncs are dropped: newer ones come, and each tells all that the older one told."""
SYNCS_PER_BATCH_MAX = 5_000


def offset_syncs_topic(settings: FlowSettings) -> str:
    """Named after the other cluster."""
    flow = settings.flow
    return policy_for(settings).offset_syncs_topic(
        flow.source if settings.group_sync.offset_syncs_on_target else flow.target
    )


class SyncWriting:
    def __init__(
        self, source: ClusterClient, target: ClusterClient, settings: FlowSettings, report: Callable[[Event], None]
    ) -> None:
        wanted = settings.group_sync
        self._lag_max = wanted.offset_lag_max
        self._where = target if wanted.offset_syncs_on_target else source
        self._topic = KeyedTopic(self._where, offset_syncs_topic(settings))
        self._report = report
        self._told = ""
        self._task: asyncio.Task[None] | None = None
        self.is_wanted = wanted.offset_syncs_enabled

    def begin(self, track: Track) -> None:
        """From its next receipt on."""
        if self.is_wanted:
            track.syncs = OffsetSyncs(track.source, self._lag_max)

    def write(self, tracks: Iterable[Track], *, delayed: bool) -> None:
        """What is due of these; with ``delayed`` the newest pairs too. Does not wait."""
        if not self.is_wanted or (self._task is not None and not self._task.done()):
            return  # what is due stays so
        due = [sync for track in tracks if track.syncs and (sync := track.syncs.take(delayed=delayed))]
        if due:
            self._task = asyncio.ensure_future(self._append(due))

    async def finish(self, tracks: Iterable[Track]) -> None:
        """The newest pairs of partitions that are let go."""
        await self._settled()
        self.write(tracks, delayed=True)
        await self._settled()

    async def _settled(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _append(self, syncs: list[OffsetSync]) -> None:
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                for first in range(0, len(syncs), SYNCS_PER_BATCH_MAX):
                    some = [(sync.key, sync.value) for sync in syncs[first : first + SYNCS_PER_BATCH_MAX]]
                    # One partition, always the first: MirrorMaker 2 reads no other.
                    await self._topic.append(some, Deadline(WRITE_TIMEOUT_S))
            self._told = ""
        except (ClusterError, TimeoutError) as error:
            self._tell(str(error) or f"no answer within {WRITE_TIMEOUT_S:.0f} s")

    def _tell(self, why: str) -> None:
        """Once, until it works again."""
        if self._told:
            return
        self._told = why
        text = (
            f"offset syncs cannot be written on cluster {self._where.alias}: {why}. Data, groups and checkpoints do not "
            "need them; only MirrorMaker 2 does, should it take the flow back. Allow Write on the topic, or set "
            "emit.offset-syncs.enabled=false"
        )
        self._report(Event(EventKind.OFFSET_SYNCS_REFUSED, text, topic=self._topic.topic))
