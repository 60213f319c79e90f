"""The driver divides a flow's limit over its lanes, and a process' limit over its flows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.control.bandwidth_sharing import CLAIM_S_MAX, LOOKS_KEPT, BandwidthPool, BandwidthSharing
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.offsets.internal_topics import BANDWIDTH_KEY
from mirrorspark.plan.bandwidth import Need, Shares
from mirrorspark.settings import Bandwidth, ClusterSettings, FlowSettings

LIMIT = 5_000_000
GENERATION = 3


class Driver:
    """A flow of some lanes whose reports the test writes; each ``second`` is one look."""

    def __init__(self, lanes: int, limit: int = LIMIT, pool: BandwidthPool | None = None, name: str = "a") -> None:
        self.now = 100.0
        self.lanes = lanes
        self.settings = FlowSettings(
            Flow(name, "b"),
            ClusterSettings(name, ()),
            ClusterSettings("b", ()),
            tasks_max=lanes,
            bandwidth=Bandwidth(limit),
        )
        self.status = FlowStatus(str(self.settings.flow), lanes)
        self.status.begin(GENERATION)
        self.written: list[Shares] = []
        self.sharing = BandwidthSharing(
            lambda: self.settings, self._append, self.status, lambda: (GENERATION, self.lanes), pool, lambda: self.now
        )
        self._counts = [[0.0, 0.0] for _ in range(lanes)]

    async def _append(self, entries: Sequence[tuple[bytes, bytes | None]], deadline: Deadline) -> None:
        for key, raw in entries:
            assert key == BANDWIDTH_KEY
            assert raw is not None
            self.written.append(Shares.from_json(raw))

    def begin(self, before: bytes | None = None) -> None:
        asyncio.run(self.sharing.begin(before, Deadline(10.0)))

    def second(self, wanted: Sequence[float]) -> list[float]:
        """Each lane reads what it wants, or its share; what they read."""
        limit = self.written[-1] if self.written else Shares(GENERATION)
        read = []
        for lane, bytes_per_s in enumerate(wanted):
            share = limit.of(lane) or float("inf")
            read.append(min(bytes_per_s, share))
            self._counts[lane][0] += read[-1]
            self._counts[lane][1] += 0.9 if bytes_per_s > share else 0.0
            report = {
                "lane": lane,
                "generation": GENERATION,
                "state": "carrying",
                "since_ms": 1,
                "at_ms": 2,
                "partitions": 1,
                "held_bytes": 0,
                "waiting": {},
                "moved": [],
                "counts": {"limited_bytes": self._counts[lane][0], "limit_held_s": self._counts[lane][1]},
            }
            self.status.fold(f"lane/{lane}".encode(), json.dumps(report).encode())
        self.now += 1.0
        asyncio.run(self.sharing.look())
        return read


def test_lanes_know_their_shares_before_they_start() -> None:
    driver = Driver(4)
    driver.begin()
    assert driver.written == [Shares(GENERATION, LIMIT, (LIMIT // 4,) * 4)]


def test_without_a_limit_nothing_is_written_unless_an_earlier_one_must_be_lifted() -> None:
    driver = Driver(2, limit=0)
    driver.begin()
    driver.second([1e9, 1e9])
    assert driver.written == []
    driver.begin(Shares(2, 7, (7,)).to_json())
    assert driver.written == [Shares(GENERATION, 0, ())]


def test_a_hot_lane_soon_has_what_the_idle_ones_leave() -> None:
    driver = Driver(4)
    driver.begin()
    for _ in range(3 * LOOKS_KEPT):
        read = driver.second([1e9, 0, 0, 0])
    assert sum(read) >= 0.97 * LIMIT
    assert sum(driver.written[-1].lanes) <= LIMIT
    for _ in range(3 * LOOKS_KEPT):  # another one wakes up
        read = driver.second([1e9, 1e9, 0, 0])
    assert read[0] == pytest.approx(read[1], rel=0.1)
    assert sum(read) >= 0.95 * LIMIT


def test_mixed_needs_use_the_limit_well_in_the_mean_and_never_go_above_it() -> None:
    driver = Driver(3)
    driver.begin()
    sums = [sum(driver.second([2_000_000, 1e9, 300_000])) for _ in range(20)]
    assert max(sums) <= LIMIT
    assert sum(sums[5:]) / 15 >= 0.92 * LIMIT


def test_shares_that_stay_are_written_once() -> None:
    driver = Driver(1)
    driver.begin()
    for _ in range(10):
        driver.second([1e9])
    assert driver.written == [Shares(GENERATION, LIMIT, (LIMIT,))]


@pytest.mark.parametrize("limit", [LIMIT + 1, LIMIT - 1, 0])
def test_an_edited_limit_is_told_at_the_next_look(limit: int) -> None:
    driver = Driver(1)
    driver.begin()
    driver.settings = replace(driver.settings, bandwidth=Bandwidth(limit))
    driver.second([1e9])
    assert driver.written[-1].limit == limit
    assert driver.written[-1].of(0) == limit


def test_more_lanes_have_shares_at_the_next_look() -> None:
    driver = Driver(2)
    driver.begin()
    driver.lanes = 4
    driver.second([1e9, 1e9])
    assert driver.written[-1] == Shares(GENERATION, LIMIT, (LIMIT // 4,) * 4)


# -- several flows in one process --------------------------------------------------------------------------------------


def _flow(name: str) -> Flow:
    return Flow(name, "b")


def test_flows_share_by_priority_and_leave_what_they_do_not_need() -> None:
    pool = BandwidthPool(lambda: 0.0)
    first, second = Bandwidth(0, LIMIT, 10), Bandwidth(0, LIMIT, 5)
    pool.allowance(_flow("x"), first, Need())
    small = pool.allowance(_flow("y"), second, Need())
    large = pool.allowance(_flow("x"), first, Need())
    assert large / small == pytest.approx(2, rel=0.03)
    assert large + small <= LIMIT
    pool.allowance(_flow("x"), first, Need(100_000, is_held=False))
    assert pool.allowance(_flow("y"), second, Need()) >= 0.95 * LIMIT


def test_a_flows_own_limit_holds_beside_the_process_limit() -> None:
    pool = BandwidthPool(lambda: 0.0)
    assert pool.allowance(_flow("x"), Bandwidth(1_000, LIMIT), Need()) == 1_000
    assert pool.allowance(_flow("y"), Bandwidth(0, LIMIT), Need()) == LIMIT - 1_000


def test_a_flow_that_left_or_went_quiet_no_longer_takes_part() -> None:
    now = [0.0]
    pool = BandwidthPool(lambda: now[0])
    shared = Bandwidth(0, LIMIT)
    for name in ("x", "y", "z"):
        pool.allowance(_flow(name), shared, Need())
    pool.leave(_flow("x"))
    assert pool.allowance(_flow("y"), shared, Need()) == pytest.approx(LIMIT / 2, rel=0.01)
    now[0] = CLAIM_S_MAX + 1
    assert pool.allowance(_flow("y"), shared, Need()) == LIMIT


def test_two_drivers_stay_within_what_the_process_has() -> None:
    pool = BandwidthPool(lambda: 0.0)
    drivers = [Driver(2, 0, pool, name) for name in ("x", "y")]
    for priority, driver in zip((8, 2), drivers, strict=True):
        driver.settings = replace(driver.settings, bandwidth=Bandwidth(0, LIMIT, priority))
        driver.begin()
    for _ in range(4 * LOOKS_KEPT):
        x, y = (sum(driver.second([1e9, 1e9])) for driver in drivers)
    assert x + y <= LIMIT * 1.02
    assert x / y == pytest.approx(4, rel=0.1)
    for _ in range(4 * LOOKS_KEPT):
        x, y = sum(drivers[0].second([0, 0])), sum(drivers[1].second([1e9, 1e9]))
    assert y >= 0.95 * LIMIT
