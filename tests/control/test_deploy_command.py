"""``deploy``, ``undeploy``, ``redeploy`` and ``status CLUSTER`` against a server over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.control.remote.conftest import Served, command, folder, serve
from typer.testing import CliRunner, Result

from mirrorspark.__main__ import app
from mirrorspark.control.remote import connector_states
from mirrorspark.rest.connector_host import ConnectorState, ConnectorStatus, TargetState, TaskStatus

__all__ = ["command", "folder", "serve"]

NAMES = ["mm2-msc-source-0", "mm2-cpc-source-0", "mm2-hbc-source-0"]
Command = Callable[..., Result]


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_states, "SETTLED_S", 0.2)
    monkeypatch.setattr(connector_states, "LOOK_INTERVAL_S", 0.02)


def _actions(result: Result) -> dict[str, str]:
    return {one["name"]: one["action"] for one in json.loads(result.stdout)["connectors"]}


def _change(path: Path, **keys: str) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **{k.replace("_", "."): v for k, v in keys.items()}}))


def test_the_life_of_a_deployment(serve: Callable[..., Served], command: Command, folder: Path) -> None:
    server = serve()
    there: dict[str, Any] = {"url": server.url, "folder": str(folder)}
    assert command("status", "source-0", **there).exit_code == 3

    dry = command("deploy", "source-0", "--dry-run", "--json", **there)
    assert (dry.exit_code, server.host.configs) == (0, {})
    assert set(_actions(dry).values()) == {"created"}

    first = command("deploy", "source-0", **there)
    assert first.exit_code == 0, first.output
    assert list(server.host.configs) == NAMES, "source before checkpoint before heartbeat"
    assert "mm2-msc-source-0: RUNNING, 2/2 tasks run" in first.stderr
    assert command("status", "source-0", **there).exit_code == 0

    again = command("deploy", "source-0", "--json", **there)
    assert set(_actions(again).values()) == {"unchanged"}
    _change(folder / "mm2-msc-source-0.json", topics="other")
    changed = command("deploy", "source-0", "--json", **there)
    assert _actions(changed) == {NAMES[0]: "updated", NAMES[1]: "unchanged", NAMES[2]: "unchanged"}
    assert server.host.configs[NAMES[0]]["topics"] == "other"

    anew = command("redeploy", "source-0", "--json", **there)
    assert set(_actions(anew).values()) == {"created"}
    gone = command("undeploy", "source-0", "--json", **there)
    assert list(_actions(gone)) == NAMES[::-1]
    assert (set(_actions(gone).values()), server.host.configs) == ({"deleted"}, {})
    twice = command("undeploy", "source-0", "--json", **there)
    assert (twice.exit_code, set(_actions(twice).values())) == (0, {"not there"})


def test_a_secret_is_sent_and_never_shown(serve: Callable[..., Served], command: Command, folder: Path) -> None:
    server = serve("operator user ops marked-password\n")
    secret = {"source.cluster.sasl.jaas.config": 'x required password="marked-jaas";'}
    path = folder / "mm2-msc-source-0.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **secret}))
    there = {"url": server.url, "folder": str(folder), "user": "ops", "password": "marked-password"}
    told = [command("deploy", "source-0", "--json", **there)]
    assert told[0].exit_code == 0, told[0].output
    assert server.host.configs[NAMES[0]].items() >= secret.items()
    told.append(command("deploy", "source-0", "--json", **there))
    assert _actions(told[-1])[NAMES[0]] == "sent again", "nobody can see whether a hidden secret has changed"
    told += [command("connectors", *words, **there) for words in (("config", NAMES[0]), ("show", NAMES[0]), ("list",))]
    told.append(command("deploy", "source-0", url=server.url, folder=str(folder), token="marked-wrong"))
    assert told[-1].exit_code == 1
    assert "401" in told[-1].stderr
    assert [one for one in told if "marked" in one.output] == []


def test_nothing_is_changed_if_one_file_is_wrong(serve: Callable[..., Served], command: Command, folder: Path) -> None:
    server = serve()
    _change(folder / "mm2-hbc-source-0.json", emit_heartbeats_interval_seconds="often")
    for verb in ("deploy", "redeploy"):
        result = command(verb, "source-0", url=server.url, folder=str(folder))
        assert (result.exit_code, server.host.configs) == (2, {})
        assert "mm2-hbc-source-0.json: emit.heartbeats.interval.seconds" in result.stderr
        assert "nothing was changed" in result.stderr


def test_what_somebody_paused_stays_so(serve: Callable[..., Served], command: Command, folder: Path) -> None:
    server = serve()
    there = {"url": server.url, "folder": str(folder)}
    command("deploy", "source-0", **there)
    server.host.states[NAMES[1]] = TargetState.PAUSED
    result = command("deploy", "source-0", **there)
    assert result.exit_code == 3
    assert f"connectors resume {NAMES[1]}" in result.stderr
    assert server.host.states[NAMES[1]] is TargetState.PAUSED
    assert command("status", "source-0", **there).exit_code == 0, "a pause is nothing wrong"


def test_what_failed_is_restarted_and_told(
    serve: Callable[..., Served], command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    there = {"url": server.url, "folder": str(folder)}
    command("deploy", "source-0", **there)

    def failed(name: str) -> ConnectorStatus:
        task = TaskStatus(0, ConnectorState.FAILED, "here", "it broke\nat a.b.C")
        return ConnectorStatus(name, ConnectorState.RUNNING, "here", tasks=(task,))

    monkeypatch.setattr(server.host, "status", failed)
    result = command("deploy", "source-0", **there)
    assert result.exit_code == 3
    assert server.host.restarts == [(name, True, True) for name in NAMES]
    assert f"! {NAMES[0]}: it broke\n" in result.stdout
    status = command("status", "source-0", **there)
    assert (status.exit_code, "at a.b.C" in status.stdout) == (3, False)


def test_a_file_may_ask_for_a_pause(serve: Callable[..., Served], command: Command, folder: Path) -> None:
    server = serve()
    path = folder / "mm2-msc-source-0.json"
    path.write_text(json.dumps({"config": json.loads(path.read_text()), "initial_state": "PAUSED"}))
    result = command("deploy", "source-0", url=server.url, folder=str(folder))
    assert result.exit_code == 0, result.output
    assert server.host.states[NAMES[0]] is TargetState.PAUSED


def test_nobody_there(command: Command, folder: Path) -> None:
    result = command("deploy", "source-0", url="http://127.0.0.1:9", folder=str(folder))
    assert result.exit_code == 1
    assert result.stderr.startswith("mirrorspark: UNREACHABLE: http://127.0.0.1:9: ")
    assert command("status", "source-0", url="http://127.0.0.1:9").exit_code == 1
    assert command("status", "nowhere.properties").exit_code == 2


def test_a_shell_completes_clusters(folder: Path) -> None:
    words = {"COMP_WORDS": "mirrorspark deploy so", "COMP_CWORD": "2", "_MIRRORSPARK_COMPLETE": "complete_bash"}
    environment = {**words, "MIRRORSPARK_FOLDER": str(folder)}
    done = CliRunner().invoke(app, [], prog_name="mirrorspark", env=environment)
    assert done.stdout.split() == ["source-0"], done.output
