"""The flows of one process: each with a life, a status and heartbeats of its own, begun, changed and ended one by one.

``runner`` fills it from the file, ``reload`` hands it the difference that an edit makes. Nothing here waits for one flow
on behalf of another: a flow that fails, drains or starts anew does so alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from mirrorspark.control.bandwidth_sharing import BandwidthPool
from mirrorspark.control.ending import end_tasks
from mirrorspark.control.flow_life import THE_FLOW, FlowLife
from mirrorspark.control.flow_runtime import Query
from mirrorspark.control.heartbeats import HeartbeatJob
from mirrorspark.control.lane_demand import LaneDemand
from mirrorspark.control.lane_shares import LaneShare, lane_shares
from mirrorspark.control.live_change import Changes
from mirrorspark.control.live_view import complain
from mirrorspark.errors import SettingsError, SparkLost
from mirrorspark.events import Event
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.settings import FlowSettings

__all__ = ["FlowSet", "QuerySource"]

log = logging.getLogger("mirrorspark")

HEARTBEATS_ONLY = "heartbeats only"


class QuerySource(Protocol):
    """What flows need of Spark."""

    @property
    def where(self) -> str: ...
    @property
    def tasks_at_once(self) -> int | None: ...
    def begin(self, lanes: int) -> None: ...
    def up(self) -> Awaitable[object]: ...
    def make_query(self, settings: FlowSettings, generation: int) -> Query: ...
    def carry_early(self, settings: FlowSettings, generation: int) -> bool: ...


@dataclass
class _Member:
    """One pair of clusters. ``life`` is None where only heartbeats are emitted."""

    settings: FlowSettings
    status: FlowStatus
    life: FlowLife | None = None
    demand: LaneDemand = field(default_factory=LaneDemand)
    living: asyncio.Task[None] | None = None
    beating: asyncio.Task[None] | None = None

    @property
    def is_alive(self) -> bool:
        return self.life is not None and self.living is not None and not self.living.done()


@dataclass
class FlowSet:
    spark: QuerySource
    on_event: Callable[[str, Event], None] = lambda flow, event: None
    on_spark_lost: Callable[[], None] = lambda: None
    spark_lost: SparkLost | None = None
    pool: BandwidthPool = field(default_factory=BandwidthPool)
    """What all flows of the process may read together."""
    refused: dict[Flow, SettingsError] = field(default_factory=dict)
    """Flows whose part of the file is wrong; they are shown as failed and not tried."""
    shown: list[FlowStatus] = field(default_factory=list)
    """What a person is shown: flows, and pairs that only beat where that fails. Always the same list."""
    _members: dict[Flow, _Member] = field(default_factory=dict)
    _refused: list[FlowStatus] = field(default_factory=list)
    _ends: set[asyncio.Task[None]] = field(default_factory=set)
    _is_closing: bool = False

    # -- begin, change, end -----------------------------------------------------------------------------------------

    def begin(self, settings: FlowSettings, status: FlowStatus | None = None) -> None:
        """``status``: of the same flow before, which goes on counting."""
        member = _Member(settings, status or FlowStatus(str(settings.flow)))
        self._members[settings.flow] = member
        if settings.enabled:
            self.spark.begin(self.lane_count)
            self._live(member)
        else:
            member.status.state, member.status.lanes_expected = HEARTBEATS_ONLY, 0
        self._beat(member)

    def _live(self, member: _Member) -> None:
        spark, settings = self.spark, member.settings
        life = FlowLife(settings, spark.make_query, spark.up, spark.carry_early, member.status, self.pool)
        life.on_event = lambda event: self.on_event(str(settings.flow), event)
        life.lane_share = lambda: self._lane_share(settings.flow)
        member.life = life
        member.living = asyncio.ensure_future(self._until_its_end(life))

    async def _until_its_end(self, life: FlowLife) -> None:
        """A life ends by itself only when the flow was taken over (told there) or when Spark is gone."""
        try:
            await life.live()
        except SparkLost as error:
            if self.spark_lost is None:
                complain(f"{error.code}: {error}")
            self.spark_lost = error
            self.on_spark_lost()
        except Exception:
            log.exception("%s: its life ended", life.settings.flow)

    def _beat(self, member: _Member) -> None:
        if member.settings.heartbeats.emitted:
            member.beating = asyncio.ensure_future(HeartbeatJob(member.settings, member.status).run())

    def refuse(self, errors: Mapping[Flow, SettingsError]) -> None:
        """All the flows that cannot be begun, each told by name; the others are."""
        for flow, error in errors.items():
            if str(error) != str(self.refused.get(flow, "")):
                complain(f"{error.code}: flow {flow}: {error}")
        self.refused = dict(errors)
        self._refused = [
            FlowStatus(str(flow), state="failed", failures={THE_FLOW: str(error)}) for flow, error in errors.items()
        ]

    async def apply(self, changes: Changes) -> None:
        """Returns when everything has begun, been told or ended. A cancelled caller leaves what ends to ``stop``."""
        for settings in changes.told:
            await self._tell(self._members[settings.flow], settings)
        ends = [self._end_later(self._remove(flow)) for flow in changes.removed]
        ends += [self._end_later(self._restart(settings)) for settings in changes.restarted]
        for settings in changes.added:
            self.begin(settings)
        if ends:
            await asyncio.wait(ends)

    async def _tell(self, member: _Member, settings: FlowSettings) -> None:
        heartbeats_stay = (member.settings.heartbeats, member.settings.target) == (settings.heartbeats, settings.target)
        member.settings = settings
        if member.life is not None:
            member.life.change(settings)
        if not heartbeats_stay:
            await self._end_beating(member)
            self._beat(member)

    def _end_later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)
        return task

    async def _remove(self, flow: Flow) -> None:
        await self._end(self._members[flow])
        del self._members[flow]

    async def _restart(self, settings: FlowSettings) -> None:
        member = self._members[settings.flow]
        await self._end(member)
        if self._is_closing:
            return
        member.status.failures.clear()
        self.begin(settings, member.status)

    async def _end(self, member: _Member) -> None:
        await self._end_beating(member)
        if member.living is not None and member.life is not None:
            await end_tasks([member.living])
            await member.life.stop()

    async def _end_beating(self, member: _Member) -> None:
        if member.beating is not None:
            await end_tasks([member.beating])
            member.beating = None

    async def stop(self) -> None:
        """Drain all flows; what an edit was just ending ends first."""
        self._is_closing = True
        if self._ends:
            await asyncio.wait(set(self._ends))
        members = list(self._members.values())
        results = await asyncio.gather(*(self._end(member) for member in members), return_exceptions=True)
        for member, result in zip(members, results, strict=True):
            if isinstance(result, BaseException):
                log.error("%s: stopping", member.settings.flow, exc_info=result)

    def show_edit(self, refused: str) -> None:
        """Why an edit was refused, with every flow of the process, until a good one comes (an empty text)."""
        for life in self.lives:
            life.show_edit(refused)

    # -- what there is ----------------------------------------------------------------------------------------------

    @property
    def lives(self) -> list[FlowLife]:
        return [member.life for member in self._members.values() if member.life is not None]

    @property
    def statuses(self) -> list[FlowStatus]:
        """Of all pairs, also of those that only beat and of those that could not be begun."""
        return [*(member.status for member in self._members.values()), *self._refused]

    @property
    def pairs(self) -> list[tuple[Flow, FlowSettings | None, FlowStatus]]:
        """All of them, in the file's order; no settings for those that could not be begun."""
        refused = zip(self.refused, self._refused, strict=True)
        return [
            *((flow, member.settings, member.status) for flow, member in self._members.items()),
            *((flow, None, status) for flow, status in refused),
        ]

    def life_of(self, flow: Flow) -> FlowLife | None:
        """None for a pair that only beats, and for one that is not here."""
        member = self._members.get(flow)
        return member.life if member is not None else None

    def status_of(self, flow: Flow) -> FlowStatus | None:
        member = self._members.get(flow)
        return member.status if member is not None else None

    @property
    def lane_count(self) -> int:
        return sum(self._lanes_wanted.values())

    @property
    def _lanes_wanted(self) -> dict[Flow, int]:
        return {flow: one.settings.tasks_max for flow, one in self._members.items() if one.settings.enabled}

    def _lane_share(self, flow: Flow) -> LaneShare:
        """Asked by each flow every few seconds, and so told of its lag."""
        status = self._members[flow].status
        self._members[flow].demand.look(0 if status.is_paused else status.lag_records, status.rates[0])
        behind = [other for other, one in self._members.items() if one.demand.is_behind]
        return lane_shares(self._lanes_wanted, self.spark.tasks_at_once, self.spark.where, behind)[flow]

    @property
    def errors(self) -> list[Exception]:
        """Of the flows that are not well now."""
        return [*(life.error for life in self.lives if life.error is not None), *self.refused.values()]

    @property
    def has_begun(self) -> bool:
        """Whether there is nothing left that might be about to start for the first time."""
        return all(life.has_led or life.error is not None for life in self.lives)

    @property
    def is_worth_it(self) -> bool:
        """At the start one flow without an error is enough; later, one whose error passes by itself is, too."""
        alive = [member.life for member in self._members.values() if member.is_alive and member.life is not None]
        if self._ends or any(life.error is None for life in alive):
            return True
        if not self.lives and not self.refused:
            return any(member.beating is not None for member in self._members.values())
        return any(life.has_led for life in self.lives) and not all(life.is_hopeless for life in alive)

    def look(self) -> list[FlowStatus]:
        """Bring ``shown`` up to date."""
        self.shown[:] = [
            *(one.status for one in self._members.values() if one.settings.enabled or one.status.failures),
            *self._refused,
        ]
        return self.shown
