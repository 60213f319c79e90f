"""A flow over failures: the order of a start, who is retried, what is said, and how a process of several flows ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from mirrorspark.control import flow_life, runner
from mirrorspark.control.flow_life import FlowLife
from mirrorspark.control.mm2_settings import Deployment
from mirrorspark.control.runner import (
    EXIT_FAILED,
    EXIT_FENCED,
    EXIT_OK,
    EXIT_SETTINGS,
    EXIT_SPARK_LOST,
    run_deployment,
)
from mirrorspark.errors import Fenced, MirrorError, SettingsError, SparkLost, Unreachable
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.settings import ClusterSettings, FlowSettings

AWAY = Unreachable("east.bootstrap.servers: nobody there")
REFUSED = MirrorError("never")
WAIT_S = 60.0


def _settings(name: str) -> FlowSettings:
    return FlowSettings(Flow(name, "west"), ClusterSettings(name, ()), ClusterSettings("west", ()))


@dataclass
class Script:
    """What a flow's attempts meet, one after the other: a step and the error it raises. After the last: it just runs."""

    failures: list[tuple[str, Exception]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    waits: dict[str, Callable[[], Awaitable[object]]] = field(default_factory=dict)


class FakeRuntime:
    scripts: ClassVar[dict[str, Script]] = {}

    def __init__(self, settings: FlowSettings, make_query: object, status: FlowStatus) -> None:
        self.settings, self.status = settings, status
        self.script = self.scripts[settings.flow.source]
        self.failure = self.script.failures.pop(0) if self.script.failures else None
        self.has_led = False

    async def _step(self, name: str) -> None:
        self.script.steps.append(name)
        if name in self.script.waits:
            await self.script.waits[name]()
        if self.failure and self.failure[0] == name:
            raise self.failure[1]

    async def reach(self) -> None:
        await self._step("reach")

    async def lead(self) -> None:
        await self._step("lead")
        self.has_led = True

    def start_query(self) -> None:
        self.script.steps.append("start_query")
        self.status.run()

    async def run(self) -> None:
        await self._step("run")
        await asyncio.Event().wait()

    async def stop(self, *, superseded: bool = False) -> None:
        await self._step("drain")
        self.script.steps.append("superseded" if superseded else "stop")
        self.status.state = "superseded" if superseded else "stopped"

    def close(self) -> None:
        self.script.steps.append("close")


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Script]:
    FakeRuntime.scripts = {"a": Script(), "b": Script()}
    monkeypatch.setattr(flow_life, "FlowRuntime", FakeRuntime)
    monkeypatch.setattr(flow_life, "RETRY_PAUSE_S_MIN", 0.001)
    return FakeRuntime.scripts


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not is_so():
            await asyncio.sleep(0.001)


# -- one flow ----------------------------------------------------------------------------------------------------------


async def _live(until: Callable[[FlowLife], bool], spark: Callable[[], Awaitable[object]] | None = None) -> FlowLife:
    async def up() -> None:
        FakeRuntime.scripts["a"].steps.append("spark")

    life = FlowLife(_settings("a"), lambda settings, generation: None, spark or up)  # type: ignore[arg-type, return-value]
    job = asyncio.ensure_future(life.live())
    await _until(lambda: until(life) or job.done())
    job.cancel()
    await asyncio.gather(job, return_exceptions=True)
    if job.done() and not job.cancelled() and isinstance(job.exception(), SparkLost):
        return life
    await life.stop()
    return life


def test_nothing_is_led_before_clusters_and_spark_are_there(scripts: dict[str, Script]) -> None:
    asyncio.run(_live(lambda life: "run" in scripts["a"].steps))
    assert scripts["a"].steps == ["reach", "spark", "lead", "start_query", "run", "drain", "stop"]


