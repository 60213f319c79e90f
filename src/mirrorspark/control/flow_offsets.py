"""Source offsets of a flow, by Connect's rules: show them at any time, set and reset them while the flow is stopped.

An offset is that of the last mirrored record, as MirrorMaker 2 has it; the flow goes on with the next one. None is a reset:
the partition starts over. Set back, records are copied again behind what is there; set forward, those in between are left
out. All that is asked for is checked before anything is written. For the command ``offsets`` and for whoever puts REST on
top: ``parse_offsets`` and ``offsets_document`` are the shape of Connect's ``/connectors/{name}/offsets``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offsets
from mirrorspark.control.cluster_snapshot import seen
from mirrorspark.control.connect_offsets import ConnectOffsets
from mirrorspark.control.flow_on_target import FlowOnTarget, NeverRan
from mirrorspark.control.flow_runtime import reach_cluster
from mirrorspark.control.reconcile import ensure_internal_topics
from mirrorspark.errors import MirrorError, SettingsError
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.position import Position, positions_group
from mirrorspark.pipeline.first_place import first_upstream
from mirrorspark.plan.desired_topics import SeenTopic, TopicRules
from mirrorspark.plan.start_positions import StartKind, start_of
from mirrorspark.settings import FlowSettings

__all__ = ["Altered", "FlowNotStopped", "FlowOffsets", "OffsetsRefused", "offsets_document", "parse_offsets"]

TIMEOUT_S = 60.0
LISTEN_S = 3.0
"""A lane that lives reports every second."""
PARTITION_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 2
_PARTITION_FIELDS = {"cluster", "topic", "partition"}


class OffsetsRefused(SettingsError):
    """What was asked for is wrong: Connect's 400."""

    code = "OFFSETS_REFUSED"


class FlowNotStopped(MirrorError):
    """Offsets can be changed only while nobody carries."""

    code = "FLOW_NOT_STOPPED"


@dataclass(frozen=True, slots=True)
class Altered:
    """One partition: the next upstream offset before (None: it had none) and after."""

    at: TopicPartition
    before: int | None
    after: int
    is_reset: bool

    def __str__(self) -> str:
        before = "nowhere" if self.before is None else str(self.before)
        how = " (starts over)" if self.is_reset else ""
        return f"{self.at}: goes on at {self.after}{how}, was at {before}"


# -- Connect's shape ---------------------------------------------------------------------------------------------------


def offsets_document(settings: FlowSettings, offsets: Mapping[TopicPartition, int | None]) -> dict[str, Any]:
    return {
        "offsets": [
            {
                "partition": {"cluster": settings.flow.source, "partition": at.partition, "topic": at.topic},
                "offset": None if last is None else {"offset": last},
            }
            for at, last in sorted(offsets.items())
        ]
    }


def parse_offsets(settings: FlowSettings, document: object) -> dict[TopicPartition, int | None]:
    """The other way. Raises OffsetsRefused, which names the entry."""
    entries = document.get("offsets") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise OffsetsRefused('not of the form {"offsets": [{"partition": {…}, "offset": {…}}]}')
    if not entries:
        raise OffsetsRefused("offsets: the list is empty; give at least one partition")
    found: dict[TopicPartition, int | None] = {}
    for number, entry in enumerate(entries):
        at, last = _parse_entry(settings, entry, f"offsets[{number}]")
        if at in found:
            raise OffsetsRefused(f"offsets[{number}]: {at} is given twice")
        found[at] = last
    return found


