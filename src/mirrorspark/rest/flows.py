"""``/mirrorspark/v1``: flows as they are, over a ``FlowsHost``. What each answer holds: docs/reference/rest_flows.md.

Beside Kafka Connect's routes, in ``run`` and ``serve`` alike. Changing something is in ``flow_steering``, the stream in
``flow_stream``.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Query, Request

from mirrorspark import __version__
from mirrorspark.rest.access import Role
from mirrorspark.rest.flow_views import (
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
    ReadinessView,
    TopicSort,
    Topology,
    TranslationView,
)
from mirrorspark.rest.flows_host import FlowsHost
from mirrorspark.rest.request_schemas import FLOW_REFUSALS

__all__ = ["PREFIX", "FlowName", "flow_routes"]

PREFIX = "/mirrorspark/v1"
LIMIT_DEFAULT = 100
LIMIT_MAX = 1_000
SEARCH_LETTERS_MAX = 249
"""A topic's name has no more."""
OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1


def _flow(flow: Annotated[str, Path(description="A->B or A->B/instance, percent-encoded.")]) -> str:
    return unquote(flow)


def _group(group: Annotated[str, Path(description="The group's name, percent-encoded.")]) -> str:
    return unquote(group)


FlowName = Annotated[str, Depends(_flow)]
GroupName = Annotated[str, Depends(_group)]
Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX)]
Offset = Annotated[int, Query(ge=0, le=PARTITION_MAX)]
Search = Annotated[str, Query(max_length=SEARCH_LETTERS_MAX, description="Part of a name, whatever the case.")]


def flow_routes(host: FlowsHost) -> APIRouter:
    routes = APIRouter(prefix=PREFIX, tags=["flows"], responses=FLOW_REFUSALS)
    _all(routes, host)
    _inside(routes, host)
    _by_asking(routes, host)
    return routes


def _all(routes: APIRouter, host: FlowsHost) -> None:
    started_at_ms = int(time.time() * 1000)

    @routes.get("/about")
    async def about(request: Request) -> dict[str, Any]:
        """Version, and what the one who asks may do."""
        role = getattr(request.state, "role", None)
        return {
            "version": __version__,
            "command": host.command,
            "role": str(role or Role.OPERATOR),
            "is_open": role is None,
            "started_at_ms": started_at_ms,
        }

    @routes.get("/topology")
    async def topology() -> Topology:
        return host.topology()

    @routes.get("/flows")
    async def flows() -> FlowList:
        return host.flows()

    @routes.get("/flows/{flow}")
    async def flow(name: FlowName) -> FlowView:
        return host.flow(name)

    @routes.get("/events")
    async def events(limit: Limit = LIMIT_DEFAULT, offset: Offset = 0) -> EventPage:
        """Events that nobody acknowledged, newest first."""
        return host.events(None, Page(limit, offset))


def _inside(routes: APIRouter, host: FlowsHost) -> None:
    @routes.get("/flows/{flow}/partitions")
    async def partitions(
        name: FlowName,
        search: Search = "",
        sort: Literal["lag", "name"] = "lag",
        limit: Limit = LIMIT_DEFAULT,
        offset: Offset = 0,
    ) -> PartitionPage:
        return host.partitions(name, Page(limit, offset, search), by_name=sort == "name")

    @routes.get("/flows/{flow}/lanes")
    async def lanes(name: FlowName) -> FlowLanes:
        return host.lanes(name)

    @routes.get("/flows/{flow}/lag")
    async def lag(
        name: FlowName, search: Search = "", sort: TopicSort = "lag", limit: Limit = LIMIT_DEFAULT, offset: Offset = 0
    ) -> FlowLagView:
        """Of the flow, and by topic."""
        return host.lag(name, Page(limit, offset, search), sort)

    @routes.get("/flows/{flow}/config")
    async def config(name: FlowName) -> FlowConfig:
        """Each value that counts, with where it came from; secrets are hidden."""
        return host.config(name)

    @routes.get("/flows/{flow}/events")
    async def events_of(name: FlowName, limit: Limit = LIMIT_DEFAULT, offset: Offset = 0) -> EventPage:
        return host.events(name, Page(limit, offset))


def _by_asking(routes: APIRouter, host: FlowsHost) -> None:
    @routes.get("/flows/{flow}/groups")
    async def groups(
        name: FlowName, search: Search = "", limit: Limit = LIMIT_DEFAULT, offset: Offset = 0
    ) -> GroupPage:
        """Consumer groups on both sides; asks the clusters."""
        return await host.groups(name, Page(limit, offset, search))

    @routes.get("/flows/{flow}/groups/{group}")
    async def group(name: FlowName, group: GroupName) -> GroupView:
        return await host.group(name, group)

    @routes.get("/flows/{flow}/readiness")
    async def readiness(name: FlowName, mode: Literal["cut", "drain"] = "cut") -> ReadinessView:
        """What a failover would check; changes nothing."""
        return await host.readiness(name, mode)

    @routes.get("/flows/{flow}/ledger")
    async def ledger(
        name: FlowName,
        topic: Annotated[str, Query(min_length=1, max_length=SEARCH_LETTERS_MAX)],
        partition: Annotated[int, Query(ge=0, le=PARTITION_MAX)],
        offset: Annotated[int, Query(ge=0, le=OFFSET_MAX)],
    ) -> TranslationView:
        """An offset of the source, translated to the target."""
        return await host.translate(name, topic, partition, offset)
