"""A lane over its attempts: counters go on, the pause between epochs is told."""

from __future__ import annotations

from mirrorspark.observe.lane_totals import LaneTotals


def test_counters_go_on_over_attempts() -> None:
    totals = LaneTotals()
    totals.take(1, 10, "carrying", {"fences": 1, "cpu_s": 2.0, "commit_ms_max": 9})
    totals.take(1, 20, "carrying", {"fences": 3, "cpu_s": 2.5, "commit_ms_max": 4})
    totals.take(2, 30, "carrying", {"fences": 1, "cpu_s": 1.0, "commit_ms_max": 5})
    assert (totals["fences"], totals["cpu_s"], totals["commit_ms_max"], totals["unheard"]) == (4, 3.5, 9, 0)
    assert (totals.attempts, totals.attempts_carried) == (2, 2)


def test_an_attempt_that_never_carried_is_an_attempt() -> None:
    totals = LaneTotals()
    totals.take(1, 10, "starting", {})
    totals.take(2, 20, "starting", {})
    assert (totals.attempts, totals.attempts_carried, totals.pause_s) == (2, 0, None)


def test_the_pause_is_from_the_end_to_the_first_carrying() -> None:
    totals = LaneTotals()
    totals.take(1, 10_000, "carrying", {})
    totals.take(1, 20_000, "ended", {})
    totals.take(2, 20_100, "starting", {})
    totals.take(2, 20_250, "carrying", {})
    totals.take(2, 21_250, "carrying", {})
    assert totals.pause_s == 0.25
