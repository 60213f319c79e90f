"""What goes over the connections of one purpose to one broker, counted for each request and answer, never for a record.

``connection`` counts; ``cluster_client`` keeps one book for each broker and purpose, which outlives the connections that
feed it; ``/metrics`` tells it by the names that Kafka's clients have for it.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Traffic", "traffic_by_node"]

_SUMS = (
    *("opened", "closed", "logins", "logins_failed", "logins_again", "logins_again_failed", "login_again_s"),
    *("requests", "answers", "bytes_out", "bytes_in", "answer_s", "turns", "turn_s"),
)
_LARGEST = ("request_bytes_max", "answer_s_max", "login_again_s_max")


class Traffic:
    """``turns``: how often something came in, and ``turn_s`` the time it took to take it in, with what its receiver did at
    once. ``answer_s``: from a request to its answer; of a fetch the broker's wait for records is part of it."""

    __slots__ = (*_SUMS, *_LARGEST)

    opened: int
    closed: int
    logins: int
    logins_failed: int
    logins_again: int
    logins_again_failed: int
    login_again_s: float
    login_again_s_max: float
    requests: int
    answers: int
    bytes_out: int
    bytes_in: int
    answer_s: float
    answer_s_max: float
    request_bytes_max: int
    turns: int
    turn_s: float

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, 0)

    def asked(self, size: int) -> None:
        self.requests += 1
        self.bytes_out += size
        if size > self.request_bytes_max:
            self.request_bytes_max = size

    def answered(self, size: int, took_s: float) -> None:
        self.answers += 1
        self.bytes_in += size
        self.answer_s += took_s
        if took_s > self.answer_s_max:
            self.answer_s_max = took_s

    def logged_in_again(self, took_s: float) -> None:
        self.logins_again += 1
        self.login_again_s += took_s
        self.login_again_s_max = max(self.login_again_s_max, took_s)

    def add(self, other: Traffic) -> None:
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _LARGEST:
            setattr(self, name, max(getattr(self, name), getattr(other, name)))

    def figures(self) -> dict[str, float]:
        """Plain values: for a report, or for who may not know this room."""
        return {name: getattr(self, name) for name in self.__slots__}


def traffic_by_node(books: Iterable[tuple[int, Traffic]]) -> dict[int, dict[str, float]]:
    """All purposes of a broker together."""
    found: dict[int, Traffic] = {}
    for node, book in books:
        found.setdefault(node, Traffic()).add(book)
    return {node: traffic.figures() for node, traffic in sorted(found.items())}
