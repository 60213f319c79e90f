"""Grafana's dashboards ask only for series and labels that the catalogue has; and what the parser of the test finds."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mirrorspark.observe.metric_catalogue import FAMILIES

from .promql import series_of, tool

FOLDER = Path(__file__).parents[2] / "ops" / "grafana"
BOARDS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
TOLD_BY_EVENTS_OR_TABLES = {
    "mirrorspark_build_info",
    "mirrorspark_flow_generation",
    "mirrorspark_flow_paused",
    "mirrorspark_flow_paused_topics",
    "mirrorspark_partitions_with_own_series",
    "mirrorspark_partition_lag_bytes",
    "mirrorspark_partition_source_next_offset",
    "mirrorspark_partition_target_end_offset",
    "mirrorspark_partition_records_total",
    "mirrorspark_skipped_by_origin_records",
    "mirrorspark_skipped_by_origin_batches",
    "mirrorspark_lane_batches_total",
    "mirrorspark_settings_changed_total",
    "mirrorspark_acls_granted_total",
    "mirrorspark_acls_revoked_total",
}
"""No panel has them."""


def _expressions(board: Any) -> Iterator[str]:
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def test_all_dashboards_are_there() -> None:
    assert set(BOARDS) == {"flows", "lag_and_latency", "groups_and_failover", "lanes_and_spark"}
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS)


@pytest.mark.parametrize("name", BOARDS)
def test_a_dashboard_names_series_that_there_are(name: str) -> None:
    for expression in _expressions(BOARDS[name]):
        assert series_of(expression.replace("$flow", ".*"))


def test_prometheus_understands_every_expression(tmp_path: Path) -> None:
    every = [text for board in BOARDS.values() for text in _expressions(board)]
    rules = [{"record": f"panel:{n}", "expr": text.replace("$flow", ".*")} for n, text in enumerate(every)]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    done = subprocess.run(
        [tool("promtool"), "check", "rules", file], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", BOARDS)
def test_panels_do_not_lie_on_each_other(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARDS[name]["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not taken & cells, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_what_no_panel_shows_is_known() -> None:
    shown = {name for board in BOARDS.values() for text in _expressions(board) for name in series_of(text)}
    own = {metric.name for metric in FAMILIES["Our own"]}
    assert own - shown == TOLD_BY_EVENTS_OR_TABLES


@pytest.mark.parametrize(
    "expression",
    ["mirrorspark_nothing", 'mirrorspark_flow_state{topic="x"}', "sum by (colour) (mirrorspark_flow_state)"],
)
def test_what_there_is_not_is_noticed(expression: str) -> None:
    with pytest.raises(AssertionError):
        series_of(expression)


def test_functions_and_words_are_no_series() -> None:
    text = 'topk(10, sum by (flow) (rate(mirrorspark_flow_records_total{flow=~"a|up"}[5m]))) > 2e3 or vector(0)'
    assert series_of(text) == {"mirrorspark_flow_records_total"}
