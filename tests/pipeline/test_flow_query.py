"""Why a query ended, out of the pages that Spark writes about it."""

from __future__ import annotations

import pytest

from mirrorspark.pipeline.flow_query import reason

LANE_FAILED = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure:
Task 0 in stage 0.0 failed 1000 times, most recent failure: Lost task 0.3 in stage 0.0 (TID 3) (vm executor driver):
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 77, in carry
    run = runner.run(_worker.attempt(lane))
mirrorspark.errors.AuthenticationFailed: west:9092: login by PLAIN refused: no

    at org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
    at java.base/java.lang.Thread.run(Thread.java:1583)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LANE_FAILED, "mirrorspark.errors.AuthenticationFailed: west:9092: login by PLAIN refused: no"),
        ("[STREAM_FAILED] Query terminated\n  at x", "[STREAM_FAILED] Query terminated"),
        ("[STREAM_FAILED] Query [id = 3-4, runId = 5-6] terminated: x", "[STREAM_FAILED] terminated: x"),
        ("KeyError: 'a'\nValueError: b", "ValueError: b"),
        ("", "no reason given"),
    ],
)
def test_the_reason_is_one_line(text: str, expected: str) -> None:
    assert reason(text) == expected
