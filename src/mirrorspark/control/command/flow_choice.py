"""What the commands that steer or show flows have in common: which flows are meant, and how a command ends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from mirrorspark.control.mm2_settings import load_deployment
from mirrorspark.errors import MirrorError, SettingsError
from mirrorspark.settings import FlowSettings

__all__ = ["EXIT_FAILED", "EXIT_INPUT", "File", "FlowName", "chosen_flows", "end_with"]

EXIT_FAILED = 1
EXIT_INPUT = 2

File = Annotated[Path, typer.Argument(metavar="FILE", help="The mm2.properties file that the mirror runs with.")]
FlowName = Annotated[
    str | None,
    typer.Option(
        "--flow", metavar="A->B", help="This flow only, in quotes: --flow 'east->west'. All flows if not given."
    ),
]


def chosen_flows(file: Path, flow: str | None) -> list[FlowSettings]:
    """Raises SettingsError."""
    flows = load_deployment(file).flows
    chosen = [one for one in flows if flow is None or str(one.flow) == flow.replace(" ", "")]
    if not chosen:
        known = ", ".join(str(one.flow) for one in flows)
        hint = "; the shell took the >, put it in quotes: --flow 'a->b'" if flow and flow.endswith("-") else ""
        raise SettingsError(f"--flow {flow}: not an enabled flow of {file}; there is {known}{hint}", key="--flow")
    return chosen


def end_with(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run a command's work; its number is the exit code, an error is one line on stderr."""
    try:
        code = asyncio.run(work)
    except MirrorError as error:
        sys.stderr.write(f"mirrorspark: {error.code}: {error}\n")
        raise typer.Exit(EXIT_INPUT if isinstance(error, SettingsError) else EXIT_FAILED) from None
    raise typer.Exit(code)
