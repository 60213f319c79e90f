"""Where the offsets of a source's groups lie on the target: the ledger as it grows, and the names.

Topics that the flow mirrors go by its own ledger. Topics that came from the target (``west.orders`` on east, in the flow
east->west) go back to their originals by the ledger of the flow that brought them, which lies on the source. Where both
clusters have a topic under one name, both ledgers say together. Used by the group sync and by the commands; writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.log_reader import EARLIEST, list_offsets
from mirrorspark.control.own_records import first_own_record
from mirrorspark.errors import BrokerError
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.offsets.checkpoint_floor import not_before_checkpoint
from mirrorspark.offsets.group_sync import Synced
from mirrorspark.offsets.internal_topics import ledger_topic
from mirrorspark.offsets.ledger import NO_TOPIC_ID
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.translation import Reason, Translation, translate
from mirrorspark.offsets.translation_back import translate_back
from mirrorspark.offsets.translation_both_ways import translate_both_ways
from mirrorspark.plan.desired_topics import TopicRules
from mirrorspark.plan.topic_filter import Refusal
from mirrorspark.settings import FlowSettings

__all__ = ["WAITING", "Destination", "GroupTranslation"]

WAITING = (Reason.AHEAD, Reason.UNKNOWN, Reason.RECREATED)
"""What becomes exact by itself, when more of the partition is mirrored."""
_CYCLES = (Refusal.CYCLE, Refusal.LOOKS_LIKE_CYCLE)


@dataclass(frozen=True, slots=True)
class Destination:
    """A source topic's name on the target. ``is_back``: it came from there."""

    topic: str
    is_back: bool = False


