"""``mirrorspark flows …``: a server's flows, what they do, and holding them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mirrorspark.control.command.server_choice import EXIT_NOT_WELL, asks_a_server
from mirrorspark.control.command.tables import DASH, AsJson, print_json, print_lines, table
from mirrorspark.control.remote.flow_resources import FLOWS, flow_path, pages

if TYPE_CHECKING:
    from mirrorspark.control.remote.api import Api

__all__ = ["FLOW_HEAD", "PARTITION_HEAD", "flow_row", "flows", "partition_row"]

WELL = ("running", "idle", "paused", "heartbeats only")
PARTITIONS_SHOWN_MAX = 20

flows = typer.Typer(
    name="flows",
    help="Flows of a mirrorspark that runs, by its REST interface.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

FlowId = Annotated[str, typer.Argument(metavar="A->B", help="The flow, in quotes: 'east->west'.")]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC", help="Only this topic, by its name on either side. May be repeated."),
]

FLOW_HEAD = ("FLOW", "STATE", "LANES", "PARTITIONS", "RECORDS/S", "MB/S", "LAG", "SECONDS", "LATENCY MS", "EVENTS")
PARTITION_HEAD = ("PARTITION", "LANE", "STATE", "SOURCE END", "NEXT", "LAG", "SECONDS")


def flow_row(one: Mapping[str, Any]) -> tuple[str, ...]:
    lanes = one["lanes"]
    return (
        one["flow"],
        one["verdict"],
        f"{lanes['reporting']}/{lanes['expected']}",
        number(one["partitions"]),
        number(one["records_per_s"]),
        number(one["bytes_per_s"], per=1e6, places=1),
        number(one["lag_records"]),
        number(one["lag_seconds"], places=1),
        number(one["latency_ms"]),
        number(one["events_count"]),
    )


def partition_row(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"{one['topic']}-{one['partition']}",
        number(one["lane"]),
        one["waits"] or one["state"],
        number(one["source_end"]),
        number(one["source_next"]),
        number(one["lag_records"]),
        number(one["lag_seconds"], places=1),
    )


def number(value: float | None, *, per: float = 1, places: int = 0) -> str:
    """Not known is a dash, never nought."""
    return DASH if value is None else f"{value / per:,.{places}f}"


@flows.command("list")
@asks_a_server
def list_all(api: Api, as_json: AsJson = False) -> int:
    """List the flows: state, throughput, lag, events.

    Exit codes: 0 all are running, idle or paused; 3 one is not; 1 the server cannot be reached or refuses; 2 an option
    is wrong.
    """
    found = api.ask("GET", FLOWS)
    if as_json:
        print_json(found)
    else:
        print_lines(table([FLOW_HEAD, *map(flow_row, found["flows"])]) if found["flows"] else ["no flows"])
        print_lines(f"  ! {one['flow']}: {text}" for one in found["flows"] for text in one["notices"])
    return 0 if all(one["verdict"] in WELL for one in found["flows"]) else EXIT_NOT_WELL


@flows.command()
@asks_a_server
def show(api: Api, flow: FlowId, as_json: AsJson = False) -> int:
    """Show one flow: its lanes, what is furthest behind, what waits and why.

    Exit codes: 0 it is running, idle or paused; 3 it is not; 1 the server cannot be reached or refuses, or has no such
    flow; 2 an option is wrong.
    """
    path = flow_path(flow)
    found, lanes = api.ask("GET", path), api.ask("GET", f"{path}/lanes")["lanes"]
    most = None if as_json else PARTITIONS_SHOWN_MAX
    partitions = list(pages(api, f"{path}/partitions", "partitions", most, sort="lag"))
    if as_json:
        print_json({**found, "lanes": lanes, "partition_list": partitions})
    else:
        print_lines(_lines(found, lanes, partitions))
    return 0 if found["verdict"] in WELL else EXIT_NOT_WELL


def _lines(found: Mapping[str, Any], lanes: list[dict[str, Any]], partitions: list[dict[str, Any]]) -> list[str]:
    lines = table([FLOW_HEAD, flow_row(found)])
    if found["paused"]:
        lines.append(f"  paused: {', '.join(found['paused'])}")
    rows: list[tuple[str, ...]] = [("LANE", "STATE", "PARTITIONS", "HELD BYTES", "RECORDS", "ATTEMPTS")]
    for one in lanes:
        state = one["state"] if one["reports"] else f"silent ({one['state']})"
        figures = (number(one[name]) for name in ("partitions", "held_bytes", "records", "attempts"))
        rows.append((number(one["lane"]), state, *figures))
    lines += table(rows)
    behind = [one for one in partitions if one["lag_records"] or one["waits"]]
    lines += table([PARTITION_HEAD, *map(partition_row, behind)]) if behind else ["  nothing behind"]
    return [*lines, *(f"  ! {text}" for text in found["notices"])]


@flows.command()
@asks_a_server
def pause(api: Api, flow: FlowId, topic: Topics = None, as_json: AsJson = False) -> int:
    """Hold these topics, or the whole flow if none is named. It holds over restarts.

    Examples:

      mirrorspark flows pause 'east->west' --topic orders

    Exit codes: 0 written; 1 the server cannot be reached or refuses; 2 an option is wrong.
    """
    return _steer(api, flow, "pause", topic, as_json)


@flows.command()
@asks_a_server
def resume(api: Api, flow: FlowId, topic: Topics = None, as_json: AsJson = False) -> int:
    """Let these topics go on, or everything that is paused if none is named.

    Exit codes: 0 written; 1 the server cannot be reached or refuses; 2 an option is wrong.
    """
    return _steer(api, flow, "resume", topic, as_json)


def _steer(api: Api, flow: str, verb: str, topics: list[str] | None, as_json: bool) -> int:
    done = api.ask("POST", f"{flow_path(flow)}/{verb}", {"topics": topics} if topics else {})
    if as_json:
        print_json(done)
    else:
        held = "everything" if done["paused"] == ["*"] else ", ".join(done["paused"]) or "nothing"
        when = "the mirror obeys it" if done["is_taken"] else "written; the mirror will obey it"
        print_lines([f"{done['flow']} paused: {held} ({when})"])
    return 0
