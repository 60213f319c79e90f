"""Sections 1.2 to 1.9 and 2.12.2 of the MirrorMaker 2 reference: what switches which connector, and names that all accept.

What a connector does by itself was tried on Kafka 4.3.1's own classes.
"""

from __future__ import annotations

import pytest

from mirrorspark.config.load import Deployment, parse_deployment
from mirrorspark.errors import SettingsError
from mirrorspark.settings import FlowSettings, GroupSync, Heartbeats

BASE = {
    "clusters": "a, b",
    "a.bootstrap.servers": "a:1",
    "b.bootstrap.servers": "b:1",
    "a->b.enabled": "true",
}


def _load(changes: dict[str, str]) -> Deployment:
    return parse_deployment({**BASE, **changes})


def _flow(changes: dict[str, str]) -> FlowSettings:
    [flow] = _load(changes).flows
    return flow


# -- 1.2 common keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "is_latest"),
    [
        ({}, False),
        ({"a.consumer.auto.offset.reset": "latest"}, True),
        ({"a->b.consumer.auto.offset.reset": "latest"}, True),
        ({"a.consumer.auto.offset.reset": "earliest"}, False),
        ({"b.consumer.auto.offset.reset": "latest"}, False),
    ],
)
def test_1_2_a_source_is_read_from_its_beginning_unless_set(changes: dict[str, str], is_latest: bool) -> None:
    assert _flow(changes).start_at_latest is is_latest


def test_1_2_enable_auto_commit_is_false_always() -> None:
    [remark] = _load({"a.consumer.enable.auto.commit": "true"}).remarks
    assert (remark.kind, remark.key) == ("note", "a.consumer.enable.auto.commit")


@pytest.mark.parametrize("location", ["source", "target"])
def test_1_2_offset_syncs_live_on_either_side(location: str) -> None:
    assert _flow({"offset-syncs.topic.location": location}).group_sync.offset_syncs_on_target is (location == "target")


def test_1_2_another_location_is_rejected() -> None:
    with pytest.raises(SettingsError, match="must be one of source, target"):
        _load({"offset-syncs.topic.location": "moon"})


# -- 1.3 to 1.5: what switches what ------------------------------------------------------------------------------------

ON = GroupSync()
OFF = GroupSync(checkpoints_enabled=False, offsets_enabled=False)


@pytest.mark.parametrize(
    ("changes", "groups"),
    [
        ({}, ON),
        ({"sync.group.offsets.enabled": "true"}, GroupSync(offsets_enabled=True)),
        ({"sync.group.offsets.enabled": "false"}, ON),
        ({"emit.checkpoints.enabled": "false"}, OFF),
        ({"a->b.emit.checkpoints.enabled": "false"}, OFF),
        ({"a->b.MirrorCheckpointConnector.emit.checkpoints.enabled": "false"}, OFF),
        ({"a->b.MirrorCheckpointConnector.enabled": "false"}, OFF),
        ({"a->b.MirrorCheckpointConnector.enabled": "FALSE", "sync.group.offsets.enabled": "true"}, OFF),
        ({"a->b.MirrorCheckpointConnector.enabled": "true"}, ON),
        ({"b->a.MirrorCheckpointConnector.enabled": "false"}, ON),
    ],
)
def test_1_4_the_checkpoint_connectors_switches(changes: dict[str, str], groups: GroupSync) -> None:
    deployment = _load(changes)
    assert [one.group_sync for one in deployment.flows] == [groups]
    assert deployment.remarks == []


def test_1_4_emit_checkpoints_false_is_a_validation_error_where_offsets_need_them() -> None:
    with pytest.raises(SettingsError, match="needs checkpoints"):
        _load({"emit.checkpoints.enabled": "false", "sync.group.offsets.enabled": "true"})


@pytest.mark.parametrize(
    "changes",
    [
        {"a->b.MirrorSourceConnector.enabled": "false"},
        {"a->b.enabled": "false", "a->b.MirrorCheckpointConnector.enabled": "true"},
    ],
)
def test_1_4_a_checkpoint_connector_alone_is_told_to_have_no_effect(changes: dict[str, str]) -> None:
    deployment = _load(changes)
    assert deployment.flows == []
    told = [str(one) for one in deployment.remarks if "checkpoints are made from what a flow carries" in one.text]
    assert len(told) == 1
    assert "a->b.enabled = true" in told[0]


def test_1_4_a_switch_by_itself_is_among_the_settings_that_count() -> None:
    deployment = _load({"a->b.MirrorCheckpointConnector.enabled": "false"})
    found = {one.name: one for one in next(iter(deployment.effective.values()))}
    assert found["MirrorCheckpointConnector.enabled"].level == "flow a->b, MirrorCheckpointConnector"


