"""The failover record where it lies: one key of the flow's plan topic on its target. Reads, claims, writes.

Of two runs at the same time the later one goes on and the earlier one stops at its next write.
"""

from __future__ import annotations

import time
from dataclasses import replace

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.failover.record import FAILOVER_KEY, Record, format_record, parse_record
from mirrorspark.errors import Fenced
from mirrorspark.names import Flow
from mirrorspark.offsets.internal_topics import plan_topic

__all__ = ["Journal", "now_ms"]

TIMEOUT_S = 30.0


def now_ms() -> int:
    return int(time.time() * 1000)


class Journal:
    """``claim`` before anything is written; ``record`` is what was last read or written."""

    def __init__(self, target: ClusterClient, flow: Flow) -> None:
        self._topic = KeyedTopic(target, plan_topic(flow.books))
        self._where = f"topic {self._topic.topic} on cluster {target.alias}"
        self.record: Record | None = None

    async def read(self) -> Record | None:
        """Raises SettingsError for a record that cannot be read."""
        raw = (await self._topic.read_all(Deadline(TIMEOUT_S))).get(FAILOVER_KEY)
        self.record = parse_record(raw, self._where)
        return self.record

    async def claim(self, record: Record) -> None:
        await self._append(format_record(record))
        self.record = record

    async def write(self, record: Record) -> None:
        """Raises Fenced if another run has claimed the record since."""
        assert self.record is not None
        for key, raw in await self._topic.catch_up(Deadline(TIMEOUT_S)):
            if key == FAILOVER_KEY:
                newest = parse_record(raw, self._where)
                if newest is None or newest.run != self.record.run:
                    who = newest.by if newest is not None else "somebody who took the record away"
                    raise Fenced(f"{self._where}: this failover was taken over by {who}; this run stops here")
        await self._append(format_record(record))
        self.record = record

    async def mark_returned(self) -> None:
        """The work is back where it was: what was done is history."""
        if self.record is not None:
            await self.claim(replace(self.record, returned_ms=now_ms(), is_holding=False))

    async def forget(self) -> None:
        await self._append(None)
        self.record = None

    async def _append(self, value: bytes | None) -> None:
        await self._topic.append([(FAILOVER_KEY, value)], Deadline(TIMEOUT_S))
