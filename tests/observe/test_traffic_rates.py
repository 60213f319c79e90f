"""Rates over a minute of looks, however often somebody looks."""

from __future__ import annotations

import pytest

from mirrorspark.observe.traffic_rates import TrafficRates


def test_the_first_look_is_since_the_beginning() -> None:
    assert TrafficRates(100.0).look(110.0, {"requests": 50.0}) == {"requests": 5.0}


def test_later_looks_are_over_the_last_minute() -> None:
    rates = TrafficRates(0.0)
    for second in range(1, 200):
        found = rates.look(float(second), {"requests": 10.0 * min(second, 130)})
    assert found["requests"] == 0.0
    assert rates.look(200.0, {"requests": 1_300.0 + 600.0})["requests"] == pytest.approx(10.0, rel=0.05)


def test_counts_that_begin_anew_are_nought_not_negative() -> None:
    rates = TrafficRates(0.0)
    rates.look(50.0, {"requests": 100.0})
    assert rates.look(120.0, {"requests": 3.0}) == {"requests": 0.0}
