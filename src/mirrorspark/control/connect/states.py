"""What a connector does, in Connect's words, from what its flow does.

``hosting`` asks for each answer; nothing is kept here. A lane is a task of the source connector; the others have one task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from mirrorspark.config.forms.layout import ConnectorKind
from mirrorspark.control.connect.wanted import WAITS_FOR_SOURCE
from mirrorspark.control.flow_life import FlowLife
from mirrorspark.control.group_sync import SYNCING_GROUPS
from mirrorspark.control.heartbeats import EMITTING_HEARTBEATS
from mirrorspark.observe.flow_status import EVERYTHING, FlowStatus
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC
from mirrorspark.rest.connector_host import ConnectorInfo, ConnectorState, ConnectorStatus, TargetState, TaskStatus

__all__ = [
    "Namer",
    "checkpoint_status",
    "heartbeat_status",
    "is_held",
    "source_status",
    "task_configs",
    "topics_written",
    "with_restarts",
]


class Namer:
    """Makes statuses of one connector."""

    def __init__(self, name: str, worker_id: str) -> None:
        self._name = name
        self._worker_id = worker_id

    def status(
        self, state: ConnectorState, tasks: Iterable[tuple[ConnectorState, str]] = (), trace: str = ""
    ) -> ConnectorStatus:
        numbered = tuple(
            TaskStatus(number, of_task, self._worker_id, text) for number, (of_task, text) in enumerate(tasks)
        )
        return ConnectorStatus(self._name, state, self._worker_id, trace, numbered)

    def failed(self, trace: str, tasks: int = 0) -> ConnectorStatus:
        return self.status(ConnectorState.FAILED, [(ConnectorState.FAILED, trace)] * tasks, trace)

    def alike(self, state: ConnectorState, tasks: int = 1) -> ConnectorStatus:
        return self.status(state, [(state, "")] * tasks)


def is_held(status: FlowStatus) -> bool:
    return EVERYTHING in status.paused


def source_status(namer: Namer, target: TargetState, life: FlowLife | None) -> ConnectorStatus:
    if target is TargetState.STOPPED:
        is_ending = life is not None
        return namer.alike(ConnectorState.RUNNING) if is_ending else namer.status(ConnectorState.STOPPED)
    if life is None:
        is_paused = target is TargetState.PAUSED
        return namer.status(ConnectorState.PAUSED if is_paused else ConnectorState.UNASSIGNED)
    lanes = life.settings.tasks_max
    if life.error is not None:
        return namer.failed(str(life.error) or repr(life.error), lanes)
    if is_held(life.status):
        return namer.alike(ConnectorState.PAUSED, lanes)
    return namer.status(ConnectorState.RUNNING, [(_lane_state(life.status, lane), "") for lane in range(lanes)])


def _lane_state(status: FlowStatus, lane: int) -> ConnectorState:
    is_there = status.state == "running" and lane in status.lanes and lane not in status.lanes_silent
    return ConnectorState.RUNNING if is_there else ConnectorState.UNASSIGNED


def checkpoint_status(namer: Namer, target: TargetState, life: FlowLife | None) -> ConnectorStatus:
    """A flow that holds goes on to bring its groups along."""
    if target is not TargetState.RUNNING:
        return _at_rest(namer, target)
    if life is None:
        return namer.status(ConnectorState.UNASSIGNED, trace=WAITS_FOR_SOURCE)
    if trace := life.status.failures.get(SYNCING_GROUPS, ""):
        return namer.status(ConnectorState.RUNNING, [(ConnectorState.FAILED, trace)])
    return namer.alike(ConnectorState.RUNNING)


def heartbeat_status(namer: Namer, target: TargetState, status: FlowStatus | None) -> ConnectorStatus:
    if target is not TargetState.RUNNING:
        return _at_rest(namer, target)
    if status is None:
        return namer.status(ConnectorState.UNASSIGNED)
    if trace := status.failures.get(EMITTING_HEARTBEATS, ""):
        return namer.status(ConnectorState.RUNNING, [(ConnectorState.FAILED, trace)])
    return namer.alike(ConnectorState.RUNNING)


def _at_rest(namer: Namer, target: TargetState) -> ConnectorStatus:
    return namer.status(ConnectorState.STOPPED if target is TargetState.STOPPED else ConnectorState.PAUSED)


# -- what a connector has ----------------------------------------------------------------------------------------------


def task_configs(kind: ConnectorKind, info: ConnectorInfo) -> list[Mapping[str, str]]:
    task_class = kind.java_class.replace("Connector", "Task")
    return [{**info.config, "task.class": task_class, "task.index": str(at)} for at in range(info.task_count)]


def topics_written(kind: ConnectorKind, status: FlowStatus | None, since: float | None) -> list[str]:
    """Topics on the target that are being written; after a reset (``since``), those to which something came later."""
    if status is None or kind is ConnectorKind.CHECKPOINT:
        return []
    if kind is ConnectorKind.HEARTBEAT:
        return [HEARTBEATS_TOPIC] if status.heartbeat_sent_at is not None else []
    if since is None:
        return sorted({at.topic for at in status.planned or ()})
    return sorted({at.topic for at, one in status.partitions.items() if one.moved_at > since})


def with_restarts(status: ConnectorStatus, *, include_tasks: bool) -> ConnectorStatus:
    """As it is answered to who asked for a restart."""
    tasks = tuple(replace(task, state=ConnectorState.RESTARTING) if include_tasks else task for task in status.tasks)
    return replace(status, state=ConnectorState.RESTARTING, tasks=tasks)
