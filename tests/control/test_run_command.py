"""The words after ``mirrorspark run``: MirrorMaker 2's ``--clusters A B`` and ours mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.config.load import Deployment
from mirrorspark.control.command import run as run_module
from mirrorspark.control.command.run import repeat_clusters

FILE = "mm2.properties"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ([FILE], [FILE]),
        ([FILE, "--clusters", "a", "b"], [FILE, "--clusters", "a", "--clusters", "b"]),
        ([FILE, "--clusters", "a,b"], [FILE, "--clusters", "a,b"]),
        ([FILE, "--clusters", "a", "--clusters", "b"], [FILE, "--clusters", "a", "--clusters", "b"]),
        ([FILE, "--clusters=a"], [FILE, "--clusters=a"]),
        ([FILE, "--clusters", "a", "b", "--ui"], [FILE, "--clusters", "a", "--clusters", "b", "--ui"]),
        (["--clusters", "a", FILE], ["--clusters", "a", FILE]),
        (["--clusters", "a", "b", FILE], ["--clusters", "a", "--clusters", "b", FILE]),
        (["--clusters", "a", "--ui", FILE], ["--clusters", "a", "--ui", FILE]),
        (["--master", "local[2]", "--clusters", "a", FILE], ["--master", "local[2]", "--clusters", "a", FILE]),
        ([FILE, "--clusters", "a", "--master", "local"], [FILE, "--clusters", "a", "--master", "local"]),
        (["--clusters", "a"], ["--clusters", "a"]),
        ([FILE, "--clusters"], [FILE, "--clusters"]),
        ([FILE, "--clusters", "--ui"], [FILE, "--clusters", "--ui"]),
        ([], []),
    ],
)
def test_several_values_become_repeats(words: list[str], meant: list[str]) -> None:
    assert repeat_clusters(words) == meant


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / FILE
    aliases = ["a", "b", "c"]
    lines = [f"clusters = {', '.join(aliases)}"]
    lines += [f"{alias}.bootstrap.servers = {alias}:1" for alias in aliases]
    lines += [f"{one}->{other}.enabled = true" for one in aliases for other in aliases if one != other]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What would have been run; nothing is."""
    found: list[dict[str, Any]] = []

    def run_deployment(deployment: Deployment, **options: Any) -> int:
        options["watch"] = options.pop("edits").is_watched
        found.append({"flows": [str(flow.flow) for flow in deployment.flows], **options})
        return 0

    monkeypatch.setattr(run_module, "run_deployment", run_deployment)
    return found


@pytest.mark.parametrize(
    "words", [["--clusters", "a", "b"], ["--clusters", "a,b"], ["--clusters", "a", "--clusters", "b"]]
)
def test_flows_into_the_chosen_clusters(file: Path, started: list[dict[str, Any]], words: list[str]) -> None:
    assert CliRunner().invoke(app, ["run", str(file), *words]).exit_code == 0
    assert [one["flows"] for one in started] == [["a->b", "b->a", "c->a", "c->b"]]


def test_options_reach_the_run(file: Path, started: list[dict[str, Any]]) -> None:
    conf = ["--conf", "spark.cores.max=2", "--conf", "spark.executorEnv.A=b"]
    CliRunner().invoke(app, ["run", "--master", "local[2]", *conf, "--ui", "--watch", "--clusters", "c", str(file)])
    spark = {"master": "local[2]", "ui": True, "conf": {"spark.cores.max": "2", "spark.executorEnv.A": "b"}}
    assert started == [{"flows": ["a->c", "b->c"], **spark, "watch": True}]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--clusters", "north"], "--clusters north"),
        (["--master", "foo"], "--master foo"),
        (["--conf", "cores=2"], "--conf cores"),
        (["--clusters"], "--clusters"),
    ],
)
def test_wrong_words_end_with_2(file: Path, started: list[dict[str, Any]], words: list[str], told: str) -> None:
    result = CliRunner().invoke(app, ["run", str(file), *words])
    assert result.exit_code == 2
    assert told in result.output
    assert started == []
