"""``--log-format``, for the commands that run for long."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from mirrorspark import log_lines

__all__ = ["TEXT", "LogFormat"]


class _Form(StrEnum):
    TEXT = log_lines.TEXT
    JSON = log_lines.JSON


TEXT = _Form.TEXT
LogFormat = Annotated[
    _Form,
    typer.Option(
        "--log-format",
        envvar=log_lines.FORMAT_VARIABLE,
        help="Lines for people, or JSON objects with stable codes; lanes in Spark speak as the driver does.",
    ),
]
