"""From a file to flows: what must be there, what goes where, what is refused, and that secrets stay secret."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

import pytest

from mirrorspark.config.load import load_deployment, parse_deployment
from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow
from mirrorspark.settings import FlowSettings

BASE = {
    "clusters": "east, west",
    "east.bootstrap.servers": "e1:9092,e2:9093",
    "west.bootstrap.servers": "[::1]:9094",
    "east->west.enabled": "true",
}
BOTH_WAYS = {**BASE, "west->east.enabled": "true"}


def _flow(**changes: str) -> FlowSettings:
    [flow] = parse_deployment(_with(**changes)).flows
    return flow


def _with(**changes: str) -> dict[str, str]:
    """The base with keys changed; ``__`` stands for a dot and ``TO`` for an arrow, since these are Python names."""
    return {**BASE, **{key.replace("__", ".").replace("TO", "->"): value for key, value in changes.items()}}


def _refused(properties: dict[str, str], *only_targets: str) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        parse_deployment(properties, only_targets)
    return caught.value


# -- flows and clusters ------------------------------------------------------------------------------------------------


def test_the_smallest_file() -> None:
    deployment = parse_deployment(BASE)
    [flow] = deployment.flows
    assert flow.flow == Flow("east", "west")
    assert (flow.source.alias, flow.target.alias) == ("east", "west")
    assert flow.source.bootstrap == (("e1", 9092), ("e2", 9093))
    assert flow.target.bootstrap == (("::1", 9094),)
    assert deployment.warnings == []


def test_defaults_are_mirror_makers() -> None:
    flow = _flow()
    assert (flow.topics, flow.topics_exclude) == (".*", r".*[\-\.]internal, .*\.replica, __.*")
    assert (flow.tasks_max, flow.replication_factor, flow.naming.separator) == (1, 2, ".")
    assert not any((flow.transactions, flow.read_committed, flow.start_at_latest, flow.keeps_names))


def test_each_enabled_pair_is_a_flow() -> None:
    assert [str(flow.flow) for flow in parse_deployment(BOTH_WAYS).flows] == ["east->west", "west->east"]


def test_a_disabled_pair_is_none() -> None:
    properties = {**BOTH_WAYS, "east->west.enabled": "false", "east->west.topics": "x"}
    deployment = parse_deployment(properties)
    assert [str(flow.flow) for flow in deployment.flows] == ["west->east"]
    assert deployment.warnings == []


@pytest.mark.parametrize(
    ("targets", "flows"),
    [([], ["east->west", "west->east"]), (["west"], ["east->west"]), (["east", "west"], ["east->west", "west->east"])],
)
def test_clusters_option_keeps_flows_into_these(targets: list[str], flows: list[str]) -> None:
    assert [str(flow.flow) for flow in parse_deployment(BOTH_WAYS, targets).flows] == flows


def test_a_file_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text("\n".join(f"{key} = {value}" for key, value in BASE.items()))
    assert load_deployment(path, ["west"]).flows == parse_deployment(BASE).flows


def test_settings_travel_to_executors() -> None:
    flow = _flow(east__security__protocol="SSL", lane__memory__max__bytes="2000000")
    assert pickle.loads(pickle.dumps(flow)) == flow


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["clusters", "east.bootstrap.servers", "west.bootstrap.servers"])
@pytest.mark.parametrize("gone", [True, False])
def test_required_keys(key: str, gone: bool) -> None:
    properties = {**BASE, key: " "}
    if gone:
        del properties[key]
    error = _refused(properties)
    assert error.facts["key"] == key
    assert str(error).startswith(f"{key}:")


@pytest.mark.parametrize("servers", ["e1", "e1:", ":9092", "e1:x", "e1:0", "e1:65536", "e1:9092,e2", "e1:-1", ","])
def test_bootstrap_servers_are_host_and_port(servers: str) -> None:
    error = _refused({**BASE, "east.bootstrap.servers": servers})
    assert error.facts["key"] == "east.bootstrap.servers"


def test_an_unknown_alias_in_the_clusters_option() -> None:
    error = _refused(BASE, "north")
    assert "--clusters north" in str(error)
    assert "east, west" in str(error)


@pytest.mark.parametrize("enabled", [{}, {"east->west.enabled": "false"}])
def test_a_file_without_an_enabled_flow(enabled: dict[str, str]) -> None:
    """MirrorMaker 2 writes heartbeats for every pair then, and does not start where those are off."""
    properties = {key: value for key, value in BASE.items() if "->" not in key} | enabled
    deployment = parse_deployment(properties)
    assert deployment.flows == []
    assert [str(one.flow) for one in deployment.heartbeats_only] == ["east->west", "west->east"]
    [told] = [str(one) for one in deployment.remarks if one.kind == "warning"]
    assert told == (
        "east->west.enabled: no flow is enabled: only heartbeats are written (east->west, west->east); to carry records "
        "set e.g. east->west.enabled = true"
    )
    error = _refused({**properties, "emit.heartbeats.enabled": "false"})
    assert str(error) == "east->west.enabled: no flow is enabled; set e.g. east->west.enabled = true"


def test_no_flow_into_the_chosen_cluster() -> None:
    deployment = parse_deployment(BASE, ["east"])
    assert (deployment.flows, [str(one.flow) for one in deployment.heartbeats_only]) == ([], ["west->east"])
    assert "only heartbeats are written (west->east)" in deployment.warnings[-1]
    assert "no flow is enabled" in str(_refused({**BASE, "emit.heartbeats.enabled": "false"}, "east"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tasks.max", "many"),
        ("tasks.max", "1.5"),
        ("tasks.max", "0"),
        ("tasks.max", "-1"),
        ("tasks.max", ""),
        ("replication.factor", "two"),
        ("replication.factor", "99999"),
        ("refresh.topics.interval.seconds", "0"),
        ("epoch.seconds", "1"),
        ("lane.memory.max.bytes", "1"),
        ("transaction.interval.ms", "0"),
        ("on.data.gap", "ignore"),
        ("offset-syncs.topic.location", "both"),
        ("emit.heartbeats.enabled", "on"),
        ("offset.lag.max", "-1"),
        ("on.topic.recreated", "ignore"),
        ("on.record.too.large", "ignore"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "east->west.", "east->west.MirrorSourceConnector."])
def test_a_bad_value_names_its_key_as_it_stands_in_the_file(prefix: str, key: str, value: str) -> None:
    error = _refused({**BASE, f"{prefix}{key}": value})
    assert error.facts["key"] == f"{prefix}{key}"
    assert str(error).startswith(f"{prefix}{key}={value}:")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("west.exactly.once.source.support", "yes"),
        ("offset.storage.replication.factor", "x"),
        ("west.offset.storage.replication.factor", "x"),
        ("east.consumer.fetch.max.bytes", "0"),
        ("east->west.consumer.fetch.max.wait.ms", "soon"),
        ("west.producer.max.request.size", "1M"),
        ("east->west.producer.override.compression.type", "rar"),
        ("west.producer.enable.idempotence", "perhaps"),
        ("sasl.kerberos.ticket.renew.jitter", "some"),
        ("east->west.enabled", "yes"),
        ("east->west.enabled", "1"),
        ("west->east.enabled", ""),
        ("east.consumer.isolation.level", "committed"),
        ("east.consumer.auto.offset.reset", "none"),
        ("replication.policy.class", "com.example.OwnPolicy"),
    ],
)
def test_other_bad_values_name_their_key(key: str, value: str) -> None:
    error = _refused({**BASE, key: value})
    assert error.facts["key"] == key
    assert str(error).startswith(f"{key}={value}:")


# -- what goes where, and who wins -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "tasks_max"),
    [
        ({"tasks.max": "2"}, 2),
        ({"east->west.tasks.max": "4"}, 4),
        ({"tasks.max": "2", "east->west.tasks.max": "4"}, 4),
        ({"tasks.max": "2", "east->west.tasks.max": "4", "east->west.MirrorSourceConnector.tasks.max": "5"}, 5),
        ({"tasks.max": "2", "east->west.MirrorCheckpointConnector.tasks.max": "5"}, 2),
        ({"west->east.tasks.max": "6"}, 1),
        ({"tasks.max": " 7 "}, 7),
    ],
)
def test_connector_beats_flow_beats_top(properties: dict[str, str], tasks_max: int) -> None:
    assert parse_deployment({**BASE, **properties}).flows[0].tasks_max == tasks_max


def test_a_flows_own_value_does_not_reach_the_other_flow() -> None:
    east_west, west_east = parse_deployment({**BOTH_WAYS, "topics": "a", "east->west.topics": "b"}).flows
    assert (east_west.topics, west_east.topics) == ("b", "a")


def test_every_key_has_its_place() -> None:
    flow = _flow(
        topics="orders, clicks",
        topics__exclude="",
        replication__factor="-1",
        refresh__topics__interval__seconds="30",
        replication__policy__separator="_",
        offset__storage__replication__factor="1",
        epoch__seconds="60",
        on__data__gap="FAIL",
        on__topic__recreated="fail",
        on__record__too__large="dead-letter",
        lane__memory__max__bytes="1048576",
        transaction__interval__ms="250",
    )
    assert (flow.topics, flow.topics_exclude, flow.naming.separator) == ("orders, clicks", "", "_")
    assert (flow.replication_factor, flow.internal_replication_factor) == (-1, 1)
    assert (flow.topic_sync.refresh_interval_s, flow.epoch_s) == (30, 60)
    assert flow.policies.on_data_gap == "fail"
    assert flow.policies.on_topic_recreated == "fail"
    assert flow.policies.on_record_too_large == "dead-letter"
    assert flow.limits.lane_memory_bytes_max == 1_048_576
    assert flow.limits.transaction_interval_ms == 250


@pytest.mark.parametrize(("value", "expected"), [("enabled", True), ("disabled", False), ("preparing", False)])
def test_exactly_once_support(value: str, expected: bool) -> None:
    assert _flow(west__exactly__once__source__support=value).transactions is expected


def test_consumer_settings_of_the_source() -> None:
    flow = _flow(
        east__consumer__isolation__level="read_committed",
        east__consumer__auto__offset__reset="latest",
        east__consumer__client__rack="rack-1",
    )
    assert flow.read_committed
    assert flow.start_at_latest
    assert flow.client_rack == "rack-1"


@pytest.mark.parametrize(
    ("policy", "identity"), [("IdentityReplicationPolicy", True), ("DefaultReplicationPolicy", False)]
)
def test_replication_policy(policy: str, identity: bool) -> None:
    assert _flow(replication__policy__class=f"org.apache.kafka.connect.mirror.{policy}").keeps_names is identity


# -- warnings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["no.such.key", "tasks.maximum", "east.no.such", "east->west.no.such", "east->north.enabled", "consumer.x"]
)
def test_a_key_that_nobody_knows_is_an_error_or_with_lenient_a_warning(key: str) -> None:
    error = _refused({**BASE, key: "hidden-value"})
    assert error.facts["key"] == key
    [remark] = parse_deployment({**BASE, key: "hidden-value"}, lenient=True).remarks
    assert remark.kind == "warning"
    assert str(remark).startswith(f"{key}: ")
    assert "hidden-value" not in f"{remark}{error}"


def test_known_keys_give_no_warning() -> None:
    properties = {
        **BOTH_WAYS,
        "topics": "a",
        "east->west.topics": "b",
        "tasks.max": "2",
        "security.protocol": "SSL",
        "west.ssl.truststore.location": "ca.pem",
        "east.consumer.isolation.level": "read_committed",
        "replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    }
    assert parse_deployment(properties).warnings == []


# -- security ----------------------------------------------------------------------------------------------------------

SECRET = "hunter2-do-not-tell"
SECRETS = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'org.apache.kafka.PlainLoginModule required username="u" password="{SECRET}";',
    "ssl.key.password": SECRET,
    "east.ssl.keystore.password": SECRET,
    "west.sasl.jaas.config": f'x required username="w" password="{SECRET}";',
    "west.security.protocol": "SASL_PLAINTEXT",
}


def test_security_properties_reach_the_clusters_and_an_alias_beats_the_global() -> None:
    [flow] = parse_deployment({**BASE, **SECRETS}).flows
    source, target = flow.source.client, flow.target.client
    assert source["security.protocol"] == "SASL_SSL"
    assert target["security.protocol"] == "SASL_PLAINTEXT"
    assert source["sasl.mechanism"] == target["sasl.mechanism"] == "PLAIN"
    assert source["sasl.jaas.config"] == SECRETS["sasl.jaas.config"]
    assert target["sasl.jaas.config"] == SECRETS["west.sasl.jaas.config"]
    assert source["ssl.keystore.password"] == SECRET
    assert "ssl.keystore.password" not in target
    assert source["ssl.key.password"] == target["ssl.key.password"] == SECRET


def test_secrets_never_appear_in_a_repr_or_a_warning() -> None:
    more = {"east.consumer.sasl.jaas.config": SECRET, "password": SECRET}
    deployment = parse_deployment({**BASE, **SECRETS, **more}, lenient=True)
    shown = [deployment, *deployment.flows, deployment.flows[0].source, deployment.flows[0].target]
    assert not any(SECRET in text for thing in shown for text in (repr(thing), str(thing), f"{thing}"))
    assert not any(SECRET in warning for warning in deployment.warnings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tasks.max": "x"},
        {"east->west.enabled": "x"},
        {"east->west.enabled": "false", "emit.heartbeats.enabled": "false"},
        {"east.bootstrap.servers": "x"},
        {"replication.policy.class": "x"},
        {"clusters": "east, west, north"},
        {"password": SECRET},
        {"sasl.jaas.confi": SECRET},
        {"east.sasl.oauthbearer.client.credentials.client.secret": SECRET, "tasks.max": "x"},
    ],
)
def test_secrets_never_appear_in_an_error(wrong: dict[str, str]) -> None:
    error = _refused({**BASE, **SECRETS, **wrong})
    told = [str(error), repr(error), str(error.as_dict()), "".join(traceback.format_exception(error))]
    assert not any(SECRET in text for text in told)
