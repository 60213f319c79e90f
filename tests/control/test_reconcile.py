"""Making the target ready on real clusters: one refused topic is an event, the others go on, nothing is done twice."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.control import cluster_snapshot, reconcile
from mirrorspark.control.reconcile import Reconciled, Reconciler, ensure_internal_topics
from mirrorspark.errors import ClusterError
from mirrorspark.events import EventKind
from mirrorspark.lab.clients import create_topic, delete_topic, topic_partitions, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.plain_records import alter_topic
from mirrorspark.lab.requests_sent import requests_sent
from mirrorspark.names import Flow
from mirrorspark.offsets.internal_topics import plan_topic
from mirrorspark.settings import ClusterSettings, FlowSettings, Heartbeats, Limits, Policies

CHANGING = {"CreateTopicsRequest", "CreatePartitionsRequest", "DeleteTopicsRequest"}
GONE_S = 30.0
_aliases = itertools.count(1)


class World:
    """A flow under an alias of its own, led by nobody: a test calls the passes."""

    def __init__(self, source: ClusterClient, target: ClusterClient, in_loop: Callable[..., Any]) -> None:
        self.alias = f"r{next(_aliases)}-{os.getpid()}"
        self.source, self.target = source, target
        self.sent = requests_sent(target)
        self.in_loop = in_loop
        self.reconciler = Reconciler(source, target)
        self.settings = FlowSettings(
            Flow(self.alias, "west"),
            ClusterSettings(self.alias, source.settings.bootstrap),
            ClusterSettings("west", target.settings.bootstrap),
            replication_factor=1,
            heartbeats=Heartbeats(emitted=False, replicated=False),
        )

    def look(self, *topics: str, before: Reconciled | None = None, **changes: Any) -> Reconciled:
        self.settings = replace(self.settings, topics=",".join(topics), **changes)
        found = self.in_loop(self.reconciler.reconcile(self.settings, before.assignments if before else []))
        assert isinstance(found, Reconciled)
        return found

    def changes_sent(self) -> list[str]:
        """Since the last call."""
        found = [name for name in self.sent if name in CHANGING]
        self.sent.clear()
        return found

    def remote(self, topic: str) -> str:
        return f"{self.alias}.{topic}"


def places(found: Reconciled) -> list[str]:
    return [str(one.source) for one in found.assignments]


def kinds(found: Reconciled) -> list[tuple[str, str]]:
    return [(event.kind, event.topic) for event in found.events]


@pytest.fixture
def world(
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
) -> World:
    return World(connect(source_cluster), connect(target_cluster), in_loop)


def test_2_4_4_topics_are_made_and_grown_one_refused_is_told_and_the_next_pass_sends_nothing(
    world: World, source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, new_topic_name: Callable[[], str]
) -> None:
    a, b, refused = new_topic_name(), new_topic_name(), new_topic_name()
    create_topic(source_cluster.bootstrap, a, 2, settings={"retention.ms": "77", "min.insync.replicas": "1"})
    create_topic(source_cluster.bootstrap, b, 1)
    create_topic(source_cluster.bootstrap, refused, 1)
    # Kafka takes no two topics whose names differ in '.' and '_' alone.
    create_topic(target_cluster.bootstrap, f"{world.alias}_{refused}", 1)
    found = world.look(a, b, refused, "west.x", "__x")
    assert places(found) == sorted([f"{a}-0", f"{a}-1", f"{b}-0"])
    assert found.matched == 3
    [event] = found.events
    assert (event.kind, event.topic) == (EventKind.TOPIC_REFUSED, world.remote(refused))
    assert "collide" in event.text
    assert world.changes_sent() == ["CreateTopicsRequest"]
    assert all(one.remote_id and one.topic_id for one in found.assignments)

    again = world.look(a, b, before=found)
    assert again == replace(found, events=[], matched=2)
    assert world.changes_sent() == []

    world.in_loop(reconcile.grow_topics(world.source, {b: 3}))
    wait_for(lambda: topic_partitions(source_cluster.bootstrap, b) == 3, "the growth", GONE_S)
    world.in_loop(reconcile.grow_topics(world.target, {world.remote(a): 5}))
    grown = world.look(a, b, before=again)
    assert [place for place in places(grown) if place.startswith(b)] == [f"{b}-{number}" for number in range(3)]
    assert len(grown.assignments) == 5, "the target's own partitions are nobody's business"
    assert world.changes_sent() == ["CreatePartitionsRequest", "CreatePartitionsRequest"]  # the test's own, and ours
    assert grown.events == []
    assert _settings_of(world, world.remote(a)) == {"retention.ms": "77"}


def _settings_of(world: World, topic: str) -> dict[str, str | None]:
    described = world.in_loop(reconcile.describe_configs(world.target, [topic])).settings[topic]
    return {one.name: one.value for one in described if one.origin == 1}


def test_2_4_5_a_target_topic_deleted_under_a_flow_is_let_go_then_made_anew(
    world: World, source_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 2)
    found = world.look(topic_name)
    delete_topic_of(world, world.remote(topic_name))
    later = world.look(topic_name, before=found)
    assert places(later) == []
    assert kinds(later) == [(EventKind.TARGET_TOPIC_DELETED, world.remote(topic_name))]
    made = world.look(topic_name, before=later)
    assert len(made.assignments) == 2
    assert made.assignments[0].remote_id not in ("", found.assignments[0].remote_id)
    assert made.events == []


def delete_topic_of(world: World, topic: str) -> None:
    host, port = world.target.settings.bootstrap[0]
    delete_topic(f"{host}:{port}", topic)


def test_2_4_5_a_target_topic_that_was_deleted_while_nobody_led_is_made_at_once(
    world: World, source_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1)
    found = world.look(topic_name)
    delete_topic_of(world, world.remote(topic_name))
    world.reconciler = Reconciler(world.source, world.target)
    made = world.look(topic_name, before=found)
    assert len(made.assignments) == 1
    assert kinds(made) == [(EventKind.TARGET_TOPIC_DELETED, world.remote(topic_name))]


def test_2_4_7_copies_of_deleted_topics_stay_or_go_by_policy_and_never_too_many(
    world: World, source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, new_topic_name: Callable[[], str]
) -> None:
    kept, gone, others, left = (
        new_topic_name(),
        new_topic_name(),
        [new_topic_name() for _ in range(2)],
        new_topic_name(),
    )
    for name in (kept, gone, *others, left):
        create_topic(source_cluster.bootstrap, name, 1)
    names = (kept, gone, *others, left)
    policy: dict[str, Any] = {
        "policies": Policies(on_source_topic_deleted="delete"),
        "limits": Limits(topic_deletions_max=1),
    }
    found = world.look(*names)
    delete_topic(source_cluster.bootstrap, kept)
    told = world.look(*names, before=found)
    assert kinds(told) == [(EventKind.SOURCE_TOPIC_DELETED, kept)]
    assert "stays" in told.events[0].text
    assert kinds(world.look(*names, before=told)) == []

    delete_topic(source_cluster.bootstrap, gone)
    told = world.look(*names, before=told, **policy)
    assert "is deleted" in told.events[0].text
    assert world.changes_sent() == ["CreateTopicsRequest"], "lanes may still hold it: deleted in the next pass"
    told = world.look(*names, before=told, **policy)
    assert kinds(told) == [(EventKind.SOURCE_TOPIC_DELETED, gone)]
    assert "was deleted" in told.events[0].text
    assert world.changes_sent() == ["DeleteTopicsRequest"]
    wait_for(lambda: topic_partitions(target_cluster.bootstrap, world.remote(gone)) == 0, "its end", GONE_S)

    for name in others:
        delete_topic(source_cluster.bootstrap, name)
    told = world.look(*names, before=told, **policy)
    assert kinds(told)[-1] == (EventKind.DELETIONS_HELD_BACK, "")
    assert "topic.deletions.max=1" in told.events[-1].text
    told = world.look(*names, before=told, **policy)
    assert (kinds(told), world.changes_sent()) == ([], [])
    for name in (kept, *others, left):
        assert topic_partitions(target_cluster.bootstrap, world.remote(name)) == 1


def test_a_new_topic_that_stays_out_of_sight_is_left_to_the_next_refresh(
    world: World, source_cluster: ClusterOfBrokers, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1)
    monkeypatch.setattr(cluster_snapshot, "VISIBLE_TIMEOUT_S", 0.0)
    first = world.look(topic_name)
    assert first.matched == 1
    wait_for(lambda: bool(world.look(topic_name, before=first).assignments), "the topic", GONE_S)


def test_the_settings_of_a_topic_that_was_altered_count(
    world: World, source_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1, settings={"cleanup.policy": "compact"})
    alter_topic(source_cluster.bootstrap, topic_name, {"segment.ms": "1234567"})
    world.look(topic_name)
    assert _settings_of(world, world.remote(topic_name)) == {"cleanup.policy": "compact", "segment.ms": "1234567"}


def test_a_topic_named_as_if_it_came_from_the_target_is_told_unless_something_does(
    world: World, source_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    target = f"far-{world.alias}"
    world.settings = replace(world.settings, flow=Flow(world.alias, target))
    local = f"{target}.{topic_name}"
    create_topic(source_cluster.bootstrap, local, 1)
    found = world.look(f"{target}.*")
    assert (places(found), kinds(found)) == ([], [(EventKind.TOPIC_NOT_CARRIED, local)])
    assert "looks like it came from" in found.events[0].text
    create_topic(source_cluster.bootstrap, plan_topic(target), 1)  # as a mirror of the other direction does
    assert kinds(world.look(f"{target}.*")) == []


def test_2_4_10_internal_topics_are_made_once(world: World) -> None:
    world.in_loop(ensure_internal_topics(world.target, world.settings))
    assert world.changes_sent() == ["CreateTopicsRequest"]
    world.in_loop(ensure_internal_topics(world.target, world.settings))
    assert world.changes_sent() == []


def test_2_4_1_internal_topics_that_are_refused_end_the_start(world: World, target_cluster: ClusterOfBrokers) -> None:
    create_topic(target_cluster.bootstrap, plan_topic(world.alias).replace(".", "_"), 1)
    with pytest.raises(ClusterError, match="internal topics cannot be made"):
        world.in_loop(ensure_internal_topics(world.target, world.settings))
