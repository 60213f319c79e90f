"""A flow that is led for real, on real clusters, with a query that is none: what the control room's tests stand on."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.config.load import load_deployment
from mirrorspark.control.ending import end_tasks
from mirrorspark.control.flow_runtime import FlowRuntime
from mirrorspark.lab.clients import wait_for
from mirrorspark.names import TopicPartition
from mirrorspark.settings import FlowSettings

T = TypeVar("T")
DEADLINE_S = 60.0


class NoQuery:
    """Stands where Spark's query would; ``active`` and ``failure`` are a test's to set."""

    def __init__(self) -> None:
        self.active = True
        self.failure: str | None = None
        self.starts = 0
        self.sizes: list[tuple[int, int]] = []

    def start(self) -> None:
        self.starts += 1
        self.active = True

    def carry_with(self, lanes: int, resized: int) -> None:
        self.sizes.append((lanes, resized))

    def begin_no_epoch(self) -> None:
        return None

    def stop(self) -> None:
        self.active = False


class LedFlow:
    """The driver's part of a flow, in a thread; ``report`` speaks for its lanes."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.settings: FlowSettings = load_deployment(file).flows[0]
        self.query = NoQuery()
        self.failure: BaseException | None = None
        self.names: list[str] = []
        self.remote: list[str] = []
        self._up = threading.Event()
        self._leave: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._main, daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._up.wait(DEADLINE_S)
        if self.failure is not None:
            raise self.failure

    def _main(self) -> None:
        try:
            asyncio.run(self._lead())
        except BaseException as error:  # noqa: BLE001  (a test asks for it)
            self.failure = error
        finally:
            self._up.set()

    async def _lead(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._leave = asyncio.Event()
        self.runtime = FlowRuntime(self.settings, lambda settings, generation: self.query)
        await self.runtime.prepare()
        self.runtime.start_query()
        self._up.set()
        running = asyncio.ensure_future(self.runtime.run())
        leave = asyncio.ensure_future(self._leave.wait())
        await asyncio.wait([running, leave], return_when=asyncio.FIRST_COMPLETED)
        await end_tasks([leave, running])
        why = None if running.cancelled() else running.exception()
        self.query.active = False
        await self.runtime.stop()
        if isinstance(why, Exception):
            raise why

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(DEADLINE_S)

    def append(self, topic: str, key: str, value: bytes | None) -> None:
        """Onto the plan or the status topic, as others do."""
        keyed = {"plan": self.runtime.plans.topic, "status": self.runtime._statuses}[topic]
        self.call(keyed.append([(key.encode(), value)], Deadline(DEADLINE_S)))

    def report(self, lane: int = 0, **changes: Any) -> None:
        text = {"lane": lane, "generation": self.runtime.generation, "state": "carrying", "since_ms": 1, "at_ms": 2}
        text |= {"partitions": 1, "held_bytes": 0, "waiting": {}, "moved": [], **changes}
        self.append("status", f"lane/{lane}", json.dumps(text).encode())

    def keep_reporting(self) -> Callable[[], None]:
        """As a live lane does; call what it returns to end it."""
        end = threading.Event()

        def speak() -> None:
            while not end.wait(0.2):
                self.report()

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()

        def stop() -> None:
            end.set()
            thread.join(DEADLINE_S)

        return stop

    @property
    def planned(self) -> set[TopicPartition]:
        return set(self.runtime.status.planned or ())

    def wait(self, is_so: Callable[[], bool], what: str) -> None:
        wait_for(lambda: is_so() or self.failure is not None, what, DEADLINE_S)
        if self.failure is not None:
            raise self.failure

    def stop(self) -> None:
        if self._thread.is_alive() and self._leave is not None:
            self._loop.call_soon_threadsafe(self._leave.set)
            self._thread.join(DEADLINE_S)
            assert not self._thread.is_alive()
