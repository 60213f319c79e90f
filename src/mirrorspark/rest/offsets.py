"""``/connectors/{name}/offsets``: see, set and reset them. Connect's rule that the connector is stopped is the host's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request

from mirrorspark.rest.addresses import Name
from mirrorspark.rest.bodies import json_body
from mirrorspark.rest.connector_host import ConnectorHost, Refusal
from mirrorspark.rest.request_schemas import OFFSETS, REFUSALS

__all__ = ["offset_routes"]


def offset_routes(host: ConnectorHost) -> APIRouter:
    routes = APIRouter(tags=["offsets"], responses=REFUSALS)

    @routes.get("/connectors/{connector}/offsets")
    async def offsets(name: Name) -> dict[str, Any]:
        return {"offsets": list(await host.offsets(name))}

    @routes.patch("/connectors/{connector}/offsets", openapi_extra=OFFSETS)
    async def alter(name: Name, request: Request) -> dict[str, str]:
        return {"message": await host.alter_offsets(name, _entries(await json_body(request)))}

    @routes.delete("/connectors/{connector}/offsets")
    async def reset(name: Name) -> dict[str, str]:
        return {"message": await host.reset_offsets(name)}

    return routes


def _entries(body: object) -> Sequence[Mapping[str, Any]]:
    entries = body.get("offsets") if isinstance(body, dict) else None
    if not isinstance(entries, list) or not entries:
        raise Refusal("Partitions / offsets need to be provided for an alter offsets request", 400)
    return entries
