"""Statuses as REST shows them: flows, lanes, lag, pages of partitions, settings without their secrets."""

from __future__ import annotations

import time

import pytest
from tests.control.flows.told_flows import Clock, lane_report, told

from mirrorspark.config.load import parse_deployment
from mirrorspark.control.flows.partition_pages import partition_page
from mirrorspark.control.flows.pictures import event_views, flow_view, lag_view, lane_views, setting_views
from mirrorspark.events import Event, EventKind
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.rest.flow_views import Page, PartitionView

FLOW = Flow("east", "west")
A0, A1, B0 = TopicPartition("east.a", 0), TopicPartition("east.a", 1), TopicPartition("east.b", 0)
BEATS = TopicPartition("east.heartbeats", 0)
MANY = 5_000


def _status(clock: Clock) -> FlowStatus:
    """Lane 0 has carried a-0 and half of a-1; lane 1 has not been heard of."""
    status = told(FlowStatus(str(FLOW)), clock, [[A0, A1, BEATS], [B0]])
    status.heartbeats_topic = BEATS.topic
    status.fold(
        *lane_report(
            0,
            [("east.a", 0, 10, 12, 10, 10, 100, 5, "carrying"), ("east.a", 1, 4, 5, 8, 4, 40, 9, "carrying")],
            waiting={"east.a-1": "too large"},
        )
    )
    status.fold(
        *lane_report(0, [("east.heartbeats", 0, 5, 5, 9, 5, 50, 1, "carrying")], waiting={"east.a-1": "too large"})
    )
    return status


def test_a_flow() -> None:
    clock = Clock()
    status = _status(clock)
    view = flow_view(FLOW, status, carries=True)
    assert (view.flow, view.source, view.target, view.instance) == ("east->west", "east", "west", None)
    assert (view.partitions, view.topics, view.records, view.bytes) == (4, 3, 19, 190)
    assert (view.lag_records, view.lag_bytes) == (4, 40.0), "heartbeats come for ever and count in no sum"
    assert (view.lag_seconds, view.lag_looked_age_s) == (None, None), "nobody has looked at the source yet"
    assert (view.lanes.expected, view.lanes.reporting, view.lanes.missing) == (2, 1, [1])
    assert (view.waiting[0].place, view.waiting_count, view.latency_ms) == ("east.a-1", 1, 9)
    assert view.verdict == "starting"


def test_lag_by_the_sources_own_ends() -> None:
    clock = Clock()
    status = _status(clock)
    status.source_ends.take(clock.now, {A0: 10, A1: 14, B0: 3, BEATS: 9}, {A0: 10, A1: 4, BEATS: 9})
    clock.now += 2.5
    view = flow_view(FLOW, status, carries=True)
    assert (view.lag_records, view.lag_bytes, view.lag_seconds, view.lag_looked_age_s) == (10, 100.0, 2.5, 2.5)
    lag = lag_view(status, Page())
    assert (lag.lag_records, lag.lag_seconds) == (10, 2.5)
    first = lag.topics[0]
    assert (first.topic, first.remote_topic, first.partitions, first.lag_records) == ("a", "east.a", 2, 10)
    assert (lag.total, lag.matched, len(lag.topics)) == (2, 2, 2)
    page = lag_view(status, Page(limit=1, offset=1))
    assert (page.lag_records, [one.topic for one in page.topics]) == (10, [lag.topics[1].topic])
    names = [one.topic for one in lag_view(status, Page(), "name").topics]
    assert names == sorted(one.topic for one in lag.topics)
    found = lag_view(status, Page(search=" EAST.A "))
    assert (found.total, found.matched, [one.topic for one in found.topics]) == (2, 1, ["a"])


def test_lanes_that_report_and_those_that_do_not() -> None:
    clock = Clock()
    status = _status(clock)
    status.lane_memory_bytes_max = 16
    clock.now += 20
    lanes = lane_views(status).lanes
    assert [(one.lane, one.state, one.reports) for one in lanes] == [(0, "carrying", False), (1, "not reported", False)]
    assert (lanes[0].reported_age_s, lanes[0].held_bytes, lanes[0].records, lanes[0].attempts) == (20.0, 7, 19, 1)
    assert (lanes[1].partitions, lanes[1].held_bytes_max, lanes[1].records) == (None, 16, 0)
    assert lanes[0].waiting[0].why == "too large"


