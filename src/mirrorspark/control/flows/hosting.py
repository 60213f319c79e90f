"""The ``FlowsHost`` of a process: its flows from memory, and what else is asked from the clusters themselves.

``rest_endpoint`` (``run``) and ``connect.serving`` (``serve``) make one. Pauses and acknowledgements are written to the
flow's own topics on the target, as the commands write them, and come back from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.config.levels import Effective
from mirrorspark.control.failover.record import Mode
from mirrorspark.control.flow_on_target import FlowOnTarget, NeverRan
from mirrorspark.control.flow_set import FlowSet
from mirrorspark.control.flows.looks import ClusterLooks
from mirrorspark.control.flows.partition_pages import partition_page
from mirrorspark.control.flows.pictures import (
    event_views,
    flow_view,
    lag_view,
    lane_views,
    note_asked,
    now_ms,
    setting_views,
    topology_flow,
)
from mirrorspark.control.pause_changes import paused_with, paused_without, remote_name
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import EVERYTHING, FlowStatus
from mirrorspark.rest.connector_host import Refusal
from mirrorspark.rest.flow_views import (
    Acknowledged,
    Cluster,
    EventPage,
    FlowConfig,
    FlowLagView,
    FlowLanes,
    FlowList,
    FlowView,
    GroupPage,
    GroupView,
    Page,
    PartitionPage,
    PausedView,
    ReadinessView,
    TopicSort,
    Topology,
    TranslationView,
)
from mirrorspark.rest.flows_host import no_flow
from mirrorspark.settings import FlowSettings

__all__ = ["FlowsHosting", "Hold"]

ALL = "all"
TAKEN_WAIT_S = 5.0
"""A mirror that runs takes a pause into its plan in about half a second."""
POLL_S = 0.05
NAMES_SHOWN_MAX = 10

Hold = Callable[[Flow, bool], Awaitable[None]]
"""Hold a whole flow, or let it go, where somebody else keeps that too: a connector's state."""


