"""Settings of remote topics kept in step on real clusters: only differences are sent, and what is refused is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka.protocol.admin import IncrementalAlterConfigsRequest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.connection import Connection
from mirrorspark.cluster.topic_configs import alter_configs, describe_configs
from mirrorspark.control import config_sync
from mirrorspark.control.config_sync import ConfigSync
from mirrorspark.errors import ClusterError
from mirrorspark.events import EventKind
from mirrorspark.lab.clients import create_topic, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.requests_sent import requests_sent
from mirrorspark.plan.config_rules import ConfigRules
from mirrorspark.settings import TopicSync

RULES = ConfigRules(TopicSync())
SEEN_S = 30.0
ALTER = "IncrementalAlterConfigsRequest"


class World:
    def __init__(self, source: ClusterClient, target: ClusterClient, in_loop: Callable[..., Any]) -> None:
        self.source, self.target = source, target
        self.in_loop = in_loop
        self.sync = ConfigSync(source, target)
        self.sent = requests_sent(target)

    def alter(self, client: ClusterClient, topic: str, **settings: str | None) -> None:
        """Returns when the broker shows it: it lags a little behind its controller."""
        wanted = {name.replace("_", "."): value for name, value in settings.items()}
        assert not self.in_loop(alter_configs(client, {topic: wanted})).refused

        def is_seen() -> bool:
            own = self.own(client, topic)
            return all(own.get(name) == value for name, value in wanted.items())

        wait_for(is_seen, f"{wanted} on {topic}", SEEN_S)
        self.sent.clear()

    def own(self, client: ClusterClient, topic: str) -> dict[str, str | None]:
        """The topic's own settings."""
        described = self.in_loop(describe_configs(client, [topic])).settings[topic]
        return {one.name: one.value for one in described if one.origin == 1}

    def pass_over(self, pairs: dict[str, str], rules: ConfigRules = RULES) -> list[Any]:
        """One pass."""
        return list(self.in_loop(self.sync.sync(rules, pairs)))


@pytest.fixture
def world(
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
) -> World:
    return World(connect(source_cluster), connect(target_cluster), in_loop)


def test_2_5_1_differences_are_sent_together_once_and_what_is_refused_is_named_once(
    world: World,
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    new_topic_name: Callable[[], str],
) -> None:
    a, b, same = (new_topic_name() for _ in range(3))
    pairs = {name: f"{name}.copy" for name in (a, b, same)}
    for name in pairs:
        create_topic(source_cluster.bootstrap, name, 1, settings={"retention.ms": "1000"})
        create_topic(target_cluster.bootstrap, pairs[name], 1, settings={"retention.ms": "1000"})

    # In step: two describes, nothing sent.
    assert world.pass_over(pairs) == []
    assert (world.sent.count(ALTER), world.sync.requests) == (0, 0)

    # BB-10: an excluded setting keeps the target's value, another is overwritten; a target's own override is deleted.
    world.alter(world.source, a, retention_bytes="4096", min_insync_replicas="1")
    world.alter(world.target, pairs[a], retention_bytes="1", delete_retention_ms="7")
    world.alter(world.source, b, cleanup_policy="compact")
    excluding = ConfigRules(TopicSync(config_properties_exclude=r"delete\.retention\.ms, min\.insync\.replicas"))
    assert world.pass_over(pairs, excluding) == []
    assert world.sent.count(ALTER) == 1, "one request for two topics"
    assert (world.sync.requests, world.sync.changed) == (1, 2)
    expected = {"retention.ms": "1000", "retention.bytes": "4096", "delete.retention.ms": "7"}
    wait_for(lambda: world.own(world.target, pairs[a]) == expected, "the new settings", SEEN_S)
    wait_for(lambda: world.own(world.target, pairs[b])["cleanup.policy"] == "compact", "compaction", SEEN_S)

    # The second pass sends nothing.
    world.sent.clear()
    assert world.pass_over(pairs, excluding) == []
    assert ALTER not in world.sent
    assert world.sent == ["DescribeConfigsRequest"] * world.sent.count("DescribeConfigsRequest")

    # BB-11: an override that is gone on the source is gone on the target, by the rules of the default excludes.
    world.alter(world.source, a, retention_bytes=None)
    assert world.pass_over(pairs) == []
    wait_for(lambda: world.own(world.target, pairs[a]) == {"retention.ms": "1000"}, "the deletion", SEEN_S)
    assert world.sync.changed == 4

    # BB-11: use.defaults.from=source sets what the source has by default.
    world.in_loop(world.sync.sync(ConfigRules(TopicSync(use_defaults_from="source")), {b: pairs[b]}))
    wait_for(lambda: world.own(world.target, pairs[b]).get("retention.bytes") == "-1", "the default", SEEN_S)
    world.sent.clear()
    world.in_loop(world.sync.sync(ConfigRules(TopicSync(use_defaults_from="source")), {b: pairs[b]}))
    assert ALTER not in world.sent


def test_2_5_7_a_change_that_is_refused_is_an_event_and_not_sent_again_until_its_time(
    world: World,
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1, settings={"segment.bytes": "1048576"})
    copy = f"{topic_name}.copy"
    create_topic(target_cluster.bootstrap, copy, 1)
    pairs = {topic_name: copy}

    async def refused(client: object, changes: dict[str, dict[str, str | None]]) -> Any:
        """As our own request, with a value that a broker refuses in place of the right one."""
        return await alter_configs(world.target, {topic: {"segment.bytes": "no number"} for topic in changes})

    monkeypatch.setattr(config_sync, "alter_configs", refused)
    [event] = world.pass_over(pairs)
    assert (event.kind, event.topic) == (EventKind.SETTINGS_REFUSED, copy)
    assert "no number" in event.text
    assert world.sync.changed == 0
    assert [str(one) for one in world.sync.left[copy]] == [
        "segment.bytes: 1073741824 -> 1048576 (the source topic has it)"
    ]
    world.sent.clear()
    assert [one.text for one in world.pass_over(pairs)] == [event.text], "still told, not sent"
    assert ALTER not in world.sent
    monkeypatch.setattr(config_sync, "REFUSED_AGAIN_S", 0.0)
    monkeypatch.setattr(config_sync, "alter_configs", alter_configs)
    assert world.pass_over(pairs) == []
    assert (world.sync.changed, world.sync.left) == (1, {})


def test_2_5_7_a_target_too_old_for_incremental_changes_is_named_and_nothing_is_sent(
    world: World,
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1, settings={"segment.bytes": "1048576"})
    copy = f"{topic_name}.copy"
    create_topic(target_cluster.bootstrap, copy, 1)
    known = Connection.version

    def as_before_kafka_2_3(self: Connection, api_key: int, *wanted: Any) -> int:
        self.versions.pop(IncrementalAlterConfigsRequest.API_KEY, None)
        return known(self, api_key, *wanted)

    monkeypatch.setattr(Connection, "version", as_before_kafka_2_3)
    with pytest.raises(ClusterError, match=r"does not know IncrementalAlterConfigs\w*; it is too old for it"):
        world.pass_over({topic_name: copy})
    assert "segment.bytes" not in world.own(world.target, copy)


def test_topics_that_are_gone_are_left_to_the_next_pass(world: World, topic_name: str) -> None:
    assert world.pass_over({topic_name: f"{topic_name}.copy"}) == []
    assert ALTER not in world.sent
