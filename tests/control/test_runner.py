"""A process of several flows: how it starts, what it shows, what it hears, how it ends, and by which code."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from mirrorspark.config.document import Document
from mirrorspark.config.load import Deployment
from mirrorspark.control import flow_life, spark_for_flows
from mirrorspark.control.runner import (
    EXIT_FAILED,
    EXIT_FENCED,
    EXIT_OK,
    EXIT_SETTINGS,
    EXIT_SPARK_LOST,
    Edits,
    run_deployment,
)
from mirrorspark.control.spark_for_flows import LANES_ADDED_MAX, SparkForFlows
from mirrorspark.errors import Fenced, MirrorError, SettingsError, SparkLost, Unreachable
from mirrorspark.names import Flow
from mirrorspark.settings import RestSettings

from .scripted_flows import FakeRuntime, Script, flow_settings, until

AWAY = Unreachable("east.bootstrap.servers: nobody there")
REFUSED = MirrorError("never")
WAIT_S = 60.0


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Script]:
    FakeRuntime.scripts = {name: Script() for name in "abc"}
    monkeypatch.setattr(flow_life, "FlowRuntime", FakeRuntime)
    monkeypatch.setattr(flow_life, "RETRY_PAUSE_S_MIN", 0.001)
    return FakeRuntime.scripts


class FakeSession:
    stopped = 0

    def stop(self) -> None:
        FakeSession.stopped += 1


class FakeBridge:
    """Never begins a flow: another process's start is not what these tests are about."""

    def carry(self, order: object) -> bool:
        return False

    def hang_up(self) -> None:
        return None

    close = hang_up


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What Spark's start gives: a session, or the error put here."""
    world: dict[str, Any] = {"error": None, "killed": 0}
    FakeSession.stopped = 0

    def open_session(self: object, slots: int) -> FakeSession:
        world["slots"] = slots
        if world["error"] is not None:
            raise world["error"]
        return FakeSession()

    monkeypatch.setattr(SparkForFlows, "_open_session", open_session)
    monkeypatch.setattr(spark_for_flows, "_load_spark", lambda: None)
    monkeypatch.setattr(spark_for_flows, "Bridge", FakeBridge)
    monkeypatch.setattr(spark_for_flows, "_kill_starting_jvm", lambda: world.update(killed=world["killed"] + 1))
    return world


def _run(*names: str) -> int:
    return run_deployment(Deployment([flow_settings(name) for name in names]))


def _stop_when(is_so: Callable[[], bool]) -> Callable[[], Awaitable[None]]:
    """For a script's wait: send this process SIGTERM, as a supervisor does, when it is so."""

    async def wait() -> None:
        await until(is_so)
        os.kill(os.getpid(), signal.SIGTERM)

    return wait


def test_stopped_in_order(
    spark: dict[str, Any], scripts: dict[str, Script], capsys: pytest.CaptureFixture[str]
) -> None:
    scripts["a"] = Script(waits={"run": _stop_when(lambda: True)})
    assert _run("a") == EXIT_OK
    assert scripts["a"].steps[-1] == "stop"
    assert FakeSession.stopped == 1
    assert "a->west stopped: 0 records" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code"), [(AWAY, EXIT_FAILED), (REFUSED, EXIT_FAILED), (SettingsError("k: bad"), EXIT_SETTINGS)]
)
def test_a_start_that_fails_for_all_flows_ends_the_process(
    spark: dict[str, Any],
    scripts: dict[str, Script],
    capsys: pytest.CaptureFixture[str],
    error: MirrorError,
    code: int,
) -> None:
    scripts.update(a=Script(failures=[("reach", error)] * 99), b=Script(failures=[("reach", error)] * 99))
    assert _run("a", "b") == code
    shown = capsys.readouterr()
    assert sorted(shown.err.splitlines()) == [f"mirrorspark: {error.code}: flow {name}->west: {error}" for name in "ab"]
    assert shown.out == ""
    assert "lead" not in scripts["a"].steps + scripts["b"].steps


def test_one_flow_that_cannot_start_does_not_hold_up_the_other(
    spark: dict[str, Any], scripts: dict[str, Script]
) -> None:
    scripts["a"] = Script(failures=[("reach", AWAY)] * 999)
    scripts["b"] = Script(waits={"run": _stop_when(lambda: scripts["a"].steps.count("reach") > 3)})
    assert _run("a", "b") == EXIT_FAILED
    assert scripts["b"].steps[-1] == "stop"


def test_a_flow_that_came_up_late_is_no_failure_at_the_end(spark: dict[str, Any], scripts: dict[str, Script]) -> None:
    scripts["a"] = Script(failures=[("reach", AWAY)] * 3)
    scripts["b"] = Script(waits={"run": _stop_when(lambda: "run" in scripts["a"].steps)})
    assert _run("a", "b") == EXIT_OK


def test_the_process_ends_when_nothing_is_left_to_hope_for(spark: dict[str, Any], scripts: dict[str, Script]) -> None:
    scripts["a"] = Script(failures=[("run", REFUSED)] + [("reach", REFUSED)] * 999)
    scripts["b"] = Script(failures=[("run", Fenced("taken over"))])
    assert _run("a", "b") == EXIT_FENCED
    scripts["b"] = Script(failures=[("run", RuntimeError("a bug"))] * 999)
    assert _run("a", "b") == EXIT_FAILED


