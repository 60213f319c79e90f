"""Spreading partitions over lanes (complete, even, sticky, the same every time) and the plan document."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirrorspark.errors import NewerFormat
from mirrorspark.names import TopicPartition
from mirrorspark.plan.lanes import IMBALANCE_MIN, Assignment, Owner, Plan, spread

Lanes = tuple[tuple[Assignment, ...], ...]

brief = settings(deadline=None, max_examples=60)


def _one(topic: str, partition: int, topic_id: str = "") -> Assignment:
    return Assignment(TopicPartition(topic, partition), f"east.{topic}", topic_id)


def _topic(name: str, partitions: int) -> list[Assignment]:
    return [_one(name, number) for number in range(partitions)]


def _names(lanes: Lanes) -> list[list[str]]:
    return [[str(one.remote) for one in lane] for lane in lanes]


def _sizes(lanes: Lanes) -> list[int]:
    return [len(lane) for lane in lanes]


def _moved(before: Lanes, after: Lanes) -> set[TopicPartition]:
    home = {one.remote: index for index, lane in enumerate(before) for one in lane}
    return {one.remote for index, lane in enumerate(after) for one in lane if home.get(one.remote, index) != index}


assignments = st.builds(_one, st.sampled_from(["orders", "clicks", "z"]), st.integers(0, 30))
wanted_lists = st.lists(assignments, unique_by=lambda one: one.remote, max_size=40)
rates = st.dictionaries(assignments.map(lambda one: one.remote), st.floats(0, 1e9), max_size=40)
lanes_before = st.lists(st.lists(assignments, max_size=10).map(tuple), max_size=6).map(tuple)


@brief
@given(wanted_lists, st.integers(1, 6), lanes_before, st.none() | rates)
def test_every_wanted_partition_is_in_exactly_one_lane(
    wanted: list[Assignment], lane_count: int, before: Lanes, measured: dict[TopicPartition, float] | None
) -> None:
    lanes = spread(wanted, lane_count, before=before, bytes_per_s=measured)
    assert len(lanes) == lane_count
    assert Counter(one for lane in lanes for one in lane) == Counter(wanted)


@pytest.mark.parametrize(
    ("partitions", "tasks_max", "sizes"),
    [([8, 2, 2], 3, [4, 4, 4]), ([2], 3, [1, 1, 0]), ([1, 1, 1], 2, [2, 1]), ([], 2, [0, 0]), ([5], 1, [5])],
)
def test_2_4_9_partitions_are_dealt_evenly_over_tasks_max_lanes(
    partitions: list[int], tasks_max: int, sizes: list[int]
) -> None:
    """MirrorMaker 2's vector is 8, 2 and 2 over 3 tasks, dealt in turn; here a task more than there are partitions idles."""
    wanted = [one for number, count in enumerate(partitions) for one in _topic(f"t{number}", count)]
    lanes = spread(wanted, tasks_max)
    assert sorted(_sizes(lanes), reverse=True) == sizes
    assert Counter(one for lane in lanes for one in lane) == Counter(wanted)


@brief
@given(wanted_lists, st.integers(1, 6))
def test_lanes_are_even_by_count_without_rates(wanted: list[Assignment], lane_count: int) -> None:
    sizes = _sizes(spread(wanted, lane_count))
    assert max(sizes) - min(sizes) <= 1


@brief
@given(wanted_lists, st.integers(1, 6), st.none() | rates)
def test_nothing_moves_when_nothing_changed(
    wanted: list[Assignment], lane_count: int, measured: dict[TopicPartition, float] | None
) -> None:
    lanes = spread(wanted, lane_count, bytes_per_s=measured)
    assert spread(wanted, lane_count, before=lanes, bytes_per_s=measured) == lanes


@brief
@given(wanted_lists, st.integers(1, 6), lanes_before, st.none() | rates, st.randoms(use_true_random=False))
def test_the_order_of_the_wanted_does_not_matter(
    wanted: list[Assignment],
    lane_count: int,
    before: Lanes,
    measured: dict[TopicPartition, float] | None,
    shuffle: random.Random,
) -> None:
    lanes = spread(wanted, lane_count, before=before, bytes_per_s=measured)
    shuffle.shuffle(wanted)
    assert spread(wanted, lane_count, before=before, bytes_per_s=measured) == lanes


def test_lanes_are_sorted_by_remote_partition() -> None:
    lanes = spread([*_topic("z", 3), *_topic("a", 3)], 2)
    assert all(list(lane) == sorted(lane, key=lambda one: one.remote) for lane in lanes)
    assert _names(lanes) == [["east.a-0", "east.a-2", "east.z-1"], ["east.a-1", "east.z-0", "east.z-2"]]