def _parse_entry(settings: FlowSettings, entry: object, place: str) -> tuple[TopicPartition, int | None]:
    if not isinstance(entry, dict) or set(entry) != {"partition", "offset"}:
        raise OffsetsRefused(f"{place}: must have partition and offset, and nothing else")
    partition, offset = entry["partition"], entry["offset"]
    if not isinstance(partition, dict) or set(partition) != _PARTITION_FIELDS:
        raise OffsetsRefused(f"{place}.partition: must have cluster, topic and partition, and nothing else")
    cluster, topic, number = partition["cluster"], partition["topic"], partition["partition"]
    if cluster != settings.flow.source:
        raise OffsetsRefused(
            f"{place}.partition.cluster: {cluster!r} is not the source of {settings.flow}, {settings.flow.source}"
        )
    if not isinstance(topic, str) or not topic:
        raise OffsetsRefused(f"{place}.partition.topic: must be a topic's name")
    if not _is_whole(number, PARTITION_MAX):
        raise OffsetsRefused(f"{place}.partition.partition: must be a whole number from 0 to {PARTITION_MAX}")
    if offset is None:
        return TopicPartition(topic, number), None
    if not isinstance(offset, dict) or set(offset) != {"offset"} or not _is_whole(offset["offset"], OFFSET_MAX):
        raise OffsetsRefused(f'{place}.offset: must be null or {{"offset": a whole number from 0}}')
    return TopicPartition(topic, number), offset["offset"]


def _is_whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


# -- what is on the target ---------------------------------------------------------------------------------------------