class GroupTranslation:
    """``read`` first; then ``translate``, and ``follow`` for what comes."""

    def __init__(self, source: ClusterClient, target: ClusterClient, settings: FlowSettings) -> None:
        flow = settings.flow
        self._source = source
        self._target = target
        self._flow = flow
        self._rules = TopicRules(settings)
        self._ledger = KeyedTopic(target, ledger_topic(flow.books))
        self._ledger_back = KeyedTopic(source, ledger_topic(Flow(flow.target, flow.source, flow.instance).books))
        self._destinations: dict[str, Destination | None] = {}
        self._source_starts: dict[TopicPartition, int] = {}
        self._looked_to: dict[TopicPartition, int] = {}
        """By source partition: how far somebody has seen nothing but markers and copies, behind what is booked."""
        self.store = LedgerStore()
        self.store_back = LedgerStore()
        self.has_way_back = False
        """Whether there is a ledger of the flow in the other direction."""
        self.checkpoints: Mapping[tuple[str, TopicPartition], Synced] = {}
        """Of groups in remote partitions: for offsets from before the ledger."""

    # -- names ------------------------------------------------------------------------------------------------------

    def destination(self, topic: str) -> Destination | None:
        """None for a topic that is neither mirrored nor came from the target."""
        if topic not in self._destinations:
            self._destinations[topic] = self._find_destination(topic)
        return self._destinations[topic]

    def _find_destination(self, topic: str) -> Destination | None:
        refusal = self._rules.chosen.refusal(topic)
        if refusal is None:
            return Destination(self._rules.policy.remote(topic))
        original = self._rules.policy.upstream(topic)
        is_from_target = self._rules.policy.source_of(topic) == self._flow.target
        if not is_from_target or not original:
            return None
        # ``topics = orders`` names what the flow carries; what came from the target as orders is meant as well.
        is_meant = refusal.reason is Refusal.NOT_INCLUDED and self._rules.wants(original)
        return Destination(original, is_back=True) if refusal.reason in _CYCLES or is_meant else None

    def why_not(self, topic: str) -> str:
        """In words, for a topic without destination."""
        refusal = self._rules.chosen.refusal(topic)
        return str(refusal) if refusal else ""

    @property
    def checkpoints_topic(self) -> str:
        return self._rules.policy.checkpoints_topic(self._flow.source)

    # -- the ledgers ------------------------------------------------------------------------------------------------

    async def read(self, deadline: Deadline) -> None:
        """Both ledgers as they are. Raises BrokerError if the flow's own is not there: nothing has been mirrored yet."""
        if (code := await _is_missing(self._target, self._ledger.topic)) != 0:
            raise broker_error(code, "Metadata", f"topic {self._ledger.topic} on cluster {self._target.alias}")
        self.fold(await self._ledger.catch_up(deadline))
        try:
            self.has_way_back = await _is_missing(self._source, self._ledger_back.topic) == 0
            if self.has_way_back:
                self._fold_into(self.store_back, await self._ledger_back.catch_up(deadline))
        except BrokerError as error:
            if error.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise
            self.has_way_back = False  # groups that read what came from the target stay where they are

    def fold(self, entries: Iterable[tuple[bytes, bytes | None]]) -> set[TopicPartition]:
        return self._fold_into(self.store, entries)

    async def follow(self, wait_ms: int) -> set[TopicPartition]:
        """Waits for more of the flow's ledger; returns the remote partitions that it tells of."""
        return self.fold(await self._ledger.follow(Deadline(60.0), wait_ms))

    async def follow_back(self, wait_ms: int) -> set[TopicPartition]:
        """The same for the ledger on the source; returns partitions by their names on the target."""
        moved = self._fold_into(self.store_back, await self._ledger_back.follow(Deadline(60.0), wait_ms))
        return {
            TopicPartition(there.topic, at.partition)
            for at in moved
            if (there := self.destination(at.topic)) is not None and (there.is_back or there.topic == at.topic)
        }

    def _fold_into(self, store: LedgerStore, entries: Iterable[tuple[bytes, bytes | None]]) -> set[TopicPartition]:
        moved = {remote for key, value in entries if (remote := store.fold(key, value)) is not None}
        store.take_rewrites()  # the ledger's keeper writes those, and has its own store
        return moved

    @property
    def damaged_entries(self) -> int:
        return self.store.damaged_entries + self.store_back.damaged_entries

    # -- answers ----------------------------------------------------------------------------------------------------

    def translate(self, at: TopicPartition, offset: int, group: str = "") -> tuple[TopicPartition, Translation] | None:
        """Partition and offset on the target; None for a topic that has no destination."""
        there = self.destination(at.topic)
        if there is None:
            return None
        remote = TopicPartition(there.topic, at.partition)
        if there.is_back:
            return remote, self._translate_back(at, offset)
        known = self._source.topics.get(at.topic)
        topic_id = known.topic_id if known else NO_TOPIC_ID
        first = self._source_starts.get(at, 0)
        found = translate(self.store, remote, offset, topic_id, source_log_start=first)
        if at == remote and at in self.store_back:
            looked_to = self._looked_to.get(at, 0)
            found = translate_both_ways(
                found, self.store, remote, self.store_back, at, max(offset, first), looked_to=looked_to
            )
        return remote, not_before_checkpoint(found, self.store, remote, offset, self.checkpoints.get((group, remote)))

    def _translate_back(self, at: TopicPartition, offset: int) -> Translation:
        """A consumer may stand behind markers that follow the last record; those are nothing that it is ahead of."""
        found = translate_back(self.store_back, at, offset)
        is_at_end = found.reason is Reason.AHEAD and offset <= self._looked_to.get(at, 0)
        return replace(found, exact=True, reason=Reason.AT_END) if is_at_end else found

    async def look_at_logs(self, partitions: Iterable[TopicPartition], deadline: Deadline) -> None:
        """Where the logs of these source partitions, and of their copies, begin now; and the topics' ids."""
        wanted = {at: there for at in partitions if (there := self.destination(at.topic)) is not None}
        await self._look_behind_copies([at for at, there in wanted.items() if there.is_back], deadline)
        forward = {at: TopicPartition(there.topic, at.partition) for at, there in wanted.items() if not there.is_back}
        if not forward:
            return
        await self._source.refresh(sorted({at.topic for at in forward}), deadline)
        await self._target.refresh(sorted({remote.topic for remote in forward.values()}), deadline)
        here = [at for at in forward if self._source.leader(at) is not None]
        there_too = [remote for remote in forward.values() if self._target.leader(remote) is not None]
        self._source_starts |= await list_offsets(self._source, here, EARLIEST, deadline)
        starts = await list_offsets(self._target, there_too, EARLIEST, deadline)
        for at, remote in forward.items():
            if remote in starts:
                self.store.drop_before(remote, starts[remote], self._source_starts.get(at, 0))
        self.store.take_rewrites()
        await self._look_for_own([at for at, remote in forward.items() if at == remote and remote in starts], deadline)

    async def _look_behind_copies(self, partitions: Collection[TopicPartition], deadline: Deadline) -> None:
        """Of topics that came from the target: how far there is nothing but markers behind the last record booked."""
        if partitions:
            await self._source.refresh(sorted({at.topic for at in partitions}), deadline)
        for at in partitions:
            newest = self.store_back.newest(at)
            if newest is not None and self._source.leader(at) is not None:
                end = newest.downstream_end
                self._looked_to[at] = await first_own_record(self._source, at, end, self.store_back, deadline)

    async def _look_for_own(self, partitions: Iterable[TopicPartition], deadline: Deadline) -> None:
        """Of topics with one name on both sides: how far the target's log holds nothing of its own producers, from where the
        flow back has come. While that flow runs there is next to nothing to look at."""
        for at in partitions:
            newest = self.store_back.newest(at)
            if newest is not None and at in self.store:
                start = max(newest.upstream_next, self._looked_to.get(at, 0))
                self._looked_to[at] = await first_own_record(self._target, at, start, self.store, deadline)


async def _is_missing(client: ClusterClient, topic: str) -> int:
    """0, or the error with which the cluster lists it."""
    (found,) = await client.refresh([topic])
    return found.error_code