@pytest.mark.parametrize(
    ("changes", "beats"),
    [
        ({}, Heartbeats()),
        ({"emit.heartbeats.enabled": "false"}, Heartbeats(emitted=False)),
        ({"a->b.emit.heartbeats.enabled": "false"}, Heartbeats(emitted=False)),
        ({"emit.heartbeats.interval.seconds": "7"}, Heartbeats(interval_s=7)),
        ({"heartbeats.topic.replication.factor": "1"}, Heartbeats(replication_factor=1)),
        ({"heartbeats.replication.enabled": "false"}, Heartbeats(replicated=False)),
    ],
)
def test_1_5_heartbeats(changes: dict[str, str], beats: Heartbeats) -> None:
    assert _flow(changes).heartbeats == beats


@pytest.mark.parametrize(
    ("changes", "flows", "only_beating"),
    [
        ({}, ["a->b"], ["b->a"]),
        ({"a->b.enabled": "false"}, [], ["a->b", "b->a"]),
        ({"a->b.enabled": "false", "b->a.emit.heartbeats.enabled": "false"}, [], ["a->b"]),
        ({"a->b.MirrorHeartbeatConnector.enabled": "false"}, ["a->b"], ["b->a"]),
        ({"emit.heartbeats.enabled": "false"}, ["a->b"], []),
        ({"a->b.enabled": "false", "topics": "", "emit.heartbeats.enabled": "true"}, [], ["a->b", "b->a"]),
    ],
)
def test_2_12_2_heartbeats_run_whether_the_flow_is_enabled_or_not(
    changes: dict[str, str], flows: list[str], only_beating: list[str]
) -> None:
    deployment = _load(changes)
    assert [str(one.flow) for one in deployment.flows] == flows
    assert [str(one.flow) for one in deployment.heartbeats_only] == only_beating
    assert all(one.heartbeats.emitted for one in deployment.heartbeats_only)


def test_2_12_2_enabled_of_the_heartbeat_connector_is_told_to_have_no_effect() -> None:
    [remark] = _load({"a->b.MirrorHeartbeatConnector.enabled": "false"}).remarks
    assert str(remark) == (
        "a->b.MirrorHeartbeatConnector.enabled: has no effect, as in MirrorMaker 2; write a->b.emit.heartbeats.enabled = "
        "false"
    )


# -- 1.9 security names ------------------------------------------------------------------------------------------------

SECURITY = {
    **{
        f"ssl.{name}": "x"
        for name in (
            *("protocol", "provider", "cipher.suites", "enabled.protocols", "keystore.type", "keystore.location"),
            *("keystore.password", "keystore.key", "keystore.certificate.chain", "key.password", "truststore.type"),
            *("truststore.location", "truststore.password", "truststore.certificates", "keymanager.algorithm"),
            *("trustmanager.algorithm", "endpoint.identification.algorithm", "secure.random.implementation"),
            "engine.factory.class",
        )
    },
    **{
        f"sasl.{name}": "x"
        for name in (
            *("mechanism", "jaas.config", "client.callback.handler.class", "login.callback.handler.class"),
            *("login.class", "kerberos.service.name", "kerberos.kinit.cmd", "oauthbearer.scope.claim.name"),
            *("oauthbearer.sub.claim.name", "oauthbearer.token.endpoint.url", "oauthbearer.jwks.endpoint.url"),
            *("oauthbearer.expected.audience", "oauthbearer.expected.issuer"),
        )
    },
    **{
        f"sasl.{name}": "1"
        for name in (
            *("kerberos.min.time.before.relogin", "login.refresh.min.period.seconds", "login.refresh.buffer.seconds"),
            *("login.connect.timeout.ms", "login.read.timeout.ms", "login.retry.backoff.ms"),
            *("login.retry.backoff.max.ms", "oauthbearer.jwks.endpoint.refresh.ms"),
            *("oauthbearer.jwks.endpoint.retry.backoff.ms", "oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
            "oauthbearer.clock.skew.seconds",
        )
    },
    "sasl.kerberos.ticket.renew.window.factor": "0.8",
    "sasl.kerberos.ticket.renew.jitter": "0.05",
    "sasl.login.refresh.window.factor": "0.8",
    "sasl.login.refresh.window.jitter": "0.05",
    "sasl.oauthbearer.header.urlencode": "false",
    "security.protocol": "PLAINTEXT",
}


@pytest.mark.parametrize("level", ["", "a.", "a.consumer.", "b.producer.", "a.admin.", "a->b.source.consumer."])
@pytest.mark.parametrize("name", SECURITY)
def test_1_9_security_names_are_accepted_everywhere(name: str, level: str) -> None:
    """Accepted, or refused for what they ask for; never as a key that nobody knows or that stands at the wrong level."""
    told = ""
    try:
        _load({f"{level}{name}": SECURITY[name]})
    except SettingsError as error:
        told = str(error)
    assert not told or "cannot be honoured" in told
