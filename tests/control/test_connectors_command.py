"""``mirrorspark connectors …`` against a server over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.control.remote.conftest import Served, command, folder, serve
from typer.testing import Result

from mirrorspark.rest.connector_host import TargetState

__all__ = ["command", "folder", "serve"]

NAME = "mm2-msc-source-0"
ODD = "a->b.Mirror/Source"
Command = Callable[..., Result]


@pytest.fixture
def deployed(serve: Callable[..., Served], command: Command, folder: Path) -> Served:
    server = serve()
    assert command("deploy", "source-0", url=server.url, folder=str(folder)).exit_code == 0
    server.host.configs[ODD] = {**server.host.configs[NAME], "name": ODD, "vendor.secret": "marked"}
    server.host.states[ODD] = TargetState.RUNNING
    return server


def test_listed_and_shown(deployed: Served, command: Command) -> None:
    listed = command("connectors", "list", url=deployed.url)
    assert listed.exit_code == 0
    assert f"{NAME}    MirrorSourceConnector      RUNNING  2/2    here" in listed.stdout
    found = json.loads(command("connectors", "list", "--json", url=deployed.url).stdout)["connectors"]
    assert {one["name"]: one["state"] for one in found} == dict.fromkeys(deployed.host.configs, "RUNNING")
    shown = command("connectors", "show", ODD, url=deployed.url)
    assert shown.stdout.startswith(f"{ODD}: RUNNING, 2/2 tasks run, on here\n")
    assert "topics: orders" in shown.stdout
    assert json.loads(command("connectors", "show", ODD, "--json", url=deployed.url).stdout)["topics"] == ["orders"]
    missing = command("connectors", "show", "nobody", url=deployed.url)
    assert (missing.exit_code, "404" in missing.stderr) == (1, True)


def test_a_configuration_is_read_and_given(deployed: Served, command: Command, tmp_path: Path) -> None:
    text = command("connectors", "config", ODD, url=deployed.url).stdout
    assert "vendor.secret=[hidden]\n" in text
    assert "marked" not in text
    shown = json.loads(command("connectors", "config", ODD, "--json", url=deployed.url).stdout)
    file = tmp_path / "changed.json"
    file.write_text(json.dumps({**shown, "topics": "others"}))
    assert command("connectors", "config", ODD, "--put", str(file), url=deployed.url).exit_code == 0
    assert deployed.host.configs[ODD]["topics"] == "others"
    assert deployed.host.configs[ODD]["vendor.secret"] == "marked", "what was hidden stays as it was"
    other = command("connectors", "config", NAME, "--put", str(file), url=deployed.url)
    assert (other.exit_code, ODD in other.stderr) == (2, True)


def test_steered(deployed: Served, command: Command) -> None:
    for verb, state in (("pause", "PAUSED"), ("stop", "STOPPED"), ("resume", "RUNNING")):
        result = command("connectors", verb, NAME, ODD, "--json", url=deployed.url)
        assert result.exit_code == 0, result.output
        assert [one["state"] for one in json.loads(result.stdout)["connectors"]] == [state, state]
        assert deployed.host.states[NAME] == deployed.host.states[ODD] == state
    assert command("connectors", "restart", ODD, url=deployed.url).exit_code == 0
    assert command("connectors", "restart", ODD, "--no-tasks", "--no-wait", url=deployed.url).exit_code == 0
    assert deployed.host.restarts == [(ODD, True, False), (ODD, False, False)]
    assert command("connectors", "delete", ODD, url=deployed.url).exit_code == 0
    assert ODD not in deployed.host.configs
    assert command("connectors", "delete", ODD, url=deployed.url).exit_code == 1


def test_topics_and_offsets(deployed: Served, command: Command, tmp_path: Path) -> None:
    assert command("connectors", "topics", NAME, "--reset", url=deployed.url).stdout == "orders\n"
    assert "no offsets" in command("connectors", "offsets", NAME, url=deployed.url).stdout
    entry = {"partition": {"cluster": "a", "topic": "t", "partition": 0}, "offset": {"offset": 7}}
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"offsets": [entry]}))
    put = command("connectors", "offsets", NAME, "--put", str(file), url=deployed.url)
    assert put.stdout.splitlines()[1].split() == ["a", "t", "0", "7"]
    kept = command("connectors", "offsets", NAME, "--json", url=deployed.url).stdout
    assert json.loads(kept) == {"offsets": [entry]}
    assert "no offsets" in command("connectors", "offsets", NAME, "--reset", url=deployed.url).stdout
    assert command("connectors", "offsets", NAME, "--put", str(tmp_path / "no"), url=deployed.url).exit_code == 2


def test_what_is_no_connect(command: Command) -> None:
    """Any other web server, and a login that a proxy would see."""
    result = command("connectors", "list", url="http://user:marked@127.0.0.1:9")
    assert (result.exit_code, "marked" in result.output) == (2, False)
