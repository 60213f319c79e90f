"""One flow for as long as the process lives: start it, lead it, and start it again after a failure.

``flow_set`` has one of these for each flow of the file. A failure ends a flow's attempt, never the others; the status keeps
saying ``failed``, and why, until the flow leads again. New settings that only the driver goes by are taken as it runs
(``change``); others need a new life.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from mirrorspark.control.bandwidth_sharing import BandwidthPool
from mirrorspark.control.ending import end_tasks
from mirrorspark.control.flow_runtime import FlowRuntime, Query
from mirrorspark.control.lane_shares import LaneShare
from mirrorspark.control.live_view import complain
from mirrorspark.errors import ClusterError, Fenced, MirrorError, SparkLost
from mirrorspark.events import Event
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC
from mirrorspark.plan.desired_topics import TopicRules
from mirrorspark.settings import FlowSettings

__all__ = ["FlowLife"]

log = logging.getLogger("mirrorspark.flow")

RETRY_PAUSE_S_MIN = 1.0
RETRY_PAUSE_S_MAX = 60.0
RAN_WELL_S = 60.0
"""After so long a lead the next failure is a new story: its first pause is short again."""
THE_FLOW = "the flow"
THE_EDIT = "the edited file"
TELL_PAUSE_S = 5.0
HEAD_START_S_MAX = 6.0
"""How long Spark's start waits for the lanes that carry meanwhile to begin."""


