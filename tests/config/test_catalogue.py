"""The table of keys: complete against Kafka's own, and of one mind with the settings, the reference page and REST."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from mirrorspark.config.catalogue import (
    CLIENTS,
    PLAIN,
    SECURITY_NAMES,
    TABLES,
    client_definition,
    nearest,
    plain_definition,
)
from mirrorspark.config.definition import CONNECTORS, Definition, Kind, Scope
from mirrorspark.config.reference_page import reference_page
from mirrorspark.config.rest_definitions import connector_definitions
from mirrorspark.names import Flow
from mirrorspark.plan.replication_policy import policy_choice
from mirrorspark.settings import ClusterSettings, FlowSettings

FLOW = FlowSettings(Flow("a", "b"), ClusterSettings("a", ()), ClusterSettings("b", ()))
ALL = [one for table in TABLES.values() for one in table]
HANDED_ON = (
    *("offset.storage", "config.storage", "status.storage", "key.converter", "value.converter", "header.converter"),
    *("task", "worker", "replication.policy"),
)
"""What MirrorMaker 2 hands from the top level on to its workers, by prefix."""
NEVER_AT_TOP = {"name", "connector.class", "enabled", "source.cluster.alias", "target.cluster.alias"}
"""Connector names that MirrorMaker 2 would take there, with one meaning for all flows; here they are errors."""


def _kafka(reader: str) -> Iterator[str]:
    for line in (Path(__file__).parent / "files" / "kafka_keys.txt").read_text().splitlines():
        if line.startswith(f"{reader} "):
            yield line.removeprefix(f"{reader} ")


@pytest.mark.parametrize("role", ["consumer", "producer", "admin"])
def test_every_key_of_kafkas_clients_is_known(role: str) -> None:
    unknown = [name for name in _kafka(role) if client_definition(role, name) is None and name != "config.providers"]
    assert unknown == []


@pytest.mark.parametrize("reader", [*CONNECTORS, "file", "worker", "source-connector"])
def test_every_key_of_mirror_maker_and_connect_is_known(reader: str) -> None:
    assert [name for name in _kafka(reader) if plain_definition(name) is None] == []


def test_rule_1_1_global_names_are_those_that_a_connector_knows() -> None:
    known = {name for connector in CONNECTORS for name in _kafka(connector)}
    dropped = {name for name in known if not (plain_definition(name) or PLAIN["topics"]).scope & Scope.TOP}
    assert dropped <= NEVER_AT_TOP


def test_rule_1_1_keys_of_workers_pass_from_the_top_by_prefix_only() -> None:
    workers = set(_kafka("worker")) - {name for reader in (*CONNECTORS, "file") for name in _kafka(reader)}
    at_top = {name for name in workers if (plain_definition(name) or PLAIN["topics"]).scope & Scope.TOP}
    assert at_top == {name for name in workers if name.startswith(HANDED_ON)}


def test_rule_1_1_security_names_are_those_of_the_file() -> None:
    assert {name for name in _kafka("file") if name.startswith(("ssl.", "sasl.", "security."))} - {
        "ssl.client.auth"
    } == SECURITY_NAMES - {"bootstrap.servers"}


# -- of one mind -------------------------------------------------------------------------------------------------------


def _field(place: str) -> Any:
    part, dot, name = place.partition(".")
    return getattr(getattr(FLOW, part), name) if dot else getattr(FLOW, part)


@pytest.mark.parametrize("one", [one for one in ALL if one.fills_a_setting], ids=lambda one: one.name)
def test_defaults_are_the_settings_own(one: Definition) -> None:
    if one.name == "enabled":
        return  # false in a file, true for a flow that somebody made
    assert one.effective_default is not None
    value = one.read(one.effective_default)
    if one.true_when:
        value = value == one.true_when
    if one.name == "replication.policy.class":
        value = policy_choice(one.effective_default).name
    assert _field(one.applied) == value
    assert isinstance(value, type(_field(one.applied))) or type(_field(one.applied)) is float


def test_every_setting_of_topics_groups_and_heartbeats_has_a_key() -> None:
    filled = {one.applied for one in ALL}
    for part in ("topic_sync", "group_sync", "heartbeats", "naming", "policies"):
        for field in fields(getattr(FLOW, part)):
            assert f"{part}.{field.name}" in filled


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_a_definition_reads_well(one: Definition) -> None:
    assert one.help.endswith("."), "one sentence"
    assert "\n" not in one.help
    assert not (one.no_meaning or one.refused).endswith("."), "it completes a sentence"
    assert (one.ours is None) == (one.why == ""), "another default has a reason"
    if one.default and one.kind not in (Kind.CLASS,):
        one.read(one.default)


def test_the_nearest_name() -> None:
    assert nearest("topic.exclude") == "topics.exclude"
    assert nearest("task.max") == "tasks.max"
    assert nearest("refresh.topics.interval.second") == "refresh.topics.interval.seconds"
    assert nearest("isolation.levle", "consumer") == "isolation.level"
    assert nearest("elephant") is None


def test_reading_of_values() -> None:
    number, switch = PLAIN["tasks.max"], PLAIN["sync.topic.acls.enabled"]
    assert number.read(" 7 ") == 7
    assert switch.read("TRUE") is True
    assert PLAIN["exactly.once.source.support"].read("ENABLED") == "enabled"
    assert CLIENTS["consumer"]["sasl.kerberos.ticket.renew.jitter"].read("0.1") == 0.1
    for text in ("1_0", "1e3", "٣", "", "0x1"):
        with pytest.raises(ValueError, match="not a whole number"):
            number.read(text)
    with pytest.raises(ValueError, match="between 1 and 1024"):
        number.read("1025")


# -- what is made of it ------------------------------------------------------------------------------------------------


def test_the_reference_page_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
    assert page.read_text(encoding="utf-8") == reference_page(), "run make docs"


@pytest.mark.parametrize("connector", CONNECTORS)
def test_rest_definitions(connector: str) -> None:
    found = connector_definitions(connector)
    assert {one["name"] for one in found} >= {"replication.policy.class", "tasks.max", "enabled"}
    assert all(
        set(one)
        == {
            *("name", "type", "required", "default_value", "importance", "documentation", "group", "order_in_group"),
            *("width", "display_name", "dependents", "order"),
        }
        for one in found
    )
    assert len({one["name"] for one in found}) == len(found)
    types = {one["name"]: one["type"] for one in found}
    assert types["tasks.max"] == "INT"
    assert types["replication.policy.class"] == "CLASS"
