"""A flow as it stands on its target, for commands that look at it or steer it without running it.

Everything is on the target's plan and status topics, so it does not matter where the mirror runs, or whether it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.log_reader import LATEST, list_offset
from mirrorspark.control.flow_runtime import reach_cluster
from mirrorspark.control.pauses import PAUSE_KEY, format_pauses, parse_pauses
from mirrorspark.control.plan_record import read_plan
from mirrorspark.errors import ClusterError, MirrorError, SettingsError
from mirrorspark.names import TopicPartition
from mirrorspark.observe.flow_status import LANE_START_S, FlowStatus
from mirrorspark.offsets.internal_topics import PLAN_KEY, plan_topic, status_topic
from mirrorspark.offsets.parity import Parity
from mirrorspark.offsets.position import Position, positions_group
from mirrorspark.plan.lanes import Assignment, Plan
from mirrorspark.settings import FlowSettings

__all__ = ["FlowOnTarget", "NeverRan", "Place"]

READ_TIMEOUT_S = 30.0
FOLLOW_MS = 250
OFFSETS_ASKED_MAX = 64
"""Partitions of the source that are asked for their end at the same time."""


class NeverRan(MirrorError):
    code = "NEVER_RAN"


@dataclass(frozen=True, slots=True)
class Place:
    """One partition: where it goes, how far it got, what is left. Offsets are None where nobody could say."""

    assignment: Assignment
    lane: int
    upstream_next: int | None = None
    upstream_end: int | None = None
    downstream_end: int | None = None
    parity: Parity | None = None
    """With offsets=identical: since where they are, and until where."""

    @property
    def lag_records(self) -> int | None:
        if self.upstream_end is None or self.upstream_next is None:
            return None
        return max(0, self.upstream_end - self.upstream_next)


@dataclass
class FlowOnTarget:
    """``async with`` reaches the target and reads both topics. Raises NeverRan where they are not there,
    BrokerError where they may not be read."""

    settings: FlowSettings
    plan: Plan | None = None
    status: FlowStatus = field(init=False)
    paused: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        settings = self.settings
        self.status = FlowStatus(str(settings.flow), settings.tasks_max, settings.topics)
        self._target = ClusterClient(settings.target, f"mirrorspark|{settings.flow}|command")
        self._plans = KeyedTopic(self._target, plan_topic(settings.flow.books))
        self._statuses = KeyedTopic(self._target, status_topic(settings.flow.books))

    async def __aenter__(self) -> FlowOnTarget:
        try:
            await reach_cluster(self._target)
            await self._read()
        except BaseException:
            self._target.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._target.close()

    async def _read(self) -> None:
        names = [self._plans.topic, self._statuses.topic]
        flow = self.settings.flow
        missing = {topic.name: topic.error_code for topic in await self._target.refresh(names) if topic.error_code}
        for name, code in missing.items():
            if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:  # whether it ran we cannot know
                about = f"topic {name} on cluster {flow.target}"
                raise broker_error(code, "Metadata", about, before="Fetch", flow=str(flow))
        if missing:
            raise NeverRan(
                f"flow {flow}: cluster {flow.target} has no topic {next(iter(missing))}: no mirrorspark has run this flow "
                "there yet"
            )
        deadline = Deadline(READ_TIMEOUT_S)
        plans = await self._plans.read_all(deadline)
        self._take_plan(read_plan(raw) if (raw := plans.get(PLAN_KEY)) else None)
        self._take_pauses(plans.get(PAUSE_KEY))
        for key, value in (await self._statuses.read_all(deadline)).items():
            self.status.fold(key, value, fresh=False)

    def _take_plan(self, plan: Plan | None) -> None:
        self.plan = plan
        if plan is None:
            self.status.state = "never started"
            return
        self.status.lanes_expected = len(plan.lanes)
        self.status.begin(plan.owner.generation, waited_s=LANE_START_S)
        self.status.follow_plan(([one.remote for one in lane] for lane in plan.lanes), plan.paused)
        self.status.matched = len({one.source.topic for one in self.assignments})
        self.status.state = "running"

    def _take_pauses(self, raw: bytes | None) -> None:
        try:
            self.paused = parse_pauses(raw)
        except SettingsError as error:
            self.status.fail("reading the pause record", str(error))

    @property
    def target(self) -> ClusterClient:
        """For whoever has more to ask there."""
        return self._target

    @property
    def assignments(self) -> list[Assignment]:
        return [one for lane in self.plan.lanes for one in lane] if self.plan else []

    # -- look -------------------------------------------------------------------------------------------------------

    async def watch(self, seconds: float) -> None:
        """Follow until every lane has reported anew, or for so long: a lane that lives reports every second."""
        deadline = Deadline(seconds)
        while self.plan is not None and not deadline.passed and (self.status.lanes_silent or self.status.lanes_missing):
            for key, value in await self._statuses.follow(Deadline(READ_TIMEOUT_S), FOLLOW_MS):
                self.status.fold(key, value)
        if self.plan is not None and self.plan.stopping and not self.is_carried:
            self.status.state = "stopped"

    async def hear(self) -> None:
        """Take in what lanes have reported since; waits a moment for the first."""
        for key, value in await self._statuses.follow(Deadline(READ_TIMEOUT_S), FOLLOW_MS):
            self.status.fold(key, value)

    @property
    def is_carried(self) -> bool:
        """Whether a lane has reported since we look: a mirror is at work. Asked after ``watch``."""
        return len(self.status.lanes) > len(self.status.lanes_silent)

    async def places(self) -> list[Place]:
        """How far each partition got: positions from the target, ends from the source, if it can be reached."""
        assert self.plan is not None
        flow = self.settings.flow
        wanted = [one.remote for one in self.assignments]
        group = GroupPositions(self._target, positions_group(flow))
        committed = await group.fetch(wanted, Deadline(READ_TIMEOUT_S)) if wanted else {}
        ends = await self._ends()
        found = []
        for index, lane in enumerate(self.plan.lanes):
            for one in lane:
                at = committed.get(one.remote)
                position = Position.from_commit(*at) if at else None
                found.append(
                    Place(
                        one,
                        index,
                        position.upstream_next if position else None,
                        ends.get(one.source),
                        position.downstream_end if position else None,
                        position.parity if position else None,
                    )
                )
        return found

    async def _ends(self) -> dict[TopicPartition, int]:
        source = ClusterClient(self.settings.source, f"mirrorspark|{self.settings.flow}|command")
        turns = asyncio.Semaphore(OFFSETS_ASKED_MAX)
        deadline = Deadline(READ_TIMEOUT_S)

        async def end(at: TopicPartition) -> int:
            async with turns:
                return await list_offset(source, at, LATEST, deadline)

        partitions = [one.source for one in self.assignments]
        try:
            await reach_cluster(source)
            await source.refresh(sorted({at.topic for at in partitions}))
            there = [at for at in partitions if source.leader(at) is not None]
            return dict(zip(there, await asyncio.gather(*(end(at) for at in there)), strict=True))
        except ClusterError as error:
            self.status.fail("asking the source how far it is", str(error))
            return {}
        finally:
            source.close()

    # -- steer ------------------------------------------------------------------------------------------------------

    async def acknowledge(self, keys: Iterable[str]) -> None:
        entries: list[tuple[bytes, bytes | None]] = [(key.encode(), None) for key in keys]
        if entries:
            await self._statuses.append(entries, Deadline(READ_TIMEOUT_S))

    async def pause(self, topics: frozenset[str], wait_s: float) -> bool:
        """Write what shall be paused from now on; whether a mirror took it into its plan in time."""
        await self._plans.append([(PAUSE_KEY, format_pauses(topics))], Deadline(READ_TIMEOUT_S))
        self.paused = topics
        if self.plan is not None and self.plan.paused == topics:
            return True
        deadline = Deadline(wait_s)
        while not deadline.passed:
            for key, raw in await self._plans.follow(Deadline(READ_TIMEOUT_S), FOLLOW_MS):
                if key == PLAN_KEY and raw and read_plan(raw).paused == topics:
                    return True
        return False