class FlowOffsets:
    """``async with FlowOffsets(settings) as offsets`` reaches both clusters and looks at the flow's topics."""

    def __init__(self, settings: FlowSettings) -> None:
        self.settings = settings
        self._source = ClusterClient(settings.source, f"mirrorspark|{settings.flow}|offsets")
        self._target = ClusterClient(settings.target, f"mirrorspark|{settings.flow}|offsets")
        self._rules = TopicRules(settings)
        self._stored = ConnectOffsets(self._target, settings)
        self._group = GroupPositions(self._target, positions_group(settings.flow))
        self._here: dict[str, SeenTopic] = {}
        self._there: dict[str, SeenTopic] = {}

    async def __aenter__(self) -> FlowOffsets:
        try:
            await reach_cluster(self._source)
            await reach_cluster(self._target)
            self._here = seen(await self._source.refresh(None))
            self._there = seen(await self._target.refresh(None))
            await self._stored.open(Deadline(TIMEOUT_S))
        except BaseException:
            self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        self._source.close()
        self._target.close()

    def _remote(self, at: TopicPartition) -> TopicPartition:
        return TopicPartition(self._rules.policy.remote(at.topic), at.partition)

    def _carried(self) -> list[TopicPartition]:
        """Partitions of the source that the flow takes and that have a copy."""
        return [
            TopicPartition(name, number)
            for name, topic in self._here.items()
            if self._rules.chosen.refusal(name) is None
            for number in range(topic.partitions)
            if self._is_there(self._remote(TopicPartition(name, number)))
        ]

    def _is_there(self, remote: TopicPartition) -> bool:
        topic = self._there.get(remote.topic)
        return topic is not None and remote.partition < topic.partitions

    # -- show -------------------------------------------------------------------------------------------------------

    async def show(self) -> dict[TopicPartition, int]:
        """The last mirrored offset of each partition: our own position, else what MirrorMaker 2 stored."""
        deadline = Deadline(TIMEOUT_S)
        offsets = await self._stored.read(deadline)
        for at, position in (await self._positions(deadline)).items():
            offsets.pop(at, None)
            if position.upstream_next > 0:
                offsets[at] = position.upstream_next - 1
        return offsets

    async def _positions(self, deadline: Deadline) -> dict[TopicPartition, Position]:
        committed = await self._group.fetch_all(deadline)
        found = {}
        for at in self._carried():
            told = committed.get(self._remote(at))
            position = Position.from_commit(*told) if told else None
            if position is not None:
                found[at] = position
        return found

    # -- change -----------------------------------------------------------------------------------------------------

    async def alter(
        self, wanted: Mapping[TopicPartition, int | None], *, dry_run: bool = False, force: bool = False
    ) -> list[Altered]:
        """Raises FlowNotStopped or OffsetsRefused before anything is written. ``force``: the mirror is known to be dead."""
        await self._check_stopped(force)
        for at in wanted:
            self._check_place(at)
        deadline = Deadline(TIMEOUT_S)
        starts = await list_offsets(self._source, wanted, EARLIEST, deadline)
        ends = await list_offsets(self._source, wanted, LATEST, deadline)
        for at, last in wanted.items():
            self._check_offset(at, last, starts[at], ends[at])
        after = {at: last + 1 for at, last in wanted.items() if last is not None}
        listed = {StartKind.EARLIEST: starts, StartKind.LATEST: ends}
        for at in wanted.keys() - after.keys():
            known = listed.get(start_of(self.settings, *at).kind)
            after[at] = known[at] if known else (await first_upstream(self._source, at, self.settings, deadline))[0]
        before = await self._positions(deadline)
        if not dry_run:
            await self._write(wanted, after, before, deadline)
        return [
            Altered(at, before[at].upstream_next if at in before else None, after[at], wanted[at] is None)
            for at in sorted(wanted)
        ]

    async def reset(self, topics: Iterable[str] = (), *, dry_run: bool = False, force: bool = False) -> list[Altered]:
        """Every partition of these topics, or of the whole flow, starts over."""
        names = set(topics)
        carried = self._carried()
        for name in sorted(names - {at.topic for at in carried}):
            self._check_place(TopicPartition(name, 0))
        wanted = [at for at in carried if not names or at.topic in names]
        if not wanted:
            await self._check_stopped(force)
            return []
        return await self.alter(dict.fromkeys(wanted), dry_run=dry_run, force=force)

    async def _check_stopped(self, force: bool) -> None:
        flow = self.settings.flow
        try:
            async with FlowOnTarget(self.settings) as there:
                plan = there.plan
                if plan is None or (plan.stopping and all(one.state == "ended" for one in there.status.lanes.values())):
                    return
                await there.watch(LISTEN_S)
                is_alive = len(there.status.lanes) > len(there.status.lanes_silent)
        except NeverRan:
            return
        if is_alive:
            raise FlowNotStopped(f"flow {flow} runs, led by {plan.owner}: stop it before its offsets are changed")
        if not force:
            raise FlowNotStopped(
                f"flow {flow} was not stopped in order; it was last led by {plan.owner}. If that is dead, give --force; "
                "else start the mirror and stop it"
            )

    def _check_place(self, at: TopicPartition) -> None:
        flow = self.settings.flow
        topic = self._here.get(at.topic)
        if topic is None:
            raise OffsetsRefused(f"{at}: cluster {flow.source} has no topic {at.topic}")
        refusal = self._rules.chosen.refusal(at.topic)
        if refusal is not None:
            raise OffsetsRefused(f"{at}: not carried by {flow}: {refusal}")
        if at.partition >= topic.partitions:
            raise OffsetsRefused(f"{at}: {at.topic} has {topic.partitions} partitions on cluster {flow.source}")
        if not self._is_there(self._remote(at)):
            raise OffsetsRefused(
                f"{at}: its copy {self._remote(at)} is not on cluster {flow.target} yet; it begins at its first record. Run "
                "the flow once, stop it, then set the offset"
            )

    def _check_offset(self, at: TopicPartition, last: int | None, start: int, end: int) -> None:
        if last is None:
            return
        if last >= end:
            raise OffsetsRefused(
                f"{at}: offset {last} is beyond the end: the last record on cluster {self.settings.flow.source} is "
                f"{end - 1}" + ("" if end > start else " and its log is empty")
            )
        if last + 1 < start:
            raise OffsetsRefused(
                f"{at}: offset {last} lies before the log of cluster {self.settings.flow.source}, which begins at {start}; "
                "null starts over there"
            )

    async def _write(
        self,
        wanted: Mapping[TopicPartition, int | None],
        after: Mapping[TopicPartition, int],
        before: Mapping[TopicPartition, Position],
        deadline: Deadline,
    ) -> None:
        """What Connect reads first, then our own positions, which count."""
        await ensure_internal_topics(self._target, self.settings)
        await self._stored.open(deadline)
        await self._stored.write(wanted, deadline)
        ends = await list_offsets(self._target, [self._remote(at) for at in wanted], LATEST, deadline)
        positions = {}
        for at in wanted:
            remote = self._remote(at)
            writer = before[at].writer if at in before else None
            positions[remote] = Position(
                after[at],
                ends[remote],
                self._here[at.topic].topic_id,
                -1,
                writer
                if writer is not None and not writer.clean
                else None,  # whoever was cut off is still to be fenced
                None,
                self._there[remote.topic].topic_id,
            ).to_commit()
        await self._group.commit(positions, deadline)
