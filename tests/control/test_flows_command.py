"""``mirrorspark flows …``, ``events`` without a file and ``top`` against a server over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.control.remote.conftest import Served, command, serve
from tests.rest.memory_flows import FLOW, MemoryFlows
from typer.testing import Result

from mirrorspark.control.command import event_lines, top
from mirrorspark.control.remote.address import Address
from mirrorspark.control.remote.api import Api
from mirrorspark.errors import Unreachable

__all__ = ["command", "serve"]

Command = Callable[..., Result]
KEY = "event/data.gap/east.orders/3/1200"


@dataclass
class Flows:
    host: MemoryFlows
    url: str


@pytest.fixture
def flows(serve: Callable[..., Served]) -> Flows:
    host = MemoryFlows()
    return Flows(host, serve(flows=host).url)


def test_listed_and_shown(flows: Flows, command: Command) -> None:
    listed = command("flows", "list", url=flows.url)
    assert listed.exit_code == 0, listed.output
    row = listed.stdout.splitlines()[1].split()
    assert row == [FLOW, "running", "2/2", "1", "1", "0.0", "4", "0.8", "12", "1"]
    assert "! east->west/team: east.orders-3 waits: too large" in listed.stdout
    shown = command("flows", "show", FLOW, url=flows.url)
    assert shown.exit_code == 0, shown.output
    assert "orders-3   1     carrying  1,040       1,000  40   0.8" in shown.stdout
    found = json.loads(command("flows", "show", FLOW, "--json", url=flows.url).stdout)
    assert (found["verdict"], found["lanes"][0]["lane"], len(found["partition_list"])) == ("running", 0, 1)
    missing = command("flows", "show", "a->b", url=flows.url)
    assert (missing.exit_code, "Flow a->b is not here" in missing.stderr) == (1, True)


def test_held_and_let_go(flows: Flows, command: Command) -> None:
    paused = command("flows", "pause", FLOW, "--topic", "orders", url=flows.url)
    assert paused.stdout == f"{FLOW} paused: orders (the mirror obeys it)\n"
    assert flows.host.paused == ["orders"]
    assert "paused: everything" in command("flows", "pause", FLOW, url=flows.url).stdout
    assert command("flows", "list", url=flows.url).exit_code == 0, "a pause is nothing wrong"
    resumed = json.loads(command("flows", "resume", FLOW, "--json", url=flows.url).stdout)
    assert resumed == {"flow": FLOW, "paused": [], "is_taken": True}


def test_events_are_listed_followed_and_acknowledged(
    flows: Flows, command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = command("events", url=flows.url)
    assert "east->west/team data.gap east.orders-3 offsets 1..2: gone\n    key: " + KEY in listed.stdout
    assert json.loads(command("events", "--json", "--flow", FLOW, url=flows.url).stdout)[0]["key"] == KEY
    monkeypatch.setattr(event_lines, "FOLLOW_INTERVAL_S", 0.01)
    with Api(Address(flows.url)) as api:
        assert event_lines.follow(api, None, True, rounds=3) == 0
    assert [json.loads(line)["key"] for line in capsys.readouterr().out.splitlines()] == [KEY], "each once"
    assert command("events", "--ack", "data.gap/x", url=flows.url).exit_code == 1
    assert command("events", "--ack", KEY.removeprefix("event/"), url=flows.url).stdout.endswith(
        f"acknowledged {KEY}\n"
    )
    assert command("events", url=flows.url).stdout == "no unacknowledged events\n"
    refused = command("events", "mm2.properties", "--follow")
    assert (refused.exit_code, "leave FILE out" in refused.stderr) == (2, True)


def test_top_looks_once(flows: Flows, command: Command) -> None:
    seen = command("top", "--once", url=flows.url)
    assert seen.exit_code == 0, seen.output
    for word in (FLOW, "running", "orders-3", "too large"):
        assert word in seen.stdout, "in a terminal of 80 columns"
    found = json.loads(command("top", "--once", "--json", url=flows.url).stdout)
    assert found["flows"][0]["flow"] == FLOW


def test_top_waits_for_a_server_that_is_gone(flows: Flows, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([Unreachable("nobody there")])
    pictures = []

    def look(api: Api) -> top.Sight:
        if (error := next(looks, None)) is not None:
            raise error
        return top.Sight(lost="")

    def pause(seconds: float) -> None:
        if len(pictures) == 2:
            raise KeyboardInterrupt

    def picture(sight: top.Sight, url: str) -> str:
        pictures.append(sight.lost)
        return ""

    monkeypatch.setattr(top, "look", look)
    monkeypatch.setattr(top, "picture", picture)
    monkeypatch.setattr(top.time, "sleep", pause)
    assert command("top", url=flows.url).exit_code == 130
    assert pictures == ["nobody there", ""]
