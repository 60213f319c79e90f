"""Making the target ready, with clusters made of dictionaries: one refused topic is an event, the others go on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from mirrorspark.cluster.broker_errors import broker_error
from mirrorspark.cluster.cluster_admin import NewTopic
from mirrorspark.cluster.cluster_client import PartitionLeader, TopicMetadata
from mirrorspark.control import reconcile
from mirrorspark.control.reconcile import Reconciled, ensure_internal_topics, reconcile_topics
from mirrorspark.errors import ClusterError
from mirrorspark.events import EventKind
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.plan.lanes import Assignment
from mirrorspark.settings import ClusterSettings, FlowSettings

SETTINGS = FlowSettings(Flow("east", "west"), ClusterSettings("east", ()), ClusterSettings("west", ()))
REFUSED = 29  # TOPIC_AUTHORIZATION_FAILED
UNKNOWN_TOPIC = 3
LEADER_NOT_AVAILABLE = 5


def _topic(name: str, partitions: int = 1, error_code: int = 0) -> TopicMetadata:
    leaders = {number: PartitionLeader(1, 0) for number in range(partitions)}
    return TopicMetadata(name, b"i" * 16, False, leaders, error_code)


@dataclass
class FakeCluster:
    alias: str
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    refuse: set[str] = field(default_factory=set)
    nodes: tuple[int, ...] = (1, 2)
    described: list[list[str]] = field(default_factory=list)
    created: list[NewTopic] = field(default_factory=list)
    visible_after: int = 0
    """How often a topic that was just made is asked for in vain."""

    def add(self, *topics: TopicMetadata) -> None:
        self.topics.update({topic.name: topic for topic in topics})

    async def refresh(self, names: list[str] | None) -> list[TopicMetadata]:
        if names is not None and self.visible_after > 0:
            self.visible_after -= 1
            return [TopicMetadata(name, bytes(16), False, {}, UNKNOWN_TOPIC) for name in names]
        return [topic for name, topic in self.topics.items() if names is None or name in names]


@pytest.fixture
def source() -> FakeCluster:
    return FakeCluster("east")


@pytest.fixture
def target() -> FakeCluster:
    return FakeCluster("west")


@pytest.fixture(autouse=True)
def _admin(monkeypatch: pytest.MonkeyPatch) -> None:
    async def explicit_configs(cluster: FakeCluster, names: list[str]) -> dict[str, dict[str, str]]:
        cluster.described.append(names)
        for name in names:
            if name in cluster.refuse:
                raise broker_error(REFUSED, "DescribeConfigs", name)
        return {name: {"retention.ms": "5", "min.insync.replicas": "2"} for name in names}

    async def create_topics(cluster: FakeCluster, topics: list[NewTopic]) -> dict[str, str]:
        cluster.created += topics
        cluster.add(*(_topic(one.name, one.partitions) for one in topics if one.name not in cluster.refuse))
        return {one.name: "refused" for one in topics if one.name in cluster.refuse}

    async def grow_topics(cluster: FakeCluster, counts: dict[str, int]) -> dict[str, str]:
        cluster.add(*(_topic(name, count) for name, count in counts.items() if name not in cluster.refuse))
        return {name: "refused" for name in counts if name in cluster.refuse}

    for work in (explicit_configs, create_topics, grow_topics):
        monkeypatch.setattr(reconcile, work.__name__, work)


def _reconcile(source: Any, target: Any, carried: list[Assignment] | None = None, **changes: Any) -> Reconciled:
    settings = FlowSettings(SETTINGS.flow, SETTINGS.source, SETTINGS.target, **changes)
    return asyncio.run(reconcile_topics(source, target, settings, carried or []))


def _places(found: Reconciled) -> list[str]:
    return [str(one.remote) for one in found.assignments]


def _carried(*topics: str) -> list[Assignment]:
    return [Assignment(TopicPartition(topic, 0), f"east.{topic}", (b"i" * 16).hex()) for topic in topics]


def test_missing_topics_are_created_with_the_sources_own_settings(source: FakeCluster, target: FakeCluster) -> None:
    source.add(_topic("a", 2), _topic("b"), _topic("__internal"), _topic("west.c"))
    found = _reconcile(source, target, replication_factor=3)
    assert _places(found) == ["east.a-0", "east.a-1", "east.b-0"]
    assert target.created == [
        NewTopic("east.a", 2, 3, {"retention.ms": "5"}),
        NewTopic("east.b", 1, 3, {"retention.ms": "5"}),
    ]
    assert (found.events, found.matched) == ([], 2)


def test_a_new_topic_is_waited_for_until_the_brokers_list_it(source: FakeCluster, target: FakeCluster) -> None:
    source.add(_topic("a", 2))
    target.visible_after = 3
    assert _places(_reconcile(source, target)) == ["east.a-0", "east.a-1"]


def test_a_new_topic_that_stays_out_of_sight_is_left_to_the_next_refresh(
    source: FakeCluster, target: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "VISIBLE_TIMEOUT_S", 0.0)
    source.add(_topic("a"))
    target.visible_after = 1
    assert _places(_reconcile(source, target)) == []
    assert _places(_reconcile(source, target)) == ["east.a-0"]


@pytest.mark.parametrize("refused", ["a", "c", "e"])
def test_a_topic_that_may_not_be_described_is_an_event_of_its_own(
    source: FakeCluster, target: FakeCluster, refused: str
) -> None:
    source.add(*(_topic(name) for name in "abcde"))
    source.refuse.add(refused)
    found = _reconcile(source, target)
    assert _places(found) == [f"east.{name}-0" for name in "abcde" if name != refused]
    [event] = found.events
    assert (event.kind, event.topic) == (EventKind.TOPIC_REFUSED, f"east.{refused}")
    assert "on the source" in event.text
    assert found.matched == 5


def test_all_may_not_be_described(source: FakeCluster, target: FakeCluster) -> None:
    source.add(_topic("a"), _topic("b"))
    source.refuse |= {"a", "b"}
    found = _reconcile(source, target)
    assert (_places(found), len(found.events), target.created) == ([], 2, [])


def test_an_error_that_passes_is_no_event(
    source: FakeCluster, target: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(cluster: object, names: list[str]) -> dict[str, dict[str, str]]:
        raise broker_error(3, "DescribeConfigs", names[0])

    monkeypatch.setattr(reconcile, "explicit_configs", gone)
    source.add(_topic("a"))
    with pytest.raises(ClusterError):
        _reconcile(source, target)


def test_a_topic_that_may_not_be_created_is_an_event_of_its_own(source: FakeCluster, target: FakeCluster) -> None:
    source.add(_topic("a"), _topic("b"))
    target.refuse.add("east.a")
    found = _reconcile(source, target)
    assert _places(found) == ["east.b-0"]
    assert [(event.kind, event.topic) for event in found.events] == [(EventKind.TOPIC_REFUSED, "east.a")]


def test_a_topic_that_may_not_grow_is_an_event_and_keeps_what_it_has(source: FakeCluster, target: FakeCluster) -> None:
    source.add(_topic("a", 3), _topic("b", 2))
    target.add(_topic("east.a", 1), _topic("east.b", 1))
    target.refuse.add("east.a")
    found = _reconcile(source, target)
    assert _places(found) == ["east.a-0", "east.b-0", "east.b-1"]
    assert [event.topic for event in found.events] == ["east.a"]


def test_a_carried_topic_that_is_gone_from_the_source_is_an_event(source: FakeCluster, target: FakeCluster) -> None:
    source.add(_topic("a"))
    target.add(_topic("east.a"), _topic("east.b"))
    found = _reconcile(source, target, _carried("a", "b"))
    assert _places(found) == ["east.a-0"]
    [event] = found.events
    assert (event.kind, event.topic, event.waits) == (EventKind.SOURCE_TOPIC_DELETED, "b", False)
    assert "east.b stays" in event.text


def test_a_topic_that_is_no_longer_wanted_is_no_event(source: FakeCluster, target: FakeCluster) -> None:
    source.add(_topic("a"))
    target.add(_topic("east.a"))
    assert _reconcile(source, target, _carried("a", "b"), topics="a").events == []


def test_a_topic_that_has_an_error_just_now_stays_with_its_lane(source: FakeCluster, target: FakeCluster) -> None:
    source.add(
        _topic("a"), _topic("b", error_code=LEADER_NOT_AVAILABLE), _topic("new", error_code=LEADER_NOT_AVAILABLE)
    )
    target.add(_topic("east.a"), _topic("east.b"))
    found = _reconcile(source, target, _carried("a", "b"))
    assert _places(found) == ["east.a-0", "east.b-0"]
    assert found.events == []


def test_nothing_matches(source: FakeCluster, target: FakeCluster) -> None:
    source.add(_topic("a"))
    assert _reconcile(source, target, topics="other") == Reconciled()


def test_internal_topics_are_made_once(target: FakeCluster) -> None:
    asyncio.run(ensure_internal_topics(target, SETTINGS))  # type: ignore[arg-type]
    assert {one.replication_factor for one in target.created} == {2}
    assert {one.configs["cleanup.policy"] for one in target.created} == {"compact"}
    assert len(target.created) == 4
    asyncio.run(ensure_internal_topics(target, SETTINGS))  # type: ignore[arg-type]
    assert len(target.created) == 4


def test_internal_topics_that_are_refused_end_the_start(target: FakeCluster) -> None:
    target.refuse.add("mirrorspark-plan.east.internal")
    with pytest.raises(ClusterError, match="cluster west: internal topics cannot be made"):
        asyncio.run(ensure_internal_topics(target, SETTINGS))  # type: ignore[arg-type]
