"""The application: routes, one form of error, limits and access around them.

``make_app`` is all that others call. Errors have Connect's body, ``{"error_code": …, "message": …}``, whoever raises them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from mirrorspark import __version__
from mirrorspark.errors import ClusterError, MirrorError, SettingsError
from mirrorspark.rest.access import Access, AccessGate
from mirrorspark.rest.connector_host import ConnectorHost, Refusal
from mirrorspark.rest.connectors import connector_routes
from mirrorspark.rest.flow_steering import flow_steering_routes
from mirrorspark.rest.flow_stream import FlowStream, stream_routes
from mirrorspark.rest.flows import PREFIX, flow_routes
from mirrorspark.rest.flows_host import FlowsHost
from mirrorspark.rest.loggers import logger_routes
from mirrorspark.rest.metrics import metrics_routes
from mirrorspark.rest.offsets import offset_routes
from mirrorspark.rest.page import page_routes
from mirrorspark.rest.plugins import plugin_routes
from mirrorspark.rest.request_limits import LimitGate, RequestLimits
from mirrorspark.rest.server_facts import fact_routes

__all__ = ["error_answer", "make_app"]

log = logging.getLogger("mirrorspark.rest")

DESCRIPTION = "Kafka Connect's REST interface for MirrorMaker 2's connectors, and the flows that they make."


def make_app(
    host: ConnectorHost,
    access: Access | None = None,
    limits: RequestLimits | None = None,
    *,
    flows: FlowsHost | None = None,
    metrics: Callable[[], Awaitable[bytes]] | None = None,
) -> FastAPI:
    """``app.state.on_stop``: what the server calls before it waits for its clients."""
    app = FastAPI(title="mirrorspark", version=__version__, description=DESCRIPTION, docs_url=None, redoc_url=None)
    for routes in (fact_routes, connector_routes, offset_routes, plugin_routes, logger_routes):
        app.include_router(routes(host))
    app.state.on_stop = []
    if flows is not None:
        _include_flows(app, flows)
    if metrics is not None:
        app.include_router(metrics_routes(metrics))
    _answer_errors(app)
    app.add_middleware(AccessGate, access=access or Access())
    app.add_middleware(LimitGate, limits=limits or RequestLimits())
    return app


def _include_flows(app: FastAPI, flows: FlowsHost) -> None:
    """Our own resources, and the page that shows them."""
    stream = FlowStream(flows)
    app.state.on_stop.append(stream.close)
    for routes in (flow_routes(flows), flow_steering_routes(flows), stream_routes(stream), page_routes()):
        app.include_router(routes)


def error_answer(status: int, message: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error_code": status, "message": message}, status, headers=headers)


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> JSONResponse:
        return error_answer(error.status, error.message)

    @app.exception_handler(SettingsError)
    async def wrong(request: Request, error: SettingsError) -> JSONResponse:
        return error_answer(400, error.message)

    @app.exception_handler(ClusterError)
    async def away(request: Request, error: ClusterError) -> JSONResponse:
        """Connect has 500 for a Kafka that does not answer; 503 says that it may pass."""
        return error_answer(503 if error.retriable else 500, error.message)

    @app.exception_handler(MirrorError)
    async def failed(request: Request, error: MirrorError) -> JSONResponse:
        return error_answer(500, error.message)

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> JSONResponse:
        return error_answer(error.status_code, f"HTTP {error.status_code} {error.detail}", error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        """Jersey's answer for a number or a flag in an address that is none; ours says what is wrong."""
        if request.url.path.startswith(f"{PREFIX}/"):
            return error_answer(400, "; ".join(_fault(one) for one in error.errors()))
        return error_answer(404, "HTTP 404 Not Found")

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return error_answer(500, f"{type(error).__name__}; see the log")


def _fault(one: Any) -> str:
    """Of pydantic's, the place and the words; never the value."""
    return f"{one['loc'][-1]}: {one['msg']}"
