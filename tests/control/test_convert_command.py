"""``mirrorspark convert``: stdout, files, notes, and exit codes."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from mirrorspark.control.command.convert import convert

PROPERTIES = """\
clusters = a, b
a.bootstrap.servers = a:9092
b.bootstrap.servers = b:9092
b.security.protocol = SASL_SSL
b.sasl.mechanism = PLAIN
b.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="geheim";
a->b.enabled = true
a->b.topics = orders
emit.heartbeats.enabled = false
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(PROPERTIES)
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    app = typer.Typer()
    app.command()(convert)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("form", ["properties", "json", "yaml", "strimzi"])
def test_a_form_goes_to_stdout_and_its_notes_to_stderr(file: Path, form: str) -> None:
    code, out, err = run(file, "--to", form)
    assert (code, "orders" in out, "geheim" in out + err) == (0, True, False)
    assert "mirrorspark: note: " in err


def test_json_goes_into_a_folder_and_comes_back(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "connectors" / "all"
    assert run(file, "--to", "json", "-o", folder)[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["mm2-cpc-a.json", "mm2-msc-a.json"]
    code, out, _ = run(folder, "--to", "properties")
    assert code == 0
    assert "a->b.topics = orders" in out.replace("\\", "")
    assert run(file, "--to", "json", "-o", tmp_path / "one.json")[0] == 0
    assert len(json.loads((tmp_path / "one.json").read_text())) == 2


def test_secrets_are_written_only_if_wanted_and_for_this_user_alone(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.yaml"
    path.write_text("older, and open to all")
    assert run(file, "--to", "strimzi", "--with-secrets", "-o", path)[0] == 0
    assert "geheim" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_has_no_room_is_refused_or_left_out_with_a_word(file: Path) -> None:
    file.write_text(PROPERTIES + "listeners = http://:8083\n")
    code, out, err = run(file, "--to", "json")
    assert (code, out) == (2, "")
    assert "listeners: a setting of a dedicated MirrorMaker 2 process" in err
    code, out, err = run(file, "--to", "json", "--partial")
    assert code == 0
    assert "left out: listeners" in err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--to", "xml"], "--to xml: no such form; there is properties, json, yaml, strimzi"),
        (["--to", "json", "--api-version", "v1"], "--api-version v1: v1beta2 or v1, with --to strimzi"),
        (["--to", "strimzi", "--api-version", "v2"], "--api-version v2"),
        (["--to", "json", "-o", "/dev/null/x"], "cannot be written"),
    ],
)
def test_a_wrong_option_ends_with_code_2(file: Path, arguments: list[str], problem: str) -> None:
    code, _, err = run(file, *arguments)
    assert code == 2
    assert problem in err


def test_a_file_that_is_not_there_ends_with_code_2(tmp_path: Path) -> None:
    assert run(tmp_path / "none", "--to", "json")[0] == 2
