"""Options of the commands that read a mirror's file anew: how strictly, and where its secrets are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Lenient", "Secrets"]

Lenient = Annotated[
    bool, typer.Option("--lenient", help="Only warn of keys that are unknown or stand at the wrong level.")
]
Secrets = Annotated[
    Path | None, typer.Option("--secrets", metavar="DIR", help="Kubernetes secrets as files: DIR/<secret>/<key>.")
]
