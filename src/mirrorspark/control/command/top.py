"""``mirrorspark top``: a server's flows, live: state, throughput, lag, what is furthest behind and what happened."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mirrorspark.control.command.event_lines import event_lines, event_of
from mirrorspark.control.command.flows import PARTITION_HEAD, flow_row, partition_row
from mirrorspark.control.command.server_choice import asks_a_server
from mirrorspark.control.command.tables import print_lines
from mirrorspark.control.live_view import STYLES
from mirrorspark.control.remote.flow_resources import EVENTS, FLOWS, flow_path, pages
from mirrorspark.errors import Unreachable

if TYPE_CHECKING:
    from mirrorspark.control.remote.api import Api

__all__ = ["top"]

INTERVAL_S = 1.0
PARTITIONS_SHOWN_MAX = 10
EVENTS_SHOWN_MAX = 5
HEAD = ("FLOW", "STATE", "LANES", "PARTS", "REC/S", "MB/S", "LAG", "SECS", "LAT MS", "EVENTS")
"""Of ``flows list``, for a terminal of 80 columns."""
_LEFT = ("FLOW", "STATE", "PARTITION")


@dataclass
class Sight:
    """What was seen last, and why nothing newer was."""

    flows: Sequence[Mapping[str, Any]] = ()
    behind: Sequence[tuple[str, Mapping[str, Any]]] = ()
    events: Sequence[Mapping[str, Any]] = ()
    lost: str = ""
    at: float = field(default_factory=time.time)


@asks_a_server
def top(
    api: Api,
    interval: Annotated[
        float, typer.Option("--interval", metavar="S", min=0.2, help="Between two looks.")
    ] = INTERVAL_S,
    once: Annotated[bool, typer.Option("--once", help="Look once, print it and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a look, a line each.")] = False,
) -> int:
    """Watch the flows of a mirrorspark that runs, until interrupted.

    A server that goes away is said and waited for: start top before it, or leave it on over a restart.

    Examples:

      mirrorspark top --url http://mirror:8083

    Exit codes: 0 with --once, 1 the server refuses or, with --once, cannot be reached, 2 an option is wrong, 130
    interrupted.
    """
    console = Console()
    if as_json:
        return _lines(api, interval, once)
    if once:
        console.print(picture(look(api), api.url))
        return 0
    sight = Sight()
    with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
        while True:
            try:
                sight = look(api)
            except Unreachable as error:
                sight.lost = error.message
            live.update(picture(sight, api.url), refresh=True)
            time.sleep(interval)


def _lines(api: Api, interval: float, once: bool) -> int:
    while True:
        print_lines([json.dumps(api.ask("GET", FLOWS), ensure_ascii=False)])
        if once:
            return 0
        time.sleep(interval)


def look(api: Api) -> Sight:
    found = api.ask("GET", FLOWS)["flows"]
    behind = [
        (one["flow"], part)
        for one in found
        if one["lag_records"] or one["waiting_count"]
        for part in pages(api, f"{flow_path(one['flow'])}/partitions", "partitions", PARTITIONS_SHOWN_MAX, sort="lag")
        if part["lag_records"] or part["waits"]
    ]
    behind.sort(key=lambda one: -(one[1]["lag_records"] or 0))
    events = list(pages(api, EVENTS, "events", EVENTS_SHOWN_MAX))
    return Sight(found, behind[:PARTITIONS_SHOWN_MAX], events)


def picture(sight: Sight, url: str) -> Group:
    stamp = time.strftime("%H:%M:%S", time.localtime(sight.at))
    parts: list[Any] = [Text(f"mirrorspark top  {url}  {stamp}", style="bold")]
    if sight.lost:
        parts.append(Text(f"not answered since then: {sight.lost}", style="red"))
    flows = _table(HEAD)
    for one in sight.flows:
        name, verdict, *numbers = flow_row(one)
        flows.add_row(Text(name), Text(verdict, style=STYLES.get(verdict, "")), *numbers)
    parts.append(flows)
    if sight.behind:
        behind = _table(("FLOW", *PARTITION_HEAD))
        for flow, one in sight.behind:
            behind.add_row(Text(flow), *(Text(text) for text in partition_row(one)))
        parts.append(behind)
    parts += [Text(f"{one['flow']}: {text}", style="yellow") for one in sight.flows for text in one["notices"][:3]]
    for one in sight.events:
        parts.append(Text(event_lines(one["flow"], one["key"], event_of(one))[0]))
    return Group(*parts)


def _table(head: Sequence[str]) -> Table:
    made = Table(box=None, pad_edge=False)
    for name in head:
        made.add_column(name, justify="left" if name in _LEFT else "right", no_wrap=name not in _LEFT)
    return made
