"""What requests carry, in OpenAPI's words. Bodies are read by ``bodies``; this page is for clients and their generators."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ACKNOWLEDGE",
    "CONFIG",
    "CONFIG_PATCH",
    "FLOW_REFUSALS",
    "LEVEL",
    "NEW_CONNECTOR",
    "OFFSETS",
    "REFUSALS",
    "TOPICS",
]

_ERROR = {
    "type": "object",
    "required": ["error_code", "message"],
    "properties": {"error_code": {"type": "integer"}, "message": {"type": "string"}},
}


def _refusal(text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": _ERROR}}}


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: _refusal("what was sent is wrong"),
    401: _refusal("nobody is known by this name or token"),
    403: _refusal("known, and not allowed to"),
    404: _refusal("no such connector, task, plugin or logger"),
    405: _refusal("no such method here"),
    408: _refusal("the body did not come in time"),
    409: _refusal("exists already, or is being changed"),
    413: _refusal("the body is too long"),
    415: _refusal("the body is not JSON"),
}
FLOW_REFUSALS: dict[int | str, dict[str, Any]] = {
    **REFUSALS,
    404: _refusal("no such flow, group or event"),
    409: _refusal("the flow never ran, or its file owns it"),
    503: _refusal("a cluster does not answer, or too many ask at once"),
}


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
CONFIG = _body(_TEXTS)
CONFIG_PATCH = _body({"type": "object", "additionalProperties": {"type": ["string", "null"]}})
NEW_CONNECTOR = _body(
    {
        "type": "object",
        "required": ["name", "config"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string"},
            "config": _TEXTS,
            "initial_state": {"type": "string", "enum": ["RUNNING", "PAUSED", "STOPPED"]},
        },
    }
)
OFFSETS = _body(
    {
        "type": "object",
        "required": ["offsets"],
        "properties": {
            "offsets": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "required": ["partition", "offset"],
                    "properties": {"partition": {"type": "object"}, "offset": {"type": ["object", "null"]}},
                },
            }
        },
    }
)
LEVEL = _body({"type": "object", "required": ["level"], "properties": {"level": {"type": "string"}}})
_NAMES = {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}
TOPICS: dict[str, Any] = {
    "requestBody": {
        "required": False,
        "content": {
            "application/json": {
                "schema": {"type": "object", "additionalProperties": False, "properties": {"topics": _NAMES}}
            }
        },
    }
}
ACKNOWLEDGE = _body(
    {
        "type": "object",
        "required": ["keys"],
        "additionalProperties": False,
        "properties": {"flow": {"type": "string"}, "keys": _NAMES},
    }
)
