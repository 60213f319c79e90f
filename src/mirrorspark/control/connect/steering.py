"""Brings about what is wanted: whenever connectors change, the flows that they make are begun, told, held or ended.

One task (``run``); ``hosting`` rings. A cluster that does not answer is tried again, and what is wanted by then counts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from mirrorspark.control.connect.wanted import WantedFlows
from mirrorspark.control.flow_on_target import FlowOnTarget, NeverRan
from mirrorspark.control.flow_set import FlowSet
from mirrorspark.control.live_change import Changes, difference
from mirrorspark.errors import MirrorError
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import EVERYTHING
from mirrorspark.settings import FlowSettings

__all__ = ["Steering"]

log = logging.getLogger("mirrorspark.connect")

RETRY_PAUSE_S = 5.0
TAKEN_WAIT_S = 5.0


class Steering:
    """``wanted`` is asked anew each time. Pairs are flows without their instance."""

    def __init__(self, flows: FlowSet, wanted: Callable[[], WantedFlows]) -> None:
        self._flows = flows
        self._wanted = wanted
        self._bell = asyncio.Event()
        self._settled = asyncio.Event()
        self._running: dict[Flow, FlowSettings] = {}
        self._to_restart: set[Flow] = set()
        self._to_resume: set[Flow] = set()
        self.faults: dict[Flow, str] = {}
        """Pairs for which something did not work, and is tried again."""

    # -- what is asked for ------------------------------------------------------------------------------------------

    def ring(self) -> None:
        self._settled.clear()
        self._bell.set()

    def resume(self, pair: Flow) -> None:
        self._to_resume.add(pair)
        self.ring()

    def restart(self, pair: Flow) -> None:
        self._to_restart.add(pair)
        self.ring()

    def is_restarting(self, pair: Flow | None) -> bool:
        return pair in self._to_restart

    def settings(self, pair: Flow) -> FlowSettings | None:
        """Of what runs, is about to, or is ending."""
        return self._running.get(pair)

    async def settled(self) -> None:
        """Until everything that was asked for has been brought about."""
        await self._settled.wait()

    # -- the task ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            await self._bell.wait()
            self._bell.clear()
            try:
                is_done = await self._bring_about()
            except Exception:  # told, and tried again: without this task no request would have an effect
                log.exception("connectors could not be brought about; tried again in %g s", RETRY_PAUSE_S)
                is_done = False
            if not is_done:
                self._ring_later()
            elif not self._bell.is_set():
                self._settled.set()

    def _ring_later(self) -> None:
        asyncio.get_running_loop().call_later(RETRY_PAUSE_S, self._bell.set)

    async def _bring_about(self) -> bool:
        wanted = self._wanted()
        faults: dict[Flow, str] = {}
        after: dict[Flow, FlowSettings] = {}
        for pair, settings in wanted.flows.items():
            try:
                after[pair] = await self._as_paused(pair, settings, pair in wanted.paused)
            except MirrorError as error:
                log.warning("%s: %s; tried again in %g s", pair, error, RETRY_PAUSE_S)
                faults[pair] = str(error)
                if pair in self._running:
                    after[pair] = self._running[pair]
        self.faults = faults
        asked = set(self._to_restart)
        restarted = asked & after.keys() & self._running.keys()
        changes = difference(self._running.values(), after.values())
        again = [after[pair] for pair in restarted if after[pair].flow not in {one.flow for one in _touched(changes)}]
        self._running = {**self._running, **after}  # what is ending is there until it has ended
        await self._flows.apply(replace(changes, restarted=(*changes.restarted, *again)))
        self._running = after
        self._to_restart -= asked
        return not faults

    async def _as_paused(self, pair: Flow, settings: FlowSettings, is_paused: bool) -> FlowSettings:
        """A flow that has led before holds by its pause record; one that never did is not begun before it is resumed."""
        if not settings.enabled:
            return settings
        if not is_paused:
            if pair in self._to_resume:
                await _hold(settings, False)
                self._to_resume.discard(pair)
            return settings
        self._to_resume.discard(pair)
        return settings if await _hold(settings, True) else replace(settings, enabled=False)


def _touched(changes: Changes) -> tuple[FlowSettings, ...]:
    """What ends, or begins, in any case."""
    return (*changes.added, *changes.restarted)


async def _hold(settings: FlowSettings, hold: bool) -> bool:
    """Whether the flow was led before, by whomever."""
    try:
        async with FlowOnTarget(settings) as there:
            topics = there.paused | {EVERYTHING} if hold else there.paused - {EVERYTHING}
            if topics != there.paused:
                await there.pause(topics, TAKEN_WAIT_S)
            return there.plan is not None
    except NeverRan:
        return False
