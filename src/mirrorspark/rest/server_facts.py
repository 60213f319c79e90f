"""``/`` and ``/health``."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from mirrorspark.rest.connector_host import ConnectorHost

__all__ = ["fact_routes"]

HEALTH_CODES = {"healthy": 200, "starting": 503, "unhealthy": 500}


def fact_routes(host: ConnectorHost) -> APIRouter:
    routes = APIRouter(tags=["server"])

    @routes.get("/")
    async def root() -> dict[str, Any]:
        """Version, commit, and the id of the cluster that keeps the connectors."""
        info = await host.server()
        return {"version": info.version, "commit": info.commit, "kafka_cluster_id": info.kafka_cluster_id}

    @routes.get("/health", responses={500: {"description": "unhealthy"}, 503: {"description": "starting"}})
    async def health() -> JSONResponse:
        found = await host.health()
        return JSONResponse({"status": found.status, "message": found.message}, HEALTH_CODES[found.status])

    return routes
