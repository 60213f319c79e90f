"""A limit in a lane's report: whether it holds the flow back, and the words for it."""

from __future__ import annotations

import json

from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.observe.lane_limit import LaneLimit, words_of_limit

HELD, FREE = LaneLimit(2_500_000, 0.9), LaneLimit(2_500_000, 0.1)


def test_words_only_where_the_limit_keeps_a_flow_behind() -> None:
    assert words_of_limit([HELD, FREE], 12) == [
        "held by bandwidth limit: 5 MB/s for all lanes, 1 of 2 waited for it (up to 90% of the time); 12 records are behind"
    ]
    assert words_of_limit([FREE, FREE], 12) == []
    assert words_of_limit([HELD], 0) == []
    assert words_of_limit([], 12) == []


def test_a_lane_without_a_limit_or_of_an_older_version_has_none() -> None:
    assert LaneLimit.of_report(None) is None
    assert LaneLimit.of_report([5_000_000.0, 0.5]) == LaneLimit(5_000_000, 0.5)


def test_a_status_says_that_the_flow_is_held_and_does_not_call_it_ill() -> None:
    status = FlowStatus("a->b")
    status.begin(1)
    status.matched = 1
    status.follow_plan([[]], ())
    status.run()
    report = {
        "lane": 0,
        "generation": 1,
        "state": "carrying",
        "since_ms": 1,
        "at_ms": 2,
        "partitions": 1,
        "held_bytes": 0,
        "waiting": {},
        "limit": [5_000_000.0, 0.8],
        "counts": {"limit_held_s": 4.5, "limit_holds": 3},
        "moved": [],
    }
    status.fold(b"lane/0", json.dumps(report).encode())
    assert status.limits == [LaneLimit(5_000_000, 0.8)]
    assert status.lane_totals[0]["limit_held_s"] == 4.5
    assert (status.verdict, status.notices) == ("running", []), "nothing is behind"
    report["state"] = "ended"
    status.fold(b"lane/0", json.dumps(report).encode())
    assert status.limits == []
