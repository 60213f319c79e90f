"""``/admin/loggers``: levels of the process's own loggers, by Java's names for levels."""

from __future__ import annotations

import logging
import time
from typing import Any
from urllib.parse import unquote

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from mirrorspark.rest.bodies import json_body
from mirrorspark.rest.connector_host import ConnectorHost, Refusal
from mirrorspark.rest.request_schemas import LEVEL, REFUSALS

__all__ = ["logger_routes"]

LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
ROOT = "root"
NAME_LETTERS_MAX = 200
LOGGERS_ADDED_MAX = 1_000
"""Names that nobody had before a request set their level; a logger is never forgotten."""
_NAMES = {number: name for name, number in LEVELS.items() if name != "TRACE"}


class _Loggers:
    def __init__(self) -> None:
        self._modified: dict[str, int] = {}

    def names(self) -> list[str]:
        known = [
            name
            for name, one in logging.root.manager.loggerDict.items()
            if isinstance(one, logging.Logger) and one.level != logging.NOTSET
        ]
        return sorted({*known, *self._modified, ROOT})

    def show(self, name: str) -> dict[str, Any]:
        level = _find(name).getEffectiveLevel()
        return {"level": _NAMES.get(level, logging.getLevelName(level)), "last_modified": self._modified.get(name)}

    def set(self, name: str, level: str) -> list[str]:
        if len(name) > NAME_LETTERS_MAX or not name.isprintable():
            raise Refusal("the logger's name is too long or not printable", 400)
        is_new = name not in logging.root.manager.loggerDict and name not in self._modified
        if is_new and len(self._modified) >= LOGGERS_ADDED_MAX:
            raise Refusal(f"levels of {LOGGERS_ADDED_MAX} loggers were set already; set that of their parent", 400)
        below = [one for one in self.names() if one == name or name == ROOT or one.startswith(f"{name}.")]
        changed = sorted({*below, name})
        for one in changed:
            _find(one).setLevel(LEVELS[level])
            self._modified[one] = int(time.time() * 1000)
        return changed


def _find(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def logger_routes(host: ConnectorHost) -> APIRouter:
    routes = APIRouter(tags=["loggers"], responses=REFUSALS)
    loggers = _Loggers()

    @routes.get("/admin/loggers")
    async def show_all() -> dict[str, Any]:
        return {name: loggers.show(name) for name in loggers.names()}

    @routes.get("/admin/loggers/{logger}")
    async def show(logger: str) -> dict[str, Any]:
        name = unquote(logger)
        if name not in loggers.names():
            raise Refusal(f"Logger {name} not found.", 404)
        return loggers.show(name)

    @routes.put("/admin/loggers/{logger}", openapi_extra=LEVEL)
    async def change(logger: str, request: Request, scope: str = "worker") -> Response:
        body = await json_body(request)
        level = body.get("level") if isinstance(body, dict) else None
        if level is None:
            raise Refusal("Desired 'level' parameter was not specified in request.", 400)
        if str(level).upper() not in LEVELS:
            raise Refusal(f"invalid log level '{str(level)[:40]}'.", 404)
        changed = loggers.set(unquote(logger), str(level).upper())
        return Response(status_code=204) if scope.lower() == "cluster" else JSONResponse(changed)

    return routes
