"""What stands behind the routes: a host of connectors, in Kafka Connect's words.

``control.connect`` implements it; tests have one in memory. A host raises ``Refusal`` for whatever it does not do; its
status and text become the answer. Configurations go in and out as they are: the routes hide secrets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from mirrorspark.errors import MirrorError

__all__ = [
    "ConnectorHost",
    "ConnectorInfo",
    "ConnectorState",
    "ConnectorStatus",
    "Health",
    "Refusal",
    "ServerInfo",
    "TargetState",
    "TaskStatus",
    "no_connector",
]


class Refusal(MirrorError):
    """An answer that is not a success. ``status`` is HTTP's."""

    code = "REFUSED"

    def __init__(self, message: str, status: int = 400, **facts: Any) -> None:
        super().__init__(message, **{**facts, "status": status})

    @property
    def status(self) -> int:
        return int(self.facts["status"])


def no_connector(name: str) -> Refusal:
    return Refusal(f"Connector {name} not found", 404)


class TargetState(StrEnum):
    """What is wanted of a connector."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class ConnectorState(StrEnum):
    """What a connector or a task does."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"


@dataclass(frozen=True, slots=True)
class ServerInfo:
    version: str
    commit: str
    kafka_cluster_id: str


@dataclass(frozen=True, slots=True)
class Health:
    """``status`` is healthy, starting or unhealthy."""

    status: str
    message: str


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    name: str
    config: Mapping[str, str]
    task_count: int


@dataclass(frozen=True, slots=True)
class TaskStatus:
    id: int
    state: ConnectorState
    worker_id: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    name: str
    state: ConnectorState
    worker_id: str
    trace: str = ""
    tasks: tuple[TaskStatus, ...] = ()


class ConnectorHost(Protocol):
    async def server(self) -> ServerInfo: ...
    async def health(self) -> Health: ...

    def names(self) -> Sequence[str]: ...
    def info(self, name: str) -> ConnectorInfo: ...
    def status(self, name: str) -> ConnectorStatus: ...
    def task_configs(self, name: str) -> Sequence[Mapping[str, str]]: ...

    async def create(self, name: str, config: Mapping[str, str], state: TargetState) -> ConnectorInfo: ...

    async def put_config(self, name: str, config: Mapping[str, str]) -> tuple[ConnectorInfo, bool]:
        """Also whether it was created."""

    async def patch_config(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo: ...
    async def delete(self, name: str) -> None: ...
    async def aim(self, name: str, state: TargetState) -> None:
        """Pause, resume or stop."""

    async def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """The status as it is now, with what is started anew as RESTARTING."""

    async def restart_task(self, name: str, task: int) -> None: ...

    def topics(self, name: str) -> Sequence[str]: ...
    async def reset_topics(self, name: str) -> None: ...

    async def offsets(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Entries with ``partition`` and ``offset``."""

    async def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        """A sentence about what was done."""

    async def reset_offsets(self, name: str) -> str: ...
