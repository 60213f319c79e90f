"""Rules in haste: every time is shorter, nothing else is other; and the server that stands for Slack."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import yaml

from mirrorspark.lab.monitoring import Webhook, free_ports, in_haste

RULES = Path(__file__).parents[2] / "ops" / "prometheus" / "mirrorspark.rules.yml"


def _alerts(rules: Any) -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"]}


def test_only_times_are_other() -> None:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    before, after = _alerts(rules), _alerts(in_haste(rules, for_s=1, window_s=10, threshold_s=6))
    assert before.keys() == after.keys()
    for name, rule in after.items():
        assert {**rule, "expr": "", "for": ""} == {**before[name], "expr": "", "for": ""}
        assert ("for" in rule) == ("for" in before[name])
        assert rule.get("for", "1s") == "1s"
        assert set(re.findall(r"\[(\w+)\]", rule["expr"])) <= {"10s"}
        assert set(re.findall(r"_seconds > (\d+)", rule["expr"])) <= {"6"}
        assert re.sub(r"\d+", "", rule["expr"]) == re.sub(r"\d+", "", before[name]["expr"]).replace("[m]", "[s]")
    certificate = "MirrorCertificateEnds"
    assert after[certificate]["expr"] == before[certificate]["expr"], "its days are real"
    assert "1800" in before["MirrorSyncStale"]["expr"], "the rules that were given are as they were"


def test_what_is_posted_is_remembered_by_path() -> None:
    webhook = Webhook()
    try:
        for path, body in (("/a", {"n": 1}), ("/b", {"n": 2}), ("/a", {"n": 3})):
            with urlopen(Request(webhook.url(path), json.dumps(body).encode()), timeout=60) as answer:
                assert answer.status == 200
    finally:
        webhook.close()
    assert webhook.taken == {"/a": [{"n": 1}, {"n": 3}], "/b": [{"n": 2}]}


def test_ports_are_not_the_same() -> None:
    assert len(set(free_ports(5))) == 5
