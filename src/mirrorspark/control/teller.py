"""Telling a flow's events from the driver: each once, until it says something else.

A job that looks again and again finds the same things again and again. Each job has its own teller, which knows what
that job said last.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.events import Event
from mirrorspark.observe.flow_status import FlowStatus

__all__ = ["Teller"]

log = logging.getLogger("mirrorspark.flow")

TELL_TIMEOUT_S = 30.0
EVENTS_PER_APPEND_MAX = 1_000


class Teller:
    def __init__(self, statuses: KeyedTopic, status: FlowStatus) -> None:
        self._statuses = statuses
        self._status = status
        self._told: dict[str, str] = {}

    async def tell(self, events: Sequence[Event]) -> None:
        """Write what is new of all that the job found. One that somebody acknowledged comes back only when it changed."""
        keys = {event.key for event in events}
        self._told = {key: text for key, text in self._told.items() if key in keys}
        new = [event for event in events if self._is_new(event)]
        for event in new:
            log.warning("%s: %s", self._status.flow, event)
        for first in range(0, len(new), EVENTS_PER_APPEND_MAX):
            some = new[first : first + EVENTS_PER_APPEND_MAX]
            await self._statuses.append(
                [(event.key.encode(), event.to_json()) for event in some], Deadline(TELL_TIMEOUT_S)
            )
        self._told |= {event.key: event.text for event in events}

    def _is_new(self, event: Event) -> bool:
        known = self._status.events.get(event.key)
        return event.text not in (self._told.get(event.key), known.text if known else None)
