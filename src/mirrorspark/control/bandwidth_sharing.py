"""The limit of a flow, divided over its lanes again and again; and that of a process over its flows, by their priorities.

A job of ``flow_runtime`` in the driver. What lanes read and how long they were held comes from their reports, the shares go
back as one small record on the plan topic. A driver that stands still changes nothing: lanes keep the shares they have.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.errors import ClusterError
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.observe.lane_limit import HELD_RATIO_MIN
from mirrorspark.observe.lane_totals import LaneTotals
from mirrorspark.offsets.internal_topics import BANDWIDTH_KEY
from mirrorspark.plan.bandwidth import Need, Shares, divide
from mirrorspark.settings import Bandwidth, FlowSettings

__all__ = ["SHARING_BANDWIDTH", "BandwidthPool", "BandwidthSharing"]

log = logging.getLogger("mirrorspark.flow")

Append = Callable[[Sequence[tuple[bytes, bytes | None]], Deadline], Awaitable[None]]
"""To the plan topic."""

SHARING_BANDWIDTH = "sharing the bandwidth limit"
DIVIDE_INTERVAL_S = 1.0
LOOKS_KEPT = 4
"""Needs are measured over so many looks, less one."""
APPEND_TIMEOUT_S = 10.0
GROWTH_RATIO_MIN = 0.05
LOSS_RATIO_MIN = 0.01
"""Shares are published when one has grown or shrunk by this part of an even share."""
CLAIM_S_MAX = 10.0
"""A flow that has not asked for so long no longer takes part in what the process has."""


class BandwidthPool:
    """What the flows of one process may read together (``bandwidth.total.max.bytes.per.second``)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._claims: dict[Flow, tuple[float, Need]] = {}

    def allowance(self, flow: Flow, bandwidth: Bandwidth, need: Need) -> int:
        """Bytes a second for this flow now; 0 is no limit."""
        own, total = bandwidth.bytes_per_s_max, bandwidth.total_bytes_per_s_max
        if not total:
            self.leave(flow)
            return own
        now = self._clock()
        claim = replace(need, weight=bandwidth.priority, bytes_per_s_max=own or float("inf"))
        self._claims[flow] = (now, claim)
        self._claims = {one: (at, known) for one, (at, known) in self._claims.items() if now - at <= CLAIM_S_MAX}
        flows = list(self._claims)
        shares = divide(total, [self._claims[one][1] for one in flows])
        return max(1, int(shares[flows.index(flow)]))

    def leave(self, flow: Flow) -> None:
        """What it had is for the others."""
        self._claims.pop(flow, None)


class BandwidthSharing:
    """``begin`` when the flow is led and planned, before a lane starts; then ``run``. ``led``: generation and lanes now."""

    def __init__(
        self,
        settings: Callable[[], FlowSettings],
        append: Append,
        status: FlowStatus,
        led: Callable[[], tuple[int, int]],
        pool: BandwidthPool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._append = append
        self._status = status
        self._led = led
        self._pool = pool or BandwidthPool(clock)
        self._clock = clock
        self._looks: list[deque[tuple[float, float, float]]] = []
        self._published: Shares | None = None

    async def begin(self, before: bytes | None, deadline: Deadline) -> None:
        """``before``: the record that is there, of whoever led the flow last."""
        shares = self._divided()
        if shares.limit or before is not None:
            await self._publish(shares, deadline)

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(DIVIDE_INTERVAL_S)
                try:
                    await self.look()
                except ClusterError as error:
                    if self._status.failures.get(SHARING_BANDWIDTH) != str(error):
                        log.warning("%s: %s: %s", self._settings().flow, SHARING_BANDWIDTH, error)
                    self._status.fail(SHARING_BANDWIDTH, str(error))
                else:
                    self._status.clear(SHARING_BANDWIDTH)
        finally:
            self._pool.leave(self._settings().flow)

    async def look(self) -> None:
        """Once: measure, divide, tell the lanes if that makes a difference."""
        shares = self._divided()
        if self._differs(shares):
            await self._publish(shares, Deadline(APPEND_TIMEOUT_S))

    def _divided(self) -> Shares:
        settings = self._settings()
        generation, lane_count = self._led()
        needs = self._needs(lane_count)
        whole = Need(sum(need.bytes_per_s for need in needs), any(need.is_held for need in needs))
        limit = self._pool.allowance(settings.flow, settings.bandwidth, whole)
        lanes = tuple(max(1, int(share)) for share in divide(limit, needs)) if limit else ()
        return Shares(generation, limit, lanes)

    def _needs(self, lanes: int) -> list[Need]:
        """By each lane's reports over the last seconds. Of whom nothing is known yet it is taken that it wants more."""
        del self._looks[lanes:]
        self._looks += [deque(maxlen=LOOKS_KEPT) for _ in range(lanes - len(self._looks))]
        now = self._clock()
        for lane, looks in enumerate(self._looks):
            totals = self._status.lane_totals.get(lane, LaneTotals())
            looks.append((now, totals["limited_bytes"], totals["limit_held_s"]))
        return [self._need(lane, looks) for lane, looks in enumerate(self._looks)]

    def _need(self, lane: int, looks: Sequence[tuple[float, float, float]]) -> Need:
        (began, size, held_s), (now, size_now, held_s_now) = looks[0], looks[-1]
        if lane not in self._status.lanes or now <= began or len(looks) < LOOKS_KEPT:
            return Need()
        span_s = now - began
        return Need((size_now - size) / span_s, (held_s_now - held_s) / span_s >= HELD_RATIO_MIN)

    def _differs(self, shares: Shares) -> bool:
        known = self._published
        if known is None:
            return bool(shares.limit)
        if (known.generation, bool(known.limit), len(known.lanes)) != (
            shares.generation,
            bool(shares.limit),
            len(shares.lanes),
        ):
            return True
        if known.limit != shares.limit and not self._settings().bandwidth.total_bytes_per_s_max:
            return True  # somebody edited it
        even = shares.limit / max(1, len(shares.lanes))
        changes = [(new - old) / even for new, old in zip(shares.lanes, known.lanes, strict=True)] if even else []
        return any(change > GROWTH_RATIO_MIN or change < -LOSS_RATIO_MIN for change in changes)

    async def _publish(self, shares: Shares, deadline: Deadline) -> None:
        await self._append([(BANDWIDTH_KEY, shares.to_json())], deadline)
        self._published = shares
