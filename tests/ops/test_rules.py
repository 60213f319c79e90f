"""Alert rules and the Alertmanager's file, by Prometheus' own tools; what they name is in the catalogue."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from .promql import series_of, tool

OPS = Path(__file__).parents[2] / "ops"
RULES = OPS / "prometheus" / "mirrorspark.rules.yml"
TESTS = OPS / "prometheus" / "mirrorspark.rules.test.yml"
NOT_OURS = {"up"}


def _alerts() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


@pytest.mark.parametrize("name", _alerts())
def test_an_alert_names_series_that_there_are(name: str) -> None:
    rule = _alerts()[name]
    named = series_of(rule["expr"]) - NOT_OURS
    assert named or name == "MirrorDown"
    assert all(one.startswith("mirrorspark_") for one in named)
    assert rule["labels"]["severity"] in ("page", "warning")
    assert set(rule["annotations"]) == {"summary", "description"}


def test_every_alert_has_a_unit_test() -> None:
    tests = yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"]
    fired = {case["alertname"] for test in tests for case in test.get("alert_rule_test", []) if case.get("exp_alerts")}
    assert fired == set(_alerts())


def test_promtool_takes_the_rules_and_their_tests() -> None:
    promtool = tool("promtool")
    for arguments in (["check", "config", "prometheus.yml"], ["test", "rules", TESTS.name]):
        done = subprocess.run(
            [promtool, *arguments], cwd=RULES.parent, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_amtool_takes_the_alertmanagers_file() -> None:
    done = subprocess.run(
        [tool("amtool"), "check-config", str(OPS / "alertmanager" / "alertmanager.yml")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
