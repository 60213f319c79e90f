"""Config providers: values from the environment, files and folders, and what is said when they are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.config.document import Document, Entry
from mirrorspark.config.findings import Findings
from mirrorspark.config.load import load_deployment
from mirrorspark.config.providers import resolve
from mirrorspark.errors import SettingsError

SECRET = "hunter2-do-not-tell"
VARIABLES = {"HOST": "h1:9092", "PW": SECRET, "EMPTY": "", "TRICK": "${env:PW}"}


def _resolved(value: str, **properties: str) -> tuple[str, list[str]]:
    declared = [Entry(key.replace("__", "."), text, "f:1") for key, text in properties.items()]
    raw = Document([*declared, Entry("some.key", value, "f:9")])
    findings = Findings(raw)
    return resolve(raw, findings, VARIABLES)["some.key"], [str(error) for error in findings.errors]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env:HOST}", "h1:9092"),
        ("${HOST}", "h1:9092"),
        ("${HOST},${env:HOST}", "h1:9092,h1:9092"),
        ('x required password="${PW}";', f'x required password="{SECRET}";'),
        ("${env:EMPTY}", ""),
        ("${env::HOST}", "h1:9092"),
        ("$HOST", "$HOST"),
        ("${}", "${}"),
        ("${1}", "${1}"),
        ("${not closed", "${not closed"),
        ("${TRICK}", "${env:PW}"),  # once, never inside what was given
    ],
)
def test_variables(text: str, value: str) -> None:
    assert _resolved(text) == (value, [])


def test_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("a.key = \\u0041 b\nwith\\:colon = c\n")
    (tmp_path / "password").write_text("line\n")
    assert _resolved(f"${{file:{tmp_path}/secrets.properties:a.key}}") == ("A b", [])
    assert _resolved(f"${{file:{tmp_path}/secrets.properties:with:colon}}") == ("c", [])
    assert _resolved(f"${{dir:{tmp_path}:password}}") == ("line\n", [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("${env:NONE}", "${env:NONE}: the environment has no variable NONE"),
        ("${NONE}", "${NONE}: the environment has no variable NONE"),
        ("${vault:a:b}", "there is no config provider vault; there are dir, env, file"),
        ("${file:/no/such:key}", "/no/such cannot be read: No such file or directory"),
        ("${file:key}", "no path is given"),
        ("${dir:/no/such:key}", "/no/such/key cannot be read: No such file or directory"),
        ("${dir:/etc:../passwd}", "is no file name"),
    ],
)
def test_what_is_not_there_is_an_error_with_file_line_and_key(text: str, told: str) -> None:
    value, [error] = _resolved(text)
    assert value == text
    assert error.startswith("f:9: some.key: ")
    assert told in error


def test_a_key_that_the_file_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "s").write_text(f"other={SECRET}\n")
    _, [error] = _resolved(f"${{file:{tmp_path}/s:key}}")
    assert error.endswith("has no key key")
    assert SECRET not in error


def test_other_names_and_their_parameters(tmp_path: Path) -> None:
    declared = {
        "config__providers": "e, f",
        "config__providers__e__class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "config__providers__e__param__allowlist.pattern": "H.*",
        "config__providers__f__class": "FileConfigProvider",
        "config__providers__f__param__allowed.paths": f"{tmp_path}/in, /nowhere",
    }
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "s").write_text("k=v")
    (tmp_path / "out").write_text("k=v")
    assert _resolved("${e:HOST}", **declared) == ("h1:9092", [])
    assert "does not allow PW" in _resolved("${e:PW}", **declared)[1][0]
    assert _resolved(f"${{f:{tmp_path}/in/s:k}}", **declared) == ("v", [])
    assert "do not allow" in _resolved(f"${{f:{tmp_path}/in/../out:k}}", **declared)[1][0]


def test_declarations_that_lead_nowhere() -> None:
    assert "config.providers.x.class: missing" in _resolved("1", config__providers="x")[1][0]
    [error] = _resolved("1", config__providers__x__class="io.strimzi.kafka.KubernetesSecretConfigProvider")[1]
    assert "known are EnvVarConfigProvider, FileConfigProvider, DirectoryConfigProvider" in error


def test_a_clusters_own_declaration_counts() -> None:
    declared = {"west__config__providers__e__class": "EnvVarConfigProvider"}
    assert _resolved("${e:HOST}", **declared) == ("h1:9092", [])


def test_resolved_values_are_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_TEST", SECRET)
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters = a, b\na.bootstrap.servers = ${SECRET_OF_TEST}\nb.bootstrap.servers = b:1\na->b.enabled = true\n"
        "tasks.max = ${SECRET_OF_TEST}\ntopics = ${SECRET_OF_TEST}(\nb.client.id = ${SECRET_OF_TEST}\n"
    )
    with pytest.raises(SettingsError) as caught:
        load_deployment(path)
    assert [one["line"] for one in caught.value.facts["problems"]] == [2, 5, 6]
    assert SECRET not in f"{caught.value}{caught.value.facts}"
    assert "tasks.max=${SECRET_OF_TEST}: not a whole number" in str(caught.value)
    path.write_text(
        "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n"
        "b.client.id = ${SECRET_OF_TEST}\n"
    )
    deployment = load_deployment(path)
    assert deployment.flows[0].target.client["client.id"] == SECRET
    shown = [f"{one!r}{one.text}" for one in deployment.effective[deployment.flows[0].flow]]
    assert SECRET not in f"{shown}{deployment!r}"
