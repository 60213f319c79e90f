"""A flow over failures: the order of a start, who is retried, what is said, and what a person changes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mirrorspark.control import flow_life
from mirrorspark.control.flow_life import FlowLife
from mirrorspark.errors import Fenced, SettingsError, SparkLost, Unreachable
from mirrorspark.settings import Naming

from .scripted_flows import FakeRuntime, Script, flow_settings, until

AWAY = Unreachable("east.bootstrap.servers: nobody there")


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Script]:
    FakeRuntime.scripts = {"a": Script(), "b": Script()}
    monkeypatch.setattr(flow_life, "FlowRuntime", FakeRuntime)
    monkeypatch.setattr(flow_life, "RETRY_PAUSE_S_MIN", 0.001)
    return FakeRuntime.scripts


async def _live(is_so: Callable[[FlowLife], bool], spark: Callable[[], Awaitable[object]] | None = None) -> FlowLife:
    async def up() -> None:
        FakeRuntime.scripts["a"].steps.append("spark")

    life = FlowLife(flow_settings("a"), lambda settings, generation: None, spark or up)  # type: ignore[arg-type, return-value]
    job = asyncio.ensure_future(life.live())
    await until(lambda: is_so(life) or job.done())
    job.cancel()
    await asyncio.gather(job, return_exceptions=True)
    if job.done() and not job.cancelled() and isinstance(job.exception(), SparkLost):
        return life
    await life.stop()
    return life


def test_nothing_is_led_before_clusters_and_spark_are_there(scripts: dict[str, Script]) -> None:
    asyncio.run(_live(lambda life: life.has_led))
    steps = scripts["a"].steps
    assert steps[:3] == ["reach", "spark", "lead"]
    assert sorted(steps[3:-2]) == ["run", "spark", "start_query"]
    assert steps[-2:] == ["drain", "stop"]


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

        life = FlowLife(flow_settings("a"), lambda settings, generation: None, up)  # type: ignore[arg-type, return-value]
        job = asyncio.ensure_future(life.live())
        await until(lambda: life.error is not None)
        scripts["a"].waits["reach"] = look
        runs = 2 if step == "run" else 1
        await until(lambda: scripts["a"].steps.count("run") == runs and life.error is None)
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


def test_pauses_grow_and_other_settings_end_them() -> None:
    async def main() -> list[float]:
        life = FlowLife(flow_settings("a"), lambda settings, generation: None, lambda: asyncio.sleep(0))  # type: ignore[arg-type, return-value]
        pauses = [0.001]
        for _ in range(9):
            pauses.append(await life._pause(pauses[-1]))
        life.change(flow_settings("a", topics="orders"))
        async with asyncio.timeout(30):
            pauses.append(await life._pause(3600.0))
        return pauses

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow_life, "RETRY_PAUSE_S_MAX", 0.06)
        pauses = asyncio.run(main())
    assert pauses == [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.06, 0.06, 0.06, 0.06, 0.001]


def test_early_lanes_begin_only_where_nobody_leads(scripts: dict[str, Script]) -> None:
    begun: list[int] = []

    async def main() -> None:
        def begin_early(settings: object, generation: int) -> bool:
            begun.append(generation)
            return True

        async def up() -> None:
            scripts["a"].steps.append("spark")

        life = FlowLife(flow_settings("a"), lambda settings, generation: None, up, begin_early)  # type: ignore[arg-type, return-value]
        job = asyncio.ensure_future(life.live())
        await until(lambda: life.has_led)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)

    scripts["a"].is_free = True
    asyncio.run(main())
    assert begun == [1]
    assert scripts["a"].steps[:3] == ["reach", "lead", "run"]
    assert scripts["a"].steps.index("early lanes carry") < scripts["a"].steps.index("spark")


def test_settings_that_are_wrong_shut_nobody_out(scripts: dict[str, Script]) -> None:
    """A bad regex ends the attempt before a cluster is asked; a good one is tried at once."""

    async def main() -> FlowLife:
        life = FlowLife(
            flow_settings("a", naming=Naming("no-such-policy"), topics="[a"),
            lambda settings, generation: None,  # type: ignore[arg-type, return-value]
            lambda: asyncio.sleep(0),
        )
        job = asyncio.ensure_future(life.live())
        await until(lambda: life.error is not None)
        assert isinstance(life.error, SettingsError)
        assert life.status.state == "failed"
        assert scripts["a"].steps == []
        life.change(flow_settings("a"))
        await until(lambda: life.has_led)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        return life

    life = asyncio.run(main())
    assert life.error is None
    assert "close" not in scripts["a"].steps


def test_what_is_changed_reaches_the_flow_that_runs_and_an_edit_that_was_refused_is_shown(
    scripts: dict[str, Script],
) -> None:
    async def main() -> None:
        life = FlowLife(flow_settings("a"), lambda settings, generation: None, lambda: asyncio.sleep(0))  # type: ignore[arg-type, return-value]
        life.show_edit("refused: early")
        assert life.status.failures == {"the edited file": "refused: early"}
        job = asyncio.ensure_future(life.live())
        await until(lambda: scripts["a"].edits == ["refused: early"] and not life.status.failures)
        life.change(flow_settings("a", topics="orders", tasks_max=3))
        life.show_edit("")
        await until(lambda: scripts["a"].edits == ["refused: early", ""])
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        assert (life.status.topics, life.status.lanes_expected) == ("orders", 3)
        assert life.status.heartbeats_topic == "a.heartbeats"

    asyncio.run(main())
    assert [one.topics for one in scripts["a"].settings] == [".*", "orders"]
    assert scripts["a"].steps.count("lead") == 1
