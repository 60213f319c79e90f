"""``mirrorspark events FILE``: what nobody has acknowledged yet, and the acknowledging."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mirrorspark.control.command.event_lines import acknowledge_by_server, event_lines, list_by_server
from mirrorspark.control.command.event_lines import follow as follow_by_server
from mirrorspark.control.command.flow_choice import FlowName, chosen_flows, end_with
from mirrorspark.control.command.server_choice import end_with_api, with_server_options
from mirrorspark.control.command.tables import print_lines
from mirrorspark.control.flow_on_target import FlowOnTarget, NeverRan
from mirrorspark.errors import SettingsError

__all__ = ["events"]

ALL = "all"


@with_server_options
def events(
    server: dict[str, Any],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="The mirror's file: asks the target cluster. Without it, the server."),
    ] = None,
    flow: FlowName = None,
    ack: Annotated[
        list[str] | None,
        typer.Option(
            "--ack", metavar="KEY|all", help="Acknowledge this event (its key as listed), or all. May be repeated."
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on and print each new one, until interrupted.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; with --follow one object a line.")] = False,
) -> None:
    """List the events that nobody has acknowledged; with --ack acknowledge them.

    With FILE the target cluster is asked, wherever the mirror runs; without it the mirror's own server at --url.

    Examples:

      mirrorspark events --follow

      mirrorspark events mm2.properties

      mirrorspark events mm2.properties --flow 'east->west' --ack event/data.gap/orders/3/1200

      mirrorspark events mm2.properties --ack all

    Exit codes: 0 done; 1 a target cluster or the server cannot be reached or refuses; 2 FILE, --flow, a key or an option
    is wrong.
    """
    keys = [key if key == ALL or key.startswith("event/") else f"event/{key}" for key in ack or []]
    if file is not None:
        end_with(_list(file, flow, as_json, follow) if not keys else _acknowledge(file, flow, keys))
    if keys:
        end_with_api(server, lambda api: acknowledge_by_server(api, flow, keys))
    end_with_api(server, lambda api: (follow_by_server if follow else list_by_server)(api, flow, as_json))


async def _list(file: Path, flow: str | None, as_json: bool, follow: bool) -> int:
    if follow:
        raise SettingsError("--follow: asks a server; leave FILE out and give --url", key="--follow")
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
                print_lines(event_lines(str(settings.flow), key, event))
    if as_json:
        print(json.dumps(listed, indent=2))
    elif not listed:
        print("no unacknowledged events")
    return 0


async def _acknowledge(file: Path, flow: str | None, wanted: list[str]) -> int:
    """All that is named, or nothing: a key that is not there is said before anything is written."""
    keys = set(wanted)
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