def test_a_flow_that_may_come_back_keeps_the_process_alive(spark: dict[str, Any], scripts: dict[str, Script]) -> None:
    async def stop_the_second_time() -> None:
        if scripts["a"].steps.count("run") == 2:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()

    scripts["a"] = Script(failures=[("run", AWAY), *[("reach", AWAY)] * 5], waits={"run": stop_the_second_time})
    scripts["b"] = Script(failures=[("run", Fenced("taken over"))])
    assert _run("a", "b") == EXIT_FENCED
    assert scripts["a"].steps.count("reach") == 7


@pytest.mark.parametrize(
    ("error", "end", "code"), [(REFUSED, "stop", EXIT_FAILED), (Fenced("taken over"), "superseded", EXIT_FENCED)]
)
def test_the_process_does_not_end_before_a_failed_flow_is_drained(
    spark: dict[str, Any], scripts: dict[str, Script], error: Exception, end: str, code: int
) -> None:
    scripts["a"] = Script(failures=[("run", error)] * 999, waits={"drain": lambda: asyncio.sleep(1.0)})
    assert _run("a") == code
    assert scripts["a"].steps[4:6] == ["drain", end]


@pytest.mark.parametrize("error", [SparkLost("Spark could not be started: no Java"), ValueError("odd")])
def test_spark_that_does_not_start_is_one_line(
    spark: dict[str, Any], scripts: dict[str, Script], capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    spark["error"] = error
    assert _run("a", "b") == EXIT_SPARK_LOST
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("mirrorspark: SPARK_LOST: Spark could not be started: ")
    assert "lead" not in scripts["a"].steps + scripts["b"].steps


def test_spark_that_is_lost_ends_all_flows(
    spark: dict[str, Any], scripts: dict[str, Script], capsys: pytest.CaptureFixture[str]
) -> None:
    scripts["a"] = Script(failures=[("run", SparkLost("Spark's JVM is gone"))])
    assert _run("a", "b") == EXIT_SPARK_LOST
    assert capsys.readouterr().err == "mirrorspark: SPARK_LOST: Spark's JVM is gone\n"
    assert FakeSession.stopped == 0


def _hung_up_until(is_so: Callable[[], bool]) -> Callable[[], Awaitable[None]]:
    """For a script's wait: SIGHUP again and again (it is not heard while Spark starts), then SIGTERM."""

    async def wait() -> None:
        async with asyncio.timeout(WAIT_S):
            while not is_so():
                os.kill(os.getpid(), signal.SIGHUP)
                await asyncio.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    return wait


def test_hanging_up_reads_the_file_again(
    spark: dict[str, Any], scripts: dict[str, Script], capsys: pytest.CaptureFixture[str]
) -> None:
    """Another flow is begun, one is told of its new topics as it runs, one with more lanes is started anew."""
    start = Deployment([flow_settings("a"), flow_settings("b")])
    edited = Deployment([flow_settings("a", topics="orders"), flow_settings("b", tasks_max=2), flow_settings("c")])
    scripts["a"].waits["run"] = _hung_up_until(
        lambda: scripts["c"].steps.count("run") == 1 and scripts["b"].steps.count("run") == 2
    )
    assert run_deployment(start, edits=Edits([], lambda: edited, is_watched=False)) == EXIT_OK
    assert scripts["a"].steps.count("lead") == 1
    assert [one.topics for one in scripts["a"].settings] == [".*", "orders"]
    assert [one.tasks_max for one in scripts["b"].settings] == [1, 2]
    shown = capsys.readouterr()
    assert "edit: a->west: topics changed; applied as it runs" in shown.err
    assert "edit: b->west: tasks.max changed; it is drained and started anew" in shown.err
    assert "edit: c->west: added" in shown.err
    assert "c->west stopped: 0 records" in shown.out


def test_a_bad_edit_changes_nothing_and_is_shown_until_a_good_one_comes(
    spark: dict[str, Any], scripts: dict[str, Script], capsys: pytest.CaptureFixture[str]
) -> None:
    start = Deployment([flow_settings("a"), flow_settings("b")])
    bad = SettingsError("mm2.properties:3: tasks.max=x: not a whole number")

    def load() -> Deployment:
        if not any(scripts["a"].edits):
            raise bad
        return start

    scripts["a"].waits["run"] = _hung_up_until(lambda: any(scripts["a"].edits) and scripts["a"].edits[-1] == "")
    assert run_deployment(start, edits=Edits([], load, is_watched=False)) == EXIT_OK
    refused = next(text for text in scripts["b"].edits if text)
    assert refused == f"refused, the mirror goes on as before: {bad}"
    assert scripts["a"].steps.count("lead") == scripts["b"].steps.count("lead") == 1
    assert f"mirrorspark: edit refused: SETTINGS: {bad}\n" in capsys.readouterr().err


def test_a_flow_that_an_edit_removes_is_drained_and_the_rest_goes_on(
    spark: dict[str, Any], scripts: dict[str, Script]
) -> None:
    start = Deployment([flow_settings("a"), flow_settings("b")])
    scripts["a"].waits["run"] = _hung_up_until(lambda: "stop" in scripts["b"].steps)
    scripts["b"].failures = [("reach", AWAY)]
    edits = Edits([], lambda: Deployment([flow_settings("a")]), is_watched=False)
    scripts["b"].waits["run"] = lambda: asyncio.sleep(0)
    assert run_deployment(start, edits=edits) == EXIT_OK
    assert scripts["a"].steps.count("lead") == 1


def test_an_edited_file_is_taken_when_it_is_at_rest(
    spark: dict[str, Any], scripts: dict[str, Script], tmp_path: Path
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text("old")
    start = Deployment([flow_settings("a")])

    def load() -> Deployment:
        return start if file.read_text() == "old" else Deployment([flow_settings("a"), flow_settings("b")])

    async def edit() -> None:
        file.write_text("new")
        await until(lambda: "run" in scripts["b"].steps)
        os.kill(os.getpid(), signal.SIGTERM)

    scripts["a"].waits["run"] = edit
    assert run_deployment(start, edits=Edits([file], load, is_watched=True)) == EXIT_OK


def test_hanging_up_without_a_file_does_not_end_it(spark: dict[str, Any], scripts: dict[str, Script]) -> None:
    async def hang_up_then_stop() -> None:
        for _ in range(20):
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    scripts["a"] = Script(waits={"run": hang_up_then_stop})
    assert _run("a") == EXIT_OK
    assert scripts["a"].steps[-1] == "stop"


def test_a_flow_whose_own_keys_are_wrong_is_named_and_the_others_run(
    spark: dict[str, Any], scripts: dict[str, Script], capsys: pytest.CaptureFixture[str]
) -> None:
    bad = SettingsError("mm2.properties:7: b->west.topics=[a: not a regular expression")
    deployment = Deployment([flow_settings("a")], refused={Flow("b", "west"): bad})
    scripts["a"] = Script(waits={"run": _stop_when(lambda: True)})
    assert run_deployment(deployment) == EXIT_SETTINGS
    shown = capsys.readouterr()
    assert shown.err == f"mirrorspark: SETTINGS: flow b->west: {bad}\n"
    assert f"b->west failed: 0 records, 0 bytes carried, lag 0, 0 unacknowledged events\n  the flow: {bad}" in shown.out
    assert scripts["a"].steps[-1] == "stop"


def test_too_few_slots_are_told(
    spark: dict[str, Any], scripts: dict[str, Script], capsys: pytest.CaptureFixture[str]
) -> None:
    scripts["a"] = Script(waits={"run": _stop_when(lambda: True)})
    run_deployment(Deployment([flow_settings("a"), flow_settings("b")]), master="local[1]")
    assert "--master local[1] runs 1 tasks at a time, but the flows have 2 lanes" in capsys.readouterr().err


def test_the_embedded_spark_has_slots_for_flows_that_come_later(
    spark: dict[str, Any], scripts: dict[str, Script], capsys: pytest.CaptureFixture[str]
) -> None:
    scripts["a"] = Script(waits={"run": _stop_when(lambda: True)})
    assert _run("a") == EXIT_OK
    assert spark["slots"] == 1 + LANES_ADDED_MAX
    assert "warning" not in capsys.readouterr().err


def test_rest_is_served_while_flows_run_and_a_restart_is_that_flows_own(
    spark: dict[str, Any], scripts: dict[str, Script], capsys: pytest.CaptureFixture[str]
) -> None:
    """The connectors come from the file; nothing is asked any more when the flows drain."""
    restart = "/connectors/a->west.MirrorSourceConnector/restart?includeTasks=true"
    asked = (("GET", "/mirrorspark/v1/flows/b-%3Ewest"), ("GET", "/metrics"), ("POST", restart))
    answers: list[int] = []
    names: list[str] = []

    async def ask() -> None:
        try:
            await until(lambda: "run" in scripts["a"].steps)
            (address,) = re.findall(r"listening on (\S+)", capsys.readouterr().err)
            async with httpx.AsyncClient(base_url=f"http://{address}", timeout=WAIT_S) as client:
                for method, path in asked:
                    answers.append((await client.request(method, path)).status_code)
                names.extend((await client.get("/connectors")).json())
            await until(lambda: scripts["a"].steps.count("run") == 2)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    scripts["b"] = Script(waits={"run": ask})
    deployment = Deployment([flow_settings(name) for name in "ab"])
    deployment.rest = RestSettings((":0",))
    deployment.document = Document.of(
        {"clusters": "a, west", "a->west.enabled": "true", "emit.heartbeats.enabled": "false"}
    )
    assert run_deployment(deployment) == EXIT_OK
    assert answers == [200, 200, 202]
    assert names == ["a->west.MirrorSourceConnector", "a->west.MirrorCheckpointConnector"]
    assert scripts["a"].steps.count("drain") == 2
    assert scripts["b"].steps.count("drain") == 1
