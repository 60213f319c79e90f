"""The flows of a process, one by one: none waits for another, and what an edit was ending ends before the process does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from mirrorspark.control import flow_life
from mirrorspark.control.flow_set import FlowSet
from mirrorspark.control.live_change import difference
from mirrorspark.errors import Unreachable
from mirrorspark.settings import Heartbeats

from .scripted_flows import FakeRuntime, Script, flow_settings, until


class NoSpark:
    def __init__(self) -> None:
        self.lanes: list[int] = []

    where = "no Spark"
    tasks_at_once: int | None = None

    def begin(self, lanes: int) -> None:
        self.lanes.append(lanes)

    def up(self) -> Awaitable[object]:
        return asyncio.sleep(0)

    def make_query(self, settings: object, generation: int) -> Any:
        raise AssertionError("scripted flows have no query")

    def carry_early(self, settings: object, generation: int) -> bool:
        return False


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Script]:
    FakeRuntime.scripts = {name: Script() for name in "ab"}
    monkeypatch.setattr(flow_life, "FlowRuntime", FakeRuntime)
    monkeypatch.setattr(flow_life, "RETRY_PAUSE_S_MIN", 0.001)
    return FakeRuntime.scripts


def test_a_pair_without_a_flow_needs_no_spark_and_is_shown_only_while_it_fails() -> None:
    async def main() -> None:
        flows = FlowSet(NoSpark())
        flows.begin(flow_settings("a", enabled=False, heartbeats=Heartbeats(interval_s=0.01)))
        (member,) = flows._members.values()
        assert flows.look() == []
        assert flows.is_worth_it
        await until(lambda: bool(flows.look()))
        (shown,) = flows.shown
        assert shown.state == "heartbeats only"
        assert "a->west.emit.heartbeats.enabled = false turns them off" in shown.failures["heartbeats"]
        assert flows.errors == []
        assert flows.is_worth_it
        # Turned off, and nothing else is left to do.
        off = flow_settings("a", enabled=False)
        await flows.apply(difference([member.settings], [off]))
        assert not flows.is_worth_it
        await flows.stop()
        assert flows.spark.lanes == []  # type: ignore[attr-defined]

    asyncio.run(main())


def test_what_an_edit_was_ending_ends_before_the_process_and_nothing_new_begins(scripts: dict[str, Script]) -> None:
    async def main() -> None:
        drained = asyncio.Event()
        scripts["a"].waits["drain"] = drained.wait
        flows = FlowSet(NoSpark())
        old = [flow_settings("a"), flow_settings("b")]
        for settings in old:
            flows.begin(settings)
        await until(lambda: all(life.has_led for life in flows.lives))
        assert flows.has_begun
        applying = asyncio.ensure_future(flows.apply(difference(old, [flow_settings("a", tasks_max=2), old[1]])))
        await until(lambda: "drain" in scripts["a"].steps)
        applying.cancel()  # as a stop of the process does
        await asyncio.gather(applying, return_exceptions=True)
        assert flows.is_worth_it
        stopping = asyncio.ensure_future(flows.stop())
        await asyncio.sleep(0.05)
        assert not stopping.done()
        assert "drain" not in scripts["b"].steps
        drained.set()
        await stopping

    asyncio.run(main())
    assert scripts["a"].steps.count("reach") == 1
    assert (scripts["a"].steps[-1], scripts["b"].steps[-1]) == ("stop", "stop")


def test_a_flow_that_cannot_start_goes_away_with_the_edit_that_removes_it(scripts: dict[str, Script]) -> None:
    async def main() -> None:
        flows = FlowSet(NoSpark())
        old = [flow_settings("a"), flow_settings("b")]
        scripts["b"].failures = [("reach", Unreachable("nobody there"))] * 10_000
        for settings in old:
            flows.begin(settings)
        await until(lambda: len(flows.errors) == 1 and any(life.has_led for life in flows.lives))
        assert [status.verdict for status in flows.look()][1] == "failed"
        await flows.apply(difference(old, old[:1]))
        assert flows.errors == []
        assert [status.flow for status in flows.look()] == ["a->west"]
        assert flows.lane_count == 1
        await flows.stop()

    asyncio.run(main())