class FlowLife:
    def __init__(
        self,
        settings: FlowSettings,
        make_query: Callable[[FlowSettings, int], Query],
        spark_is_up: Callable[[], Awaitable[object]],
        begin_early: Callable[[FlowSettings, int], bool] = lambda settings, generation: False,
        status: FlowStatus | None = None,
        pool: BandwidthPool | None = None,
    ) -> None:
        """``begin_early`` starts lanes outside of Spark (``pipeline.bridge``) and says whether it did. ``status``: of the
        life before, if there was one."""
        self.settings = settings
        self.status = status or FlowStatus(str(settings.flow))
        self.status.state = "starting"
        self._describe(settings)
        self.error: Exception | None = None
        """What ended the last attempt; None while it starts for the first time and while it leads."""
        self.has_reached = False
        self.has_led = False
        self.on_event: Callable[[Event], None] = lambda event: None
        self.lane_share: Callable[[], LaneShare] = lambda: LaneShare(self.settings.tasks_max)
        self._make_query = make_query
        self._spark_is_up = spark_is_up
        self._begin_early = begin_early
        self._pool = pool
        self._runtime: FlowRuntime | None = None
        self._changed = asyncio.Event()
        self._refused_edit = ""
        self._edit_came = asyncio.Event()

    # -- what a person changes --------------------------------------------------------------------------------------

    def change(self, settings: FlowSettings) -> None:
        """Settings that no lane looks at: taken as it runs, or by a new attempt at once where the last one failed."""
        self.settings = settings
        self._describe(settings)
        self._changed.set()
        if self._runtime is not None:
            self._runtime.change(settings)

    def _describe(self, settings: FlowSettings) -> None:
        self.status.lanes_expected = settings.tasks_max
        self.status.topics = settings.topics

    def show_edit(self, refused: str) -> None:
        """Why an edit of the file was refused, until a good one comes (an empty text). Where the flow is led it is an event,
        so that it can be seen from everywhere."""
        self._refused_edit = refused
        self.status.hold(THE_EDIT, refused)
        self._edit_came.set()

    async def _show_edits(self, runtime: FlowRuntime) -> None:
        while True:
            self._edit_came.clear()
            try:
                await runtime.show_edit(self._refused_edit)
            except ClusterError as error:
                log.warning("%s: %s: %s", self.settings.flow, THE_EDIT, error)
                await asyncio.sleep(TELL_PAUSE_S)
                continue
            self.status.clear(THE_EDIT)
            await self._edit_came.wait()

    # -- life -------------------------------------------------------------------------------------------------------

    async def live(self) -> None:
        """Until stopped (cancelled) or taken over by another mirror. Raises SparkLost, which concerns all flows."""
        pause = RETRY_PAUSE_S_MIN
        while True:
            started_at = time.monotonic()
            try:
                await self._attempt()
            except Fenced as error:
                await self._superseded(error)
                return
            except SparkLost as error:
                self.error = error
                self.status.state = "failed"
                raise
            except Exception as error:  # noqa: BLE001  (told, and tried again)
                if time.monotonic() - started_at >= RAN_WELL_S:
                    pause = RETRY_PAUSE_S_MIN
                await self._failed(error)
            pause = await self._pause(pause)

    async def _pause(self, seconds: float) -> float:
        """Before the next attempt; other settings end it. Returns the pause after that."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return min(seconds * 2, RETRY_PAUSE_S_MAX)
        return RETRY_PAUSE_S_MIN

    async def _attempt(self) -> None:
        """Order matters: a flow that another mirror may lead is taken over only when its settings are good and its clusters
        and Spark are there, so that nobody is shut out in vain. One that nobody leads is carried at once, and by Spark when
        it is there."""
        self._changed.clear()
        rules = TopicRules(self.settings)
        self.status.heartbeats_topic = rules.policy.remote(HEARTBEATS_TOPIC)
        runtime = self._runtime = FlowRuntime(self.settings, self._make_query, self.status, self._pool)
        runtime.on_event = lambda event: self.on_event(event)
        runtime.lane_share = self.lane_share
        await runtime.reach()
        self.has_reached = True
        is_free = self.settings.starts_before_spark and await runtime.is_free()
        if not is_free:
            await self._spark_is_up()
        await runtime.lead()
        runtime.is_bridged = is_free and self._begin_early(self.settings, runtime.generation)
        running = asyncio.ensure_future(runtime.run())
        starting = asyncio.ensure_future(self._start_query(runtime))
        showing = asyncio.ensure_future(self._show_edits(runtime))
        try:
            await asyncio.wait([running, starting], return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                self.error = None
                self.has_led = True
                self.status.clear(THE_FLOW)
            await running
        finally:
            await end_tasks([starting, running, showing])

    async def _start_query(self, runtime: FlowRuntime) -> None:
        if runtime.is_bridged:
            # Spark's start would take the processors away from it.
            await runtime.all_lanes_carry(HEAD_START_S_MAX)
        await self._spark_is_up()
        await asyncio.to_thread(runtime.start_query)

    async def _superseded(self, error: Fenced) -> None:
        complain(f"{error.code}: {error}")
        assert self._runtime is not None
        await self._drain(self._runtime, superseded=True)
        self.status.state = "superseded"
        self.error = error

    async def _failed(self, error: Exception) -> None:
        """Told once, not with each vain try; what was led is drained."""
        if str(error) != str(self.error or ""):
            if isinstance(error, MirrorError):
                complain(f"{error.code}: flow {self.settings.flow}: {error}")
            else:
                log.error("flow %s failed", self.settings.flow, exc_info=error)
                complain(f"flow {self.settings.flow} failed: {error!r}")
        self.status.fail(THE_FLOW, str(error) or repr(error))
        runtime, self._runtime = self._runtime, None
        if runtime is not None and runtime.has_led:
            await self._drain(runtime)
        elif runtime is not None:
            runtime.close()
        self.status.state = "failed"
        self.error = error  # last: the process must not end before what was led is drained

    async def _drain(self, runtime: FlowRuntime, *, superseded: bool = False) -> None:
        """An error on the way out must not keep the flow from being started again."""
        try:
            await runtime.stop(superseded=superseded)
        except Exception as error:  # noqa: BLE001  (logged; the next start recovers)
            log.error("%s: stopping: %r", self.settings.flow, error)

    @property
    def is_hopeless(self) -> bool:
        """Failed, and not by something that passes."""
        return self.error is not None and not getattr(self.error, "retriable", False)

    async def stop(self) -> None:
        """After ``live`` was cancelled: drain what is led."""
        runtime, self._runtime = self._runtime, None
        if runtime is None or self.status.state == "superseded":
            return
        if runtime.has_led and (self.error is None or runtime.is_bridged):
            await self._drain(runtime)
        else:
            runtime.close()
