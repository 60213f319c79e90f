"""The driver's part in a flow's offsets: the topic for offset syncs, and a ledger that does not grow for ever.

Lanes write both and never read them back. ``OffsetBooks.run`` looks at the ledger every quarter of an hour, if something was
written to it: pages that lie wholly before the first offset of the source or of the target are pruned, pages of a topic
that was made anew too, small ones are put together, and where a partition has more runs than the store's limit its oldest
become an outline. Nothing waits for it; a pass that fails is made again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_admin import NewTopic, create_topics
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offset, list_offsets
from mirrorspark.errors import ClusterError
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.internal_topics import ledger_topic
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.pipeline.sync_writing import offset_syncs_topic
from mirrorspark.plan.lanes import Assignment
from mirrorspark.settings import FlowSettings

__all__ = ["KEEPING_LEDGER", "Kept", "OffsetBooks", "keep_ledger", "make_offset_syncs_topic"]

log = logging.getLogger("mirrorspark.flow")

KEEPING_LEDGER = "keeping the ledger"
KEEPING_INTERVAL_S = 900.0
KEEPING_TIMEOUT_S = 120.0
REWRITES_PER_APPEND_MAX = 500
SYNCS_TOPIC_AGAIN_S = 60.0
"""Where the topic for offset syncs could not be made: how often that is tried again, in case somebody has allowed it."""


async def make_offset_syncs_topic(source: ClusterClient, target: ClusterClient, settings: FlowSettings) -> list[Event]:
    """Before lanes write to it. What goes wrong is an event: a flow does not need the topic."""
    wanted = settings.group_sync
    if not wanted.offset_syncs_enabled:
        return []
    client = target if wanted.offset_syncs_on_target else source
    name = offset_syncs_topic(settings)
    try:
        (found,) = await client.refresh([name])
        if found.error_code == 0:
            return []  # one that is there is taken as it is
        factor = min(wanted.offset_syncs_replication_factor, max(1, len(client.nodes)))
        refused = await create_topics(client, [NewTopic(name, 1, factor, {"cleanup.policy": "compact"})])
        if refused and found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return []  # neither to be seen nor to be made: whether it may be written, whoever writes there is told
        if refused:
            raise refused[name]
    except ClusterError as error:
        text = (
            f"the topic for offset syncs cannot be made on cluster {client.alias}: {error}. Only MirrorMaker 2 needs it, "
            "should it take the flow back: allow Create there, make the topic by hand (one partition, compacted), write it "
            "to the other cluster (offset-syncs.topic.location) or set emit.offset-syncs.enabled=false"
        )
        return [Event(EventKind.OFFSET_SYNCS_REFUSED, text, topic=name)]
    return []


@dataclass(frozen=True, slots=True)
class Kept:
    """What a pass over the ledger found and left."""

    partitions: int
    pages: int
    rewritten: int
    damaged: int


async def keep_ledger(
    source: ClusterClient, target: ClusterClient, topic: KeyedTopic, carried: Iterable[Assignment], deadline: Deadline
) -> Kept:
    """One pass. ``topic`` is the ledger, not read so far; ``carried`` says from where remote partitions come."""
    store = LedgerStore()
    for key, value in await topic.catch_up(deadline):
        store.fold(key, value)
    await _forget_gone(target, store)
    sources = {one.remote: one.source for one in carried if one.remote in store}
    downstream = await list_offsets(target, list(store), EARLIEST, deadline)
    upstream = await list_offsets(source, sources.values(), EARLIEST, deadline)
    for remote in list(store):
        origin = sources.get(remote)
        store.drop_before(remote, downstream[remote], upstream[origin] if origin is not None else 0)
        store.tidy(remote)
    rewrites = store.take_rewrites()
    for first in range(0, len(rewrites), REWRITES_PER_APPEND_MAX):
        await topic.append(rewrites[first : first + REWRITES_PER_APPEND_MAX], deadline)
    pages = sum(len(store.pages(remote)) for remote in store)
    return Kept(store.partition_count, pages, len(rewrites), store.damaged_entries)


async def _forget_gone(target: ClusterClient, store: LedgerStore) -> None:
    """Remote partitions that the target no longer has, or that are other ones under the same name."""
    names = sorted({remote.topic for remote in store})
    found = {topic.name: topic for topic in await target.refresh(names)} if names else {}
    for remote in list(store):
        topic = found.get(remote.topic)
        is_gone = topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        newest = store.newest(remote)
        is_another = (
            topic is not None
            and newest is not None
            and not topic.error_code
            and not newest.is_of(newest.topic_id, topic.topic_id)
        )
        if is_gone or is_another:
            store.forget(remote)


class OffsetBooks:
    """``run`` until it is cancelled. ``fail`` and ``clear`` show what goes wrong; ``carried`` is asked at each pass."""

    def __init__(
        self,
        settings: FlowSettings,
        source: ClusterClient,
        target: ClusterClient,
        carried: Callable[[], Iterable[Assignment]],
        *,
        fail: Callable[[str, str], None],
        clear: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._source = source
        self._target = target
        self._topic = ledger_topic(settings.flow.books)
        self._flow = settings.flow
        self._carried = carried
        self._fail = fail
        self._clear = clear
        self._end = -1
        self.lacks_syncs_topic = False

    async def run(self) -> None:
        while True:
            await self._rest(KEEPING_INTERVAL_S)
            try:
                await self.keep()
                self._clear(KEEPING_LEDGER)
            except ClusterError as error:
                log.warning("%s: %s: %s; again in %.0f s", self._flow, KEEPING_LEDGER, error, KEEPING_INTERVAL_S)
                self._fail(KEEPING_LEDGER, f"{error}; records and groups do not depend on it")

    async def _rest(self, seconds: float) -> None:
        """Meanwhile the topic for offset syncs is made, where that was refused so far."""
        deadline = Deadline(seconds)
        while not deadline.passed:
            await asyncio.sleep(deadline.at_most(SYNCS_TOPIC_AGAIN_S if self.lacks_syncs_topic else seconds))
            if self.lacks_syncs_topic:
                refused = await make_offset_syncs_topic(self._source, self._target, self._settings)
                self.lacks_syncs_topic = bool(refused)

    async def keep(self) -> Kept | None:
        """One pass, unless nothing was written since the last one."""
        deadline = Deadline(KEEPING_TIMEOUT_S)
        place = TopicPartition(self._topic, 0)
        if await list_offset(self._target, place, LATEST, deadline) == self._end:
            return None
        topic = KeyedTopic(self._target, self._topic)
        kept = await keep_ledger(self._source, self._target, topic, self._carried(), deadline)
        self._end = await list_offset(self._target, place, LATEST, deadline)
        if kept.rewritten or kept.damaged:
            log.info("%s: %s: %s", self._flow, KEEPING_LEDGER, kept)
        return kept
