"""``mirrorspark status FILE``: flows, lanes, partitions, lag, what waits and why, from wherever one stands."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mirrorspark.control.command.deploy import FOLDER_DEFAULT, Folder, cluster_status, complete_cluster
from mirrorspark.control.command.flow_choice import FlowName, chosen_flows, end_with
from mirrorspark.control.command.server_choice import end_with_api, with_server_options
from mirrorspark.control.flow_on_target import FlowOnTarget, NeverRan, Place
from mirrorspark.observe.flow_status import words_of_groups, words_of_skipped
from mirrorspark.offsets.parity import Parity
from mirrorspark.settings import FlowSettings

__all__ = ["status"]

WATCH_S = 3.0
"""Lanes report every second: one that does not within this time is silent."""
WELL = ("running", "idle", "paused")
EXIT_NOT_WELL = 3
PLACES_SHOWN_MAX = 20
FILE_ENDINGS = (".properties", ".yaml", ".yml", ".json")


@with_server_options
def status(
    server: dict[str, Any],
    of: Annotated[
        str,
        typer.Argument(
            metavar="FILE|CLUSTER",
            help="The mirror's file; or a CLUSTER of connector files, as in mm2-msc-CLUSTER.json.",
            autocompletion=complete_cluster,
        ),
    ],
    flow: FlowName = None,
    folder: Folder = FOLDER_DEFAULT,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every partition.")] = False,
) -> None:
    """Show how flows or connectors stand.

    Of FILE: its flows, wherever their mirror runs; reads the target's plan and status topics. Of CLUSTER: its three
    connectors, by the server at --url. What is no file, and looks like none, is a CLUSTER.

    Examples:

      mirrorspark status mm2.properties

      mirrorspark status mm2.properties --flow 'east->west' --json

      mirrorspark status source-0 --url http://connect:8083

    Exit codes: 0 all flows are running, idle or paused, all connectors running or paused; 3 one is not; 1 a target
    cluster or the server cannot be reached or refuses; 2 FILE, CLUSTER or an option is wrong.
    """
    if Path(of).exists() or Path(of).suffix in FILE_ENDINGS or "/" in of:
        end_with(_status(Path(of), flow, as_json))
    end_with_api(server, lambda api: cluster_status(api, of, folder, as_json))


async def _status(file: Path, flow: str | None, as_json: bool) -> int:
    found = [await _look(settings) for settings in chosen_flows(file, flow)]
    if as_json:
        print(json.dumps({"flows": found}, indent=2))
    else:
        print("\n".join(line for one in found for line in _lines(one)))
    return 0 if all(one["state"] in WELL for one in found) else EXIT_NOT_WELL


async def _look(settings: FlowSettings) -> dict[str, Any]:
    try:
        async with FlowOnTarget(settings) as there:
            if there.plan is None:
                return _nothing(settings, "no plan has been published")
            await there.watch(WATCH_S)
            return _picture(there, await there.places())
    except NeverRan as error:
        return _nothing(settings, str(error))


def _nothing(settings: FlowSettings, why: str) -> dict[str, Any]:
    empty: dict[str, Any] = {"owner": None, "paused": [], "lanes": [], "partitions": [], "lag": None, "events": []}
    empty["sync"] = {"lines": []}
    return {"flow": str(settings.flow), "state": "never started", **empty, "notices": [why]}


def _picture(there: FlowOnTarget, places: list[Place]) -> dict[str, Any]:
    """Plain values, as ``--json`` prints them."""
    assert there.plan is not None
    status, owner = there.status, there.plan.owner
    lags = [place.lag_records for place in places]
    return {
        "flow": status.flow,
        "state": status.verdict,
        "owner": {"generation": owner.generation, "host": owner.host, "pid": owner.pid},
        "paused": sorted(there.plan.paused),
        "lanes": [
            {
                "lane": index,
                "state": lane.state,
                "reports": index not in status.lanes_silent,
                "partitions": lane.partitions,
                "held_bytes": lane.held_bytes,
                "waiting": lane.waiting,
            }
            for index, lane in sorted(status.lanes.items())
        ],
        "partitions": [_partition(place, there) for place in places],
        "lag": sum(lag or 0 for lag in lags) if any(lag is not None for lag in lags) or not lags else None,
        "events": [{"key": key, **asdict(event)} for key, event in sorted(status.events.items())],
        "skipped_by_origin": status.skipped_by_origin,
        "groups": status.groups,
        "sync": {**status.sync, "lines": status.sync_lines},
        "notices": status.notices,
    }


def _partition(place: Place, there: FlowOnTarget) -> dict[str, Any]:
    at = place.assignment
    return {
        "topic": at.source.topic,
        "partition": at.source.partition,
        "remote_topic": at.remote_topic,
        "lane": place.lane,
        "upstream_next": place.upstream_next,
        "upstream_end": place.upstream_end,
        "downstream_end": place.downstream_end,
        "lag": place.lag_records,
        "waits": there.status.waiting.get(str(at.remote)),
        "offsets": _offsets(place.parity),
    }


def _offsets(parity: Parity | None) -> dict[str, Any] | None:
    """None where nobody asked for identical ones."""
    if parity is None:
        return None
    lost_at = None if parity.holds else parity.lost_at
    return {"identical": parity.holds, "since": parity.since, "lost_at": lost_at, "text": str(parity)}


def _offset_lines(partitions: list[dict[str, Any]]) -> list[str]:
    """Of how many partitions the offsets are identical; those where they are not, one by one."""
    asked = [part for part in partitions if part["offsets"] is not None]
    if not asked:
        return []
    lost = [part for part in asked if not part["offsets"]["identical"]]
    lines = [f"offsets: identical on {len(asked) - len(lost)} of {len(partitions)} partitions"]
    lines += [f"{part['topic']}-{part['partition']}: {part['offsets']['text']}" for part in lost[:PLACES_SHOWN_MAX]]
    if len(lost) > PLACES_SHOWN_MAX:
        lines.append(f"… and {len(lost) - PLACES_SHOWN_MAX} more; --json lists all")
    return lines


def _lines(one: dict[str, Any]) -> list[str]:
    partitions = one["partitions"]
    lag = "-" if one["lag"] is None else one["lag"]
    lines = [
        f"{one['flow']} {one['state']} lanes={len(one['lanes'])} partitions={len(partitions)} lag={lag} "
        f"events={len(one['events'])}"
    ]
    if owner := one["owner"]:
        lines.append(f"  led by pid {owner['pid']} on {owner['host']} (generation {owner['generation']})")
    for lane in one["lanes"]:
        word = lane["state"] if lane["reports"] else f"does not report (last: {lane['state']})"
        lines.append(f"  lane {lane['lane']}: {word}, {lane['partitions']} partitions, {lane['held_bytes']} bytes held")
    lines += [f"  {text}" for text in one["sync"]["lines"]]
    lines += [f"  {text}" for text in _offset_lines(partitions)]
    lines += [f"  {text}" for text in words_of_skipped(one.get("skipped_by_origin", {}))]
    lines += [f"  {text}" for text in words_of_groups(one.get("groups", {}))]
    behind = sorted((part for part in partitions if part["lag"] or part["waits"]), key=lambda part: -(part["lag"] or 0))
    for part in behind[:PLACES_SHOWN_MAX]:
        waits = f", waits: {part['waits']}" if part["waits"] else ""
        lines.append(
            f"  {part['topic']}-{part['partition']}: lag {'-' if part['lag'] is None else part['lag']}, "
            f"next {part['upstream_next']} of {part['upstream_end']}, lane {part['lane']}{waits}"
        )
    if len(behind) > PLACES_SHOWN_MAX:
        lines.append(f"  … and {len(behind) - PLACES_SHOWN_MAX} more partitions with lag; --json lists all")
    return [*lines, *(f"  ! {text}" for text in one["notices"])]
