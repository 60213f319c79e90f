"""Events by the server: listed, acknowledged, followed. ``mirrorspark events`` without FILE calls it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mirrorspark.control.command.tables import print_json, print_lines
from mirrorspark.control.remote.flow_resources import EVENTS, flow_path, pages
from mirrorspark.events import Event

if TYPE_CHECKING:
    from mirrorspark.control.remote.api import Api

__all__ = ["FOLLOW_INTERVAL_S", "acknowledge_by_server", "event_lines", "event_of", "follow", "list_by_server"]

FOLLOW_INTERVAL_S = 2.0


def event_lines(flow: str, key: str, event: Event) -> list[str]:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at_ms / 1000))
    return [f"{stamp} {flow} {event}", f"    key: {key}"]


def _lines(body: Mapping[str, Any]) -> list[str]:
    return event_lines(body["flow"], body["key"], event_of(body))


def event_of(body: Mapping[str, Any]) -> Event:
    return Event(**{name: body[name] for name in Event.__dataclass_fields__ if name in body})


def _events(api: Api, flow: str | None) -> list[dict[str, Any]]:
    """Oldest first, as a person reads them."""
    path = EVENTS if flow is None else f"{flow_path(flow)}/events"
    return sorted(pages(api, path, "events"), key=lambda one: int(one["at_ms"]))


def list_by_server(api: Api, flow: str | None, as_json: bool) -> int:
    found = _events(api, flow)
    if as_json:
        print_json(found)
    else:
        print_lines([line for one in found for line in _lines(one)] or ["no unacknowledged events"])
    return 0


def follow(api: Api, flow: str | None, as_json: bool, rounds: int | None = None) -> int:
    """Those that are there, then each new one, until interrupted (or so many looks). With JSON, one object a line."""
    told: dict[tuple[str, str], int] = {}
    while rounds is None or rounds > 0:
        for one in _events(api, flow):
            key = (one["flow"], one["key"])
            if told.get(key) != one["at_ms"]:
                told[key] = one["at_ms"]
                print_lines([json.dumps(one, ensure_ascii=False)] if as_json else _lines(one))
        rounds = None if rounds is None else rounds - 1
        if rounds != 0:
            time.sleep(FOLLOW_INTERVAL_S)
    return 0


def acknowledge_by_server(api: Api, flow: str | None, keys: Sequence[str]) -> int:
    """All that is named, or nothing."""
    body: dict[str, Any] = {"keys": list(keys)} if flow is None else {"flow": flow.replace(" ", ""), "keys": list(keys)}
    done = api.ask("POST", f"{EVENTS}/acknowledge", body)["acknowledged"]
    print_lines([f"{one['flow']} acknowledged {one['key']}" for one in done] or ["no unacknowledged events"])
    return 0
