"""``/metrics`` on the same port as everything else. Who needs a name there needs one here; ``read-only`` is enough."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import APIRouter
from fastapi.responses import Response

__all__ = ["metrics_routes"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_routes(text: Callable[[], Awaitable[bytes]]) -> APIRouter:
    routes = APIRouter(tags=["server"])

    @routes.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Prometheus' text format."""
        return Response(await text(), media_type=CONTENT_TYPE)

    return routes
