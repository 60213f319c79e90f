"""What a flow does, in Connect's words."""

from __future__ import annotations

import pytest
from tests.control.scripted_flows import flow_settings

from mirrorspark.control.connect.states import Namer, checkpoint_status, heartbeat_status, source_status
from mirrorspark.control.flow_life import FlowLife
from mirrorspark.control.group_sync import SYNCING_GROUPS
from mirrorspark.control.heartbeats import EMITTING_HEARTBEATS
from mirrorspark.errors import Unreachable
from mirrorspark.observe.flow_status import FlowStatus, LaneStatus
from mirrorspark.rest.connector_host import ConnectorState, TargetState

NAMER = Namer("msc", "here:1")
RUNNING, PAUSED, STOPPED = TargetState.RUNNING, TargetState.PAUSED, TargetState.STOPPED


async def _nothing() -> None:
    return None


@pytest.fixture
def life() -> FlowLife:
    return FlowLife(flow_settings("east", tasks_max=2), lambda settings, generation: None, _nothing)  # type: ignore[arg-type, return-value]


def _report(status: FlowStatus, lane: int) -> None:
    status.lanes[lane] = LaneStatus("carrying", 0, 0, 1, 0, {}, seen_at=status.clock())


def _seen(target: TargetState, life: FlowLife | None) -> tuple[str, list[str]]:
    status = source_status(NAMER, target, life)
    return status.state.value, [task.state.value for task in status.tasks]


def test_a_source_that_starts_and_runs(life: FlowLife) -> None:
    assert _seen(RUNNING, None) == ("UNASSIGNED", [])
    assert _seen(RUNNING, life) == ("RUNNING", ["UNASSIGNED", "UNASSIGNED"])
    life.status.run()
    _report(life.status, 0)
    assert _seen(RUNNING, life) == ("RUNNING", ["RUNNING", "UNASSIGNED"])


def test_a_source_that_failed_says_why(life: FlowLife) -> None:
    life.error = Unreachable("nobody answers")
    status = source_status(NAMER, RUNNING, life)
    assert (status.state, status.trace) == (ConnectorState.FAILED, "nobody answers")
    assert [(task.state, task.trace) for task in status.tasks] == [(ConnectorState.FAILED, "nobody answers")] * 2


def test_a_source_that_holds(life: FlowLife) -> None:
    life.status.paused = frozenset({"*"})
    assert _seen(PAUSED, life) == ("PAUSED", ["PAUSED", "PAUSED"])
    assert _seen(PAUSED, None) == ("PAUSED", [])


def test_a_source_is_stopped_when_it_has_drained(life: FlowLife) -> None:
    assert _seen(STOPPED, life)[0] == "RUNNING"
    assert _seen(STOPPED, None) == ("STOPPED", [])


def test_checkpoints_need_the_flow(life: FlowLife) -> None:
    waiting = checkpoint_status(NAMER, RUNNING, None)
    assert waiting.state is ConnectorState.UNASSIGNED
    assert "MirrorSourceConnector" in waiting.trace
    assert checkpoint_status(NAMER, RUNNING, life).state is ConnectorState.RUNNING
    life.status.fail(SYNCING_GROUPS, "not allowed")
    assert [task.trace for task in checkpoint_status(NAMER, RUNNING, life).tasks] == ["not allowed"]
    assert checkpoint_status(NAMER, PAUSED, life).state is ConnectorState.PAUSED


def test_heartbeats() -> None:
    status = FlowStatus("east->west")
    assert heartbeat_status(NAMER, RUNNING, None).state is ConnectorState.UNASSIGNED
    assert [task.state for task in heartbeat_status(NAMER, RUNNING, status).tasks] == [ConnectorState.RUNNING]
    status.fail(EMITTING_HEARTBEATS, "away")
    assert [task.trace for task in heartbeat_status(NAMER, RUNNING, status).tasks] == ["away"]
    assert heartbeat_status(NAMER, STOPPED, status).state is ConnectorState.STOPPED
