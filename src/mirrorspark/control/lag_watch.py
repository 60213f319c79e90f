"""Where the source's logs end, looked at every two seconds while somebody asks (a scrape, the page): for lag that is true
also of partitions that do not flow.

``flow_runtime`` runs one beside its other jobs. A look costs one request for each broker of the source; where there are so
many partitions that it takes long, looks are rarer. Nothing depends on it: a source that does not answer leaves the last
ends standing, and their age (``SourceEnds.looked_at``) tells.
"""

from __future__ import annotations

import asyncio
import logging
import time

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offsets
from mirrorspark.errors import MirrorError
from mirrorspark.observe.flow_status import FlowStatus

__all__ = ["LagWatch"]

log = logging.getLogger("mirrorspark.lag")

LOOK_INTERVAL_S = 1.5
ASKED_WITHIN_S = 90.0
"""Nobody looks when nobody has asked for so long."""
IDLE_POLL_S = 0.25
SHARE_MAX = 0.1
"""Of the time may go into looking."""
PAUSE_S_MAX = 10.0
STARTS_INTERVAL_S = 15.0
"""Where the logs begin changes with retention: looked at this often."""
LOOK_TIMEOUT_S = 10.0


class LagWatch:
    def __init__(self, source: ClusterClient, status: FlowStatus, *, read_committed: bool) -> None:
        self._source = source
        self._status = status
        self._read_committed = read_committed
        self._told = ""
        self._starts_looked_at = float("-inf")

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            began_at = time.monotonic()
            if self._is_asked:
                await self._look_patiently()
                took_s = time.monotonic() - began_at
                await asyncio.sleep(min(max(LOOK_INTERVAL_S - took_s, took_s / SHARE_MAX - took_s), PAUSE_S_MAX))
            else:
                await asyncio.sleep(IDLE_POLL_S)

    @property
    def _is_asked(self) -> bool:
        return self._status.clock() - self._status.source_ends.asked_at < ASKED_WITHIN_S

    async def _look_patiently(self) -> None:
        """In the log once, not with each vain look. Whatever it is: a flow must not end because of it."""
        try:
            await self._look()
        except Exception as error:  # noqa: BLE001  (told, and tried again)
            text = str(error) if isinstance(error, MirrorError) else repr(error)
            if text != self._told:
                log.warning("%s: where the logs of the source end is not known now: %s", self._status.flow, text)
            self._told = text
        else:
            self._told = ""

    async def _look(self) -> None:
        status = self._status
        remotes = {source: remote for remote, source in status.sources.items()}
        found = await list_offsets(
            self._source, remotes, LATEST, Deadline(LOOK_TIMEOUT_S), read_committed=self._read_committed
        )
        ends = {remotes[source]: end for source, end in found.items()}
        carried_to = {at: one.upstream_next for at, one in status.partitions.items()}
        status.source_ends.take(status.clock(), ends, carried_to)
        is_new = bool(ends.keys() - status.source_ends.starts.keys())
        if is_new or time.monotonic() - self._starts_looked_at >= STARTS_INTERVAL_S:
            starts = await list_offsets(self._source, remotes, EARLIEST, Deadline(LOOK_TIMEOUT_S))
            status.source_ends.starts = {remotes[source]: start for source, start in starts.items()}
            self._starts_looked_at = time.monotonic()
