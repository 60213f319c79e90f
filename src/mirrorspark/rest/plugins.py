"""``/connector-plugins``: MirrorMaker 2's three connectors, their keys, and a configuration checked against them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from mirrorspark import __version__
from mirrorspark.config.connector_validation import kind_of, plugin_definitions, validation_body
from mirrorspark.config.forms.layout import ConnectorKind
from mirrorspark.rest.addresses import Flag, Plugin
from mirrorspark.rest.bodies import config_body, json_body
from mirrorspark.rest.connector_host import ConnectorHost, Refusal
from mirrorspark.rest.request_schemas import CONFIG, REFUSALS

__all__ = ["plugin_routes"]


def plugin_routes(host: ConnectorHost) -> APIRouter:
    routes = APIRouter(tags=["plugins"], responses=REFUSALS)

    @routes.get("/connector-plugins")
    async def plugins(connectorsOnly: Flag = "true") -> list[dict[str, Any]]:
        """There is nothing but connectors here, whatever connectorsOnly says."""
        return [{"class": kind.java_class, "type": "source", "version": __version__} for kind in sorted(ConnectorKind)]

    @routes.get("/connector-plugins/{plugin}/config")
    async def keys(plugin: Plugin) -> list[dict[str, Any]]:
        kind = kind_of(plugin)
        if kind is None:
            raise Refusal(f"Unknown plugin {plugin}.", 404)
        return plugin_definitions(kind)

    @routes.put("/connector-plugins/{plugin}/config/validate", openapi_extra=CONFIG)
    async def validate(plugin: Plugin, request: Request) -> dict[str, Any]:
        config = config_body(await json_body(request))
        named = config.get("connector.class")
        if named is None:
            raise Refusal("the configuration has no connector.class, which is needed to validate it", 400)
        kind, meant = kind_of(plugin), kind_of(named)
        if meant is None or kind is not meant:
            raise Refusal(
                f"Included connector type {named} does not match request type {plugin.rpartition('.')[2]}", 400
            )
        return validation_body(kind, config)

    return routes
