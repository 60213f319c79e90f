"""Spark's start beside everything else, in a thread that nobody has to wait for.

A process that finds its settings or clusters wrong must end in seconds, not when Spark's JVM has come up: the thread is
a daemon, what it started is killed, and the JVM is held back for the moment in which most errors show.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from mirrorspark.errors import MirrorError, SparkLost

__all__ = ["SparkStart"]

log = logging.getLogger("mirrorspark")

HOLD_BACK_S_MAX = 10.0
"""Until a flow asks for Spark: when its clusters have answered, or when its first lanes carry without it."""
LAST_WORDS_S = 2.0
"""What the starting thread has for removing its temporary files when the JVM is killed under it."""


class SparkStart:
    """``await session()`` as often as you like; then ``close`` or, where it may not have come up, ``abandon``."""

    def __init__(
        self, load: Callable[[], object], open_session: Callable[[], Any], kill_starting: Callable[[], None]
    ) -> None:
        self._load = load
        self._open_session = open_session
        self._kill_starting = kill_starting
        self._wanted = threading.Event()
        self._abandoned = False
        self._is_opening = False
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[Any] = self._loop.create_future()
        self._ready.add_done_callback(lambda done: done.cancelled() or done.exception())  # told by whoever waits
        self._thread = threading.Thread(target=self._open, name="starting Spark", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        try:
            self._wanted.wait(HOLD_BACK_S_MAX)
            if not self._abandoned:
                self._load()
            self._is_opening = not self._abandoned
            if self._abandoned:
                return
            session = self._open_session()
        except MirrorError as error:
            self._tell(self._ready.set_exception, error)
        except Exception as error:  # noqa: BLE001  (whatever keeps Spark from starting is one line for a person)
            self._tell(self._ready.set_exception, SparkLost(f"Spark could not be started: {error!r}"))
        else:
            self._tell(self._ready.set_result, session)

    def _tell(self, settle: Callable[[Any], None], value: object) -> None:
        try:
            self._loop.call_soon_threadsafe(lambda: None if self._ready.done() else settle(value))
        except RuntimeError:
            return  # the loop has ended: nobody waits any more

    async def session(self) -> Any:
        """The open session. Raises SparkLost."""
        self._wanted.set()
        return await asyncio.shield(self._ready)

    @property
    def is_up(self) -> bool:
        return self._ready.done() and not self._ready.cancelled() and self._ready.exception() is None

    @property
    def up(self) -> Any:
        """The open session, once somebody has awaited it."""
        return self._ready.result()

    def close(self) -> None:
        """Stop Spark in order if it is up, else kill what was started of it."""
        if not self.is_up:
            self.abandon()
            return
        try:
            self.up.stop()
        except Exception as error:  # noqa: BLE001  (its JVM was killed meanwhile: it has stopped)
            log.warning("stopping Spark: %r", error)

    def abandon(self) -> None:
        """Kill what has been started; look more than once, since it may be about to be."""
        self._abandoned = True
        self._wanted.set()
        ends_at = time.monotonic() + LAST_WORDS_S
        while self._thread.is_alive() and time.monotonic() < ends_at:
            if self._is_opening:
                self._kill_starting()
            self._thread.join(0.1)
