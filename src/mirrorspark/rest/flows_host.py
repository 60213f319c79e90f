"""What stands behind ``/mirrorspark/v1``: the flows of a process, in the words of ``flow_views``.

``control.flows`` implements it for ``run`` and ``serve``; tests have one in memory. A flow is named as it is written,
``A->B`` or ``A->B/instance``. A host raises ``Refusal`` for whatever it does not do or does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mirrorspark.rest.connector_host import Refusal
from mirrorspark.rest.flow_views import (
    Acknowledged,
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

__all__ = ["FlowsHost", "no_flow"]


def no_flow(flow: str) -> Refusal:
    return Refusal(f"Flow {flow} is not here; GET /mirrorspark/v1/flows lists those that are", 404)


class FlowsHost(Protocol):
    @property
    def command(self) -> str:
        """``run`` or ``serve``."""

    # -- from memory ------------------------------------------------------------------------------------------------

    def flows(self) -> FlowList: ...
    def flow(self, flow: str) -> FlowView: ...
    def topology(self) -> Topology: ...

    def partitions(self, flow: str, page: Page, *, by_name: bool) -> PartitionPage:
        """Sorted by name, or by lag with the largest first."""

    def lanes(self, flow: str) -> FlowLanes: ...
    def lag(self, flow: str, page: Page, sort: TopicSort) -> FlowLagView:
        """Of the whole flow, and of the topics on the page."""

    def config(self, flow: str) -> FlowConfig: ...

    def events(self, flow: str | None, page: Page) -> EventPage:
        """Of one flow or of all, newest first."""

    # -- by asking clusters -----------------------------------------------------------------------------------------

    async def groups(self, flow: str, page: Page) -> GroupPage: ...
    async def group(self, flow: str, group: str) -> GroupView: ...
    async def readiness(self, flow: str, mode: str) -> ReadinessView: ...
    async def translate(self, flow: str, topic: str, partition: int, offset: int) -> TranslationView: ...

    # -- steering ---------------------------------------------------------------------------------------------------

    async def pause(self, flow: str, topics: Sequence[str]) -> PausedView:
        """The whole flow, if no topic is named."""

    async def resume(self, flow: str, topics: Sequence[str]) -> PausedView: ...

    async def acknowledge(self, flow: str | None, keys: Sequence[str]) -> Acknowledged:
        """All of them or, if one is unknown, none. The key ``all`` stands for every event."""