class FlowsHosting:
    def __init__(
        self,
        command: str,
        flows: FlowSet,
        effective: Callable[[Flow], Sequence[Effective]],
        *,
        file: str | None = None,
        hold: Hold | None = None,
    ) -> None:
        """``effective``: every value that counts for a flow, with its place."""
        self._command = command
        self._flows = flows
        self._effective = effective
        self._file = file
        self._hold = hold
        self._looks = ClusterLooks()

    @property
    def command(self) -> str:
        return self._command

    # -- which flow -------------------------------------------------------------------------------------------------

    def _status(self, name: str) -> FlowStatus:
        for flow, _, status in self._flows.pairs:
            if str(flow) == name:
                note_asked(status)
                return status
        raise no_flow(name)

    def _begun(self, name: str) -> FlowSettings:
        for flow, settings, _ in self._flows.pairs:
            if str(flow) == name:
                if settings is None:
                    raise Refusal(f"{name} could not be begun: {self._flows.refused[flow]}", 409)
                return settings
        raise no_flow(name)

    def _settings(self, name: str) -> FlowSettings:
        """Of a flow that carries; others have no groups, no ledger, nothing to pause."""
        settings = self._begun(name)
        if not settings.enabled:
            raise Refusal(f"{name} carries nothing now: only heartbeats are written", 409)
        return settings

    # -- from memory ------------------------------------------------------------------------------------------------

    def flows(self) -> FlowList:
        return FlowList(now_ms(), self._views())

    def _views(self) -> list[FlowView]:
        found = []
        for flow, settings, status in self._flows.pairs:
            note_asked(status)
            found.append(flow_view(flow, status, carries=settings is None or settings.enabled))
        return found

    def flow(self, flow: str) -> FlowView:
        self._status(flow)
        return next(one for one in self._views() if one.flow == flow)

    def topology(self) -> Topology:
        clusters: dict[str, Cluster] = {}
        for _, settings, _ in self._flows.pairs:
            for one in (settings.source, settings.target) if settings is not None else ():
                clusters.setdefault(one.alias, Cluster(one.alias, [f"{host}:{port}" for host, port in one.bootstrap]))
        views = self._views()
        for view in views:  # a flow that is wrong in the file has aliases and nothing more
            for alias in (view.source, view.target):
                clusters.setdefault(alias, Cluster(alias, []))
        return Topology(list(clusters.values()), [topology_flow(view) for view in views])

    def partitions(self, flow: str, page: Page, *, by_name: bool) -> PartitionPage:
        return partition_page(self._status(flow), page, by_name=by_name)

    def lanes(self, flow: str) -> FlowLanes:
        return lane_views(self._status(flow))

    def lag(self, flow: str, page: Page, sort: TopicSort) -> FlowLagView:
        return lag_view(self._status(flow), page, sort)

    def config(self, flow: str) -> FlowConfig:
        self._status(flow)
        found = next(one for one, _, _ in self._flows.pairs if str(one) == flow)
        return FlowConfig(flow, self._file, setting_views(self._effective(found)))

    def events(self, flow: str | None, page: Page) -> EventPage:
        statuses = [status for _, _, status in self._flows.pairs] if flow is None else [self._status(flow)]
        found = event_views(statuses)
        return EventPage(len(found), page.limit, page.offset, found[page.offset : page.offset + page.limit])

    # -- by asking clusters -----------------------------------------------------------------------------------------

    async def groups(self, flow: str, page: Page) -> GroupPage:
        return await self._looks.groups(self._settings(flow), page)

    async def group(self, flow: str, group: str) -> GroupView:
        return await self._looks.group(self._settings(flow), group)

    async def readiness(self, flow: str, mode: str) -> ReadinessView:
        others = [settings for _, settings, _ in self._flows.pairs if settings is not None]
        return await self._looks.readiness(self._settings(flow), others, Mode(mode))

    async def translate(self, flow: str, topic: str, partition: int, offset: int) -> TranslationView:
        return await self._looks.translate(self._settings(flow), topic, partition, offset)

    # -- steering ---------------------------------------------------------------------------------------------------

    async def pause(self, flow: str, topics: Sequence[str]) -> PausedView:
        return await self._steer(flow, topics, is_held=True)

    async def resume(self, flow: str, topics: Sequence[str]) -> PausedView:
        return await self._steer(flow, topics, is_held=False)

    async def _steer(self, name: str, topics: Sequence[str], *, is_held: bool) -> PausedView:
        """``*`` among the topics means all of them, as in the flow's own record."""
        topics = () if EVERYTHING in topics else topics
        hold = self._hold if not topics else None
        if hold is not None:
            await hold(self._begun(name).flow, is_held)
            if not self._begun(name).enabled:  # one that never ran is not begun before it is resumed
                return PausedView(name, [EVERYTHING] if is_held else [], is_held)
        try:
            async with FlowOnTarget(self._settings(name)) as there:
                remote = [_remote(there, topic) for topic in topics]
                paused = paused_with(there, remote) if is_held else paused_without(there, remote)
                is_taken = await there.pause(paused, TAKEN_WAIT_S)
        except NeverRan as error:
            if hold is not None:
                return PausedView(name, [EVERYTHING] if is_held else [], False)
            raise Refusal(error.message, 409) from error
        if is_taken:
            await self._until(lambda: self._status(name).paused == paused)
        return PausedView(name, sorted(paused), is_taken)

    async def acknowledge(self, flow: str | None, keys: Sequence[str]) -> Acknowledged:
        wanted = set(keys)
        meant = self._with_events(flow, wanted)
        known = {key for _, some in meant for key in some}
        if unknown := sorted(wanted - {ALL} - known):
            raise Refusal(f"{unknown[0]}: no such unacknowledged event; nothing was acknowledged", 404)
        for settings, some in meant:
            async with FlowOnTarget(settings) as there:
                await there.acknowledge(some)
        for settings, some in meant:
            status = self._status(str(settings.flow))
            await self._until(lambda status=status, some=some: not set(some) & status.events.keys())  # type: ignore[misc]
        return Acknowledged([{"flow": str(settings.flow), "key": key} for settings, some in meant for key in some])

    def _with_events(self, name: str | None, wanted: set[str]) -> list[tuple[FlowSettings, list[str]]]:
        if name is not None:
            self._status(name)
        found = []
        for flow, settings, status in self._flows.pairs:
            some = [key for key in status.events if ALL in wanted or key in wanted]
            if settings is not None and name in (None, str(flow)) and some:
                found.append((settings, some))
        return found

    @staticmethod
    async def _until(is_so: Callable[[], bool]) -> None:
        """What was written comes back by the status: so that the next GET shows it. Not for ever."""
        deadline = Deadline(TAKEN_WAIT_S)
        while not is_so() and not deadline.passed:
            await asyncio.sleep(POLL_S)


def _remote(there: FlowOnTarget, topic: str) -> str:
    name = remote_name(there, topic)
    if name is None:
        known = sorted({one.source.topic for one in there.assignments})
        shown = ", ".join(known[:NAMES_SHOWN_MAX]) + (" …" if len(known) > NAMES_SHOWN_MAX else "")
        raise Refusal(f"topics: {topic} is not carried by {there.settings.flow}; carried are: {shown or 'none'}", 400)
    return name
