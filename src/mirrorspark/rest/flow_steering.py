"""``/mirrorspark/v1``, the part that changes something: pause, resume, acknowledge. For operators (``access``)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from mirrorspark.rest.bodies import json_body
from mirrorspark.rest.connector_host import Refusal
from mirrorspark.rest.flow_views import Acknowledged, PausedView
from mirrorspark.rest.flows import PREFIX, FlowName
from mirrorspark.rest.flows_host import FlowsHost
from mirrorspark.rest.request_schemas import ACKNOWLEDGE, FLOW_REFUSALS, TOPICS

__all__ = ["flow_steering_routes"]

NAMES_MAX = 10_000
"""Topics or keys in one request."""


def flow_steering_routes(host: FlowsHost) -> APIRouter:
    routes = APIRouter(prefix=PREFIX, tags=["flows"], responses=FLOW_REFUSALS)

    @routes.post("/flows/{flow}/pause", openapi_extra=TOPICS)
    async def pause(name: FlowName, request: Request) -> PausedView:
        """Hold these topics, or the whole flow if none is named."""
        return await host.pause(name, await _topics(request))

    @routes.post("/flows/{flow}/resume", openapi_extra=TOPICS)
    async def resume(name: FlowName, request: Request) -> PausedView:
        return await host.resume(name, await _topics(request))

    @routes.post("/events/acknowledge", openapi_extra=ACKNOWLEDGE)
    async def acknowledge(request: Request) -> Acknowledged:
        """All that is named, or nothing if one of them is unknown."""
        body = _object(await json_body(request), ("flow", "keys"))
        flow = body.get("flow")
        if flow is not None and not isinstance(flow, str):
            raise Refusal("flow: must be a text, or left out for all flows", 400)
        keys = _names(body, "keys")
        if not keys:
            raise Refusal('keys: name at least one event, or ["all"]', 400)
        return await host.acknowledge(flow, keys)

    return routes


async def _topics(request: Request) -> list[str]:
    """No body at all means the whole flow."""
    if not (await request.body()).strip():
        return []
    body = _object(await json_body(request), ("topics",))
    if "topics" in body and not body["topics"]:
        raise Refusal("topics: names none; leave it out to mean the whole flow", 400)
    return _names(body, "topics")


def _object(body: object, fields: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise Refusal(f"the body must be an object with {' and '.join(fields)}", 400)
    for field in body:
        if field not in fields:
            raise Refusal(f"unknown field {field!r}; there is {', '.join(fields)}", 400)
    return body


def _names(body: dict[str, Any], field: str) -> list[str]:
    names = body.get(field, [])
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise Refusal(f"{field}: must be a list of names", 400)
    if len(names) > NAMES_MAX:
        raise Refusal(f"{field}: {len(names)} names; at most {NAMES_MAX} at once", 400)
    return names
