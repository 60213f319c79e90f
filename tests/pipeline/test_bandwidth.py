"""The pace of a lane's fetches: never more than the limit and a bounded burst, never less than the limit allows."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.pipeline.bandwidth import ANSWER_BYTES_MIN, ANSWER_S, BURST_S, FetchPace

MOST = 4 * 1024 * 1024
"""One fetch answer, as a lane's memory allows it."""


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def _pace(rate: float) -> tuple[FetchPace, Clock]:
    clock = Clock()
    pace = FetchPace(clock)
    pace.set_rate(rate)
    return pace, clock


rates = st.floats(1_000, 200_000_000)
steps = st.lists(st.tuples(st.floats(0.0005, 2.0), st.floats(0, 1), st.integers(0, 1_100_000)), min_size=1, max_size=80)
"""Time that passes, how full an answer is, and the size of a batch, which comes whole even if it is larger than asked."""


@given(rates, steps)
def test_no_span_of_time_brings_more_than_the_rate_and_a_burst(
    rate: float, some: list[tuple[float, float, int]]
) -> None:
    pace, clock = _pace(rate)
    taken = [(clock.now, 0.0)]
    largest = 0.0
    for seconds, fullness, batch in some:
        clock.now += seconds
        if pace.may_ask:
            asked = pace.answer_bytes(MOST)
            assert asked <= max(rate * ANSWER_S, pace.burst_bytes, ANSWER_BYTES_MIN)
            size = max(int(asked * fullness), batch)
            largest = max(largest, size)
            pace.took(size)
            taken.append((clock.now, taken[-1][1] + size))
    for n, (begin, before) in enumerate(taken):
        for end, after in taken[n:]:
            assert after - before <= rate * (end - begin) + pace.burst_bytes + largest + 1


@given(rates, st.lists(st.floats(0.0005, BURST_S / 2), min_size=1, max_size=80))
def test_a_source_that_always_has_more_is_read_at_the_rate(rate: float, some: list[float]) -> None:
    pace, clock = _pace(rate)
    begin, taken = clock.now, 0
    for seconds in some:
        clock.now += seconds
        while pace.may_ask:
            size = pace.answer_bytes(MOST)
            pace.took(size)
            taken += size
    assert taken >= rate * (clock.now - begin) - pace.burst_bytes - 1


@given(rates, rates, st.integers(1, 10_000_000))
def test_a_debt_is_worth_as_many_seconds_under_another_limit(rate: float, other: float, debt: int) -> None:
    pace, clock = _pace(rate)
    pace.took(debt)
    pace.set_rate(other)
    clock.now += debt / rate * 0.99
    assert not pace.may_ask
    clock.now += debt / rate * 0.02 + 0.001
    assert pace.may_ask


def test_without_a_limit_nothing_is_held_or_counted() -> None:
    pace, _ = _pace(0)
    pace.took(10**12)
    assert pace.may_ask
    assert pace.answer_bytes(MOST) == MOST
    assert pace.told() is None
    assert pace.counts["limited_bytes"] == 0


def test_a_limit_that_is_taken_away_leaves_no_debt() -> None:
    pace, _ = _pace(1_000)
    pace.took(10**9)
    pace.set_rate(0)
    assert pace.may_ask
    pace.set_rate(1_000)
    assert not pace.may_ask, "and no burst"


def test_an_answer_shrinks_with_the_limit_and_grows_with_what_was_saved() -> None:
    pace, clock = _pace(5_000_000)
    assert pace.answer_bytes(MOST) == 500_000
    clock.now += 60
    assert pace.answer_bytes(MOST) == 2_500_000
    assert pace.answer_bytes(1_000_000) == 1_000_000
    small, _ = _pace(1_000)
    assert small.answer_bytes(MOST) == ANSWER_BYTES_MIN


async def _moments(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("wake", ["limit", "end"])
def test_who_waits_is_woken_by_a_new_limit_and_by_the_end(wake: str) -> None:
    async def scenario() -> None:
        pace, _ = _pace(1)
        pace.took(10**9)
        waiting = asyncio.ensure_future(pace.turn(float("inf")))
        await _moments()
        assert not waiting.done()
        if wake == "limit":
            pace.set_rate(0)
        else:
            pace.end()
        await _moments()
        assert waiting.done()

    asyncio.run(scenario())


def test_nobody_waits_beyond_the_end_of_fetching() -> None:
    async def scenario() -> None:
        pace, clock = _pace(1)
        pace.took(10**9)
        await pace.turn(clock.now - 1)

    asyncio.run(scenario())


def test_streams_that_wait_together_are_held_once_and_told_so() -> None:
    async def scenario() -> None:
        pace, clock = _pace(1_000)
        pace.took(10**6)
        pace.told()
        waiting = [asyncio.ensure_future(pace.turn(float("inf"))) for _ in range(3)]
        await _moments()
        clock.now += 3
        assert pace.held_s == pytest.approx(3)
        pace.end()
        await asyncio.gather(*waiting)
        clock.now += 1
        assert pace.told() == [1_000, 0.75]
        assert pace.counts == {"limited_bytes": 10**6, "limit_holds": 1, "limit_held_s": 3.0}
        clock.now += 1
        assert pace.told() == [1_000, 0.0]

    asyncio.run(scenario())