def test_events_are_newest_first() -> None:
    some = [Event(EventKind.DATA_GAP, f"{at}", "east.a", 0, at, at, at_ms=at) for at in (1, 3, 2)]
    status = told(FlowStatus(str(FLOW)), Clock(), [[A0]], *some)
    views = event_views([status])
    assert [one.at_ms for one in views] == [3, 2, 1]
    assert (views[0].flow, views[0].key) == ("east->west", "event/data.gap/east.a/0/3")


# -- pages -------------------------------------------------------------------------------------------------------------


def _places(views: list[PartitionView]) -> list[tuple[str, int]]:
    return [(one.remote_topic, one.partition) for one in views]


def test_a_page_of_partitions() -> None:
    status = _status(Clock())
    page = partition_page(status, Page(), by_name=False)
    assert (page.total, page.matched) == (4, 4)
    assert _places(page.partitions) == [("east.a", 1), ("east.heartbeats", 0), ("east.a", 0), ("east.b", 0)]
    first, last = page.partitions[0], page.partitions[-1]
    assert (first.topic, first.lag_records, first.source_next, first.source_end, first.target_end) == ("a", 4, 4, 8, 5)
    assert (first.lane, first.waits, first.latency_ms) == (0, "too large", 9.0)
    assert (last.state, last.lane, last.lag_records, last.source_end) == ("not reported", None, None, None)
    by_name = partition_page(status, Page(2, 1), by_name=True)
    assert _places(by_name.partitions) == [("east.a", 1), ("east.b", 0)]
    assert partition_page(status, Page(2, 9), by_name=True).partitions == []


def test_search_finds_names_of_both_sides() -> None:
    status = _status(Clock())
    for text, found in (("EAST.A", 2), ("a-1", 1), ("b-0", 1), ("a", 4), ("nothing", 0), (" east.b ", 1)):
        page = partition_page(status, Page(search=text), by_name=True)
        assert (page.matched, page.total) == (found, 4), text


def test_what_is_paused_is_said() -> None:
    status = _status(Clock())
    status.follow_plan([[A0, A1], [B0]], ["east.b"])
    page = partition_page(status, Page(), by_name=True)
    assert [one.is_paused for one in page.partitions] == [False, False, True]
    status.follow_plan([[A0, A1], [B0]], ["*"])
    assert flow_view(FLOW, status, carries=True).paused == ["*"]
    assert all(one.is_paused for one in partition_page(status, Page(), by_name=True).partitions)


def test_thousands_of_partitions_cost_no_more_than_their_order() -> None:
    """A page's cost is the sort of all and the figures of the few: against those of all, on the same machine."""
    clock = Clock()
    every = [TopicPartition(f"east.topic-{number // 20}", number % 20) for number in range(MANY)]
    status = told(FlowStatus(str(FLOW)), clock, [every])
    status.fold(*lane_report(0, [(*at, 5, 5, 5 + at.partition, 5, 50, 1, "carrying") for at in every]))

    def seconds(page: Page) -> float:
        began_at = time.process_time()
        found = partition_page(status, page, by_name=False)
        assert (found.total, len(found.partitions)) == (MANY, page.limit)
        return time.process_time() - began_at

    assert min(seconds(Page(100)) for _ in range(3)) < min(seconds(Page(MANY)) for _ in range(3))


# -- settings ----------------------------------------------------------------------------------------------------------


def test_settings_say_where_they_come_from_and_hide_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_TRUST", "marked")
    deployment = parse_deployment(
        {
            "clusters": "east, west",
            "east.bootstrap.servers": "east:9092",
            "west.bootstrap.servers": "west:9092",
            "east->west.enabled": "true",
            "east->west.topics": "orders.*",
            "east.security.protocol": "SASL_SSL",
            "east.sasl.mechanism": "PLAIN",
            "east.sasl.jaas.config": 'x.PlainLoginModule required username="u" password="marked";',
            "west.ssl.truststore.password": "${env:HA_TRUST}",
        },
        lenient=True,
    )
    views = {one.name: one for one in setting_views(deployment.effective[FLOW])}
    topics = views["topics"]
    assert (topics.value, topics.level, topics.is_default) == ("orders.*", "flow east->west", False)
    assert (views["tasks.max"].value, views["tasks.max"].origin, views["tasks.max"].is_default) == (
        "1",
        "default",
        True,
    )
    secret = views["source.consumer.sasl.jaas.config"]
    assert (secret.value, secret.is_hidden, secret.level) == ("[hidden]", True, "cluster east")
    assert "marked" not in repr(views)
    reference = views["target.producer.ssl.truststore.password"]
    assert (reference.value, reference.is_hidden) == ("${env:HA_TRUST}", False)
