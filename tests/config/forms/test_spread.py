"""From a Document to connectors: MirrorMaker 2's own derivation, level by level."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirrorspark.config.document import Document
from mirrorspark.config.forms.connectors import readers_of
from mirrorspark.config.forms.layout import ConnectorKind
from mirrorspark.config.forms.spread import full_config, meaning, spread

BASE = {
    "clusters": "a, b",
    "a.bootstrap.servers": "a:9092",
    "b.bootstrap.servers": "b:9092",
    "a->b.enabled": "true",
    "emit.heartbeats.enabled": "false",
}


def config(keys: dict[str, str], kind: ConnectorKind = ConnectorKind.SOURCE) -> dict[str, str]:
    result = spread(Document.of(BASE | keys))
    return next(full_config(result, one) for one in result.connectors if one.kind is kind and str(one.flow) == "a->b")


def test_the_most_specific_level_wins() -> None:
    keys = {"tasks.max": "1"}
    assert config(keys)["tasks.max"] == "1"
    keys["a->b.tasks.max"] = "2"
    assert config(keys)["tasks.max"] == "2"
    keys["a->b.MirrorSourceConnector.tasks.max"] = "3"
    assert config(keys)["tasks.max"] == "3"
    assert config(keys, ConnectorKind.CHECKPOINT)["tasks.max"] == "2"


def test_a_key_goes_to_those_who_read_it() -> None:
    assert readers_of("groups") == (ConnectorKind.CHECKPOINT,)
    assert readers_of("topics") == (ConnectorKind.SOURCE, ConnectorKind.CHECKPOINT)
    assert readers_of("topics.blacklist") == readers_of("topics.exclude")
    assert readers_of("nobody.knows.it") == tuple(ConnectorKind)
    assert "groups" not in config({"groups": "x"})
    assert config({"groups": "x"}, ConnectorKind.CHECKPOINT)["groups"] == "x"


def test_a_clusters_keys_get_their_side() -> None:
    found = config(
        {"a.consumer.client.rack": "r", "b.producer.linger.ms": "5", "b.exactly.once.source.support": "enabled"}
    )
    assert found["source.cluster.bootstrap.servers"] == "a:9092"
    assert found["source.consumer.client.rack"] == "r"
    assert found["target.producer.linger.ms"] == "5"
    assert found["target.cluster.exactly.once.source.support"] == "enabled"


def test_security_for_all_fills_what_a_cluster_leaves_open() -> None:
    found = config({"security.protocol": "SSL", "b.security.protocol": "PLAINTEXT"})
    assert found["source.cluster.security.protocol"] == "SSL"
    assert found["target.cluster.security.protocol"] == "PLAINTEXT"


def test_a_workers_key_for_all_goes_to_the_targets() -> None:
    found = config({"offset.storage.replication.factor": "1"})
    assert found["target.cluster.offset.storage.replication.factor"] == "1"
    assert "source.cluster.offset.storage.replication.factor" not in found


def test_config_providers_reach_every_connector() -> None:
    assert config({"config.providers": "env"}, ConnectorKind.CHECKPOINT)["config.providers"] == "env"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, ["a->b MirrorSourceConnector", "a->b MirrorCheckpointConnector"]),
        ({"a->b.MirrorCheckpointConnector.enabled": "false"}, ["a->b MirrorSourceConnector"]),
        ({"a->b.enabled": "false"}, []),
        (
            {"a->b.enabled": "false", "a->b.MirrorCheckpointConnector.enabled": "true"},
            ["a->b MirrorCheckpointConnector"],
        ),
        (
            {"a->b.enabled": "false", "emit.heartbeats.enabled": "true"},
            ["a->b MirrorHeartbeatConnector", "b->a MirrorHeartbeatConnector"],
        ),
        ({"a->b.enabled": "false", "b->a.emit.heartbeats.enabled": "true"}, ["b->a MirrorHeartbeatConnector"]),
        ({"a->b.enabled": "false", "a->b.groups": "x"}, ["a->b MirrorCheckpointConnector"]),  # off, for its key alone
    ],
)
def test_which_connectors_there_are(keys: dict[str, str], expected: list[str]) -> None:
    assert [f"{one.flow} {one.kind}" for one in spread(Document.of(BASE | keys)).connectors] == expected


LEVELS = ["a.", "b.consumer.", "a->b.", "a->b.MirrorSourceConnector.", "b->a.", "b->a.MirrorHeartbeatConnector.", ""]


@settings(max_examples=50, deadline=None)
@given(st.sets(st.tuples(st.sampled_from(LEVELS), st.sampled_from(["one.x", "two.y", "topics", "groups"])), min_size=1))
def test_no_value_gets_lost(places: set[tuple[str, str]]) -> None:
    """Told from the outside: every value is somewhere, unless a more specific one hides it."""
    keys = {f"{level}{name}": f"value {at} of it" for at, (level, name) in enumerate(sorted(places))}
    everything = "\n".join(meaning(Document.of(BASE | keys)).values()).splitlines()
    for level, name in places:
        hiding = {
            "": ["a->b.", "b->a."],
            "a->b.": ["a->b.MirrorSourceConnector."],
            "b->a.": ["b->a.MirrorHeartbeatConnector."],
        }.get(level, [])
        if not any((other, name) in places for other in hiding):
            assert keys[f"{level}{name}"] in everything
