"""What a flow says of itself: never running where it is not, each failure by its job, numbers that mean something."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.observe.flow_status import (
    LANE_SILENT_S,
    LANE_START_S,
    MOVED_WINDOW_S,
    FlowStatus,
    words_of_groups,
    words_of_skipped,
)

ORDERS = TopicPartition("east.orders", 0)
GAP = Event(EventKind.DATA_GAP, "gone", "orders", 0, 5, 9)
HOUR_MS = 3_600_000


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def status(clock: Clock) -> FlowStatus:
    """A flow of two lanes whose driver leads generation 7 and has planned one topic."""
    made = FlowStatus("east->west", lanes_expected=2, topics="orders.*", clock=clock)
    made.begin(7)
    made.follow_plan([[ORDERS]], ())
    made.matched = 1
    made.run()
    return made


def _report(lane: int, **changes: Any) -> tuple[bytes, bytes]:
    text = {
        "lane": lane,
        "generation": 7,
        "state": "carrying",
        "since_ms": 1,
        "at_ms": 2,
        "partitions": 1,
        "held_bytes": 0,
        "waiting": {},
        "moved": [],
        **changes,
    }
    return f"lane/{lane}".encode(), json.dumps(text).encode()


def _moved(at: TopicPartition = ORDERS, *, records: int = 10, latency_ms: int = 3, high: int = 20) -> list[Any]:
    return [at.topic, at.partition, 10, 10, high, records, records * 100, latency_ms, "carrying"]


def _all_report(status: FlowStatus, **changes: Any) -> None:
    for lane in range(status.lanes_expected):
        status.fold(*_report(lane, **changes))


def _say(status: FlowStatus, event: Event) -> Event | None:
    return status.fold(event.key.encode(), event.to_json())


def test_what_was_skipped_since_a_mirror_wrote_it_is_counted(status: FlowStatus) -> None:
    _all_report(status)
    assert status.records_skipped_by_origin == 0
    _all_report(status, skipped_by_origin={"west->east": [2, 30], "north->east": [1, 4]})
    assert status.records_skipped_by_origin == 2 * 34
    assert status.skipped_by_origin == {
        "north->east": {"batches": 2, "records": 8},
        "west->east": {"batches": 4, "records": 60},
    }
    assert words_of_skipped(status.skipped_by_origin) == [
        "skipped by origin: 8 records in 2 batches that north->east had written",
        "skipped by origin: 60 records in 4 batches that west->east had written",
    ]
    assert status.lanes[1].skipped_by_origin["west->east"] == [2, 30]
    assert status.verdict == "running"


# -- the verdict -------------------------------------------------------------------------------------------------------


def test_running_when_all_lanes_report_and_nothing_is_amiss(status: FlowStatus) -> None:
    _all_report(status)
    assert status.verdict == "running"
    assert status.notices == []


def test_a_lane_that_never_reported_is_starting_and_then_silent(status: FlowStatus, clock: Clock) -> None:
    status.fold(*_report(0))
    assert status.verdict == "starting"
    assert status.notices == []
    clock.now += LANE_START_S
    status.fold(*_report(0))
    assert status.verdict == "silent"
    [notice] = status.notices
    assert "lane 1" in notice
    assert "slots" in notice


def test_no_lane_at_all(status: FlowStatus, clock: Clock) -> None:
    assert status.verdict == "starting"
    clock.now += LANE_START_S
    assert status.verdict == "silent"
    assert [text[:6] for text in status.notices] == ["lane 0", "lane 1"]


def test_a_lane_that_stops_reporting_is_silent_and_named(status: FlowStatus, clock: Clock) -> None:
    _all_report(status)
    clock.now += LANE_SILENT_S + 1
    status.fold(*_report(1))
    assert status.verdict == "silent"
    assert status.notices == ["lane 0 has not reported for 16 s"]
    status.fold(*_report(0))
    assert status.verdict == "running"


@pytest.mark.parametrize("at_ms", [0, 2**53])
def test_a_lanes_own_clock_does_not_matter(status: FlowStatus, at_ms: int) -> None:
    _all_report(status, at_ms=at_ms)
    assert status.verdict == "running"


@pytest.mark.parametrize("generation", [6, 8])
def test_lanes_of_another_generation_do_not_count(status: FlowStatus, generation: int) -> None:
    _all_report(status, generation=generation, moved=[_moved()])
    assert (status.lanes, status.partitions, status.records) == ({}, {}, 0)
    assert status.verdict == "starting"


def test_a_new_lead_forgets_lanes_but_neither_events_nor_what_was_carried(status: FlowStatus) -> None:
    _all_report(status, moved=[_moved(records=10)])
    _say(status, GAP)
    carried = status.records
    status.begin(8)
    assert status.lanes == {}
    assert status.partitions == {}
    assert status.records == carried > 0
    assert list(status.events) == [GAP.key]


@pytest.mark.parametrize("state", ["starting", "restarting", "stopping", "stopped", "superseded", "failed"])
def test_what_the_driver_says_goes_before_what_lanes_say(status: FlowStatus, state: str) -> None:
    _all_report(status)
    status.state = state
    assert status.verdict == state


def test_without_a_plan_it_is_starting(clock: Clock) -> None:
    status = FlowStatus("east->west", clock=clock)
    status.begin(7)
    status.run()
    status.fold(*_report(0))
    assert status.verdict == "starting"


def test_waiting_partitions_and_events_degrade(status: FlowStatus) -> None:
    _all_report(status)
    status.fold(*_report(1, waiting={"east.orders-0": "too large"}))
    assert status.verdict == "degraded"
    assert status.notices == ["east.orders-0 waits: too large"]
    status.fold(*_report(1))
    assert _say(status, GAP) == GAP
    assert _say(status, GAP) is None
    assert status.verdict == "degraded"
    status.fold(GAP.key.encode(), None)
    assert status.verdict == "running"


def test_no_topic_matches(status: FlowStatus) -> None:
    _all_report(status, partitions=0)
    status.follow_plan([[]], ())
    status.matched = 0
    assert status.verdict == "idle"
    assert status.notices == ["topics=orders.* matches no topic on the source"]


def test_topics_that_match_and_are_refused_are_not_idle(status: FlowStatus) -> None:
    _all_report(status, partitions=0)
    status.follow_plan([[]], ())
    _say(status, Event(EventKind.TOPIC_REFUSED, "no", "east.orders"))
    assert status.verdict == "degraded"


@pytest.mark.parametrize("paused", [["*"], ["east.orders"], ["east.orders", "east.other"]])
def test_everything_paused(status: FlowStatus, paused: list[str]) -> None:
    _all_report(status)
    status.follow_plan([[ORDERS]], paused)
    assert status.verdict == "paused"
    [notice] = status.notices
    assert notice.startswith("paused: ")


def test_something_paused_is_told_and_the_rest_is_running(status: FlowStatus) -> None:
    _all_report(status)
    status.follow_plan([[ORDERS, TopicPartition("east.clicks", 0)]], ["east.orders"])
    assert status.verdict == "running"
    assert status.notices == ["paused: east.orders"]


def test_a_pause_does_not_hide_a_silent_lane_or_a_failure(status: FlowStatus, clock: Clock) -> None:
    _all_report(status)
    status.follow_plan([[ORDERS]], ["*"])
    status.fail("refreshing topics", "away")
    assert status.verdict == "degraded"
    clock.now += LANE_SILENT_S + 1
    assert status.verdict == "silent"


# -- failures ----------------------------------------------------------------------------------------------------------


def test_each_job_clears_only_its_own_failure(status: FlowStatus) -> None:
    _all_report(status)
    status.fail("refreshing topics", "the source is away")
    status.fail("the Spark query", "boom")
    status.clear("following the plan topic")
    assert status.notices == ["refreshing topics: the source is away", "the Spark query: boom"]
    status.clear("refreshing topics")
    assert status.notices == ["the Spark query: boom"]
    assert status.verdict == "degraded"
    status.clear("the Spark query")
    assert status.verdict == "running"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"lane/0", b"not json"),
        (b"lane/0", b"[]"),
        (b"lane/0", b'{"generation":7}'),
        (b"event/x", b'{"unknown":1}'),
        (b"event/x", b"7"),
        (b"lane/0", b"\xff\xfe"),
    ],
)
def test_a_record_that_cannot_be_read_is_named_and_left_out(status: FlowStatus, key: bytes, value: bytes) -> None:
    assert status.fold(key, value) is None
    [notice] = status.notices
    assert key.decode() in notice
    status.fold(*_report(0))
    status.fold(b"event/x", None)
    assert status.notices == []


@pytest.mark.parametrize("key", [b"other", b"\xff\xff", b""])
def test_records_of_another_kind_are_no_news(status: FlowStatus, key: bytes) -> None:
    assert status.fold(key, b"x") is None
    assert status.notices == []


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_a_late_report_of_the_lane_that_gave_a_partition_away_only_counts(status: FlowStatus) -> None:
    status.fold(*_report(0, moved=[_moved(records=10)]))
    status.follow_plan([[], [ORDERS]], ())
    status.fold(*_report(0, moved=[_moved(records=12)]))
    assert (status.records, status.partitions[ORDERS].lane) == (12, 0)  # it still carries what it had begun
    status.fold(*_report(1, moved=[_moved(records=0)]))
    status.fold(*_report(0, moved=[_moved(records=15)]))
    assert (status.records, status.partitions[ORDERS].lane) == (15, 1)
    status.fold(*_report(1, moved=[_moved(records=5)]))
    assert (status.records, status.partitions[ORDERS].records) == (20, 5)
    status.follow_plan([[], []], ())
    status.fold(*_report(1, moved=[_moved(records=9)]))
    assert (status.records, dict(status.partitions)) == (20, {})


def test_a_lane_beyond_the_number_is_there_only_until_it_has_let_everything_go(status: FlowStatus) -> None:
    _all_report(status)
    status.expect(1)
    assert set(status.lanes) == {0}
    status.fold(*_report(1, partitions=1, moved=[_moved(records=3)]))
    assert set(status.lanes) == {0, 1}
    for state in ("carrying", "ended"):
        status.fold(*_report(1, partitions=0, state=state, moved=[_moved(records=5)]))
        assert set(status.lanes) == {0}
        assert status.records == 5


def test_counters_begin_at_nought_in_each_attempt(status: FlowStatus) -> None:
    status.fold(*_report(0, moved=[_moved(records=10)]))
    status.fold(*_report(0, moved=[_moved(records=15)]))
    status.fold(*_report(0, since_ms=9, moved=[_moved(records=4)]))
    assert status.records == 19
    assert status.bytes_carried == 1_900
    assert status.lag_records == 10


def test_the_late_last_word_of_a_replaced_attempt_counts_only_what_is_new_in_it(status: FlowStatus) -> None:
    status.fold(*_report(0, since_ms=1, moved=[_moved(records=10)]))
    status.fold(*_report(0, since_ms=9, moved=[_moved(records=5)]))
    status.fold(*_report(0, since_ms=1, moved=[_moved(records=12)]))
    status.fold(*_report(0, since_ms=9, moved=[_moved(records=6)]))
    assert status.records == 18


def test_a_partition_off_the_plan_has_no_lag(status: FlowStatus) -> None:
    status.fold(*_report(0, moved=[_moved(high=100)]))
    assert status.lag_records == 90
    status.follow_plan([[]], ())
    assert status.lag_records == 0
    status.fold(*_report(0, moved=[_moved(high=100)]))
    assert (status.lag_records, status.records) == (0, 10)


def test_latency_is_that_of_partitions_that_move(status: FlowStatus, clock: Clock) -> None:
    other = TopicPartition("east.orders", 1)
    status.follow_plan([[ORDERS, other]], ())
    assert status.latency_ms is None
    status.fold(*_report(0, moved=[_moved(latency_ms=900)]))
    clock.now += MOVED_WINDOW_S / 2
    status.fold(*_report(0, moved=[_moved(other, latency_ms=4)]))
    assert status.latency_ms == 900
    clock.now += MOVED_WINDOW_S * 0.75
    assert status.latency_ms == 4
    clock.now += MOVED_WINDOW_S
    assert status.latency_ms is None
    status.fold(*_report(0, moved=[_moved(other, latency_ms=4)]))  # told again, but nothing more was carried
    assert status.latency_ms is None


def test_old_records_have_an_age_and_no_latency(status: FlowStatus) -> None:
    other = TopicPartition("east.orders", 1)
    status.follow_plan([[ORDERS, other]], ())
    status.fold(*_report(0, moved=[_moved(latency_ms=3 * HOUR_MS)]))
    assert status.latency_ms is None
    assert status.record_age_ms == 3 * HOUR_MS
    status.fold(*_report(0, moved=[_moved(other, latency_ms=7)]))
    assert status.latency_ms == 7
    assert status.record_age_ms is None


def test_rates_are_of_the_last_seconds(status: FlowStatus, clock: Clock) -> None:
    status.fold(*_report(0, moved=[_moved(records=0)]))
    clock.now += 2.0
    status.fold(*_report(0, moved=[_moved(records=100)]))
    assert status.rates == (50.0, 5_000.0)
    clock.now += 60.0
    assert status.rates == (0.0, 0.0)


def test_partition_rates_since_the_last_call(status: FlowStatus, clock: Clock) -> None:
    status.fold(*_report(0, moved=[_moved(records=10)]))
    assert status.partition_rates() == {}
    clock.now += 10.0
    status.fold(*_report(0, moved=[_moved(records=30)]))
    assert status.partition_rates() == {ORDERS: 200.0}


# -- looked at from outside --------------------------------------------------------------------------------------------


def test_reports_from_before_we_looked_are_silence(status: FlowStatus) -> None:
    status.begin(7, waited_s=LANE_START_S)
    status.fold(*_report(0, at_ms=1_700_000_000_000), fresh=False)
    assert status.verdict == "silent"
    first, second = status.notices
    assert re.fullmatch(
        r"lane 0 does not report; by its own clock it last did at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", first
    )
    assert "lane 1 has never reported" in second
    status.fold(*_report(0))
    status.fold(*_report(1))
    assert status.verdict == "running"


def test_groups_in_words() -> None:
    status = FlowStatus("a->b")
    assert words_of_groups(status.groups) == []
    groups = {
        "groups": 3,
        "mode": "following",
        "checkpoints_written": 7,
        "latency_ms_p95": 320,
        "waiting": 0,
        "refused": 1,
    }
    status.fold(b"groups", json.dumps(groups).encode())
    text = "groups: 3 groups, following, 7 checkpoints written, 320 ms behind (p95), 1 groups are refused"
    assert words_of_groups(status.groups) == [text]