def test_a_new_partition_disturbs_no_other() -> None:
    before = spread(_topic("orders", 7), 3)
    after = spread(_topic("orders", 9), 3, before=before)
    assert _moved(before, after) == set()
    assert sorted(_sizes(after)) == [3, 3, 3]


def test_a_gone_partition_disturbs_no_other() -> None:
    before = spread(_topic("orders", 9), 3)
    after = spread(_topic("orders", 8), 3, before=before)
    assert _moved(before, after) == set()


def test_partitions_of_a_gone_lane_go_to_the_others() -> None:
    before = spread(_topic("orders", 9), 3)
    after = spread(_topic("orders", 9), 2, before=before)
    assert _moved(before, after) == {one.remote for one in before[2]}
    assert sorted(_sizes(after)) == [4, 5]


def test_a_new_lane_gets_its_share_and_no_more() -> None:
    before = spread(_topic("orders", 10), 1)
    after = spread(_topic("orders", 10), 2, before=before)
    assert after[1]
    assert max(_sizes(after)) <= IMBALANCE_MIN * min(_sizes(after))
    assert len(_moved(before, after)) == len(after[1])


def test_a_recreated_topic_keeps_its_lane_and_shows_its_new_id() -> None:
    before = spread([_one("orders", 0, "aa"), _one("orders", 1, "aa")], 2)
    after = spread([_one("orders", 0, "bb"), _one("orders", 1, "bb")], 2, before=before)
    assert _names(after) == _names(before)
    assert {one.topic_id for lane in after for one in lane} == {"bb"}


def test_a_partition_listed_twice_before_is_carried_once() -> None:
    orders = _topic("orders", 2)
    after = spread(orders, 2, before=((orders[0], orders[1]), (orders[0],)))
    assert Counter(one.remote for lane in after for one in lane) == Counter(one.remote for one in orders)


def test_new_partitions_are_spread_by_their_rates() -> None:
    orders = _topic("orders", 4)
    measured = {one.remote: rate for one, rate in zip(orders, (900.0, 300.0, 300.0, 300.0), strict=True)}
    heavy, light = sorted(spread(orders, 2, bytes_per_s=measured), key=len)
    assert (heavy, light) == ((orders[0],), tuple(orders[1:]))


@pytest.mark.parametrize(
    ("loads", "moves"),
    [
        ((100, 100, 100, 100), False),
        ((100, 100, 140, 140), False),  # 1.4 times: bearable, and a move costs
        ((100, 100, 300, 300), True),
        ((0, 0, 500, 500), True),
        ((100, 100, 900, 10), True),  # the small one moves, the large one stays
    ],
)
def test_partitions_move_only_when_the_imbalance_is_clear(loads: tuple[int, ...], moves: bool) -> None:
    orders = _topic("orders", 4)
    before = ((orders[0], orders[1]), (orders[2], orders[3]))
    measured = {one.remote: float(rate) for one, rate in zip(orders, loads, strict=True)}
    after = spread(orders, 2, before=before, bytes_per_s=measured)
    assert bool(_moved(before, after)) == moves


def test_many_small_partitions_do_not_move_for_a_small_imbalance() -> None:
    orders = _topic("orders", 24)
    before = (tuple(orders[:10]), tuple(orders[10:]))  # 1.4 times, and any of them would fit
    assert spread(orders, 2, before=before, bytes_per_s={one.remote: 10.0 for one in orders}) == tuple(
        tuple(sorted(lane, key=lambda one: one.remote)) for lane in before
    )
    assert not _moved(before, spread(orders, 2, before=before))


def test_two_heavy_partitions_part_ways() -> None:
    orders = _topic("orders", 4)
    measured = {one.remote: rate for one, rate in zip(orders, (0.0, 0.0, 500.0, 500.0), strict=True)}
    after = spread(orders, 2, before=((orders[0], orders[1]), (orders[2], orders[3])), bytes_per_s=measured)
    assert [sum(measured[one.remote] for one in lane) for lane in after] == [500.0, 500.0]


def test_a_lane_with_one_heavy_partition_does_not_hide_the_others() -> None:
    orders = _topic("orders", 5)
    measured = {one.remote: rate for one, rate in zip(orders, (1e6, 9e5, 9e5, 9e5, 9e5), strict=True)}
    after = spread(orders, 3, before=((orders[0],), tuple(orders[1:]), ()), bytes_per_s=measured)
    assert _sizes(after) == [1, 2, 2]


