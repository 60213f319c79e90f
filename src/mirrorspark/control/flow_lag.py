"""How far a flow is behind, partition by partition: from the brokers and the flow's books, whether a mirror runs or not.

The source says where its logs end, the positions group on the target how far the flow has come (the ledger, where the
group was forgotten), and the first record that is not there yet how old that is. Topics that the flow wants and has not
taken up yet count from their first record. Asked by ``lag`` and by ``failover``; changes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offsets, read_log
from mirrorspark.control.cluster_snapshot import inflows_of, seen
from mirrorspark.control.ending import end_tasks
from mirrorspark.control.flow_on_target import FlowOnTarget
from mirrorspark.control.flow_runtime import reach_cluster
from mirrorspark.errors import ClusterError
from mirrorspark.names import TopicPartition
from mirrorspark.observe.flow_status import LANE_SILENT_S
from mirrorspark.observe.lane_limit import LaneLimit, words_of_limit
from mirrorspark.offsets.internal_topics import ledger_topic
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.position import Position, positions_group
from mirrorspark.plan.desired_topics import TopicRules
from mirrorspark.plan.lanes import Assignment
from mirrorspark.plan.replication_policy import is_heartbeats
from mirrorspark.settings import FlowSettings

__all__ = ["FlowLag", "LagLook", "PartitionLag", "TopicLag"]

READ_TIMEOUT_S = 60.0
AGES_ASKED_MAX = 200
"""Partitions whose first waiting record is fetched for its time, those with the largest lag first."""
AGES_AT_ONCE_MAX = 16
AGE_READ_BYTES = 1_024
"""Of the first batch; a broker gives a whole one even if it is larger."""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """Offsets are None where nobody can say. Lag is counted in offsets: markers and holes count too."""

    topic: str
    partition: int
    remote_topic: str
    source_start: int | None = None
    source_end: int | None = None
    mirrored_to: int | None = None
    """The next offset of the source to be carried."""
    downstream_end: int | None = None
    is_clean: bool = True
    """Whether the last writer left in order; if not, a moment's records may be on the target beyond what is booked."""
    is_heartbeat: bool = False
    """Written every second for ever: counts in no sum."""
    waiting_since_ms: int | None = None
    """The time of the first record that is not on the target yet."""
    seconds: float | None = None

    @property
    def at(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def remote(self) -> TopicPartition:
        return TopicPartition(self.remote_topic, self.partition)

    @property
    def next(self) -> int | None:
        """Where the flow goes on: what retention took meanwhile can no longer be carried."""
        known = [one for one in (self.mirrored_to, self.source_start) if one is not None]
        return max(known) if known else None

    @property
    def records(self) -> int | None:
        if self.source_end is None or self.next is None:
            return None
        return max(0, self.source_end - self.next)

    @property
    def gone(self) -> int:
        """Offsets that the source's retention took before they were carried."""
        if self.source_start is None or self.mirrored_to is None:
            return 0
        return max(0, self.source_start - self.mirrored_to)


@dataclass(frozen=True, slots=True)
class TopicLag:
    topic: str
    remote_topic: str
    partitions: int
    records: int | None
    seconds: float | None


@dataclass(frozen=True)
class FlowLag:
    """One look. ``source_error`` says why the source could not be asked; then no lag is known."""

    flow: str
    partitions: tuple[PartitionLag, ...] = ()
    source_error: str = ""
    notices: tuple[str, ...] = ()
    looked_at_ms: int = field(default_factory=lambda: int(time.time() * 1000))

    @property
    def counted(self) -> list[PartitionLag]:
        return [one for one in self.partitions if not one.is_heartbeat]

    @property
    def records(self) -> int | None:
        """None if it is not known for one of the partitions."""
        found = [one.records for one in self.counted]
        return None if None in found else sum(one or 0 for one in found)

    @property
    def seconds(self) -> float | None:
        return _oldest(self.counted)

    @property
    def topics(self) -> list[TopicLag]:
        by_topic: dict[tuple[str, str], list[PartitionLag]] = {}
        for one in self.partitions:
            by_topic.setdefault((one.topic, one.remote_topic), []).append(one)
        return [
            TopicLag(
                topic,
                remote,
                len(some),
                None if any(one.records is None for one in some) else sum(one.records or 0 for one in some),
                _oldest(some),
            )
            for (topic, remote), some in sorted(by_topic.items())
        ]

    @property
    def behind(self) -> list[PartitionLag]:
        """Those with records that are not on the target, or of which it is not known."""
        return [one for one in self.counted if one.records != 0]


def _oldest(some: Iterable[PartitionLag]) -> float | None:
    """0 where nothing waits; None where something does and its time is not known."""
    ages = []
    for one in some:
        if one.records is None or (one.records and one.seconds is None):
            return None
        ages.append(one.seconds or 0.0)
    return max(ages, default=0.0)


class LagLook:
    """``async with`` reaches the target (NeverRan where the flow never ran) and the source, if it answers; then ``look``."""

    def __init__(self, settings: FlowSettings) -> None:
        self.settings = settings
        self.there = FlowOnTarget(settings)
        self._source = ClusterClient(settings.source, f"mirrorspark|{settings.flow}|command")
        self._rules: TopicRules | None = None
        self.source_error: ClusterError | None = None

    async def __aenter__(self) -> LagLook:
        reaching = asyncio.ensure_future(self._reach_source())
        try:
            await self.there.__aenter__()
            await reaching
        except BaseException:
            await end_tasks([reaching])
            self._source.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._source.close()
        await self.there.__aexit__()

    async def _reach_source(self) -> None:
        try:
            await reach_cluster(self._source)
        except ClusterError as error:
            self.source_error = error

    @property
    def source(self) -> ClusterClient | None:
        """None if it does not answer."""
        return None if self.source_error is not None else self._source

    @property
    def target(self) -> ClusterClient:
        return self.there.target

    async def look(self, *, ages: bool = False) -> FlowLag:
        deadline = Deadline(READ_TIMEOUT_S)
        try:
            places = await self._places(deadline)
        except ClusterError as error:
            if self.source_error is not None or not error.retriable:
                raise
            self.source_error = error  # it went away since we reached it
            places = await self._places(deadline)
        partitions = await self._booked(places, deadline)
        if self.source is not None:
            partitions = await self._with_ends(self.source, partitions, deadline)
            if ages:
                partitions = await _with_ages(self.source, partitions, deadline)
        error_text = str(self.source_error) if self.source_error is not None else ""
        gone = [
            f"{one.at}: {one.gone} offsets were gone from the source before they were carried"
            for one in partitions
            if one.gone
        ]
        found = FlowLag(str(self.settings.flow), tuple(partitions), error_text, tuple(gone))
        return replace(found, notices=(*gone, *words_of_limit(self._limits(), found.records or 0)))

    def _limits(self) -> list[LaneLimit]:
        """Of lanes that reported just now, by their own clocks."""
        oldest_ms = (time.time() - LANE_SILENT_S) * 1000
        lanes = self.there.status.lanes.values()
        return [lane.limit for lane in lanes if lane.limit is not None and lane.at_ms >= oldest_ms]

    async def _places(self, deadline: Deadline) -> list[Assignment]:
        """What the last plan carries, and what the flow wants and has not planned yet."""
        planned = {one.source: one for one in self.there.assignments}
        if self.source is None:
            return sorted(planned.values(), key=lambda one: one.source)
        listed = seen(await self.source.refresh(None, deadline))
        if self._rules is None:
            self._rules = TopicRules(self.settings, inflows_of(listed, self.settings))
        for topic in listed.values():
            if topic.internal or not topic.is_ready or not self._rules.wants(topic.name):
                continue
            remote = self._rules.policy.remote(topic.name)
            for number in range(topic.partitions):
                at = TopicPartition(topic.name, number)
                planned.setdefault(at, Assignment(at, remote, topic.topic_id))
        return sorted(planned.values(), key=lambda one: one.source)

    async def _booked(self, places: list[Assignment], deadline: Deadline) -> list[PartitionLag]:
        flow = self.settings.flow
        committed = await GroupPositions(self.target, positions_group(flow)).fetch_all(deadline)
        positions = {
            remote: position
            for remote, (offset, text) in committed.items()
            if (position := Position.from_commit(offset, text)) is not None
        }
        missing = [one.remote for one in places if one.remote not in positions]
        ledger = await self._ledger(deadline) if missing else LedgerStore()
        policy = (self._rules or TopicRules(self.settings)).policy
        found = []
        for one in places:
            position, page = positions.get(one.remote), ledger.newest(one.remote)
            writer = position.writer if position else None
            found.append(
                PartitionLag(
                    one.source.topic,
                    one.source.partition,
                    one.remote_topic,
                    mirrored_to=position.upstream_next if position else page.upstream_next if page else None,
                    downstream_end=position.downstream_end if position else page.downstream_end if page else None,
                    is_clean=writer is None or writer.clean,
                    is_heartbeat=is_heartbeats(policy, one.source.topic),
                )
            )
        return found

    async def _ledger(self, deadline: Deadline) -> LedgerStore:
        store = LedgerStore()
        topic = KeyedTopic(self.target, ledger_topic(self.settings.flow.books))
        (listed,) = await self.target.refresh([topic.topic], deadline)
        for key, value in await topic.catch_up(deadline) if listed.error_code == 0 else ():
            store.fold(key, value)
        return store

    async def _with_ends(
        self, source: ClusterClient, partitions: list[PartitionLag], deadline: Deadline
    ) -> list[PartitionLag]:
        """A partition that is gone from the source, or has no leader there, keeps None."""
        await source.refresh(sorted({one.topic for one in partitions}), deadline)
        wanted = [one.at for one in partitions if source.leader(one.at) is not None]
        starts: Mapping[TopicPartition, int] = await list_offsets(source, wanted, EARLIEST, deadline)
        ends: Mapping[TopicPartition, int] = await list_offsets(source, wanted, LATEST, deadline)
        return [replace(one, source_start=starts.get(one.at), source_end=ends.get(one.at)) for one in partitions]


async def _with_ages(source: ClusterClient, partitions: list[PartitionLag], deadline: Deadline) -> list[PartitionLag]:
    behind = sorted((one for one in partitions if one.records), key=lambda one: -(one.records or 0))[:AGES_ASKED_MAX]
    turns = asyncio.Semaphore(AGES_AT_ONCE_MAX)

    async def first_time(one: PartitionLag) -> int | None:
        assert one.next is not None
        async with turns:
            try:
                found = await read_log(
                    source, one.at, one.next, deadline=deadline, wait_ms=0, bytes_max=AGE_READ_BYTES, purpose="age"
                )
            except ClusterError:
                return None  # the lag is known, its age is not
        stamps = [batch.base_timestamp for batch in found.batches if batch.next_offset > (one.next or 0)]
        return stamps[0] if stamps and stamps[0] > 0 else None

    jobs = [asyncio.ensure_future(first_time(one)) for one in behind]
    try:
        times = dict(zip((one.at for one in behind), await asyncio.gather(*jobs), strict=True))
    finally:
        await end_tasks(jobs)
    now_ms = time.time() * 1000
    return [
        one
        if (since := times.get(one.at)) is None
        else replace(one, waiting_since_ms=since, seconds=max(0.0, (now_ms - since) / 1000))
        for one in partitions
    ]
