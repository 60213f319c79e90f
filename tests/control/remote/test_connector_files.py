from __future__ import annotations

import json
from pathlib import Path

import pytest

from mirrorspark.control.remote.connector_files import clusters_in, names_of, read_cluster, read_connector
from mirrorspark.errors import SettingsError
from mirrorspark.rest.connector_host import TargetState


def test_the_seeds_files_in_their_order(folder: Path) -> None:
    found = read_cluster(folder, "source-0")
    assert [one.name for one in found] == ["mm2-msc-source-0", "mm2-cpc-source-0", "mm2-hbc-source-0"]
    assert found[0].body["sync.topic.acls.enabled"] == "false"
    assert clusters_in(folder) == ["source-0"]
    assert clusters_in(folder / "nowhere") == []


def test_both_forms_of_a_body(folder: Path) -> None:
    path = folder / "mm2-msc-source-0.json"
    flat = read_connector(path)
    posted = {"name": "x", "config": {**flat.config, "name": "x"}, "initial_state": "paused"}
    path.write_text(json.dumps(posted))
    found = read_connector(path)
    assert (found.name, found.state) == ("x", TargetState.PAUSED)
    assert found.body == {**flat.body, "name": "x"}
    assert names_of(folder, "source-0")[0] == "x"


def test_names_without_files(tmp_path: Path) -> None:
    assert names_of(tmp_path, "a") == ["mm2-msc-a", "mm2-cpc-a", "mm2-hbc-a"]


def test_a_file_that_is_missing(folder: Path) -> None:
    (folder / "mm2-hbc-source-0.json").unlink()
    with pytest.raises(SettingsError, match=r"mm2-hbc-source-0\.json: not there; clusters with files in .*: source-0"):
        read_cluster(folder, "source-0")
    assert len(read_cluster(folder, "source-0", partial=True)) == 2
    with pytest.raises(SettingsError):
        read_cluster(folder, "another", partial=True)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "not JSON"),
        ("[]", "must be an object"),
        ("{}", "connector.class: missing"),
        ('{"config": 1}', "connector.class: missing"),
        ('{"connector.class": "x", "sasl.jaas.config": ["marked"]}', "sasl.jaas.config: must be a text"),
        ('{"name": "a", "config": {"connector.class": "x", "name": "b"}}', "name: b inside"),
        ('{"config": {"connector.class": "x"}, "initial_state": "marked"}', "initial_state: must be one of"),
        ('{"connector.class": "MirrorCheckpointConnector"}', "holds a MirrorSourceConnector"),
    ],
)
def test_what_no_connector_is(folder: Path, text: str, word: str) -> None:
    path = folder / "mm2-msc-source-0.json"
    path.write_text(text)
    with pytest.raises(SettingsError) as raised:
        read_cluster(folder, "source-0")
    assert word in str(raised.value)
    assert str(path) in str(raised.value)
    assert "marked" not in str(raised.value)


def test_two_of_one_name(folder: Path) -> None:
    path = folder / "mm2-cpc-source-0.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "name": "mm2-msc-source-0"}))
    with pytest.raises(SettingsError, match="as that of"):
        read_cluster(folder, "source-0")


@pytest.mark.parametrize("cluster", ["", " ", "../x", ".."])
def test_a_cluster_is_a_name(tmp_path: Path, cluster: str) -> None:
    with pytest.raises(SettingsError, match="a name is needed"):
        names_of(tmp_path, cluster)


def test_secrets_are_not_shown(folder: Path) -> None:
    path = folder / "mm2-msc-source-0.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "source.cluster.sasl.jaas.config": "marked-jaas"}))
    found = read_connector(path)
    assert found.body["source.cluster.sasl.jaas.config"] == "marked-jaas"
    assert "marked" not in f"{found} {found.config}"