@pytest.mark.parametrize(("step", "ended"), [("reach", "close"), ("lead", "close"), ("run", "stop")])
def test_a_failed_flow_is_started_again_and_shown_as_failed_meanwhile(
    scripts: dict[str, Script], step: str, ended: str, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []

    async def look() -> None:
        seen.append((life.status.verdict, dict(life.status.failures)))

    scripts["a"] = Script(failures=[(step, AWAY), ("reach", AWAY)])
    life: Any = None

    async def main() -> None:
        nonlocal life

        async def up() -> None:
            return None

        life = FlowLife(_settings("a"), lambda settings, generation: None, up)  # type: ignore[arg-type, return-value]
        job = asyncio.ensure_future(life.live())
        await _until(lambda: life.error is not None)
        scripts["a"].waits["reach"] = look
        await _until(lambda: scripts["a"].steps.count("run") > (1 if step == "run" else 0))
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)

    asyncio.run(main())
    assert ended in scripts["a"].steps
    assert seen == [("failed", {"the flow": str(AWAY)})] * 2
    assert life.status.state == "running"
    assert life.status.failures == {}
    assert life.error is None
    assert capsys.readouterr().err == f"mirrorspark: UNREACHABLE: flow a->west: {AWAY}\n"


def test_another_mirror_ends_it(scripts: dict[str, Script], capsys: pytest.CaptureFixture[str]) -> None:
    scripts["a"] = Script(failures=[("run", Fenced("taken over"))])
    life = asyncio.run(_live(lambda life: False))
    assert life.status.state == "superseded"
    assert scripts["a"].steps[-1] == "superseded"
    assert capsys.readouterr().err == "mirrorspark: FENCED: taken over\n"


def test_pauses_grow() -> None:
    slept: list[float] = []

    async def main() -> None:
        life = FlowLife(_settings("a"), lambda settings, generation: None, lambda: asyncio.sleep(0))  # type: ignore[arg-type, return-value]
        sleep = asyncio.sleep

        async def short(seconds: float) -> None:
            slept.append(seconds)
            await sleep(0)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(flow_life.asyncio, "sleep", short)
            patch.setattr(flow_life, "RETRY_PAUSE_S_MIN", 1.0)
            FakeRuntime.scripts["a"] = Script(failures=[("reach", AWAY)] * 9)
            job = asyncio.ensure_future(life.live())
            while "run" not in FakeRuntime.scripts["a"].steps:
                await sleep(0.001)
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)

    asyncio.run(main())
    assert [seconds for seconds in slept if seconds] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


# -- a process ---------------------------------------------------------------------------------------------------------


class FakeSession:
    stopped = 0

    def stop(self) -> None:
        FakeSession.stopped += 1


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What Spark's start gives: a session, or the error put here."""
    world: dict[str, Any] = {"error": None, "killed": 0}
    FakeSession.stopped = 0

    def open_session(self: object) -> FakeSession:
        if world["error"] is not None:
            raise world["error"]
        return FakeSession()

    monkeypatch.setattr(runner._Run, "_open_session", open_session)
    monkeypatch.setattr(runner, "_load_spark", lambda: None)
    monkeypatch.setattr(runner, "_kill_starting_jvm", lambda: world.update(killed=world["killed"] + 1))
    return world


def _run(*names: str) -> int:
    return run_deployment(Deployment([_settings(name) for name in names]))


def _stop_when(is_so: Callable[[], bool]) -> Callable[[], Awaitable[None]]:
    """For a script's wait: send this process SIGTERM, as a supervisor does, when it is so."""

    async def wait() -> None:
        await _until(is_so)
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


def test_hanging_up_does_not_end_it(
    spark: dict[str, Any], scripts: dict[str, Script], caplog: pytest.LogCaptureFixture
) -> None:
    async def hang_up_then_stop() -> None:
        async with asyncio.timeout(WAIT_S):
            while "reload is not there yet" not in caplog.text:
                os.kill(os.getpid(), signal.SIGHUP)
                await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    scripts["a"] = Script(waits={"run": hang_up_then_stop})
    assert _run("a") == EXIT_OK
    assert scripts["a"].steps[-1] == "stop"


def test_too_few_slots_are_told(
    spark: dict[str, Any], scripts: dict[str, Script], capsys: pytest.CaptureFixture[str]
) -> None:
    scripts["a"] = Script(waits={"run": _stop_when(lambda: True)})
    run_deployment(Deployment([_settings("a"), _settings("b")]), master="local[1]")
    assert "--master local[1] runs 1 tasks at a time, but the flows have 2 lanes" in capsys.readouterr().err
