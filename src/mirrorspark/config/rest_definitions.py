"""The catalogue in the words of Connect's REST: one object for each key of a connector, as ``config/validate`` gives it."""

from __future__ import annotations

from typing import Any

from mirrorspark.config.catalogue import TABLES
from mirrorspark.config.definition import INT_MAX, Definition, Kind

__all__ = ["connector_definitions", "rest_definition"]

_TYPES = {
    Kind.TEXT: "STRING",
    Kind.LIST: "LIST",
    Kind.PATTERNS: "LIST",
    Kind.SERVERS: "LIST",
    Kind.FRACTION: "DOUBLE",
    Kind.SWITCH: "BOOLEAN",
    Kind.CHOICE: "STRING",
    Kind.CLASS: "CLASS",
    Kind.SECRET: "PASSWORD",
    Kind.START: "STRING",
    Kind.TOPIC_START: "STRING",
}


def connector_definitions(connector: str) -> list[dict[str, Any]]:
    """The keys of one connector (``MirrorSourceConnector`` …), in the reference page's order."""
    found: list[dict[str, Any]] = []
    for group, table in TABLES.items():
        for definition in table:
            if connector in definition.connectors and not definition.is_family:
                found.append(rest_definition(definition, group, len(found)))
    return found


def rest_definition(definition: Definition, group: str, order: int) -> dict[str, Any]:
    return {
        "name": definition.name,
        "type": _type(definition),
        "required": definition.required,
        "default_value": definition.effective_default,
        "importance": definition.importance.upper(),
        "documentation": documentation(definition),
        "group": group,
        "order_in_group": order + 1,
        "width": "NONE",
        "display_name": definition.name,
        "dependents": [],
        "order": order + 1,
    }


def documentation(definition: Definition) -> str:
    """Help, bounds, and what becomes of the key."""
    parts = [definition.help]
    if definition.bounds:
        unit = f" {definition.unit}" if definition.unit and not definition.choices else ""
        parts.append(f"{definition.bounds}{unit}.".capitalize() if not definition.choices else f"{definition.bounds}.")
    if definition.no_meaning:
        parts.append(f"Has no meaning here, because {definition.no_meaning}.")
    if definition.refused:
        parts.append(f"Refused, because {definition.refused}.")
    return " ".join(parts)


def _type(definition: Definition) -> str:
    if definition.kind is Kind.WHOLE:
        return "LONG" if definition.high is None or definition.high > INT_MAX else "INT"
    return _TYPES[definition.kind]
