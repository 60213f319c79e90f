"""Connectors that are names and configurations and nothing else: what the routes are tested over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mirrorspark.config.connector_secrets import kept
from mirrorspark.rest.connector_host import (
    ConnectorInfo,
    ConnectorState,
    ConnectorStatus,
    Health,
    Refusal,
    ServerInfo,
    TargetState,
    TaskStatus,
    no_connector,
)

__all__ = ["MemoryHost"]


class MemoryHost:
    def __init__(self) -> None:
        self.configs: dict[str, dict[str, str]] = {}
        self.states: dict[str, TargetState] = {}
        self.restarts: list[tuple[str, bool, bool]] = []
        self.offset_entries: list[Mapping[str, Any]] = []
        self.state = Health("healthy", "")

    async def server(self) -> ServerInfo:
        return ServerInfo("1", "abc", "id")

    async def health(self) -> Health:
        return self.state

    def names(self) -> Sequence[str]:
        return list(self.configs)

    def _need(self, name: str) -> dict[str, str]:
        if name not in self.configs:
            raise no_connector(name)
        return self.configs[name]

    def info(self, name: str) -> ConnectorInfo:
        return ConnectorInfo(name, self._need(name), 2)

    def status(self, name: str) -> ConnectorStatus:
        self._need(name)
        state = ConnectorState(self.states[name])
        tasks = tuple(TaskStatus(number, state, "here") for number in range(2))
        return ConnectorStatus(name, state, "here", tasks=() if state is ConnectorState.STOPPED else tasks)

    def task_configs(self, name: str) -> Sequence[Mapping[str, str]]:
        return [self._need(name)] * 2

    async def create(self, name: str, config: Mapping[str, str], state: TargetState) -> ConnectorInfo:
        if name in self.configs:
            raise Refusal(f"Connector {name} already exists", 409)
        self.configs[name], self.states[name] = dict(config), state
        return self.info(name)

    async def put_config(self, name: str, config: Mapping[str, str]) -> tuple[ConnectorInfo, bool]:
        is_new = name not in self.configs
        self.configs[name] = kept(config, self.configs.get(name, {}))[0]
        self.states.setdefault(name, TargetState.RUNNING)
        return self.info(name), is_new

    async def patch_config(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo:
        merged = {**self._need(name), **patch}
        self.configs[name] = {key: value for key, value in merged.items() if value is not None}
        return self.info(name)

    async def delete(self, name: str) -> None:
        del self.configs[self.info(name).name]

    async def aim(self, name: str, state: TargetState) -> None:
        self._need(name)
        self.states[name] = state

    async def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        self._need(name)
        self.restarts.append((name, include_tasks, only_failed))
        return self.status(name)

    async def restart_task(self, name: str, task: int) -> None:
        self._need(name)

    def topics(self, name: str) -> Sequence[str]:
        self._need(name)
        return ["orders"]

    async def reset_topics(self, name: str) -> None:
        self._need(name)

    async def offsets(self, name: str) -> Sequence[Mapping[str, Any]]:
        self._need(name)
        return self.offset_entries

    async def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        self._need(name)
        self.offset_entries = list(offsets)
        return "done"

    async def reset_offsets(self, name: str) -> str:
        self._need(name)
        self.offset_entries = []
        return "done"
