"""A handout of lanes: counted once, with the time from the lead to the last lane's report."""

from __future__ import annotations

from mirrorspark.observe.lane_handouts import LaneHandouts


def test_a_handout_is_counted_once() -> None:
    handouts = LaneHandouts()
    handouts.complete(1.0)
    assert (handouts.completed, handouts.completed_at) == (0, None)
    handouts.begin(2.0)
    handouts.complete(5.0)
    handouts.complete(9.0)
    assert (handouts.completed, handouts.completed_at, handouts.total_s, handouts.longest_s) == (1, 5.0, 3.0, 3.0)


def test_a_lead_that_another_follows_before_all_lanes_reported_is_none() -> None:
    handouts = LaneHandouts()
    handouts.begin(0.0)
    handouts.begin(10.0)
    handouts.complete(11.0)
    handouts.begin(20.0)
    handouts.complete(24.0)
    assert (handouts.completed, handouts.total_s, handouts.longest_s) == (2, 5.0, 4.0)
