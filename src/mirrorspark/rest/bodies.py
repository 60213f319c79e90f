"""Connect's JSON bodies: what is read from a request, and what is written into an answer.

Routes call it. Every answer about a configuration passes here, and its secrets end here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import Request

from mirrorspark import __version__
from mirrorspark.config.connector_secrets import hidden, is_secret
from mirrorspark.rest.connector_host import (
    ConnectorInfo,
    ConnectorState,
    ConnectorStatus,
    Refusal,
    TargetState,
    TaskStatus,
)
from mirrorspark.secret import Secret

__all__ = [
    "config_body",
    "info_body",
    "json_body",
    "new_connector",
    "patch_body",
    "status_body",
    "task_bodies",
    "task_status_body",
]

NEW_CONNECTOR_FIELDS = ("name", "config", "initial_state")


async def json_body(request: Request) -> Any:
    """Raises Refusal: 415 for what is not said to be JSON, 400 for what is none."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal("HTTP 415 Unsupported Media Type", 415)
    raw = await request.body()
    if not raw.strip():
        raise Refusal("the request has no body; JSON is needed", 400)
    try:
        return json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        where = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise Refusal(f"the request's body is not JSON{where}", 400) from None


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no number in JSON")


def config_body(body: object) -> dict[str, str]:
    """A flat map; numbers and booleans count as their spelling, as in Connect."""
    patch = patch_body(body)
    for key, value in patch.items():
        if value is None:
            raise Refusal(f"{key}: null is no value; leave the key out", 400)
    return {key: value for key, value in patch.items() if value is not None}


def patch_body(body: object) -> dict[str, str | None]:
    if not isinstance(body, dict):
        raise Refusal("a configuration must be an object of keys and texts", 400)
    return {key: _text(key, value) for key, value in body.items()}


def _text(key: str, value: object) -> str | None:
    if isinstance(value, str) and is_secret(key):
        Secret(value)  # known as one from here on, whatever is wrong with the rest
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise Refusal(f"{key}: must be a text", 400)


def new_connector(body: object) -> tuple[str, dict[str, str], TargetState]:
    if not isinstance(body, dict):
        raise Refusal('a connector must be an object: {"name": …, "config": {…}}', 400)
    for field in body:
        if field not in NEW_CONNECTOR_FIELDS:
            raise Refusal(f"unknown field {field!r}; a connector has {', '.join(NEW_CONNECTOR_FIELDS)}", 400)
    name = body.get("name")
    if name is not None and not isinstance(name, str):
        raise Refusal("name: must be a text", 400)
    if body.get("config") is None:
        raise Refusal("config: is missing", 400)
    return (name or "").strip(), config_body(body["config"]), _target_state(body.get("initial_state"))


def _target_state(value: object) -> TargetState:
    if value is None:
        return TargetState.RUNNING
    try:
        return TargetState(str(value).upper())
    except ValueError:
        raise Refusal(f"initial_state: must be one of {', '.join(TargetState)}", 400) from None


def info_body(info: ConnectorInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "config": hidden(info.config),
        "tasks": [{"connector": info.name, "task": number} for number in range(info.task_count)],
        "type": "source",
    }


def status_body(status: ConnectorStatus) -> dict[str, Any]:
    connector = _state_body(status.state, status.worker_id, status.trace)
    return {
        "name": status.name,
        "connector": connector,
        "tasks": [task_status_body(task) for task in status.tasks],
        "type": "source",
    }


def task_status_body(task: TaskStatus) -> dict[str, Any]:
    return {"id": task.id, **_state_body(task.state, task.worker_id, task.trace)}


def _state_body(state: ConnectorState, worker_id: str, trace: str) -> dict[str, Any]:
    body = {"state": state.value, "worker_id": worker_id, "version": __version__}
    return {**body, "trace": trace} if trace else body


def task_bodies(name: str, configs: list[Mapping[str, str]]) -> list[dict[str, Any]]:
    return [
        {"id": {"connector": name, "task": number}, "config": hidden(config)} for number, config in enumerate(configs)
    ]
