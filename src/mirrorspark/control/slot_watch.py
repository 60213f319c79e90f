"""How many tasks a Spark with executors elsewhere runs at a time: asked over py4j, in a thread, for as long as it is up.

``spark_for_flows`` has one. Executors come and go, by themselves and for seconds only when one is started again: a number
counts when it has stayed the same for a while. The thread is a daemon, since a call into a frozen JVM cannot be ended.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

__all__ = ["SlotWatch"]

log = logging.getLogger("mirrorspark")

LOOK_INTERVAL_S = 1.0
SETTLED_S = 15.0
"""An executor that was lost is usually back in less; its lanes wait for it, the others are left in peace."""


class SlotWatch:
    """``look`` asks Spark. ``start`` once it is up, ``close`` at the end; ``slots`` any time."""

    def __init__(self, look: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._look = look
        self._clock = clock
        self._seen = 0
        self._since = clock()
        self._settled: int | None = None
        self._told = ""
        self._closing = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="watching Spark's slots", daemon=True).start()

    def close(self) -> None:
        """Does not wait for a call that is under way."""
        self._closing.set()

    @property
    def slots(self) -> int | None:
        """The last number that stayed; None as long as none did. No executor at all is no number to go by."""
        return self._settled

    def _run(self) -> None:
        while not self._closing.wait(LOOK_INTERVAL_S):
            self.look_once()

    def look_once(self) -> None:
        try:
            seen = self._look()
        except Exception as error:  # noqa: BLE001  (told once; what is known stays, and the query says when Spark is gone)
            if repr(error) != self._told and not self._closing.is_set():
                log.warning("how many tasks Spark runs at a time is not known now: %r", error)
            self._told = repr(error)
            return
        self._told = ""
        if seen != self._seen:
            self._seen, self._since = seen, self._clock()
        elif seen > 0 and self._clock() - self._since >= SETTLED_S:
            self._settled = seen
