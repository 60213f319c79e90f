"""What a lane tells of its connections: requests, answers and bytes by broker, since its attempt began.

Made by ``bookkeeping`` for each report. A worker keeps its connections between attempts, so that the counts that were there
before are taken off.
"""

from __future__ import annotations

from mirrorspark.cluster.cluster_client import ClusterClient

__all__ = ["COLUMNS", "NODES_MAX", "TrafficReport"]

COLUMNS = ("requests", "answers", "bytes_out", "bytes_in", "answer_ms")
"""Of a row of a report, in this order; ``observe.lane_totals`` reads them."""
NODES_MAX = 50
"""Brokers told one by one; a larger cluster is told as one, by the name ``ALL_NODES``: a report must stay small."""
ALL_NODES = "all"


class TrafficReport:
    """Of one client of the lane."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._is_summed = len(client.nodes) > NODES_MAX
        self._before = self._rows()
        self._fetched_before = self._fetches()

    def rows(self) -> dict[str, list[int]]:
        """By broker."""
        found = {node: _less(row, self._before.get(node)) for node, row in self._rows().items()}
        if not self._is_summed or not found:
            return found
        return {ALL_NODES: [sum(column) for column in zip(*found.values(), strict=True)]}

    def fetches(self) -> dict[str, int]:
        """How many fetches were answered, and how long that took."""
        count, took_ms, longest_ms = self._fetches()
        return {
            "fetches": count - self._fetched_before[0],
            "fetch_ms": took_ms - self._fetched_before[1],
            "fetch_ms_max": longest_ms,
        }

    def _rows(self) -> dict[str, list[int]]:
        nodes = self._client.traffic_by_node()
        return {
            str(node): [*(int(one[name]) for name in COLUMNS[:-1]), int(one["answer_s"] * 1000)]
            for node, one in nodes.items()
        }

    def _fetches(self) -> tuple[int, int, int]:
        books = [book for (_, purpose), book in self._client.traffic.items() if purpose == "fetch"]
        return (
            sum(book.answers for book in books),
            int(sum(book.answer_s for book in books) * 1000),
            int(max((book.answer_s_max for book in books), default=0.0) * 1000),
        )


def _less(row: list[int], before: list[int] | None) -> list[int]:
    return row if before is None else [now - then for now, then in zip(row, before, strict=True)]
