"""Lanes that carry while Spark starts: all lanes of a flow in one plain process, until Spark's own lanes fence them.

Spark's JVM, its session and its Python workers take many seconds on a small machine; a lane takes one. So the driver starts
this process first (``Bridge``), gives it the flow's order as soon as it leads, and lets Spark start meanwhile. Nothing is
handed over: Spark's lanes use the same transactional ids, fence the ones here and prove their positions from the target's
log, exactly as they would after a crash (docs/decisions/0005 and 0008). A lane here that is fenced, or finds that Spark's
has signed one of its partitions, ends and is not tried again, else the two would fence each other for ever.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import struct
import subprocess
import sys
import time
from typing import IO

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.errors import BrokerError, Fenced
from mirrorspark.log_lines import begin_logging
from mirrorspark.pipeline.flow_order import FlowOrder
from mirrorspark.pipeline.lane import BRIDGE_EPOCH, LaneRun, LaneSpec
from mirrorspark.pipeline.troubles_that_pass import FENCED, passes

__all__ = ["Bridge"]

log = logging.getLogger("mirrorspark.bridge")

END_WAIT_S_MAX = 10.0
RETRY_PAUSE_S = 1.0
_SIZE = struct.Struct(">I")


class Bridge:
    """The driver's end: one process for all flows, started before there is anything to carry, so that it is warm."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mirrorspark.pipeline.bridge"], stdin=subprocess.PIPE, start_new_session=True
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def active(self) -> bool:
        return self._process.poll() is None

    def carry(self, order: FlowOrder) -> bool:
        """Begin this flow's lanes. False where the process is gone or was told to end: then Spark's lanes are the first."""
        assert self._process.stdin is not None
        if self._process.stdin.closed:
            return False
        try:
            _write(self._process.stdin, order)
        except OSError as error:
            log.warning(
                "%s waits for Spark: the process that carries meanwhile is gone (%s)", order.settings.flow, error
            )
            return False
        return True

    def close(self) -> None:
        """No further flow; ends by itself when its lanes have (they follow the plan, or are fenced). Waits for that."""
        self.hang_up()
        try:
            self._process.wait(END_WAIT_S_MAX)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """At once, as it is: whoever owns its partitions next recovers them."""
        self.hang_up()
        self._process.kill()
        self._process.wait()

    def hang_up(self) -> None:
        """No further flow: the process ends when its lanes have ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError as error:  # it ended with something unread
            log.debug("closing the bridge's pipe: %s", error)


def _write(pipe: IO[bytes], order: FlowOrder) -> None:
    body = pickle.dumps(order)
    pipe.write(_SIZE.pack(len(body)) + body)
    pipe.flush()


# -- inside the process ------------------------------------------------------------------------------------------------


async def _read(reader: asyncio.StreamReader) -> FlowOrder | None:
    """The next order; None when the driver has hung up."""
    try:
        (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
        order = pickle.loads(await reader.readexactly(size))
    except asyncio.IncompleteReadError:
        return None
    assert isinstance(order, FlowOrder)
    return order


async def _carry_lane(order: FlowOrder, lane: int) -> None:
    """Until the plan stops the flow or Spark's lane fences this one. A cluster that is away is waited for."""
    settings = order.settings
    while True:
        clients = [
            ClusterClient(side, side.client.get("client.id", f"mirrorspark|{settings.flow}|bridge"))
            for side in (settings.source, settings.target)
        ]
        ends_at = time.monotonic() + settings.epoch_s
        try:
            await asyncio.gather(*(client.start() for client in clients))
            run = LaneRun(LaneSpec(settings, lane, order.generation, BRIDGE_EPOCH, settings.epoch_s), *clients)
            await run.start()
            while await run.next_receipts() is not None:
                pass
            if run.superseded or time.monotonic() < ends_at:
                return
        except Exception as error:  # noqa: BLE001  (Spark's lanes meet it again, and tell)
            if is_fence(error) or not passes(error):
                log.info("%s: lane %d: %s", settings.flow, lane, error)
                return
            log.warning("%s: lane %d: %s; trying again", settings.flow, lane, error)
            await asyncio.sleep(RETRY_PAUSE_S)
        finally:
            for client in clients:
                client.close()


def is_fence(error: Exception) -> bool:
    return isinstance(error, Fenced) or (isinstance(error, BrokerError) and error.error_code in FENCED)


async def _main(driver: int) -> None:
    """Orders come until the driver hangs up; then the lanes end by the plan, or the driver was killed: see ``_outlive``."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    lanes: set[asyncio.Task[None]] = set()
    while (order := await _read(reader)) is not None:
        lanes |= {asyncio.ensure_future(_carry_lane(order, lane)) for lane in range(order.settings.tasks_max)}
    watch = asyncio.ensure_future(_outlive(driver))
    await asyncio.gather(*lanes)
    watch.cancel()


async def _outlive(driver: int) -> None:
    """Not longer than the driver: a driver that was killed has hung up too, and nobody leads these lanes any more."""
    while os.getppid() == driver:
        await asyncio.sleep(0.2)
    os._exit(1)


if __name__ == "__main__":
    for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(_number, signal.SIG_IGN)  # the driver is told, and tells by the plan
    begin_logging()
    asyncio.run(_main(os.getppid()))
