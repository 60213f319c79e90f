"""Connect's records, as a worker of 4.3.1 wrote them, and ours."""

from __future__ import annotations

import json

import pytest

from mirrorspark.control.connect.topics import connector_record, connectors_in, state_record, status_records
from mirrorspark.control.connect.wanted import Wanted
from mirrorspark.errors import SettingsError
from mirrorspark.rest.connector_host import ConnectorState, ConnectorStatus, TargetState, TaskStatus

OF_CONNECT: dict[bytes, bytes | None] = {
    b"session-key": b'{"key":"SCvR=","algorithm":"HmacSHA256","creation-timestamp":1794809985633}',
    b"connector-msc-1": b'{"properties":{"tasks.max":"1","name":"msc-1"}}',
    b"target-state-hbc-1": b'{"state":"PAUSED","state.v2":"PAUSED"}',
    b"connector-hbc-1": b'{"properties":{"name":"hbc-1"}}',
    b"connector-old": b'{"properties":{"name":"old","gone":null}}',
    b"target-state-old": b'{"state":"PAUSED"}',
    b"connector-gone": None,
    b"target-state-gone": None,
    b"commit-msc-1": b'{"tasks":1}',
    b"task-msc-1-0": b'{"properties":{}}',
    b"target-state-msc-1": b'{"state":"PAUSED","state.v2":"STOPPED"}',
    b"restart-connector-msc-1": b'{"include-tasks":true,"only-failed":false}',
    b"logger-cluster-org.apache": b'{"level":"INFO"}',
}


def test_connectors_of_a_real_worker() -> None:
    found = connectors_in(OF_CONNECT)
    assert {name: one.state for name, one in found.items()} == {
        "msc-1": TargetState.STOPPED,
        "hbc-1": TargetState.PAUSED,
        "old": TargetState.PAUSED,
    }
    assert found["msc-1"].config == {"tasks.max": "1", "name": "msc-1"}
    assert found["old"].config == {"name": "old"}


@pytest.mark.parametrize("state", list(TargetState))
def test_ours_are_read_as_they_were_written(state: TargetState) -> None:
    one = Wanted("ä/b", {"name": "ä/b", "topics": "x"}, state)
    assert connectors_in(dict([connector_record(one), state_record(one.name, state)])) == {"ä/b": one}


def test_states_as_connect_writes_them() -> None:
    assert state_record("a", TargetState.STOPPED) == (b"target-state-a", b'{"state":"PAUSED","state.v2":"STOPPED"}')
    assert state_record("a", TargetState.RUNNING) == (b"target-state-a", b'{"state":"STARTED","state.v2":"STARTED"}')


@pytest.mark.parametrize("value", [b"", b"x", b"[]", b"{}", b'{"properties":7}', b"\xff"])
def test_what_connect_did_not_write_is_named(value: bytes) -> None:
    with pytest.raises(SettingsError, match="connector-a"):
        connectors_in({b"connector-a": value})


def test_statuses() -> None:
    task = TaskStatus(0, ConnectorState.FAILED, "here:1", "why")
    found = status_records(ConnectorStatus("a", ConnectorState.RUNNING, "here:1", tasks=(task,)))
    assert set(found) == {b"status-connector-a", b"status-task-a-0"}
    told = json.loads(found[b"status-task-a-0"])
    assert list(told) == ["state", "trace", "worker_id", "generation", "version"]
    assert (told["state"], told["trace"], told["worker_id"]) == ("FAILED", "why", "here:1")
    assert json.loads(found[b"status-connector-a"])["trace"] is None
