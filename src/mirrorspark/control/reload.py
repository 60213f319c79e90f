"""Edits of the file while the mirror runs: read again on SIGHUP and, with ``--watch``, when it has changed and is at rest.

A good edit becomes a difference (``live_change``) that ``flow_set`` carries out; one that is wrong is refused with the
words that a start would use, and the mirror goes on with what it had. One edit at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from mirrorspark.config.findings import Remark
from mirrorspark.config.load import Deployment
from mirrorspark.control.live_change import Changes, difference
from mirrorspark.control.live_view import complain
from mirrorspark.control.watch import POLL_INTERVAL_S, FileWatch
from mirrorspark.errors import MirrorError, SettingsError
from mirrorspark.names import Flow
from mirrorspark.settings import FlowSettings

__all__ = ["Reload", "all_pairs"]

log = logging.getLogger("mirrorspark")

READS_MAX = 5
"""How often a file that changes while it is read is read again before the next look at it."""


def all_pairs(deployment: Deployment) -> list[FlowSettings]:
    return [*deployment.flows, *deployment.heartbeats_only]


class Reload:
    """``load`` reads the file as at the start and raises SettingsError; it runs in a thread."""

    def __init__(
        self,
        running: Deployment,
        load: Callable[[], Deployment],
        files: FileWatch,
        *,
        apply: Callable[[Changes], Awaitable[None]],
        refuse: Callable[[Mapping[Flow, SettingsError]], None],
        show: Callable[[str], None],
        is_watched: bool,
        take: Callable[[Deployment], None] = lambda deployment: None,
    ) -> None:
        """``running`` is what the process was started with; ``take`` is given each good edit. ``refuse`` is told which flows
        a good edit leaves out as wrong, ``show`` why an edit was refused as a whole, "" for a good one."""
        self._running = all_pairs(running)
        self._remarks = set(running.remarks)
        self._load = load
        self._files = files
        self._apply = apply
        self._refuse_flows = refuse
        self._show = show
        self._refused = frozenset(running.refused)
        self._is_watched = is_watched
        self._take = take

    async def run(self, asked: asyncio.Event) -> None:
        """Until cancelled. ``asked`` is set by SIGHUP."""
        while True:
            is_asked = await self._wait(asked)
            asked.clear()
            is_edited = self._files.poll() and self._is_watched
            try:
                if is_edited or is_asked:
                    await self.read_again(says_if_equal=is_asked)
            except Exception:
                log.exception("an edit could not be carried out; going on")

    async def _wait(self, asked: asyncio.Event) -> bool:
        try:
            async with asyncio.timeout(POLL_INTERVAL_S if self._is_watched else None):
                await asked.wait()
        except TimeoutError:
            return False
        return True

    async def read_again(self, *, says_if_equal: bool = False) -> None:
        """Read, compare, carry out; or refuse."""
        try:
            deployment = await self._read()
        except MirrorError as error:
            self._refuse(error)
            return
        except Exception as error:
            log.exception("reading the edited file")
            self._refuse(MirrorError(f"the edited file cannot be read: {error!r}"))
            return
        self._remark(deployment.remarks)
        pairs = all_pairs(deployment)
        changes = difference(self._running, pairs)
        self._show("")
        self._refuse_flows(deployment.refused)
        self._running, self._refused = pairs, frozenset(deployment.refused)
        self._take(deployment)
        if changes:
            for text in changes.texts:
                complain(f"edit: {text}")
            await self._apply(changes)
        elif says_if_equal:
            complain("edit: nothing has changed")

    async def _read(self) -> Deployment:
        """A file that is replaced while it is read is read once more. Raises what ``load`` raises, and for a flow that was
        right and is wrong now: it would have to end. One that was wrong before does not keep others from being changed."""
        for _ in range(READS_MAX):
            self._files.poll()
            deployment = await asyncio.to_thread(self._load)
            if not self._files.has_moved():
                break
        if broken := [error for flow, error in deployment.refused.items() if flow not in self._refused]:
            raise SettingsError("\n".join(map(str, broken)))
        return deployment

    def _refuse(self, error: MirrorError) -> None:
        lines = str(error).splitlines()
        for line in lines:
            complain(f"edit refused: {error.code}: {line}")
        complain("edit refused: the mirror goes on as before")
        self._show(f"refused, the mirror goes on as before: {'; '.join(lines)}")

    def _remark(self, remarks: Iterable[Remark]) -> None:
        """What has not been said yet."""
        for remark in remarks:
            if remark not in self._remarks:
                complain(f"{remark.kind}: {remark}")
        self._remarks = set(remarks)