def test_a_single_heavy_partition_is_not_thrown_from_lane_to_lane() -> None:
    orders = _topic("orders", 2)
    measured = {orders[0].remote: 1e9, orders[1].remote: 1.0}
    lanes = spread(orders, 2, bytes_per_s=measured)
    for _ in range(3):
        after = spread(orders, 2, before=lanes, bytes_per_s=measured)
        assert after == lanes


def test_idle_partitions_are_spread_by_count() -> None:
    """Rates of nought are no reason to pile them up in one lane."""
    orders = _topic("orders", 12)
    sizes = _sizes(spread(orders, 3, bytes_per_s={one.remote: 0.0 for one in orders}))
    assert sizes == [4, 4, 4]


def test_a_flow_has_at_least_one_lane() -> None:
    with pytest.raises(AssertionError):
        spread(_topic("orders", 1), 0)


# -- the plan document -------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
owners = st.builds(Owner, st.integers(0, 2**40), texts, texts, st.integers(0, 2**31))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """As ``spread`` makes them: one remote name and one id for each topic, lanes sorted."""
    topics = draw(st.dictionaries(texts, st.sampled_from(["", "00" * 16, "ab" * 16]), max_size=5))
    wanted = [
        Assignment(TopicPartition(topic, number), f"east.{topic}", topic_id, *remote)
        for topic, topic_id in topics.items()
        for remote in [draw(st.sampled_from([(), ("cd" * 16,), ("cd" * 16, True)]))]
        for number in draw(st.sets(st.integers(0, 2**31 - 1), max_size=6))
    ]
    lanes = spread(wanted, draw(st.integers(1, 4)))
    paused = draw(st.frozensets(texts | st.just("*"), max_size=3))
    version = draw(st.integers(0, 2**40))
    return Plan(draw(owners), version, draw(st.booleans()), lanes, paused, draw(st.integers(0, version)))


@brief
@given(plans())
def test_a_plan_reads_back(plan: Plan) -> None:
    assert Plan.from_json(plan.to_json()) == plan


@brief
@given(plans())
def test_the_same_plan_has_the_same_bytes(plan: Plan) -> None:
    raw = plan.to_json()
    assert Plan.from_json(raw).to_json() == raw
    assert b"\n" not in raw


def test_a_plan_of_before_remote_ids_reads_as_not_known() -> None:
    raw = b'{"v":1,"owner":[1,"i","h",2],"version":1,"stopping":false,"paused":[],"lanes":[{"a":["east.a","ab",[0]]}]}'
    assert Plan.from_json(raw).lanes == ((Assignment(TopicPartition("a", 0), "east.a", "ab"),),)
    assert Plan.from_json(raw).to_json() == raw


def test_of_a_newer_mirrorsparks_plan_only_the_owner_is_read() -> None:
    raw = b'{"v":2,"owner":[7,"i","h",2,"more"],"lanes":{"in":"another shape"}}'
    with pytest.raises(NewerFormat, match=r"the flow's plan is of format 2, .* reads formats up to 1"):
        Plan.from_json(raw)
    assert Plan.owner_in(raw) == Owner(7, "i", "h", 2)


def test_a_key_that_is_not_known_is_ignored() -> None:
    plan = Plan(Owner(3, "id", "host", 42), lanes=spread(_topic("orders", 3), 2))
    assert Plan.from_json(plan.to_json()[:-1] + b',"added":"later"}') == plan


def test_a_plan_without_lanes_reads_back() -> None:
    plan = Plan(Owner(3, "id", "host", 42))
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.lane(0) == ()


def test_lanes_beyond_the_plan_are_empty() -> None:
    plan = Plan(Owner(1, "id", "host", 42), lanes=spread(_topic("orders", 3), 2))
    assert plan.lane(1) == plan.lanes[1]
    assert plan.lane(2) == ()


def test_pauses() -> None:
    plan = Plan(Owner(1, "id", "host", 42)).with_pauses(["east.orders"])
    assert plan.is_paused("east.orders")
    assert not plan.is_paused("east.clicks")
    assert plan.with_pauses(["*"]).is_paused("east.clicks")
    assert not plan.with_pauses([]).is_paused("east.orders")


def test_an_owner_says_where_it_runs() -> None:
    assert str(Owner(7, "abc", "host-1", 42)) == "mirrorspark pid 42 on host-1 (generation 7)"
