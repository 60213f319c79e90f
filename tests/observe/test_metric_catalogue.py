"""The catalogue: each series once, named as Prometheus and the people who know MirrorMaker 2 expect."""

from __future__ import annotations

import re

import pytest
from tests.observe.named_series import missing_series, named_series

from mirrorspark.events import EventKind
from mirrorspark.observe.metric_catalogue import FAMILIES, METRICS, TWINS, Metric, MetricKind
from mirrorspark.observe.own_series import EVENT_KINDS


def test_each_series_is_declared_once() -> None:
    names = [metric.name for family in FAMILIES.values() for metric in family]
    assert len(names) == len(set(names)) == len(METRICS)


def test_no_two_series_are_one_family_of_open_metrics() -> None:
    """There a counter's family has its name without the ending."""
    counters = {name.removesuffix("_total") for name, one in METRICS.items() if one.kind is MetricKind.COUNTER}
    assert not counters & METRICS.keys()


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_a_series_is_described(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]+", metric.name.replace("{client}", "a_b"))
    assert all(re.fullmatch(r"[a-z_]+", label) for label in metric.labels)
    assert not {"job", "instance"} & set(metric.labels), "Prometheus' own: it would call ours exported_job"
    assert metric.help.endswith(".")
    assert metric.origin
    assert metric.unit
    assert "|" not in metric.help + metric.origin, "they stand in a table"
    if metric.kind is MetricKind.COUNTER:
        assert metric.name.endswith("_total")


@pytest.mark.parametrize("metric", FAMILIES["Our own"], ids=lambda metric: metric.name)
def test_our_own_names_carry_base_units(metric: Metric) -> None:
    assert metric.name.startswith("mirrorspark_")
    assert metric.unit != "ms"
    if metric.unit == "s":
        assert "_seconds" in metric.name
    if metric.unit == "bytes":
        assert "_bytes" in metric.name
    assert metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER)


def test_what_dashboards_and_rules_name_is_there_with_its_labels() -> None:
    assert len(named_series()) > 250
    assert missing_series(((name, one.labels) for name, one in METRICS.items()), "{client}") == []
    assert METRICS["connect_mirror_mirrorsourceconnector_record_count"].labels == ("target", "topic", "partition")


def test_a_name_or_a_label_that_is_not_there_is_seen() -> None:
    told = {name: list(one.labels) for name, one in METRICS.items()}
    del told["kafka_connect_worker_rebalance_epoch"]
    told["kafka_consumer_node_request_total"].remove("nodeid")
    assert missing_series(told.items(), "{client}") == [
        "kafka_connect_worker_rebalance_epoch []",
        "kafka_consumer_node_request_total ['clientid', 'nodeid']",
    ]


@pytest.mark.parametrize(("name", "twin"), TWINS.items(), ids=lambda one: getattr(one, "name", one))
def test_a_twin_has_the_first_labels_of_its_series(name: str, twin: Metric) -> None:
    labels = [label.replace("clientid", "client_id") for label in METRICS[name].labels]
    assert labels[: len(twin.labels)] == list(twin.labels)


def test_every_kind_of_event_is_told() -> None:
    assert EventKind.DATA_GAP in EVENT_KINDS
    assert EventKind.TOPIC_RECREATED in EVENT_KINDS
    assert len(EVENT_KINDS) >= 25
