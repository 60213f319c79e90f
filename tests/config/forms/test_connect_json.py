"""Kafka Connect's JSON: every shape in which connectors come, and what they must agree on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mirrorspark.config.document import Document
from mirrorspark.config.forms.front_door import read_forms
from mirrorspark.config.load import parse_deployment
from mirrorspark.errors import SettingsError

DATA = Path(__file__).parent / "data"
BASE = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
}
CHECKPOINT = BASE | {"connector.class": "MirrorCheckpointConnector"}
HEARTBEAT = BASE | {"connector.class": "MirrorHeartbeat"}


def read(tmp_path: Path, *trees: Any) -> Document:
    paths = [tmp_path / f"c{at}.json" for at in range(len(trees))]
    for path, tree in zip(paths, trees, strict=True):
        path.write_text(json.dumps(tree, indent=1))
    return read_forms(paths)


def test_the_seeds_three_files_are_one_flow() -> None:
    document = read_forms([DATA / "seed_connect"])
    assert dict(document) == {
        "clusters": "source-0, target-0",
        "source-0.bootstrap.servers": "kafka-source-0:9092,kafka-source-1:9092",
        "target-0.bootstrap.servers": "kafka-target-0:9092,kafka-target-1:9092",
        "emit.heartbeats.enabled": "false",
        "source-0->target-0.emit.heartbeats.enabled": "true",
        "source-0->target-0.enabled": "true",
        "source-0->target-0.MirrorSourceConnector.name": "mm2-msc-source-0",
        "source-0->target-0.MirrorCheckpointConnector.name": "mm2-cpc-source-0",
        "source-0->target-0.MirrorHeartbeatConnector.name": "mm2-hbc-source-0",
        "source-0->target-0.key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "source-0->target-0.value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "source-0->target-0.sync.topic.acls.enabled": "false",
        "source-0->target-0.sync.topic.configs.enabled": "false",
        "source-0->target-0.replication.factor": "1",
        "source-0->target-0.MirrorSourceConnector.topics": "test",
        "source-0->target-0.MirrorSourceConnector.tasks.max": "2",
        "source-0->target-0.MirrorSourceConnector.replication.policy.class": (
            "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
        ),
    }
    assert document.place("source-0->target-0.replication.factor").endswith("mm2-msc-source-0.json:13")


def test_a_workers_file_belongs_to_the_target() -> None:
    worker = DATA / "seed_properties" / "connect-distributed.properties"
    document = read_forms([DATA / "seed_connect", worker])
    assert document["target-0.offset.storage.topic"] == "connect-offsets"
    with pytest.raises(SettingsError, match="a Kafka Connect worker's file"):
        read_forms([worker])


def test_a_worker_of_another_cluster_is_refused(tmp_path: Path) -> None:
    (tmp_path / "worker.properties").write_text("bootstrap.servers=elsewhere:9092\ngroup.id=connect\n")
    (tmp_path / "c.json").write_text(json.dumps(BASE))
    with pytest.raises(
        SettingsError, match=r"worker\.properties:1: b\.bootstrap\.servers: another value than in .*c\.json:1"
    ):
        read_forms([tmp_path / "c.json", tmp_path / "worker.properties"])


@pytest.mark.parametrize(
    "tree",
    [
        {"name": "n", "config": BASE},
        {**BASE, "name": "n"},
        [{"name": "n", "config": BASE}],
        {"name": "n", "config": {**BASE, "name": "n"}, "tasks": [], "type": "source"},
        {"n": {"info": {"name": "n", "config": BASE, "tasks": []}, "status": {"name": "n"}}},
    ],
)
def test_every_shape_reads_the_same(tmp_path: Path, tree: Any) -> None:
    assert dict(read(tmp_path, tree)) == {
        "clusters": "a, b",
        "a.bootstrap.servers": "a:9092",
        "b.bootstrap.servers": "b:9092",
        "emit.heartbeats.enabled": "false",
        "a->b.enabled": "true",
        "a->b.MirrorCheckpointConnector.enabled": "false",
        "a->b.MirrorSourceConnector.name": "n",
    }


def test_numbers_and_booleans_are_texts(tmp_path: Path) -> None:
    document = read(tmp_path, {**BASE, "tasks.max": 4, "sync.topic.acls.enabled": False, "x": 0.5, "y": 1e3})
    assert [document[f"a->b.{key}"] for key in ("tasks.max", "sync.topic.acls.enabled", "x", "y")] == [
        *("4", "false", "0.5", "1000.0"),
    ]


def test_what_all_connectors_say_is_the_flows(tmp_path: Path) -> None:
    same = {"tasks.max": "3", "source.consumer.client.rack": "r"}
    document = read(tmp_path, BASE | same, CHECKPOINT | same, HEARTBEAT | same | {"topics": "t"})
    assert document["a->b.tasks.max"] == "3"
    assert document["a.consumer.client.rack"] == "r"
    assert document["a->b.MirrorHeartbeatConnector.topics"] == "t"


def test_a_clients_key_of_one_connector_stays_its_own(tmp_path: Path) -> None:
    document = read(tmp_path, BASE | {"source.consumer.client.rack": "r"}, CHECKPOINT)
    assert document["a->b.MirrorSourceConnector.source.consumer.client.rack"] == "r"
    assert "a.consumer.client.rack" not in document


def test_clusters_must_agree(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, BASE, CHECKPOINT | {"target.cluster.bootstrap.servers": "other:9092"})
    text = str(caught.value)
    assert "c1.json:6: b.bootstrap.servers" in text
    assert "c0.json:6" in text
    assert "other:9092" not in text


def test_a_cluster_is_the_same_on_either_side(tmp_path: Path) -> None:
    back = {
        "source.cluster.alias": "b",
        "target.cluster.alias": "a",
        "source.cluster.bootstrap.servers": "b:9092",
        "target.cluster.bootstrap.servers": "a:9092",
    }
    assert read(tmp_path, BASE, BASE | back)["b->a.enabled"] == "true"
    with pytest.raises(SettingsError, match=r"a\.bootstrap\.servers: another value"):
        read(tmp_path, BASE, BASE | back | {"target.cluster.bootstrap.servers": "a:9999"})


def test_the_target_has_a_default_alias_as_in_mirrormaker(tmp_path: Path) -> None:
    assert read(tmp_path, {key: value for key, value in BASE.items() if key != "target.cluster.alias"})[
        "a->target.enabled"
    ]


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED"])
def test_a_connector_that_is_made_to_wait_is_not_enabled(tmp_path: Path, state: str) -> None:
    document = read(tmp_path, {"name": "n", "config": BASE, "initial_state": state})
    assert document["a->b.enabled"] == "false"


@pytest.mark.parametrize(
    ("trees", "has_checkpoints", "writes_offsets", "beats"),
    [
        ([BASE], False, False, False),
        ([BASE, CHECKPOINT], True, False, False),
        ([BASE, CHECKPOINT | {"sync.group.offsets.enabled": True}], True, True, False),
        ([BASE, CHECKPOINT | {"sync.group.offsets.enabled": True, "enabled": "false"}], False, False, False),
        ([BASE, {"name": "n", "config": CHECKPOINT, "initial_state": "STOPPED"}], False, False, False),
        ([BASE, CHECKPOINT, HEARTBEAT], True, False, True),
        ([BASE, HEARTBEAT | {"emit.heartbeats.enabled": False}], False, False, False),
    ],
)
def test_a_flow_does_what_its_connectors_do(
    tmp_path: Path, trees: list[Any], has_checkpoints: bool, writes_offsets: bool, beats: bool
) -> None:
    [flow] = parse_deployment(read(tmp_path, *trees)).flows
    assert (flow.group_sync.checkpoints_enabled, flow.group_sync.offsets_enabled) == (has_checkpoints, writes_offsets)
    assert flow.heartbeats.emitted is beats


def test_a_heartbeat_connector_alone_writes_heartbeats(tmp_path: Path) -> None:
    deployment = parse_deployment(read(tmp_path, HEARTBEAT))
    assert deployment.flows == []
    assert [str(one.flow) for one in deployment.heartbeats_only] == ["a->b"]


@pytest.mark.parametrize(
    ("trees", "problem"),
    [
        (
            [BASE | {"connector.class": "org.example.S3Sink"}],
            r"c0\.json:2: connector\.class: org\.example\.S3Sink is no connector",
        ),
        ([{"name": "n", "config": {}}], "connector.class is missing"),
        (
            [{key: value for key, value in BASE.items() if key != "source.cluster.alias"}],
            "source.cluster.alias is missing",
        ),
        ([BASE, BASE], "a second MirrorSourceConnector for a->b, beside"),
        ([{"name": "n", "config": BASE | {"name": "m"}}], "m is not the connector's name, n"),
        ([BASE | {"topics": ["a"]}], "topics: must be a text"),
        ([BASE | {"topics": None}], "topics: has no value"),
        ([BASE | {"target.cluster.alias": "a"}], "source and target have the same alias, a"),
        ([{"x": 1}], "neither connectors, nor KafkaMirrorMaker2"),
        ([BASE, {"x": 1}], r"c1\.json:1: the document: neither connectors"),
        ([[BASE, {"x": 1}]], r"\[1\]: neither a connector"),
        ([[]], "neither connectors"),
        (["text"], "neither connectors"),
    ],
)
def test_what_is_no_connector_is_refused_by_name(tmp_path: Path, trees: list[Any], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        read(tmp_path, *trees)
