"""Nothing is lost between the forms: round trips over made-up mirrors, and what has no room is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirrorspark.config.document import Document
from mirrorspark.config.forms.connect_json import connectors_in, document_of
from mirrorspark.config.forms.front_door import read_forms
from mirrorspark.config.forms.nodes import parse_json, parse_yaml
from mirrorspark.config.forms.plain_yaml import plain_document
from mirrorspark.config.forms.secret_store import SecretStore
from mirrorspark.config.forms.spread import meaning
from mirrorspark.config.forms.strimzi_reader import read_resources
from mirrorspark.config.forms.writing import FORMS, write_form
from mirrorspark.config.properties_syntax import parse_entries
from mirrorspark.errors import SettingsError

from .documents import VALUES, logins, mirrors

FEW = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], report_multiple_bugs=False)
SIMPLE = {
    "clusters": "a, b",
    "a.bootstrap.servers": "a:9092",
    "b.bootstrap.servers": "b:9092",
    "a->b.enabled": "true",
    "emit.heartbeats.enabled": "false",
}


def again(text: str, form: str) -> Document:
    """What a written text reads as; secrets are not at hand."""
    if form == "properties":
        return Document(parse_entries(text))
    if form == "yaml":
        return plain_document(parse_yaml(text, "written")[0])
    if form == "json":
        return document_of(connectors_in(parse_json(text, "written")))
    return read_resources(parse_yaml(text, "written"), SecretStore(is_needed=False))


def said(document: Document) -> dict[str, str]:
    """All keys; the order of the aliases says nothing."""
    return {**document, "clusters": ", ".join(sorted(document["clusters"].split(", ")))}


@FEW
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), VALUES, max_size=8))
def test_any_document_survives_properties_and_yaml(keys: dict[str, str]) -> None:
    document = Document.of({"clusters": "a, east.1", **keys})
    for form in ("properties", "yaml"):
        assert dict(again(write_form(document, form, with_secrets=True).text, form)) == dict(document)


@FEW
@given(mirrors())
def test_a_mirror_means_the_same_as_connectors(document: Document) -> None:
    first = again(write_form(document, "json").text, "json")
    assert meaning(first) == meaning(document)
    assert said(again(write_form(first, "json").text, "json")) == said(first)


@FEW
@given(mirrors(), st.data())
def test_a_mirror_means_the_same_as_a_resource(document: Document, data: st.DataObject) -> None:
    alias = document["clusters"].split(", ")[0]
    document = Document.of({**document, **{f"{alias}.{key}": value for key, value in data.draw(logins()).items()}})
    first = again(write_form(document, "strimzi").text, "strimzi")
    second = again(write_form(first, "strimzi").text, "strimzi")
    assert said(second) == said(first)


@settings(FEW, max_examples=8)
@given(mirrors())
def test_a_mirror_survives_a_chain_of_all_forms(document: Document) -> None:
    normal = again(write_form(document, "strimzi").text, "strimzi")
    start = meaning(normal)
    for form in ("yaml", "strimzi", "properties", "json", "properties", "strimzi", "json"):
        normal = again(write_form(normal, form).text, form)
    assert meaning(normal) == start


@pytest.mark.parametrize("form", ["json", "strimzi"])
@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("consumer.fetch.min.bytes", "write it for a cluster"),
        ("use.defaults.from", "write it for a flow"),
        ("enabled", "write it for a flow"),
        ("exactly.once.source.support", "write it for a target"),
        ("dedicated.mode.enable.internal.rest", "of a dedicated MirrorMaker 2 process"),
        ("a->c.topics", "not a flow between two aliases"),
        ("a->b.connector.class", "cannot be replaced"),
        ("a->b.target.cluster.alias", "cannot be replaced"),
    ],
)
def test_what_has_no_room_is_named(form: str, key: str, why: str) -> None:
    document = Document.of({**SIMPLE, key: "x"})
    with pytest.raises(SettingsError, match=why) as caught:
        write_form(document, form)
    assert key in str(caught.value)
    written = write_form(document, form, is_partial=True)
    assert any(note.startswith(f"left out: {key}: ") for note in written.notes)


def test_a_cluster_without_a_flow_has_no_room_in_json_but_in_a_resource() -> None:
    document = Document.of(
        {**SIMPLE, "clusters": "a, b, c", "c.bootstrap.servers": "c:9092", "a->b.emit.heartbeats.enabled": "true"}
    )
    with pytest.raises(SettingsError, match=r"c\.bootstrap\.servers: cluster c has no flow"):
        write_form(document, "json")
    assert again(write_form(document, "strimzi").text, "strimzi")["c.bootstrap.servers"] == "c:9092"


def test_a_storage_key_that_is_given_twice_has_no_room() -> None:
    keys = {"offset.storage.topic": "one", "b.offset.storage.topic": "two"}
    with pytest.raises(SettingsError, match="keep one of them"):
        write_form(Document.of(SIMPLE | keys), "json")


def test_without_a_flow_there_is_nothing_to_write() -> None:
    for form in ("json", "strimzi"):
        with pytest.raises(SettingsError, match="no flow is enabled"):
            write_form(Document.of(SIMPLE | {"a->b.enabled": "false"}), form)


def test_heartbeats_go_between_all_clusters_unless_told_otherwise() -> None:
    keys = {key: value for key, value in SIMPLE.items() if key != "emit.heartbeats.enabled"}
    written = json.loads(write_form(Document.of(keys), "json").text)
    beats = [
        f"{one['config']['source.cluster.alias']}->{one['config']['target.cluster.alias']}"
        for one in written
        if one["config"]["connector.class"].endswith("HeartbeatConnector")
    ]
    assert beats == ["a->b", "b->a"]
    assert "emit.heartbeats.enabled" not in again(json.dumps(written), "json")


def test_json_files_are_named_after_their_source() -> None:
    more = {"clusters": "a, b, c", "c.bootstrap.servers": "c:9092", "a->c.enabled": "true", "c->b.enabled": "true"}
    written = write_form(Document.of(SIMPLE | more), "json")
    assert sorted(written.files) == [
        *("mm2-cpc-a-to-b.json", "mm2-cpc-a-to-c.json", "mm2-cpc-c.json"),
        *("mm2-msc-a-to-b.json", "mm2-msc-a-to-c.json", "mm2-msc-c.json"),
    ]
    assert any("into b have the same name, MirrorSourceConnector" in note for note in written.notes)


@pytest.mark.parametrize("form", FORMS)
def test_secrets_are_written_as_references_unless_wanted(form: str, tmp_path: Path) -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="ge\\"heim";'
    document = Document.of(
        SIMPLE | {"b.security.protocol": "SASL_SSL", "b.sasl.mechanism": "PLAIN", "b.sasl.jaas.config": jaas}
    )
    hidden = write_form(document, form)
    assert "heim" not in hidden.text + "".join(hidden.files.values()) + "".join(hidden.notes)
    assert any("MIRRORSPARK_SECRET_B_SASL_PASSWORD" in note or "mirrorspark-b" in note for note in hidden.notes)
    shown = write_form(document, form, with_secrets=True)
    assert again(shown.text, form)["b.sasl.jaas.config"] == jaas


def test_the_version_of_a_resource_follows_from_what_it_must_hold() -> None:
    plain, beating = Document.of(SIMPLE), Document.of(SIMPLE | {"a->b.emit.heartbeats.enabled": "true"})
    assert yaml.safe_load(write_form(plain, "strimzi").text)["apiVersion"] == "kafka.strimzi.io/v1"
    assert yaml.safe_load(write_form(beating, "strimzi").text)["apiVersion"] == "kafka.strimzi.io/v1beta2"
    older = write_form(plain, "strimzi", api_version="v1beta2").text
    assert yaml.safe_load(older)["spec"]["connectCluster"] == "b"
    with pytest.raises(SettingsError, match="no heartbeat connector"):
        write_form(beating, "strimzi", api_version="v1")


def test_progress_of_a_dedicated_mirrormaker_is_found_again() -> None:
    """Its worker's group and topics are not Strimzi's defaults, so a resource has to say them."""
    target = yaml.safe_load(write_form(Document.of(SIMPLE), "strimzi").text)["spec"]["target"]
    assert (target["groupId"], target["offsetStorageTopic"]) == ("a-mm2", "mm2-offsets.a.internal")


def test_written_files_are_read_from_a_folder(tmp_path: Path) -> None:
    written = write_form(Document.of(SIMPLE), "json")
    for name, text in written.files.items():
        (tmp_path / name).write_text(text)
    assert dict(read_forms([tmp_path])) == dict(again(written.text, "json"))


def test_a_secret_to_be_made_says_where_its_value_is_so_far() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password=${KEY};'
    keys = {"b.security.protocol": "SASL_SSL", "b.sasl.mechanism": "PLAIN", "b.sasl.jaas.config": jaas}
    notes = write_form(Document.of(SIMPLE | keys), "strimzi").notes
    assert "make the Kubernetes secret mirrorspark-b with password (so far ${KEY}) for cluster b" in notes
