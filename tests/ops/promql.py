"""Which series a PromQL expression names; each must be in the catalogue, with the labels that are asked for."""

from __future__ import annotations

import os
import re
import shutil

import pytest

from mirrorspark.observe.metric_catalogue import METRICS

ADDED_BY_SCRAPES = {"job", "instance"}
OTHERS = {"up", "process_cpu_seconds_total"}
_SELECTOR = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})?')
_WORDS = {"and", "or", "unless", "on", "by", "without", "ignoring", "bool", "group_left", "group_right", "offset"}
_LISTS = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_CALL = re.compile(r"\s*\(")
_DURATION = re.compile(r"\[[^\]]*\]")


def series_of(expression: str) -> set[str]:
    """Raises AssertionError that names the series or label that there is not."""
    wanted_labels = {name.strip() for names in _LISTS.findall(expression) for name in names.split(",")}
    text = _DURATION.sub("", _LISTS.sub("", expression))
    found: set[str] = set()
    for match in _SELECTOR.finditer(text):
        name, selector = match.group(1), match.group(2) or ""
        is_call = _CALL.match(text, match.end()) is not None and not selector
        if is_call or name in _WORDS or _is_inside_number(text, match.start()):
            continue
        assert name in METRICS or name in OTHERS, f"{name} is not in the catalogue: {expression}"
        asked = set(re.findall(r"([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)", re.sub(r'"(?:[^"\\]|\\.)*"', '""', selector)))
        labels = set(METRICS[name].labels) if name in METRICS else set()
        assert asked <= labels | ADDED_BY_SCRAPES, f"{name} has no label {asked - labels}: {expression}"
        found.add(name)
    known = {label for name in found if name in METRICS for label in METRICS[name].labels}
    assert wanted_labels <= known | ADDED_BY_SCRAPES, f"nobody has the label {wanted_labels - known}: {expression}"
    return found


def _is_inside_number(text: str, start: int) -> bool:
    return start > 0 and text[start - 1].isdigit()


def tool(name: str) -> str:
    """Where a program of Prometheus is; skips the test where there is none, but not in CI."""
    found = shutil.which(name)
    if found is None and not os.environ.get("CI"):
        pytest.skip(f"{name} is not installed (Debian: prometheus, prometheus-alertmanager)")
    assert found is not None, f"CI needs {name} (Debian: prometheus, prometheus-alertmanager)"
    return found
