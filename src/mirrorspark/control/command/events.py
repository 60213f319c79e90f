"""``mirrorspark events FILE``: what nobody has acknowledged yet, and the acknowledging."""

from __future__ import annotations

import json
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mirrorspark.control.command.flow_choice import File, FlowName, chosen_flows, end_with
from mirrorspark.control.flow_on_target import FlowOnTarget, NeverRan
from mirrorspark.errors import SettingsError

__all__ = ["events"]

ALL = "all"


def events(
    file: File,
    flow: FlowName = None,
    ack: Annotated[
        list[str] | None,
        typer.Option(
            "--ack", metavar="KEY|all", help="Acknowledge this event (its key as listed), or all. May be repeated."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the events that nobody has acknowledged; with --ack acknowledge them.

    Examples:

      mirrorspark events mm2.properties

      mirrorspark events mm2.properties --flow 'east->west' --ack event/data.gap/orders/3/1200

      mirrorspark events mm2.properties --ack all

    Exit codes: 0 done, 1 a target cluster cannot be reached or refuses, 2 FILE, --flow or a key is wrong.
    """
    end_with(_list(file, flow, as_json) if not ack else _acknowledge(file, flow, ack))


async def _list(file: Path, flow: str | None, as_json: bool) -> int:
    listed: list[dict[str, object]] = []
    for settings in chosen_flows(file, flow):
        try:
            async with FlowOnTarget(settings) as there:
                found = sorted(there.status.events.items(), key=lambda item: item[1].at_ms)
        except NeverRan:
            found = []
        for key, event in found:
            listed.append({"flow": str(settings.flow), "key": key, **asdict(event)})
            if not as_json:
                stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at_ms / 1000))
                print(f"{stamp} {settings.flow} {event}\n    key: {key}")
    if as_json:
        print(json.dumps(listed, indent=2))
    elif not listed:
        print("no unacknowledged events")
    return 0


async def _acknowledge(file: Path, flow: str | None, wanted: list[str]) -> int:
    """All that is named, or nothing: a key that is not there is said before anything is written."""
    keys = {key if key == ALL or key.startswith("event/") else f"event/{key}" for key in wanted}
    async with AsyncExitStack() as stack:
        opened = []
        for settings in chosen_flows(file, flow):
            with suppress(NeverRan):
                opened.append(await stack.enter_async_context(FlowOnTarget(settings)))
        found = [[key for key in there.status.events if ALL in keys or key in keys] for there in opened]
        unknown = sorted(keys - {ALL} - {key for some in found for key in some})
        if unknown:
            raise SettingsError(
                f"--ack {unknown[0]}: no such unacknowledged event; mirrorspark events {file} lists them"
            )
        for there, some in zip(opened, found, strict=True):
            await there.acknowledge(some)
            for key in some:
                print(f"{there.settings.flow} acknowledged {key}")
    if not any(found):
        print("no unacknowledged events")
    return 0
