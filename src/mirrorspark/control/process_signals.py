"""Signals of the mirror's process: stop on SIGTERM and SIGINT, read the file again on SIGHUP.

``runner`` waits for the two events. Handlers only set them, so that nothing happens inside a signal handler.
"""

from __future__ import annotations

import asyncio
import signal

__all__ = ["ProcessSignals"]


class ProcessSignals:
    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.reload = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._hears_reload = False
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.stop.set)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def hear_reload(self, hear: bool) -> None:
        """Not while Spark's JVM is about to start: it inherits what is ignored then, and a terminal that hangs up must not
        take it away."""
        if hear == self._hears_reload:
            return
        self._hears_reload = hear
        if hear:
            self._loop.add_signal_handler(signal.SIGHUP, self.reload.set)
        else:
            self._loop.remove_signal_handler(signal.SIGHUP)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
