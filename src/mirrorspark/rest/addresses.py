"""Parts of an address as values. A connector's name may hold anything, a slash too, which comes as ``%2F``.

``RequestLimits`` hands paths on as they were sent, so a name is one part of them whatever it holds; it is decoded here.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Path, Query

from mirrorspark.rest.connector_host import Refusal

__all__ = ["Flag", "Name", "Plugin", "TaskNumber", "flag"]

TASK_MAX = 2**31 - 1


def _name(connector: Annotated[str, Path(description="The connector's name, percent-encoded.")]) -> str:
    return unquote(connector)


def _plugin(plugin: Annotated[str, Path(description="Class name, its last part, or that without Connector.")]) -> str:
    return unquote(plugin)


def _task(task: Annotated[str, Path(description="The task's number.", pattern=r"^[0-9]+$")]) -> int:
    if not task.isascii() or not task.isdigit() or int(task[:12]) > TASK_MAX:
        raise Refusal("HTTP 404 Not Found", 404)
    return int(task)


Name = Annotated[str, Depends(_name)]
Plugin = Annotated[str, Depends(_plugin)]
TaskNumber = Annotated[int, Depends(_task)]
Flag = Annotated[str, Query(description="true or false")]


def flag(text: str) -> bool:
    """Java's: true is true, whatever else is false."""
    return text.strip().lower() == "true"
