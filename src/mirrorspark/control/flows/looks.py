"""What has to be asked of the clusters: groups on both sides, readiness to fail over, an offset translated.

Each look opens connections of its own and closes them, so that it cannot disturb the flow; few run at a time, and who comes
when many wait is refused. Changes nothing. ``hosting`` calls it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mirrorspark.control.failover.failover import Choices, Failover
from mirrorspark.control.failover.record import Mode
from mirrorspark.control.failover.reverse_flow import ReverseFlow, reversed_settings
from mirrorspark.control.flow_on_target import NeverRan
from mirrorspark.control.flows.pictures import now_ms
from mirrorspark.control.group_view import GroupDescription, GroupPartition, GroupView, UnknownGroup
from mirrorspark.errors import ClusterError, SettingsError
from mirrorspark.names import Flow
from mirrorspark.rest import flow_views
from mirrorspark.rest.connector_host import Refusal
from mirrorspark.rest.flow_views import GroupPage, GroupRow, Page, PositionView, ReadinessView, TranslationView
from mirrorspark.settings import FlowSettings

__all__ = ["ClusterLooks"]

LOOKS_AT_ONCE_MAX = 2
LOOKS_WAITING_MAX = 16
GROUPS_FRESH_S = 10.0
"""Groups are listed at most so often: a page that is open must not read the ledger again and again."""


@dataclass(frozen=True)
class _Groups:
    looked_at: float
    at_ms: int
    rows: tuple[GroupRow, ...]
    notices: tuple[str, ...]


class ClusterLooks:
    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(LOOKS_AT_ONCE_MAX)
        self._waiting = 0
        self._groups: dict[Flow, _Groups] = {}
        self._one_at_a_time: dict[Flow, asyncio.Lock] = {}

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._waiting >= LOOKS_WAITING_MAX:
            raise Refusal(f"{LOOKS_WAITING_MAX} questions to the clusters wait already; try again in some seconds", 503)
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        except NeverRan as error:
            raise Refusal(error.message, 409) from error
        finally:
            self._turns.release()

    # -- groups -----------------------------------------------------------------------------------------------------

    async def groups(self, settings: FlowSettings, page: Page) -> GroupPage:
        found = await self._listed(settings)
        search = page.search.strip().lower()
        matched = [one for one in found.rows if search in one.group.lower()]
        return GroupPage(
            str(settings.flow),
            found.at_ms,
            len(found.rows),
            len(matched),
            page.limit,
            page.offset,
            settings.group_sync.offsets_enabled,
            list(found.notices),
            matched[page.offset : page.offset + page.limit],
        )

    async def _listed(self, settings: FlowSettings) -> _Groups:
        """Several who ask at once share one look."""
        flow = settings.flow
        async with self._one_at_a_time.setdefault(flow, asyncio.Lock()):
            known = self._groups.get(flow)
            if known is not None and time.monotonic() - known.looked_at < GROUPS_FRESH_S:
                return known
            async with self._turn(), GroupView(settings) as view:
                rows = tuple(_row(one) for one in await view.list_all())
            self._groups[flow] = _Groups(time.monotonic(), now_ms(), rows, tuple(view.notices))
            return self._groups[flow]

    async def group(self, settings: FlowSettings, group: str) -> flow_views.GroupView:
        async with self._turn():
            try:
                async with GroupView(settings) as view:
                    found = await view.describe(group)
            except UnknownGroup as error:
                raise Refusal(error.message, 404) from error
        row = _row(found)
        return flow_views.GroupView(
            str(settings.flow),
            now_ms(),
            row.group,
            row.kind,
            row.state,
            row.target_state,
            row.target_members,
            row.lag_records,
            row.exact,
            row.in_step,
            row.ready,
            row.word,
            row.left_out,
            [_position(one) for one in found.partitions],
        )

    # -- failover ---------------------------------------------------------------------------------------------------

    async def readiness(self, settings: FlowSettings, others: Sequence[FlowSettings], mode: Mode) -> ReadinessView:
        """What is in the way of even looking (a target that is away, a flow that never ran) is a check like the others."""
        reverse = _reverse(settings, others)
        try:
            async with self._turn(), Failover(settings, reverse, Choices(mode)) as failover:
                report = (await failover.plan()).to_json()
        except Refusal as error:
            if error.status != 409:
                raise
            return _not_ready(settings, mode, "mirror", error.message)
        except ClusterError as error:
            return _not_ready(settings, mode, "clusters", error.message)
        except SettingsError as error:
            return _not_ready(settings, mode, "failover", error.message)
        state = str(report["state"])
        return ReadinessView(
            str(settings.flow),
            mode.value,
            now_ms(),
            state == "ready",
            state,
            report["checks"],
            report["steps"],
            report["notices"],
        )

    # -- the ledger -------------------------------------------------------------------------------------------------

    async def translate(self, settings: FlowSettings, topic: str, partition: int, offset: int) -> TranslationView:
        async with self._turn():
            try:
                async with GroupView(settings) as view:
                    found = await view.translate(topic, partition, offset)
            except SettingsError as error:
                raise Refusal(error.message.removeprefix("--"), 400) from error
        return TranslationView(
            str(settings.flow),
            topic,
            partition,
            offset,
            found.upstream_end,
            found.remote_topic,
            found.downstream_offset,
            found.exact,
            found.reason,
        )


def _reverse(settings: FlowSettings, others: Sequence[FlowSettings]) -> ReverseFlow:
    flow = settings.flow
    for one in others:
        if one.enabled and (one.flow.source, one.flow.target) == (flow.target, flow.source):
            return ReverseFlow(one, is_in_file=True)
    return ReverseFlow(reversed_settings(settings), is_in_file=False)


def _not_ready(settings: FlowSettings, mode: Mode, subject: str, text: str) -> ReadinessView:
    checks = [{"level": "stop", "subject": subject, "text": text}]
    return ReadinessView(str(settings.flow), mode.value, now_ms(), False, "not ready", checks)


def _row(one: GroupDescription) -> GroupRow:
    return GroupRow(
        one.group,
        one.kind,
        one.state,
        one.target_state,
        one.target_members,
        len(one.partitions),
        one.lag,
        one.is_exact,
        one.is_in_step,
        bool(one.partitions) and one.is_in_step and not one.in_use_on_target,
        one.word,
        one.left_out,
    )


def _position(one: GroupPartition) -> PositionView:
    return PositionView(
        one.topic,
        one.remote_topic,
        one.partition,
        one.upstream_offset,
        one.upstream_end,
        one.lag,
        one.downstream_offset,
        one.target_offset,
        one.exact,
        one.reason,
        one.verdict,
        one.is_beyond_end,
    )
