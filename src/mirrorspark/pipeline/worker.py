"""A lane inside Spark's reused Python worker: one event loop and the clusters' connections, kept between epochs.

Spark promises no affinity between a lane and a worker, so nothing else is kept here: positions are read from the target
at the start of each attempt. Runs on executors.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Iterator
from dataclasses import replace

import uvloop

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.errors import MirrorError
from mirrorspark.events import Event, EventKind
from mirrorspark.log_lines import begin_logging
from mirrorspark.offsets.internal_topics import status_topic
from mirrorspark.pipeline.lane import LaneRun, LaneSpec
from mirrorspark.pipeline.receipt import Receipt
from mirrorspark.pipeline.troubles_that_pass import passes
from mirrorspark.settings import ClusterSettings

__all__ = ["carry"]

log = logging.getLogger("mirrorspark.lane")

ATTEMPT_PAUSE_S = 1.0
SUPERSEDED_PAUSE_S = 1.0
"""A superseded lane ends its epoch at once; the pause keeps Spark from spinning until the driver has noticed."""
FAILED_PAUSE_S = 5.0
"""Spark starts a failed task again at once, up to its number of attempts: an error that stays must not use them up."""
TELL_TIMEOUT_S = 5.0


OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""Carrying makes few cycles; Python's own 700 would look through them many times a second."""


class _Worker:
    def __init__(self) -> None:
        gc.collect()
        gc.freeze()  # modules stay: no collection need look at them again
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._clients: dict[tuple[str, str, int], ClusterClient] = {}

    async def client(self, settings: ClusterSettings, role: str) -> ClusterClient:
        key = (role, repr(settings.bootstrap), hash(tuple(sorted(settings.client.items()))))
        client = self._clients.get(key)
        if client is None:
            client = ClusterClient(settings, settings.client.get("client.id", f"mirrorspark|{role}"))
            await client.start()
            self._clients[key] = client
        return client

    async def attempt(self, spec: LaneSpec) -> LaneRun:
        source = await self.client(spec.settings.source, f"{spec.settings.flow}|source")
        target = await self.client(spec.settings.target, f"{spec.settings.flow}|target")
        run = LaneRun(spec, source, target)
        await run.start()
        return run

    async def tell(self, spec: LaneSpec, event: Event) -> None:
        """Put an event on the status topic, if the target can be reached; the log has it in any case."""
        settings = spec.settings
        try:
            async with asyncio.timeout(TELL_TIMEOUT_S):
                target = await self.client(settings.target, f"{settings.flow}|target")
                status = KeyedTopic(target, status_topic(settings.flow.books))
                await status.append([(event.key.encode(), event.to_json())], Deadline(TELL_TIMEOUT_S))
        except (MirrorError, OSError) as error:
            log.warning("%s: the event could not be written: %s", spec, error)


_worker: _Worker | None = None


def carry(spec: LaneSpec) -> Iterator[list[Receipt]]:
    """Carry for the epoch; yields receipts as they come. An attempt that a cluster's absence or a fence ends is followed
    by another; any other error is logged, told as an event and, after a pause, raised to Spark."""
    global _worker
    if _worker is None:
        begin_logging()
        _worker = _Worker()
    runner = _worker.runner
    ends_at = time.monotonic() + spec.epoch_s
    while (left := ends_at - time.monotonic()) > 0:
        lane = replace(spec, epoch_s=left)
        try:
            run = runner.run(_worker.attempt(lane))
            while (receipts := runner.run(run.next_receipts())) is not None:
                if receipts:
                    yield receipts
            if run.superseded:
                log.warning("%s: %s", spec, run.superseded)
                time.sleep(SUPERSEDED_PAUSE_S)
            return
        except Exception as error:
            if not passes(error):
                _fail(_worker, spec, error)
                raise
            log.warning("%s: %s; trying again", spec, error)
            time.sleep(min(ATTEMPT_PAUSE_S, max(0.0, ends_at - time.monotonic())))


def _fail(worker: _Worker, spec: LaneSpec, error: Exception) -> None:
    text = str(error) if isinstance(error, MirrorError) else repr(error)
    log.error("%s: failed: %s", spec, text, exc_info=None if isinstance(error, MirrorError) else error)
    event = Event(EventKind.LANE_FAILED, f"{text}; it is started again and again until it works", "lane", spec.lane)
    worker.runner.run(worker.tell(spec, event))
    time.sleep(FAILED_PAUSE_S)
