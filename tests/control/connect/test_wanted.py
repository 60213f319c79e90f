"""Three connectors are one flow; what each of them wants decides what the flow does."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.config.document import Document
from mirrorspark.control.connect.wanted import Wanted, settings_of, wanted_flows
from mirrorspark.names import Flow
from mirrorspark.rest.connector_host import TargetState

PACKAGE = "org.apache.kafka.connect.mirror"
SHARED = {
    "source.cluster.alias": "east",
    "target.cluster.alias": "west",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
}
EAST_WEST = Flow("east", "west")


def _one(kind: str, state: TargetState = TargetState.RUNNING, name: str = "", **keys: str) -> Wanted:
    config = {**SHARED, "connector.class": f"{PACKAGE}.Mirror{kind}Connector", **keys}
    return Wanted(name or kind.lower(), config, state)


ALL = [_one("Source", topics="orders"), _one("Checkpoint"), _one("Heartbeat")]


def test_three_connectors_are_one_flow() -> None:
    found = wanted_flows(ALL)
    assert list(found.flows) == [EAST_WEST]
    settings = found.flows[EAST_WEST]
    assert settings.enabled
    assert settings.topics == "orders"
    assert settings.group_sync.checkpoints_enabled
    assert settings.heartbeats.emitted
    assert found.faults == {}


def test_a_source_alone_has_neither_groups_nor_heartbeats() -> None:
    settings = wanted_flows(ALL[:1]).flows[EAST_WEST]
    assert settings.enabled
    assert not settings.group_sync.checkpoints_enabled
    assert not settings.heartbeats.emitted


def test_heartbeats_alone_carry_nothing() -> None:
    settings = wanted_flows(ALL[2:]).flows[EAST_WEST]
    assert not settings.enabled
    assert settings.heartbeats.emitted


def test_checkpoints_alone_make_no_flow() -> None:
    found = wanted_flows(ALL[1:2])
    assert found.flows == {}
    assert found.faults == {}


@pytest.mark.parametrize("state", [TargetState.PAUSED, TargetState.STOPPED])
def test_parts_that_are_switched_off(state: TargetState) -> None:
    source, checkpoint, heartbeat = ALL
    settings = wanted_flows([source, _one("Checkpoint", state), heartbeat]).flows[EAST_WEST]
    assert not settings.group_sync.checkpoints_enabled
    settings = wanted_flows([source, checkpoint, _one("Heartbeat", state)]).flows[EAST_WEST]
    assert settings.enabled
    assert not settings.heartbeats.emitted


def test_a_stopped_source_leaves_the_heartbeats() -> None:
    found = wanted_flows([_one("Source", TargetState.STOPPED), *ALL[1:]])
    assert not found.flows[EAST_WEST].enabled
    assert wanted_flows([_one("Source", TargetState.STOPPED)]).flows == {}


def test_a_paused_source_holds_its_flow() -> None:
    found = wanted_flows([_one("Source", TargetState.PAUSED), *ALL[1:]])
    assert found.flows[EAST_WEST].enabled
    assert found.paused == {EAST_WEST: "source"}


def test_a_second_source_of_a_pair_fails_alone() -> None:
    found = wanted_flows([*ALL, _one("Source", name="again", topics="payments")])
    assert found.flows[EAST_WEST].topics == "orders"
    assert list(found.faults) == ["again"]
    assert "beside source" in found.faults["again"]


def test_flows_do_not_harm_each_other() -> None:
    broken = Wanted(
        "broken", {**ALL[0].config, "source.cluster.alias": "north", "target.cluster.bootstrap.servers": "?"}
    )
    found = wanted_flows([*ALL, broken, Wanted("odd", {"connector.class": "Nothing"})])
    assert list(found.flows) == [EAST_WEST]
    assert set(found.faults) == {"broken", "odd"}


def test_a_worker_says_where_connect_kept_its_offsets() -> None:
    worker = Document.of({"offset.storage.topic": "connect-offsets", "group.id": "connect-cluster"})
    settings = wanted_flows(ALL, worker).flows[EAST_WEST]
    assert settings.connect.offsets_topic == "connect-offsets"
    assert settings.connect.group == "connect-cluster"
    assert settings.connect.connector == "source"


def test_offsets_are_those_of_a_stopped_connector_too() -> None:
    assert settings_of(_one("Source", TargetState.STOPPED)).enabled


def test_placeholders_are_asked_for_by_the_providers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that everybody has, and those that the worker's file declares."""
    secrets = tmp_path / "secrets"
    secrets.write_text("servers = c:9092\n")
    monkeypatch.setenv("TOPICS_OF_A_TEST", "orders")
    declared = {"config.providers": "vault", "config.providers.vault.class": "FileConfigProvider"}
    keys = {"topics": "${env:TOPICS_OF_A_TEST}", "source.cluster.bootstrap.servers": f"${{vault:{secrets}:servers}}"}
    found = wanted_flows([_one("Source", **keys)], Document.of(declared, "worker"))
    assert found.faults == {}
    assert found.flows[EAST_WEST].topics == "orders"
    assert found.flows[EAST_WEST].source.bootstrap == (("c", 9092),)
    assert "no config provider vault" in wanted_flows([_one("Source", **keys)]).faults["source"]
