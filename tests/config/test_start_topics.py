"""``start.at`` and ``start.at.topic.NAME``, bandwidth keys: levels, refusals by key, every form of configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mirrorspark.config.load import Deployment, load_deployment, parse_deployment
from mirrorspark.errors import SettingsError
from mirrorspark.settings import Bandwidth

BASE = {
    "clusters": "a, b",
    "a.bootstrap.servers": "h:1",
    "b.bootstrap.servers": "h:2",
    "a->b.enabled": "true",
    "a->b.topics": "orders.*",
    "b->a.emit.heartbeats.enabled": "false",
}


def _with(changes: dict[str, str]) -> Deployment:
    return parse_deployment({**BASE, **changes})


def test_a_topics_name_may_have_dots_and_the_flows_own_key_wins() -> None:
    (flow,) = _with(
        {
            "start.at": "latest",
            "start.at.topic.orders.eu": "latest",
            "a->b.start.at.topic.orders.eu": "offsets 0:5, 1:7",
            "start.at.topic.orders.us": "2026-11-01T00:00:00Z",
        }
    ).flows
    assert flow.start_at == "latest"
    assert flow.start_at_topics == (("orders.eu", "offsets 0:5, 1:7"), ("orders.us", "1793491200000"))


@pytest.mark.parametrize("text", ["2026-11-01T00:00:00Z", "2026-11-01T02:00:00+02:00", " 1793491200000 "])
def test_a_time_is_kept_in_milliseconds(text: str) -> None:
    assert _with({"start.at": text}).flows[0].start_at == "1793491200000"


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("a->b.start.at", "yesterday", "must be earliest, latest, or a time"),
        ("start.at", "2026-11-01T00:00:00", "needs a zone, e.g. 2026-11-01T00:00:00Z"),
        ("start.at", "2026-11-01", "needs a zone"),
        ("start.at", "2026-13-01T00:00:00Z", "no time"),
        ("a->b.start.at.topic.orders", "", "must be earliest, latest, or a time"),
        ("a->b.start.at", "offsets 0:1", "belong to one topic"),
        ("a->b.start.at.topic.orders", "offsets 0=1", "must be offsets PARTITION:OFFSET"),
        ("a->b.bandwidth.max.bytes.per.second", "-1", "must be between 0"),
        ("a->b.bandwidth.max.bytes.per.second", "5MB", "not a whole number"),
        ("a->b.bandwidth.priority", "11", "must be between 1 and 10"),
        ("a->b.bandwidth.total.max.bytes.per.second", "1", "bandwidth.total.max.bytes.per.second for all"),
        ("a.start.at", "latest", "a->b.start.at for one flow"),
    ],
)
def test_a_wrong_word_is_refused_by_its_key(key: str, value: str, why: str) -> None:
    with pytest.raises(SettingsError) as caught:
        _with({key: value})
    assert key in str(caught.value)
    assert why in str(caught.value)


def test_what_nobody_goes_by_is_told() -> None:
    warnings = _with(
        {
            "a->b.start.at": "earliest",
            "a.consumer.auto.offset.reset": "latest",
            "a->b.start.at.topic.clicks": "latest",
            "start.at.topic.elsewhere": "latest",
        }
    ).warnings
    assert [text.partition(":")[0] for text in warnings] == [
        "a.consumer.auto.offset.reset",
        "a->b.start.at.topic.clicks",
    ]


def test_bandwidth_at_either_level() -> None:
    (flow,) = _with(
        {
            "bandwidth.max.bytes.per.second": "1000",
            "a->b.bandwidth.max.bytes.per.second": "5000000",
            "a->b.bandwidth.priority": "9",
            "bandwidth.total.max.bytes.per.second": "9000000",
        }
    ).flows
    assert flow.bandwidth == Bandwidth(5_000_000, 9_000_000, 9)
    assert _with({"bandwidth.max.bytes.per.second": "1000"}).flows[0].bandwidth.bytes_per_s_max == 1000
    assert _with({}).flows[0].bandwidth == Bandwidth()


OWN_KEYS = {
    "start.at": "latest",
    "start.at.topic.orders.eu": "offsets 0:5",
    "bandwidth.max.bytes.per.second": "5000000",
    "bandwidth.priority": "7",
}


def test_a_connectors_json_has_them_too(tmp_path: Path) -> None:
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": "h:1",
        "target.cluster.bootstrap.servers": "h:2",
        "topics": "orders.*",
        **OWN_KEYS,
    }
    file = tmp_path / "source.json"
    file.write_text(json.dumps({"name": "source", "config": config}), encoding="utf-8")
    _check(load_deployment(file))


def test_a_strimzi_resource_has_them_too(tmp_path: Path) -> None:
    lines = "\n".join(f'          {key}: "{value}"' for key, value in OWN_KEYS.items())
    file = tmp_path / "mirror.yaml"
    file.write_text(
        f"""\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: mirror
spec:
  connectCluster: b
  clusters:
    - alias: a
      bootstrapServers: h:1
    - alias: b
      bootstrapServers: h:2
  mirrors:
    - sourceCluster: a
      targetCluster: b
      topicsPattern: orders.*
      sourceConnector:
        config:
{lines}
""",
        encoding="utf-8",
    )
    _check(load_deployment(file))


def _check(deployment: Deployment) -> None:
    (flow,) = deployment.flows
    assert flow.start_at == "latest"
    assert flow.start_at_topics == (("orders.eu", "offsets 0:5"),)
    assert (flow.bandwidth.bytes_per_s_max, flow.bandwidth.priority) == (5_000_000, 7)
