"""Which form a file has, which forms go together, and that all files of the seeds load or are refused for a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mirrorspark.config.forms.front_door import read_form_entries, read_forms
from mirrorspark.config.forms.writing import FORMS, write_form
from mirrorspark.config.load import load_deployment
from mirrorspark.errors import SettingsError

DATA = Path(__file__).parent / "data"
CONNECTOR = {"connector.class": "MirrorSource", "source.cluster.alias": "a", "target.cluster.alias": "b"}
VARIABLES = {
    "KAFKA_SOURCE_BROKERS": "a:9092",
    "KAFKA_TARGET_BROKERS": "b:9092",
    "KAFKA_TARGET_APIKEY": '"key"',
    "MIRRORSPARK_SECRET_OAUTH_SECRET": "x",
}
LOADED = {
    "seed_connect": ["source-0->target-0"],
    "seed_connect_custom_policy.json": ["msksource->mskdest"],
    "seed_properties/kafka-to-es.properties": ["source->target"],
    "seed_properties/with-variables.properties": ["source->target"],
    "connect_posted.json": ["east->west"],
    "connect_expanded.json": ["a->b", "b->a"],
    "connect_list.json": ["edge->core"],
    "plain.yaml": ["east->west"],
    "strimzi_with_secrets.yaml": ["north->south"],
    "strimzi_list.json": ["down->up", "up->down"],
    "strimzi_connectors.yaml": ["a->b"],
}
REFUSED = {
    "seed_properties/connect-distributed.properties": "a Kafka Connect worker's file",
    "seed_strimzi/both-ways.yaml": "is not connectCluster",
    "seed_strimzi/event-streams.yaml": "secret rt-inv-dev-user has no key password here",
    "strimzi_v1.yaml": "secret mirror-user has no key user.crt here",
    "strimzi_oauth.yaml": "sasl.mechanism",
    "chain.properties": r"chain\.properties:7: ssl\.truststore\.location=.*No such file",
}


def test_every_file_is_expected_to_load_or_to_be_refused() -> None:
    files = {str(path.relative_to(DATA)) for path in DATA.rglob("*") if path.is_file()}
    assert {name for name in files if not name.startswith("seed_connect/")} == {*LOADED, *REFUSED} - {"seed_connect"}


@pytest.mark.parametrize("name", LOADED)
def test_a_file_loads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in VARIABLES.items():
        monkeypatch.setenv(variable, value)
    assert [str(flow.flow) for flow in load_deployment(DATA / name).flows] == LOADED[name]


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in VARIABLES.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match=REFUSED[name]):
        load_deployment(DATA / name)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [*LOADED, "strimzi_v1.yaml", "strimzi_oauth.yaml", "seed_strimzi/event-streams.yaml"])
def test_a_file_goes_through_every_form(name: str, form: str) -> None:
    """``write_form`` reads back what it wrote and compares."""
    document = read_forms([DATA / name], environment={}, needs_secrets=False)
    text = write_form(document, form).text
    if form == "strimzi" and "strimzi" in name and "connectors" not in name and "secrets" not in name:
        assert [line for line in text.splitlines() if "secretName" in line] == [
            line for line in text.splitlines() if "secretName" in line and "mirrorspark-" not in line
        ]


def test_a_kept_resource_is_written_as_it_was_read(tmp_path: Path) -> None:
    first = read_forms([DATA / "seed_strimzi" / "event-streams.yaml"], environment={}, needs_secrets=False)
    path = tmp_path / "again.yaml"
    path.write_text(write_form(first, "strimzi").text)
    assert dict(read_forms([path], environment={}, needs_secrets=False)) == dict(first)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mm2.conf", "clusters: a, b\na->b.enabled = true\n"),
        ("mm2", "clusters = a, b\na->b.enabled: true"),
        ("mm2.txt", '\n {"clusters": "a, b", "a->b.enabled": true}'),
        ("mm2.YAML", "clusters: a, b\na->b: {enabled: true}"),
        ("other", "---\nclusters: a, b\na->b.enabled: true"),
        ("mm2.properties", "\ufeffclusters = a, b\na->b.enabled = true"),
    ],
)
def test_the_form_is_told_by_ending_or_content(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert dict(read_forms([tmp_path / name])) == {"clusters": "a, b", "a->b.enabled": "true"}


def test_a_line_that_is_given_twice_stays_for_those_who_warn(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a = 1\na = 2\n")
    assert [entry.value for entry in read_form_entries([tmp_path / "p"])] == ["1", "2"]
    assert read_forms([tmp_path / "p"])["a"] == "2"


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "no such file"),
        ({"a.yaml": ""}, "is empty"),
        ({"a.yaml": "# nothing\n---\n"}, "is empty"),
        ({"a.yaml": "x: 1"}, "neither connectors, nor KafkaMirrorMaker2 resources, nor a mapping with clusters"),
        ({"a.yaml": "clusters: a", "b.yaml": "clusters: b"}, "stands alone"),
        ({"a.properties": "clusters=a", "b.properties": "clusters=b"}, "one properties file at a time"),
        ({"a.yaml": "kind: KafkaMirrorMaker2", "b.properties": "x=1"}, "a properties file beside Kubernetes resources"),
        ({"a.yaml": "kind: KafkaMirrorMaker2", "b.json": json.dumps(CONNECTOR)}, "no kind: not a Kubernetes resource"),
        ({"a.json": json.dumps(CONNECTOR), "b.properties": "clusters=a"}, "a properties file beside connectors"),
        ({"a.json": json.dumps(CONNECTOR), "b.properties": "x=1", "c.properties": "x=1"}, "and one worker's file"),
        ({"a.yaml": "clusters: a\nx: {y: 1}\nx.y: 2"}, r"a\.yaml:3: x\.y: x\.y is given twice"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, files: dict[str, str], problem: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(SettingsError, match=problem):
        read_forms([tmp_path / name for name in files or {"none": ""}])


def test_a_folder_without_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("x")
    with pytest.raises(SettingsError, match=r"no file in it ends with \.json, \.yaml, \.yml"):
        read_forms([tmp_path])


def test_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="cannot be read"):
        read_forms([tmp_path / "p"])
