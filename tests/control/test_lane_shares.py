"""Fewer slots than lanes: every flow has lanes as long as there are enough for one each, and each is told why."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.control.lane_demand import BEHIND_FOR_S, CALM_FOR_S, LaneDemand
from mirrorspark.control.lane_shares import LaneShare, lane_shares
from mirrorspark.names import Flow

A, B, C = (Flow(name, "west") for name in "abc")


def test_enough_slots_or_nobody_knows() -> None:
    for slots in (None, 5, 6):
        assert lane_shares({A: 2, B: 3}, slots, "Spark") == {A: LaneShare(2), B: LaneShare(3)}


def test_a_shortage_names_the_setting_and_both_numbers() -> None:
    found = lane_shares({A: 4}, 2, "--master spark://m:7077")[A]
    assert found.lanes == 2
    assert found.why.startswith(
        "tasks.max = 4, but --master spark://m:7077 runs 2 tasks at a time for 4 lanes in all: this flow has 2 of its 4"
    )
    assert "Give Spark 4 slots (spark.cores.max" in found.why


def test_a_small_flow_is_not_cut_for_a_large_one() -> None:
    found = lane_shares({A: 8, B: 1, C: 3}, 6, "Spark")
    assert {flow: share.lanes for flow, share in found.items()} == {A: 3, B: 1, C: 2}
    assert found[B].why == ""


def test_slots_go_to_flows_that_are_behind() -> None:
    found = lane_shares({A: 4, B: 4, C: 4}, 7, "Spark", [C])
    assert {flow: share.lanes for flow, share in found.items()} == {A: 2, B: 1, C: 4}
    found = lane_shares({A: 4, B: 4, C: 4}, 6, "Spark", [B, C])
    assert {flow: share.lanes for flow, share in found.items()} == {A: 1, B: 3, C: 2}


def test_fewer_slots_than_flows() -> None:
    found = lane_shares({A: 2, B: 2, C: 2}, 2, "Spark")
    assert [share.lanes for share in found.values()] == [1, 1, 1]
    assert all("2 tasks at a time, but there are 3 flows: they take turns" in share.why for share in found.values())


def test_a_flow_counts_as_behind_after_a_while_and_for_a_while() -> None:
    now = 0.0
    demand = LaneDemand(lambda: now)
    for now, lag, is_behind in [  # noqa: B007  (the clock reads it)
        (0.0, 999, False),  # ten seconds of a rate of 100 are 1000 records
        (1.0, 5_000, False),
        (5.0, 0, False),
        (6.0, 5_000, False),
        (6.0 + BEHIND_FOR_S, 5_000, True),
        (30.0, 0, True),
        (31.0, 5_000, True),
        (40.0, 0, True),
        (40.0 + CALM_FOR_S, 0, False),
    ]:
        assert demand.look(lag, 100.0) is is_behind


@given(st.lists(st.integers(1, 12), min_size=1, max_size=8), st.integers(1, 60))
def test_shares_are_even_and_use_every_slot(wanted: list[int], slots: int) -> None:
    flows = {Flow(f"f{number}", "west"): lanes for number, lanes in enumerate(wanted)}
    shares = {flow: share.lanes for flow, share in lane_shares(flows, slots, "Spark").items()}
    assert sum(shares.values()) == max(min(slots, sum(wanted)), len(wanted))
    for flow, lanes in shares.items():
        assert 1 <= lanes <= flows[flow]
        assert lanes == flows[flow] or max(shares.values()) <= lanes + 1
