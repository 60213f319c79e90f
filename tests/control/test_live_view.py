"""What a person reads: a line per flow, with a latency that is one and an age that is none."""

from __future__ import annotations

import json
import sys

import pytest

from mirrorspark.control.live_view import LiveView, complain, latency_text, summary_line
from mirrorspark.events import Event, EventKind
from mirrorspark.names import TopicPartition
from mirrorspark.observe.flow_status import FlowStatus

AT = TopicPartition("east.orders", 0)
HOUR_MS = 3_600_000


@pytest.fixture
def status() -> FlowStatus:
    made = FlowStatus("east->west", lanes_expected=2)
    made.begin(1)
    made.follow_plan([[AT]], ())
    made.run()
    return made


def _report(status: FlowStatus, lane: int, latency_ms: int | None = None) -> None:
    moved = [] if latency_ms is None else [[*AT, 7, 7, 10, 7, 700, latency_ms, "carrying"]]
    text = {
        "lane": lane,
        "generation": 1,
        "state": "carrying",
        "since_ms": 1,
        "at_ms": 1,
        "partitions": 3,
        "held_bytes": 0,
    }
    status.fold(f"lane/{lane}".encode(), json.dumps({**text, "waiting": {}, "moved": moved}).encode())


def test_a_line_says_how_many_lanes_of_how_many(status: FlowStatus) -> None:
    _report(status, 0, 4)
    assert summary_line(status) == (
        "east->west starting lanes=1/2 partitions=3 records=7 records/s=0 MB/s=0.0 lag=3 latency_ms=4"
    )
    _report(status, 1)
    assert summary_line(status).startswith("east->west running lanes=2/2 partitions=6 ")


@pytest.mark.parametrize(
    ("latency_ms", "text"),
    [
        (None, "-"),
        (0, "0"),
        (HOUR_MS, "3600000"),
        (HOUR_MS * 3, "- (records 3.0 h old)"),
        (HOUR_MS * 24 * 365 * 55, "- (records 20075 days old)"),
    ],
)
def test_latency_in_words(status: FlowStatus, latency_ms: int | None, text: str) -> None:
    _report(status, 0, latency_ms)
    assert latency_text(status) == text


def test_all_failures_are_counted_and_the_first_is_shown(status: FlowStatus) -> None:
    status.fail("refreshing topics", "away")
    status.fail("the Spark query", "boom")
    assert summary_line(status).endswith(" notices=2 [refreshing topics: away]")


def test_plain_lines_where_there_is_no_terminal(status: FlowStatus, capsys: pytest.CaptureFixture[str]) -> None:
    view = LiveView([status], terminal=False)
    view.tick()
    view.tick()
    view.event("east->west", Event(EventKind.DATA_GAP, "gone", "orders", 3, 1, 2))
    status.state = "failed"
    view.tick()
    view.close()
    words = [line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()]
    assert [" ".join(line.split()[:2]) for line in words] == [
        "east->west starting",
        "east->west EVENT",
        "east->west failed",
    ]


def test_a_table_on_a_terminal(status: FlowStatus, capsys: pytest.CaptureFixture[str]) -> None:
    _report(status, 0, 4)
    view = LiveView([status], terminal=True)
    view.tick()
    view.event("east->west", Event(EventKind.DATA_GAP, "gone"))
    view.close()
    out = capsys.readouterr().out
    assert "east->west" in out
    assert "1/2" in out


def test_a_terminal_that_hangs_up_ends_the_view_only(status: FlowStatus, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            raise OSError(5, "Input/output error")

    view = LiveView([status], terminal=False)
    gone = Gone()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, gone)
    for _ in range(3):
        view.tick()
    assert gone.writes == 1
    view.event("east->west", Event(EventKind.DATA_GAP, "gone"))
    view.close()
    complain("nobody hears this")
