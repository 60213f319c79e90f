"""One Spark for all flows of a process, and the lanes that carry until it is there (``pipeline.bridge``).

Started with the first flow that needs it: a process that only emits heartbeats has none. ``flow_life`` asks it for queries
and for early lanes; it knows no flow.
"""

from __future__ import annotations

import asyncio
import importlib
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mirrorspark.control.flow_runtime import Query
from mirrorspark.control.live_view import complain
from mirrorspark.control.slot_watch import SlotWatch
from mirrorspark.control.spark_start import SparkStart
from mirrorspark.errors import SparkLost
from mirrorspark.names import Flow
from mirrorspark.pipeline.bridge import Bridge
from mirrorspark.pipeline.flow_order import FlowOrder
from mirrorspark.pipeline.spark_conf import is_encrypted
from mirrorspark.pipeline.spark_master import is_local, local_slots
from mirrorspark.secret import Secret
from mirrorspark.settings import FlowSettings

__all__ = ["SparkForFlows"]

LANES_ADDED_MAX = 1024
"""Lanes that live changes may add to an embedded Spark: it never gets more slots than it started with. A slot that nobody
uses costs nothing."""


class SparkForFlows:
    """``begin``, then ``up`` as often as needed; ``close`` at the end."""

    def __init__(
        self, master: str | None, folder: Path, *, ui: bool = False, conf: Mapping[str, str] | None = None
    ) -> None:
        """``conf``: settings of Spark that a person wants."""
        self._master = master
        self._folder = folder
        self._ui = ui
        self._conf = dict(conf or {})
        self._slot_watch: SlotWatch | None = None
        self._has_warned_of_network = False
        self._start: SparkStart | None = None
        self._bridge: Bridge | None = None
        self._slots: int | None = None

    def begin(self, lanes: int) -> None:
        """Say how many lanes there are; the first time, start beside everything else. Inside the event loop."""
        if self._start is None:
            self._slots = local_slots(self._master) if self._master else lanes + LANES_ADDED_MAX
            self._bridge = Bridge()
            self._start = SparkStart(_load_spark, lambda: self._open_session(self._slots or lanes), _kill_starting_jvm)
        if self._slots is not None and self._slots < lanes:
            remedy = f"Use local[{lanes}], or a lower tasks.max" if self._master else "Restart the mirror"
            complain(
                f"warning: {self.where} runs {self._slots} tasks at a time, but the flows have {lanes} lanes: each flow "
                f"has fewer of them. {remedy}"
            )

    @property
    def where(self) -> str:
        """Spark, to a person."""
        return f"--master {self._master}" if self._master else "the embedded Spark"

    @property
    def tasks_at_once(self) -> int | None:
        """How many lanes can run side by side; None where nothing says so yet."""
        return self._slot_watch.slots if self._slot_watch is not None else self._slots

    def _open_session(self, slots: int) -> Any:
        from mirrorspark.pipeline.session import open_session

        return open_session(self._master, lanes=slots, folder=self._folder, ui=self._ui, given=self._conf)

    def _watch_slots(self) -> None:
        from mirrorspark.pipeline.session import tasks_at_once

        assert self._start is not None
        session = self._start.up
        self._slot_watch = SlotWatch(lambda: tasks_at_once(session))
        self._slot_watch.start()

    @property
    def is_starting(self) -> bool:
        """Whether its JVM may be about to be started."""
        return self._start is not None and not self._start.is_up

    @property
    def session(self) -> Any:
        """None while it is not up."""
        return self._start.up if self._start is not None and self._start.is_up else None

    async def up(self) -> object:
        """Raises SparkLost."""
        assert self._start is not None
        session = await self._start.session()
        if self._slots is None and self._slot_watch is None:
            self._watch_slots()
        return session

    def make_query(self, settings: FlowSettings, generation: int) -> Query:
        """Called in a thread, when Spark is up."""
        from mirrorspark.pipeline.flow_query import FlowQuery

        assert self._start is not None
        self._warn_of_network(settings)
        return FlowQuery(self._start.up, FlowOrder(settings, generation), self._folder / _folder_name(settings.flow))

    def _warn_of_network(self, settings: FlowSettings) -> None:
        """Lanes travel with their clusters' secrets to executors that may be anywhere."""
        has_secrets = any(
            isinstance(value, Secret) for side in (settings.source, settings.target) for value in side.client.values()
        )
        if is_local(self._master) or not has_secrets or self._has_warned_of_network:
            return
        told = {str(key): str(value) for key, value in self._start.up.sparkContext.getConf().getAll()}  # type: ignore[union-attr]
        if not is_encrypted(told):
            self._has_warned_of_network = True
            complain(
                f"warning: {self.where} does not encrypt what it sends to executors, and that includes the clusters' "
                "passwords: set spark.authenticate and spark.network.crypto.enabled (docs/operating/spark.md)"
            )

    def carry_early(self, settings: FlowSettings, generation: int) -> bool:
        return self._bridge is not None and self._bridge.carry(FlowOrder(settings, generation))

    def end_early_lanes(self) -> None:
        """Spark has every flow that could be started; one that comes later starts with Spark at once."""
        if self._bridge is not None:
            self._bridge.hang_up()

    async def close(self, lost: SparkLost | None = None) -> None:
        if self._slot_watch is not None:
            self._slot_watch.close()
        if self._bridge is not None:
            await asyncio.to_thread(self._bridge.close)
        if self._start is not None and lost is None:
            self._start.close()
        elif self._start is not None:
            self._start.abandon()


def _folder_name(flow: Flow) -> str:
    """For a person, and for no two flows the same: ``a-b->c`` and ``a.b->c`` differ in what a file's name may not hold."""
    readable = "".join(char if char.isalnum() else "_" for char in str(flow))
    return f"{readable}-{zlib.crc32(str(flow).encode()):08x}"


def _load_spark() -> None:
    importlib.import_module("mirrorspark.pipeline.flow_query")


def _kill_starting_jvm() -> None:
    from mirrorspark.pipeline.session import kill_starting_jvm

    kill_starting_jvm()
