"""What Spark's JVM says of itself, for ``/metrics``: asked over py4j in a thread of its own, while somebody scrapes.

``runner`` has one beside the endpoint. Nothing depends on it: a JVM that does not answer holds up neither a scrape nor the
flows, its series are just not there. The thread is a daemon, since a call into a frozen JVM cannot be ended.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from mirrorspark.observe.jvm_figures import Collector, JvmFigures, MemoryArea

__all__ = ["JvmWatch", "look_at_jvm"]

log = logging.getLogger("mirrorspark.jvm")

LOOK_INTERVAL_S = 1.5
FRESH_S = 10.0
"""Figures that are older are not told: the JVM does not answer."""
ASKED_WITHIN_S = 90.0
"""Nobody looks when nobody has asked for so long."""
IDLE_POLL_S = 0.25


def look_at_jvm(session: Any) -> JvmFigures:
    """About twenty calls of a millisecond. Raises what py4j raises."""
    beans = session._jvm.java.lang.management.ManagementFactory
    memory, threads = beans.getMemoryMXBean(), beans.getThreadMXBean()
    collectors = [
        Collector(str(one.getName()), int(one.getCollectionCount()), one.getCollectionTime() / 1000)
        for one in beans.getGarbageCollectorMXBeans()
    ]
    return JvmFigures(
        heap=_area(memory.getHeapMemoryUsage()),
        nonheap=_area(memory.getNonHeapMemoryUsage()),
        threads=int(threads.getThreadCount()),
        threads_daemon=int(threads.getDaemonThreadCount()),
        threads_peak=int(threads.getPeakThreadCount()),
        collectors=tuple(collectors),
    )


def _area(usage: Any) -> MemoryArea:
    return MemoryArea(int(usage.getUsed()), int(usage.getCommitted()), int(usage.getMax()))


class JvmWatch:
    """``session`` gives Spark's session, None while there is none. ``start`` once, ``close`` at the end."""

    def __init__(
        self,
        session: Callable[[], Any],
        look: Callable[[Any], JvmFigures] = look_at_jvm,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._look = look
        self._clock = clock
        self._asked_at = float("-inf")
        self._seen: tuple[float, JvmFigures] | None = None
        self._told = ""
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._asked_at = self._clock()
        self._thread = threading.Thread(target=self._run, name="watching Spark's JVM", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Does not wait for a call that is under way."""
        self._closing.set()

    @property
    def figures(self) -> JvmFigures | None:
        """The newest; None where there is no JVM or it does not answer. Noted, so that somebody looks."""
        now = self._clock()
        self._asked_at = now
        if self._seen is None or now - self._seen[0] > FRESH_S:
            return None
        return self._seen[1]

    def _run(self) -> None:
        while not self._closing.wait(IDLE_POLL_S):
            is_due = self._seen is None or self._clock() - self._seen[0] >= LOOK_INTERVAL_S
            if is_due and self._clock() - self._asked_at < ASKED_WITHIN_S:
                self.look_once()

    def look_once(self) -> None:
        """In the log once, not with each vain look."""
        session = self._session()
        if session is None:
            return
        try:
            figures = self._look(session)
        except Exception as error:  # noqa: BLE001  (told, and tried again; its series are missing meanwhile)
            text = repr(error)
            if text != self._told and not self._closing.is_set():
                log.warning("what Spark's JVM uses is not known now: %s", text)
            self._told = text
        else:
            self._told = ""
            self._seen = (self._clock(), figures)
