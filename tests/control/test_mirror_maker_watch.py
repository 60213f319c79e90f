"""Records of Connect's status topic: which of them say that a source task is at work."""

from __future__ import annotations

import json

import pytest

from mirrorspark.control.mirror_maker_watch import RunningTask, parse_task


def value(state: str = "RUNNING") -> bytes:
    return json.dumps({"state": state, "trace": None, "worker_id": "10.0.0.7:8083", "generation": 4}).encode()


def test_a_task_says_its_state_and_its_worker() -> None:
    found = parse_task(b"status-task-MirrorSourceConnector-12", value(), "MirrorSourceConnector")
    assert found == RunningTask("MirrorSourceConnector-12", "RUNNING", "10.0.0.7:8083")
    assert str(found) == "MirrorSourceConnector-12 RUNNING on 10.0.0.7:8083"


@pytest.mark.parametrize(
    ("key", "raw"),
    [
        (b"status-connector-MirrorSourceConnector", value()),
        (b"status-task-MirrorCheckpointConnector-0", value()),
        (b"status-task-MirrorSourceConnector-two-0", value()),
        (b"status-task-MirrorSourceConnector-", value()),
        (b"status-task-MirrorSourceConnector-0", None),
        (b"status-task-MirrorSourceConnector-0", b"{"),
        (b"status-task-MirrorSourceConnector-0", b"[]"),
        (b"status-task-MirrorSourceConnector-0", b'{"state":"RUNNING"}'),
        (b"\xff\xfe", value()),
    ],
)
def test_others_are_not_ours(key: bytes, raw: bytes | None) -> None:
    assert parse_task(key, raw, "MirrorSourceConnector") is None
