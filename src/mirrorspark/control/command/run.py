"""``mirrorspark run FILE``: the drop-in for connect-mirror-maker.sh."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from mirrorspark.control.mm2_settings import load_deployment
from mirrorspark.control.runner import run_deployment
from mirrorspark.errors import MirrorError

__all__ = ["run"]

EXIT_SETTINGS = 2


def run(
    file: Annotated[Path, typer.Argument(help="An mm2.properties file, as MirrorMaker 2 takes it.")],
    clusters: Annotated[
        list[str] | None, typer.Option("--clusters", help="Run only flows INTO these clusters (repeat or use commas).")
    ] = None,
    master: Annotated[
        str | None, typer.Option("--master", help="Spark master; embedded local[lanes] if not given.")
    ] = None,
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="Serve Spark's own web page.")] = False,
) -> None:
    """Mirror topics as FILE says, until SIGTERM or Ctrl-C.

    Example: mirrorspark run mm2.properties --clusters backup
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    targets = [alias.strip() for text in clusters or [] for alias in text.split(",") if alias.strip()]
    try:
        deployment = load_deployment(file, targets)
    except MirrorError as error:
        sys.stderr.write(f"mirrorspark: {error.code}: {error}\n")
        raise typer.Exit(EXIT_SETTINGS) from None
    for warning in deployment.warnings:
        sys.stderr.write(f"mirrorspark: warning: {warning}\n")
    raise typer.Exit(run_deployment(deployment, master=master, ui=ui))
