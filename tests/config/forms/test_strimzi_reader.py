"""Strimzi's resources, v1beta2, v1 and IBM's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from mirrorspark.config.document import Document
from mirrorspark.config.forms.front_door import read_forms
from mirrorspark.errors import SettingsError

DATA = Path(__file__).parent / "data"
WORKER = {
    "group.id": "mirrormaker2-cluster",
    "config.storage.topic": "mirrormaker2-cluster-configs",
    "offset.storage.topic": "mirrormaker2-cluster-offsets",
    "status.storage.topic": "mirrormaker2-cluster-status",
}


def resource(**changes: Any) -> dict[str, Any]:
    spec = {
        "connectCluster": "b",
        "clusters": [{"alias": "a", "bootstrapServers": "a:9092"}, {"alias": "b", "bootstrapServers": "b:9092"}],
        "mirrors": [{"sourceCluster": "a", "targetCluster": "b", "sourceConnector": {}}],
    }
    return {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "m"},
        "spec": spec | changes,
    }


def read(
    tmp_path: Path, *trees: Any, secrets: Path | None = None, environment: dict[str, str] | None = None
) -> Document:
    path = tmp_path / "m.yaml"
    path.write_text(yaml.safe_dump_all(trees, sort_keys=False))
    return read_forms([path], secrets, environment=environment or {})


def settings_of(document: Document) -> dict[str, str]:
    return {key: value for key, value in document.items() if not key.startswith("strimzi/")}


def test_the_seeds_event_streams_file(tmp_path: Path) -> None:
    for name in ("rt-inv-dev-user", "rt-inv-stg-user"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "password").write_text("geheim")
    for name in ("rt-inventory-dev-cluster-ca-cert", "rt-inventory-stg-cluster-ca-cert"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ca.crt").write_text("PEM")
    document = read_forms([DATA / "seed_strimzi" / "event-streams.yaml"], tmp_path, environment={})
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"

    def cluster(alias: str, stage: str, factor: str) -> dict[str, str]:
        password = f"${{dir:{tmp_path}/rt-inv-{stage}-user:password}}"
        return {
            f"{alias}.bootstrap.servers": f"rt-inventory-{stage}-kafka-bootstrap.example:443",
            f"{alias}.security.protocol": "SASL_SSL",
            f"{alias}.sasl.mechanism": "SCRAM-SHA-512",
            f"{alias}.sasl.jaas.config": f'{module} required username="rt-inv-{stage}-user" password="{password}";',
            f"{alias}.ssl.truststore.type": "PEM",
            f"{alias}.ssl.truststore.certificates": f"${{dir:{tmp_path}/rt-inventory-{stage}-cluster-ca-cert:ca.crt}}",
            f"{alias}.ssl.endpoint.identification.algorithm": "https",
            f"{alias}.config.storage.replication.factor": factor,
            f"{alias}.offset.storage.replication.factor": factor,
            f"{alias}.status.storage.replication.factor": factor,
        }

    assert settings_of(document) == {
        "clusters": "es-src, es-tgt",
        **cluster("es-src", "dev", "1"),
        **cluster("es-tgt", "stg", "3"),
        **{f"es-tgt.{key}": value for key, value in WORKER.items()},
        "emit.heartbeats.enabled": "false",
        "es-src->es-tgt.enabled": "true",
        "es-src->es-tgt.MirrorSourceConnector.name": "es-src->es-tgt.MirrorSourceConnector",
        "es-src->es-tgt.MirrorCheckpointConnector.name": "es-src->es-tgt.MirrorCheckpointConnector",
        "es-src->es-tgt.replication.factor": "3",
        "es-src->es-tgt.sync.topic.acls.enabled": "false",
        "es-src->es-tgt.replication.policy.separator": "",
        "es-src->es-tgt.replication.policy.class": "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
        "es-src->es-tgt.offset-syncs.topic.replication.factor": "3",
        "es-src->es-tgt.refresh.topics.interval.seconds": "10",
        "es-src->es-tgt.checkpoints.topic.replication.factor": "3",
        "es-src->es-tgt.refresh.groups.interval.seconds": "5",
        "es-src->es-tgt.emit.checkpoints.enabled": "true",
        "es-src->es-tgt.sync.group.offsets.enabled": "true",
        "es-src->es-tgt.sync.group.offsets.interval.seconds": "5",
        "es-src->es-tgt.emit.checkpoints.interval.seconds": "5",
        "es-src->es-tgt.topics": "items, store.inventory, items.inventory",
        "es-src->es-tgt.topics.exclude": ".apicurio",
        "es-src->es-tgt.groups": ".*",
    }
    assert document["strimzi/mm2/apiVersion"] == '"eventstreams.ibm.com/v1beta2"'
    assert document["strimzi/mm2/spec.replicas"] == "1"


def test_the_seeds_two_directions_in_one_resource_are_refused() -> None:
    """Kafka Connect writes into the cluster of its workers, whatever a mirror says."""
    with pytest.raises(
        SettingsError, match=r"both-ways\.yaml:\d+: .*event-streams-wdc is not connectCluster, kafka-on-premise"
    ):
        read_forms([DATA / "seed_strimzi" / "both-ways.yaml"])


def test_v1_says_target_and_sources_apart(tmp_path: Path) -> None:
    environment = {
        "MIRRORSPARK_SECRET_MIRROR_USER_USER_CRT": "PEM",
        "MIRRORSPARK_SECRET_MIRROR_USER_USER_KEY": "PEM",
    }
    (tmp_path / "lake-cluster-ca-cert").mkdir()
    for name in ("ca.crt", "old.crt", "ca.p12"):
        (tmp_path / "lake-cluster-ca-cert" / name).write_text("PEM")
    document = read_forms([DATA / "strimzi_v1.yaml"], tmp_path, environment=environment)
    folder = tmp_path / "lake-cluster-ca-cert"
    assert document["lake.ssl.truststore.certificates"] == f"${{dir:{folder}:ca.crt}}\n${{dir:{folder}:old.crt}}"
    assert document["lake.ssl.keystore.key"] == "${env:MIRRORSPARK_SECRET_MIRROR_USER_USER_KEY}"
    assert document["lake.security.protocol"] == "SSL"
    assert document["lake.offset.storage.topic"] == "into-lake-offset"
    assert (document["shop->lake.tasks.max"], document["shop->lake.topics"]) == ("4", "orders.*, payments")
    assert document["plant->lake.enabled"] == "false"  # paused
    assert document["emit.heartbeats.enabled"] == "false"
    assert "shop.security.protocol" not in document


def test_secrets_in_the_same_file_are_used() -> None:
    document = read_forms([DATA / "strimzi_with_secrets.yaml"], environment={})
    assert r'password="gheim\"";' in document["north.sasl.jaas.config"]
    assert 'password="another one";' in document["south.sasl.jaas.config"]
    assert document["north.security.protocol"] == "SASL_PLAINTEXT"


def test_oauth_and_custom_logins() -> None:
    document = read_forms([DATA / "strimzi_oauth.yaml"], environment={"MIRRORSPARK_SECRET_OAUTH_SECRET": "x"})
    assert document["a.sasl.mechanism"] == "OAUTHBEARER"
    assert 'oauth.client.secret="${env:MIRRORSPARK_SECRET_OAUTH_SECRET}"' in document["a.sasl.jaas.config"]
    assert document["b.security.protocol"] == "SASL_SSL"
    assert document["b.sasl.mechanism"] == "AWS_MSK_IAM"
    assert document["a->b.topics.exclude"] == "old.*"


def test_a_list_and_what_a_running_cluster_adds() -> None:
    document = read_forms([DATA / "strimzi_list.json"], environment={})
    assert document["clusters"] == "down, up"
    assert (document["down->up.enabled"], document["up->down.enabled"]) == ("true", "true")
    assert "emit.heartbeats.enabled" not in document  # all pairs have them
    assert document["strimzi/up/metadata"] == '{"name": "up", "annotations": {"a": "b"}}'


def test_connectors_as_resources() -> None:
    document = read_forms([DATA / "strimzi_connectors.yaml"], environment={})
    assert document["a->b.MirrorSourceConnector.tasks.max"] == "3"
    assert document["a->b.topics"] == "orders"
    assert document["a->b.emit.heartbeats.interval.seconds"] == "5"
    assert document["a->b.MirrorSourceConnector.name"] == "copy"


def test_a_missing_secret_names_both_ways_and_its_place(tmp_path: Path) -> None:
    login = {"type": "plain", "username": "u", "passwordSecret": {"secretName": "s-1", "password": "p.w"}}
    clusters = [
        {"alias": "a", "bootstrapServers": "a:1", "authentication": login},
        {"alias": "b", "bootstrapServers": "b:1"},
    ]
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, resource(clusters=clusters), secrets=tmp_path)
    text = str(caught.value)
    assert f"{tmp_path}/m.yaml:" in text
    assert "secret s-1 has no key p.w" in text
    assert f"{tmp_path}/s-1/p.w" in text
    assert "MIRRORSPARK_SECRET_S_1_P_W" in text


@pytest.mark.parametrize(
    ("value", "written"), [("a\\b", r'"a\\b"'), ('a"b\n', r'"a\"b"'), ("plain", '"${env:MIRRORSPARK_SECRET_S_P}"')]
)
def test_a_password_that_would_break_its_quotes_is_written_out(tmp_path: Path, value: str, written: str) -> None:
    login = {"type": "plain", "username": "u", "passwordSecret": {"secretName": "s", "password": "p"}}
    clusters = [
        {"alias": "a", "bootstrapServers": "a:1", "authentication": login},
        {"alias": "b", "bootstrapServers": "b:1"},
    ]
    document = read(tmp_path, resource(clusters=clusters), environment={"MIRRORSPARK_SECRET_S_P": value})
    assert document["a.sasl.jaas.config"].endswith(f"password={written};")


def test_connect_cluster_may_be_another_name_of_the_target(tmp_path: Path) -> None:
    clusters = [{"alias": name, "bootstrapServers": f"{name[0]}:1"} for name in ("a", "b", "b2")]
    assert read(tmp_path, resource(clusters=clusters, connectCluster="b2"))["a->b.enabled"] == "true"


def test_a_pattern_wins_over_a_connectors_own(tmp_path: Path) -> None:
    mirror = {
        "sourceCluster": "a",
        "targetCluster": "b",
        "sourceConnector": {"config": {"topics": "loses"}},
        "topicsPattern": "wins",
    }
    document = read(tmp_path, resource(mirrors=[mirror]))
    assert document["a->b.topics"] == "wins"
    assert document["strimzi/m/a->b.sourceConnector.config.topics"] == '"loses"'


def test_kept_values_are_no_references(tmp_path: Path) -> None:
    document = read(tmp_path, resource(template={"pod": "${env:HOME}"}))
    assert "${" not in document["strimzi/m/spec.template"]


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        (resource() | {"apiVersion": "kafka.strimzi.io/v9"}, "v9 is not known; there is kafka.strimzi.io"),
        (resource() | {"apiVersion": "example.org/v1"}, "example.org/v1 is not known"),
        (resource() | {"kind": "KafkaMirrorMaker"}, "is MirrorMaker 1"),
        (resource() | {"kind": "Kafka"}, r"no KafkaMirrorMaker2 among these resources \(Kafka\)"),
        (resource(replica=1), r"spec\.replica: no such field; did you mean replicas\?"),
        (resource(connectCluster="c"), "c is not the alias of one of the clusters"),
        (resource(mirrors=[{"sourceCluster": "z", "targetCluster": "b"}]), "z is not the alias of one of the clusters"),
        (resource(mirrors=[{"sourceCluster": "b", "targetCluster": "b"}]), "the same cluster, b"),
        (
            resource(mirrors=[{"sourceCluster": "a", "targetCluster": "b", "topicPattern": "x"}]),
            "did you mean topicsPattern",
        ),
        (
            resource(mirrors=[{"sourceCluster": "a", "targetCluster": "b", "sourceConnector": {"taskMax": 2}}]),
            r"mirrors\[0\]\.sourceConnector\.taskMax: no such field; did you mean tasksMax",
        ),
        (resource(clusters=[{"alias": "a", "bootstrapServers": "a:1"}] * 2), "a second cluster with the alias a"),
        (resource(clusters=[{"alias": "a"}, {"alias": "b", "bootstrapServers": "b:1"}]), "bootstrapServers is missing"),
        (
            resource(mirrors=[{"sourceCluster": "a", "targetCluster": "b", "sourceConnector": {}}] * 2),
            "a second MirrorSourceConnector for a->b",
        ),
        (
            resource(
                clusters=[
                    {"alias": "a", "bootstrapServers": "a:1", "authentication": {"type": "kerberos"}},
                    {"alias": "b", "bootstrapServers": "b:1"},
                ]
            ),
            "kerberos is no kind of authentication; there is tls, plain",
        ),
        (
            resource(
                clusters=[
                    {"alias": "a", "bootstrapServers": "a:1", "tls": {}, "config": {"security.protocol": "PLAINTEXT"}},
                    {"alias": "b", "bootstrapServers": "b:1"},
                ]
            ),
            "leave it out of config",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, tree: Any, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem) as caught:
        read(tmp_path, tree)
    assert "m.yaml:" in str(caught.value)


def test_two_resources_that_disagree_on_a_cluster_are_refused(tmp_path: Path) -> None:
    other = resource(
        clusters=[{"alias": "c", "bootstrapServers": "c:1"}, {"alias": "b", "bootstrapServers": "elsewhere:1"}],
        mirrors=[{"sourceCluster": "c", "targetCluster": "b", "sourceConnector": {}}],
    )
    other["metadata"] = {"name": "n"}
    with pytest.raises(SettingsError, match=r"b\.bootstrap\.servers: another value than in"):
        read(tmp_path, resource(), other)
    with pytest.raises(SettingsError, match="a second KafkaMirrorMaker2 named m"):
        read(tmp_path, resource(), resource())
