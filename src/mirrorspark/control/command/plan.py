"""``mirrorspark plan FILE``: what would be created, changed, carried and skipped, and why. Changes nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mirrorspark.config.levels import Effective
from mirrorspark.config.load import Deployment, load_deployment
from mirrorspark.control.command.file_reading import Lenient, Secrets
from mirrorspark.control.command.flow_choice import (
    EXIT_FAILED,
    Clusters,
    File,
    FlowName,
    end_with,
    flows_of,
    targets_of,
)
from mirrorspark.control.dry_run import dry_run
from mirrorspark.control.dry_run_view import picture, text_lines
from mirrorspark.errors import MirrorError, SettingsError
from mirrorspark.settings import FlowSettings

__all__ = ["EXIT_PENDING", "plan"]

EXIT_PENDING = 10


def plan(
    file: File,
    flow: FlowName = None,
    clusters: Clusters = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    settings: Annotated[
        bool, typer.Option("--settings", help="Also list every setting that counts, and where it comes from.")
    ] = False,
    lenient: Lenient = False,
    secrets: Secrets = None,
) -> None:
    """Show what the mirror would do to the target clusters, for every topic, with the reason. Changes nothing.

    Examples:

      mirrorspark plan mm2.properties

      mirrorspark plan mm2.properties --flow 'east->west' --settings

      mirrorspark plan mm2.properties --json | jq '.flows[].topics[] | select(.action == "create").topic'

    Exit codes: 0 nothing to do, 10 changes are pending, 1 a cluster cannot be reached or refuses, 2 FILE or an option is
    wrong.
    """

    def load() -> Deployment:
        return load_deployment(file, targets_of(clusters), secrets=secrets, lenient=lenient)

    end_with(_load_and_plan(load, file, flow, as_json=as_json, origins=settings))


async def _load_and_plan(
    load: Callable[[], Deployment], file: Path, flow: str | None, *, as_json: bool, origins: bool
) -> int:
    deployment = load()
    for remark in deployment.remarks:
        sys.stderr.write(f"mirrorspark: {remark.kind}: {remark}\n")
    if not deployment.flows and flow is None:
        return _plan_of_heartbeats(deployment, as_json)
    return await _plan(deployment, flows_of(deployment, file, flow), as_json, origins)


def _plan_of_heartbeats(deployment: Deployment, as_json: bool) -> int:
    """No flow carries records: nothing but heartbeats would be written."""
    pairs = [str(one.flow) for one in deployment.heartbeats_only]
    if as_json:
        text = json.dumps({"pending": False, "flows": [], "heartbeats_only": pairs}, indent=2)
    else:
        text = "\n".join(f"{pair} heartbeats only" for pair in pairs)
    sys.stdout.write(f"{text}\n")
    return 0


async def _plan(deployment: Deployment, flows: Sequence[FlowSettings], as_json: bool, with_settings: bool) -> int:
    pictures: list[dict[str, Any]] = []
    is_pending, has_failed = False, False
    for one in flows:
        origins = _origins(deployment.effective[one.flow]) if with_settings else []
        try:
            found = await dry_run(one)
        except SettingsError:
            raise
        except MirrorError as error:
            has_failed = True
            sys.stderr.write(f"mirrorspark: {one.flow}: {error.code}: {error}\n")
            pictures.append({"flow": str(one.flow), "error": error.as_dict()})
            continue
        is_pending = is_pending or found.is_pending
        pictures.append(picture(found, origins))
        if not as_json:
            sys.stdout.write("".join(f"{line}\n" for line in text_lines(found, origins)))
    if as_json:
        text = json.dumps({"pending": is_pending, "flows": pictures}, indent=2, default=str)
        sys.stdout.write(f"{text}\n")
    return EXIT_FAILED if has_failed else EXIT_PENDING if is_pending else 0


def _origins(effective: Sequence[Effective]) -> list[dict[str, str]]:
    """Every setting that counts: name, value (secrets hidden), level, and the place in the file."""
    return [{"name": one.name, "value": one.text, "level": one.level, "origin": one.origin} for one in effective]
