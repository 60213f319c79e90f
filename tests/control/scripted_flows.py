"""Flows that follow a script instead of clusters: what each attempt meets, and which steps were taken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.settings import ClusterSettings, FlowSettings, Heartbeats

__all__ = ["FakeRuntime", "Script", "flow_settings", "until"]

WAIT_S = 60.0


def flow_settings(name: str, **changes: Any) -> FlowSettings:
    silent = {"heartbeats": Heartbeats(emitted=False), **changes}
    return FlowSettings(Flow(name, "west"), ClusterSettings(name, ()), ClusterSettings("west", ()), **silent)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not is_so():
            await asyncio.sleep(0.001)


@dataclass
class Script:
    """What a flow's attempts meet, one after the other: a step and the error it raises. After the last: it just runs."""

    failures: list[tuple[str, Exception]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    waits: dict[str, Callable[[], Awaitable[object]]] = field(default_factory=dict)
    is_free: bool = False
    settings: list[FlowSettings] = field(default_factory=list)
    """Those of each attempt, and those that came later."""
    edits: list[str] = field(default_factory=list)


class FakeRuntime:
    scripts: ClassVar[dict[str, Script]] = {}

    def __init__(self, settings: FlowSettings, make_query: object, status: FlowStatus, pool: object = None) -> None:
        self.settings, self.status = settings, status
        self.script = self.scripts[settings.flow.source]
        self.script.settings.append(settings)
        self.failure = self.script.failures.pop(0) if self.script.failures else None
        self.has_led = self.is_bridged = False
        self.generation = 1

    async def _step(self, name: str) -> None:
        self.script.steps.append(name)
        if name in self.script.waits:
            await self.script.waits[name]()
        if self.failure and self.failure[0] == name:
            raise self.failure[1]

    async def reach(self) -> None:
        await self._step("reach")

    async def is_free(self) -> bool:
        return self.script.is_free

    async def lead(self) -> None:
        await self._step("lead")
        self.has_led = True

    async def all_lanes_carry(self, within_s: float) -> None:
        await self._step("early lanes carry")

    def start_query(self) -> None:
        self.script.steps.append("start_query")
        self.status.run()

    async def run(self) -> None:
        await self._step("run")
        await asyncio.Event().wait()

    def change(self, settings: FlowSettings) -> None:
        self.script.settings.append(settings)

    async def show_edit(self, refused: str) -> None:
        self.script.edits.append(refused)

    async def stop(self, *, superseded: bool = False) -> None:
        await self._step("drain")
        self.script.steps.append("superseded" if superseded else "stop")
        self.status.state = "superseded" if superseded else "stopped"

    def close(self) -> None:
        self.script.steps.append("close")
