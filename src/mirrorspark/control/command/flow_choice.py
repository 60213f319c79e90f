"""What the commands that steer or show flows have in common: which flows are meant, and how a command ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from mirrorspark.config.load import Deployment, load_deployment
from mirrorspark.errors import MirrorError, SettingsError
from mirrorspark.log_lines import tell_error
from mirrorspark.settings import FlowSettings

__all__ = [
    "EXIT_FAILED",
    "EXIT_INPUT",
    "Clusters",
    "File",
    "FlowName",
    "chosen_flows",
    "end_with",
    "flows_of",
    "targets_of",
]

EXIT_FAILED = 1
EXIT_INPUT = 2

File = Annotated[Path, typer.Argument(metavar="FILE", help="The mm2.properties file that the mirror runs with.")]
FlowName = Annotated[
    str | None,
    typer.Option(
        "--flow", metavar="A->B", help="This flow only, in quotes: --flow 'east->west'. All flows if not given."
    ),
]

Clusters = Annotated[
    list[str] | None,
    typer.Option(
        "--clusters",
        metavar="ALIAS…",
        help="Only flows INTO these clusters: --clusters A B, --clusters A,B, or repeat it.",
    ),
]


def targets_of(clusters: list[str] | None) -> list[str]:
    return [alias.strip() for text in clusters or [] for alias in text.split(",") if alias.strip()]


def chosen_flows(file: Path, flow: str | None, targets: Iterable[str] = ()) -> list[FlowSettings]:
    """Raises SettingsError. Lenient, since the file may belong to a mirror that runs with ``--lenient``."""
    deployment = load_deployment(file, targets, lenient=True, apart=True)
    for broken, error in deployment.refused.items():
        if flow is None or flow.replace(" ", "") == str(broken):
            tell_error(error, f"flow {broken}")
    return flows_of(deployment, file, flow)


def flows_of(deployment: Deployment, file: Path, flow: str | None) -> list[FlowSettings]:
    """Raises SettingsError."""
    flows = deployment.flows
    chosen = [one for one in flows if flow is None or str(one.flow) == flow.replace(" ", "")]
    if not flows:
        raise SettingsError(f"{file}: no flow is enabled, so there is none to show or steer", key="enabled")
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
        tell_error(error)
        raise typer.Exit(EXIT_INPUT if isinstance(error, SettingsError) else EXIT_FAILED) from None
    raise typer.Exit(code)
