"""Leading a flow on real clusters: what is changed and when, pauses, deleted topics, a query that ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mirrorspark.config.load import load_deployment
from mirrorspark.control import flow_runtime
from mirrorspark.control.flow_runtime import FlowRuntime
from mirrorspark.errors import Fenced, Unreachable
from mirrorspark.events import EventKind
from mirrorspark.lab.clients import admin, create_topic, delete_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.settings import ClusterSettings, FlowSettings

from .led_flow import LedFlow, NoQuery

MakeFlow = Callable[..., LedFlow]
NOWHERE = FlowSettings(
    Flow("east", "west"),
    ClusterSettings("east", (("127.0.0.1", 1),)),
    ClusterSettings("west", (("127.0.0.1", 2),)),
)


def _topics(cluster: ClusterOfBrokers, containing: str) -> set[str]:
    return {name for name in admin(cluster.bootstrap).list_topics(timeout=30).topics if containing in name}


def test_a_cluster_that_is_not_there_is_named_by_its_key() -> None:
    async def main() -> None:
        with pytest.raises(Unreachable, match=r"^(east|west)\.bootstrap\.servers: 127\.0\.0\.1:[12]: cannot connect"):
            await FlowRuntime(NOWHERE, lambda settings, generation: NoQuery()).reach()

    asyncio.run(main())


def test_reaching_changes_nothing_and_leading_does(
    flow_file: Callable[..., Path], target_cluster: ClusterOfBrokers
) -> None:
    settings = load_deployment(flow_file("none-such")).flows[0]

    async def main() -> None:
        runtime = FlowRuntime(settings, lambda settings, generation: NoQuery())
        await runtime.reach()
        assert not runtime.has_led
        assert _topics(target_cluster, settings.flow.source) == set()
        await runtime.lead()
        assert runtime.has_led
        assert len(_topics(target_cluster, settings.flow.source)) == 4
        runtime.close()

    asyncio.run(main())


def test_a_flow_without_topics_is_idle_until_there_is_one(
    led_flow: MakeFlow, source_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    flow = led_flow(topic_name)
    status = flow.runtime.status
    flow.report(partitions=0)
    flow.wait(lambda: status.verdict == "idle", "the word idle")
    create_topic(source_cluster.bootstrap, topic_name, 2)
    flow.wait(lambda: len(flow.planned) == 2, "a plan with the topic")
    flow.report(partitions=2)
    flow.wait(lambda: status.verdict == "running", "the word running")


def test_pauses_are_obeyed_and_a_malformed_one_is_reported_and_ignored(
    led_flow: MakeFlow, source_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1)
    flow = led_flow(topic_name)
    status = flow.runtime.status
    remote = f"{flow.settings.flow.source}.{topic_name}"
    flow.append("plan", "pause", f'["{remote}"]'.encode())
    flow.wait(lambda: status.paused == {remote}, "the pause in the plan")
    flow.append("plan", "pause", b"not json")
    flow.wait(lambda: "reading the pause record" in status.failures, "the complaint")
    assert status.paused == {remote}
    flow.append("plan", "pause", None)
    flow.wait(lambda: status.paused == frozenset() and not status.failures, "going on")


def test_a_malformed_pause_does_not_keep_a_flow_from_starting(led_flow: MakeFlow, topic_name: str) -> None:
    flow = led_flow(topic_name)
    flow.append("plan", "pause", b'["*"]')
    flow.wait(lambda: flow.runtime.status.paused == {"*"}, "the pause in the plan")
    flow.append("plan", "pause", b"{")
    flow.wait(lambda: bool(flow.runtime.status.failures), "the complaint")
    flow.stop()
    again = LedFlow(flow.file)
    again.start()
    assert again.runtime.generation == flow.runtime.generation + 1
    assert again.runtime.status.paused == {"*"}
    assert "reading the pause record" in again.runtime.status.failures
    again.stop()


def test_a_source_topic_that_vanishes_is_an_event_once(
    led_flow: MakeFlow, source_cluster: ClusterOfBrokers, new_topic_name: Callable[[], str]
) -> None:
    kept, deleted = new_topic_name(), new_topic_name()
    for name in (kept, deleted):
        create_topic(source_cluster.bootstrap, name, 1)
    flow = led_flow(f"{kept}, {deleted}")
    assert len(flow.planned) == 2
    delete_topic(source_cluster.bootstrap, deleted)
    flow.wait(lambda: len(flow.planned) == 1, "a plan without the topic")
    flow.wait(lambda: bool(flow.runtime.status.events), "the event")
    [event] = flow.runtime.status.events.values()
    assert (event.kind, event.topic) == (EventKind.SOURCE_TOPIC_DELETED, deleted)
    flow.append("status", event.key, None)
    flow.wait(lambda: not flow.runtime.status.events, "the acknowledgement")


def test_a_refused_topic_is_told_once_and_not_again_after_it_was_acknowledged(
    led_flow: MakeFlow, source_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1)
    flow = led_flow(topic_name, replication__factor="30")
    status = flow.runtime.status
    flow.wait(lambda: bool(status.events), "the event")
    [event] = status.events.values()
    assert event.kind == EventKind.TOPIC_REFUSED
    flow.append("status", event.key, None)
    flow.wait(lambda: not status.events, "the acknowledgement")
    before = status.matched = -1
    flow.wait(lambda: status.matched != before, "another look at the clusters")
    assert status.events == {}


def test_every_change_of_the_number_of_lanes_is_told_apart_from_the_one_before(
    led_flow: MakeFlow, topic_name: str
) -> None:
    """To one lane and back: an epoch that was begun with two must end, though the plan has two again."""
    flow = led_flow(topic_name)
    plans = flow.runtime.plans
    before = plans.size
    assert flow.query.sizes[-1] == before
    for lanes in (before[0] + 1, before[0]):
        flow.call(plans.publish(lanes=((),) * lanes))
        assert plans.size[0] == lanes
    first, second = flow.query.sizes[-2:]
    assert [first[0], second[0]] == [before[0] + 1, before[0]]
    assert before[1] < first[1] < second[1]
    assert second == plans.size
    flow.call(plans.publish())
    assert plans.size == second


def test_a_second_driver_takes_over(led_flow: MakeFlow, topic_name: str) -> None:
    first = led_flow(topic_name)
    second = LedFlow(first.file)
    second.start()
    with pytest.raises(Fenced, match="was taken over by mirrorspark pid"):
        first.wait(lambda: False, "the end of the first")
    second.stop()


def test_events_of_an_earlier_run_are_there_and_its_lanes_are_not(led_flow: MakeFlow, topic_name: str) -> None:
    flow = led_flow(topic_name)
    flow.report(partitions=5)
    flow.wait(lambda: bool(flow.runtime.status.lanes), "a lane's report")
    flow.append("status", "event/data.gap/t/0/1", b'{"kind":"data.gap","text":"x","topic":"t","partition":0}')
    flow.wait(lambda: bool(flow.runtime.status.events), "the event")
    flow.stop()
    again = LedFlow(flow.file)
    again.start()
    assert list(again.runtime.status.events) == ["event/data.gap/t/0/1"]
    assert again.runtime.status.lanes == {}
    assert again.runtime.status.verdict == "starting"
    again.stop()


# -- the query, without clusters ---------------------------------------------------------------------------------------


def _watch(
    monkeypatch: pytest.MonkeyPatch, query: NoQuery, until: Callable[[FlowStatus], bool], **constants: Any
) -> FlowStatus:
    for name, value in {"WATCH_INTERVAL_S": 0.001, "RESTART_PAUSE_S_MAX": 0.001, **constants}.items():
        monkeypatch.setattr(flow_runtime, name, value)

    async def main() -> FlowStatus:
        runtime = FlowRuntime(NOWHERE, lambda settings, generation: query)
        monkeypatch.setattr(FlowRuntime, "generation", 1)
        runtime.start_query()
        job = asyncio.ensure_future(runtime._watch_query())
        async with asyncio.timeout(60):
            while not until(runtime.status):
                await asyncio.sleep(0.001)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        return runtime.status

    return asyncio.run(main())


def test_a_query_that_ends_is_started_again_and_its_reason_stays_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    query = NoQuery()

    def until(status: FlowStatus) -> bool:
        if query.starts == 1:
            query.active, query.failure = False, "no such file"
        return query.starts == 2 and status.state == "running"

    status = _watch(monkeypatch, query, until)
    assert status.failures == {"the Spark query": "no such file"}


def test_a_query_that_ran_well_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    query = NoQuery()
    ended = False

    def until(status: FlowStatus) -> bool:
        nonlocal ended
        if query.starts == 1 and not ended:
            query.active, query.failure, ended = False, "boom", True
        return query.starts == 2 and not status.failures

    assert _watch(monkeypatch, query, until, RAN_WELL_S=0.0).failures == {}
