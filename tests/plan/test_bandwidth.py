"""A limit divided: it always adds up, nobody gets more than they want while another wants it, weights count."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import MirrorError
from mirrorspark.plan.bandwidth import FLOOR, HEADROOM, Need, Shares, divide

LIMIT = 5_000_000.0

needs = st.builds(
    Need,
    st.floats(0, 2 * LIMIT),
    st.booleans(),
    st.integers(1, 10),
    st.one_of(st.just(float("inf")), st.floats(1, LIMIT)),
)


@given(st.floats(1_000, 1e9), st.lists(needs, min_size=1, max_size=12))
def test_shares_add_up_to_the_limit_unless_all_have_what_they_may_have(limit: float, some: list[Need]) -> None:
    shares = divide(limit, some)
    assert all(share > 0 for share in shares)
    assert all(share <= need.bytes_per_s_max * 1.000001 for share, need in zip(shares, some, strict=True))
    assert sum(shares) <= limit * 1.000001
    if sum(need.bytes_per_s_max for need in some) >= limit:
        assert sum(shares) == pytest.approx(limit)


@given(st.lists(needs, min_size=2, max_size=12))
def test_nobody_is_given_more_than_wanted_while_another_is_held(some: list[Need]) -> None:
    shares = divide(LIMIT, some)
    floor = LIMIT * FLOOR / len(some)
    hungry = [n for n, (need, share) in enumerate(zip(some, shares, strict=True)) if share < need.wanted * 0.999999]
    if hungry:
        for need, share in zip(some, shares, strict=True):
            assert share <= max(need.wanted, floor) * 1.000001


def test_one_hot_lane_uses_what_the_idle_ones_leave() -> None:
    idle = Need(0.0, is_held=False)
    shares = divide(LIMIT, [Need(), *[idle] * 7])
    assert shares[0] >= 0.98 * LIMIT
    assert min(shares[1:]) == pytest.approx(LIMIT * FLOOR / 8)


def test_who_needs_little_keeps_it_and_the_rest_goes_to_who_is_held() -> None:
    shares = divide(LIMIT, [Need(2_000_000, is_held=False), Need(1_000_000)])
    assert shares[0] == pytest.approx(2_000_000 * HEADROOM)
    assert sum(shares) == pytest.approx(LIMIT)


def test_all_held_share_alike_or_by_weight() -> None:
    assert divide(LIMIT, [Need(), Need()]) == pytest.approx([LIMIT / 2] * 2)
    heavy, light = divide(LIMIT, [Need(weight=10), Need(weight=5)])
    assert heavy / light == pytest.approx(2, rel=0.03)


def test_where_nobody_wants_more_the_rest_is_given_out_too() -> None:
    assert sum(divide(LIMIT, [Need(1.0, is_held=False), Need(2.0, is_held=False)])) == pytest.approx(LIMIT)
    assert divide(LIMIT, []) == []


def test_shares_read_back_and_a_lane_that_is_not_listed_has_one_too() -> None:
    shares = Shares(7, 5_000_000, (4_000_000, 1_000_000))
    assert Shares.from_json(shares.to_json()) == shares
    assert [shares.of(lane) for lane in range(3)] == [4_000_000, 1_000_000, 2_500_000]
    assert Shares(7).of(0) == 0


@pytest.mark.parametrize("raw", [b"", b"{}", b"[1]", b'{"v":2,"generation":1,"limit":1,"lanes":[]}', b"null"])
def test_a_record_of_somebody_else_is_named(raw: bytes) -> None:
    with pytest.raises(MirrorError, match="bandwidth record cannot be read"):
        Shares.from_json(raw)


def test_the_record_may_grow() -> None:
    text = json.loads(Shares(1, 2, (2,)).to_json()) | {"later": "more"}
    assert Shares.from_json(json.dumps(text).encode()) == Shares(1, 2, (2,))
