"""All flows of a process without Spark: ``FlowSet`` and ``/metrics`` as ``run`` has them, lanes in plain processes.

Used by journeys about what an operator sees of a whole process: lives, heartbeats, refused flows, metrics. For one flow
alone there is ``flow_without_spark``.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Awaitable, Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.control.flow_runtime import Query
from mirrorspark.control.flow_set import FlowSet
from mirrorspark.control.metrics_endpoint import MetricsEndpoint
from mirrorspark.control.pauses import PAUSE_KEY, format_pauses
from mirrorspark.errors import LabError, SettingsError
from mirrorspark.lab.clients import wait_for
from mirrorspark.lab.flow_without_spark import LaneProcesses
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.settings import FlowSettings, MetricsSettings

__all__ = ["FlowsWithoutSpark"]

START_DEADLINE_S = 120.0
STOP_DEADLINE_S = 90.0

T = TypeVar("T")


class _PlainLanes:
    """What ``FlowSet`` needs of Spark. ``slots``: lanes that get a process, where there are fewer than the flow has."""

    def __init__(self, folder: Path, patches: Mapping[str, object]) -> None:
        self._folder = folder
        self._patches = patches
        self.slots: dict[Flow, int] = {}
        self.lanes: dict[Flow, LaneProcesses] = {}

    where = "no Spark"
    tasks_at_once: int | None = None

    def begin(self, lanes: int) -> None:
        """Nothing to start."""

    def up(self) -> Awaitable[object]:
        return asyncio.sleep(0)

    def make_query(self, settings: FlowSettings, generation: int) -> Query:
        some = replace(settings, tasks_max=self.slots.get(settings.flow, settings.tasks_max))
        folder = self._folder / settings.flow.source
        folder.mkdir(parents=True, exist_ok=True)
        self.lanes[settings.flow] = made = LaneProcesses(some, generation, folder, self._patches)
        return made

    def carry_early(self, settings: FlowSettings, generation: int) -> bool:
        return False


class FlowsWithoutSpark:
    """``with FlowsWithoutSpark() as flows: flows.begin(settings) …``; at the end everything is killed, nothing drained."""

    def __init__(self, *, folder: Path | None = None, patches: Mapping[str, object] | None = None) -> None:
        self._plain = _PlainLanes(folder or Path(tempfile.mkdtemp(prefix="mirrorspark-flows-")), patches or {})
        self._flows: FlowSet | None = None
        self._endpoint: MetricsEndpoint | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._leave = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="flows", daemon=True)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._flows = flows = FlowSet(self._plain)
        self._endpoint = MetricsEndpoint(MetricsSettings(("127.0.0.1", 0)), lambda: flows.statuses)
        self._endpoint.open()
        self._started.set()
        await self._leave.wait()
        await self._endpoint.close()
        # What still runs is cancelled by asyncio.run.

    @property
    def port(self) -> int:
        """Of ``/metrics``."""
        if self._endpoint is None or self._endpoint.port is None:
            raise LabError("the flows have not been started")
        return self._endpoint.port

    def begin(self, *some: FlowSettings, slots: Mapping[Flow, int] | None = None) -> None:
        """Returns when every lane that has a process carries. ``slots``: see ``_PlainLanes``."""
        self._plain.slots.update(slots or {})

        async def begin_all() -> None:
            for settings in some:
                self._set.begin(settings)

        self.call(begin_all())
        wait_for(
            lambda: all(map(self._carries, some)), f"the lanes of {[str(one.flow) for one in some]}", START_DEADLINE_S
        )

    def _carries(self, settings: FlowSettings) -> bool:
        if not settings.enabled:
            return True
        wanted = self._plain.slots.get(settings.flow, settings.tasks_max)
        return sum(lane.state == "carrying" for lane in self.status(settings.flow).lanes.values()) >= wanted

    def refuse(self, errors: Mapping[Flow, SettingsError]) -> None:
        async def refuse() -> None:
            self._set.refuse(errors)

        self.call(refuse())

    def pause(self, flow: Flow, *topics: str) -> None:
        """As a person does; returns when the flow's plan has it."""
        life = self._set.life_of(flow)
        assert life is not None
        assert life._runtime is not None
        self.call(life._runtime.plans.topic.append([(PAUSE_KEY, format_pauses(frozenset(topics)))], Deadline(60.0)))
        wait_for(lambda: self.status(flow).paused == frozenset(topics), f"{flow} to be paused", START_DEADLINE_S)

    def status(self, flow: Flow) -> FlowStatus:
        found = self._set.status_of(flow)
        if found is None:
            raise LabError(f"there is no flow {flow}")
        return found

    def lane_pids(self, flow: Flow) -> list[int]:
        return list(self._plain.lanes[flow].pids.values())

    @property
    def _set(self) -> FlowSet:
        if self._flows is None:
            raise LabError("the flows have not been started")
        return self._flows

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float = 60.0) -> T:
        """Run a coroutine in the driver's loop."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def __enter__(self) -> FlowsWithoutSpark:
        self._thread.start()
        if not self._started.wait(START_DEADLINE_S):
            raise LabError("the driver of the flows did not start")
        return self

    def __exit__(self, *_: object) -> None:
        for lanes in self._plain.lanes.values():
            lanes.kill()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._leave.set)
        self._thread.join(STOP_DEADLINE_S)
