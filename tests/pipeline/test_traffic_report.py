"""What a lane tells of its connections: since its attempt began, and never more rows than fit."""

from __future__ import annotations

from typing import cast

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.traffic import Traffic, traffic_by_node
from mirrorspark.observe.lane_totals import TRAFFIC_COLUMNS
from mirrorspark.pipeline.traffic_report import COLUMNS, NODES_MAX, TrafficReport


class Books:
    """A client's counts, without its connections."""

    def __init__(self, nodes: int) -> None:
        self.nodes = tuple(range(nodes))
        self.traffic = {(node, purpose): Traffic() for node in self.nodes for purpose in ("control", "fetch")}

    def traffic_by_node(self) -> dict[int, dict[str, float]]:
        return traffic_by_node((node, book) for (node, _), book in self.traffic.items())

    def ask(self, node: int, purpose: str, took_s: float) -> None:
        self.traffic[node, purpose].asked(10)
        self.traffic[node, purpose].answered(100, took_s)

    def report(self) -> TrafficReport:
        return TrafficReport(cast(ClusterClient, self))


def test_what_an_earlier_attempt_did_is_left_out() -> None:
    books = Books(2)
    books.ask(0, "fetch", 0.5)
    report = books.report()
    assert report.rows() == {"0": [0] * 5, "1": [0] * 5}
    books.ask(0, "control", 0.25)
    books.ask(1, "fetch", 0.125)
    assert report.rows() == {"0": [1, 1, 10, 100, 250], "1": [1, 1, 10, 100, 125]}
    assert report.fetches() == {"fetches": 1, "fetch_ms": 125, "fetch_ms_max": 500}


def test_many_brokers_are_told_as_one() -> None:
    books = Books(NODES_MAX + 1)
    report = books.report()
    for node in books.nodes:
        books.ask(node, "control", 0.0)
    assert report.rows() == {"all": [51, 51, 510, 5_100, 0]}


def test_both_sides_of_a_report_mean_the_same_columns() -> None:
    assert COLUMNS == TRAFFIC_COLUMNS
