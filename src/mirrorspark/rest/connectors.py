"""``/connectors``: make, see, change, steer and delete them."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from mirrorspark.rest.addresses import Flag, Name, TaskNumber, flag
from mirrorspark.rest.bodies import (
    config_body,
    info_body,
    json_body,
    new_connector,
    patch_body,
    status_body,
    task_bodies,
    task_status_body,
)
from mirrorspark.rest.connector_host import ConnectorHost, Refusal, TargetState
from mirrorspark.rest.request_schemas import CONFIG, CONFIG_PATCH, NEW_CONNECTOR, REFUSALS

__all__ = ["connector_routes"]

UNKNOWN = "Unknown connector "


def connector_routes(host: ConnectorHost) -> APIRouter:
    routes = APIRouter(tags=["connectors"], responses=REFUSALS)
    _collection(routes, host)
    _configuration(routes, host)
    _views(routes, host)
    _steering(routes, host)
    _tasks(routes, host)
    return routes


def _location(request: Request, name: str) -> dict[str, str]:
    return {"Location": f"{request.base_url}connectors/{quote(name, safe='')}"}


def _known(host: ConnectorHost, name: str, refusal: str) -> str:
    """Connect says in several ways that there is no such connector."""
    if name not in host.names():
        raise Refusal(f"{refusal}{name}", 404)
    return name


def _collection(routes: APIRouter, host: ConnectorHost) -> None:
    @routes.get("/connectors")
    async def list_connectors(expand: Annotated[list[str] | None, Query()] = None) -> Any:
        """Names; with expand=status and expand=info an object of those."""
        wanted = expand or []
        if not wanted:
            return list(host.names())
        found: dict[str, dict[str, Any]] = {}
        for name in host.names():
            found[name] = {}
            if "status" in wanted:
                found[name]["status"] = status_body(host.status(name))
            if "info" in wanted:
                found[name]["info"] = info_body(host.info(name))
        return found

    @routes.post("/connectors", status_code=201, openapi_extra=NEW_CONNECTOR)
    async def create(request: Request) -> JSONResponse:
        name, config, state = new_connector(await json_body(request))
        name = name or config.get("name", "").strip()
        info = await host.create(name, _named(name, config), state)
        return JSONResponse(info_body(info), 201, headers=_location(request, name))

    @routes.delete("/connectors/{connector}", status_code=204)
    async def delete(name: Name) -> Response:
        await host.delete(name)
        return Response(status_code=204)


def _named(name: str, config: dict[str, str]) -> dict[str, str]:
    inside = config.setdefault("name", name)
    if inside != name:
        raise Refusal(f"Connector name configuration ({inside}) doesn't match connector name in the URL ({name})", 400)
    return config


def _configuration(routes: APIRouter, host: ConnectorHost) -> None:
    @routes.get("/connectors/{connector}/config")
    async def config(name: Name) -> dict[str, str]:
        """Secrets are hidden; sent back as they came, they stay as they are."""
        shown: dict[str, str] = info_body(host.info(name))["config"]
        return shown

    @routes.put("/connectors/{connector}/config", openapi_extra=CONFIG)
    async def put_config(name: Name, request: Request) -> JSONResponse:
        config = _named(name, config_body(await json_body(request)))
        info, is_new = await host.put_config(name, config)
        return JSONResponse(
            info_body(info), 201 if is_new else 200, headers=_location(request, name) if is_new else None
        )

    @routes.patch("/connectors/{connector}/config", openapi_extra=CONFIG_PATCH)
    async def patch_config(name: Name, request: Request) -> dict[str, Any]:
        return info_body(await host.patch_config(name, patch_body(await json_body(request))))


def _views(routes: APIRouter, host: ConnectorHost) -> None:
    @routes.get("/connectors/{connector}")
    async def one(name: Name) -> dict[str, Any]:
        return info_body(host.info(name))

    @routes.get("/connectors/{connector}/status")
    async def status(name: Name) -> dict[str, Any]:
        return status_body(host.status(_known(host, name, "No status found for connector ")))

    @routes.get("/connectors/{connector}/topics")
    async def topics(name: Name) -> dict[str, Any]:
        """Of a connector that is not there: none, as in Connect."""
        return {name: {"topics": list(host.topics(name)) if name in host.names() else []}}

    @routes.put("/connectors/{connector}/topics/reset", status_code=202)
    async def reset_topics(name: Name) -> Response:
        if name in host.names():
            await host.reset_topics(name)
        return Response(status_code=202)


def _steering(routes: APIRouter, host: ConnectorHost) -> None:
    @routes.put("/connectors/{connector}/pause", status_code=202)
    async def pause(name: Name) -> Response:
        await host.aim(_known(host, name, UNKNOWN), TargetState.PAUSED)
        return Response(status_code=202)

    @routes.put("/connectors/{connector}/resume", status_code=202)
    async def resume(name: Name) -> Response:
        await host.aim(_known(host, name, UNKNOWN), TargetState.RUNNING)
        return Response(status_code=202)

    @routes.put("/connectors/{connector}/stop", status_code=204)
    async def stop(name: Name) -> Response:
        await host.aim(_known(host, name, UNKNOWN), TargetState.STOPPED)
        return Response(status_code=204)

    @routes.post("/connectors/{connector}/restart", status_code=204)
    async def restart(name: Name, includeTasks: Flag = "false", onlyFailed: Flag = "false") -> Response:
        include_tasks, only_failed = flag(includeTasks), flag(onlyFailed)
        _known(host, name, "Unknown connector: ")
        status = await host.restart(name, include_tasks=include_tasks, only_failed=only_failed)
        if not include_tasks and not only_failed:
            return Response(status_code=204)
        return JSONResponse(status_body(status), 202)


def _tasks(routes: APIRouter, host: ConnectorHost) -> None:
    @routes.get("/connectors/{connector}/tasks")
    async def tasks(name: Name) -> list[dict[str, Any]]:
        return task_bodies(name, list(host.task_configs(name)))

    @routes.get("/connectors/{connector}/tasks/{task}/status")
    async def task_status(name: Name, task: TaskNumber) -> dict[str, Any]:
        for one in host.status(name).tasks if name in host.names() else ():
            if one.id == task:
                return task_status_body(one)
        raise Refusal(f"No status found for task {name}-{task}", 404)

    @routes.post("/connectors/{connector}/tasks/{task}/restart", status_code=204)
    async def restart_task(name: Name, task: TaskNumber) -> Response:
        if task not in [one.id for one in host.status(_known(host, name, "Unknown connector: ")).tasks]:
            raise Refusal(f"Unknown task: {name}-{task}", 404)
        await host.restart_task(name, task)
        return Response(status_code=204)
