"""The connectors of a process that runs a file: the three of each flow, to be seen, paused and restarted.

They are what MirrorMaker 2 itself would derive from the file (``config.forms.spread``), each named after its flow. The file
owns them: whatever would change one is refused with 409 and says what to edit. ``rest_endpoint`` makes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from mirrorspark import __version__
from mirrorspark.config.document import Document
from mirrorspark.config.forms.layout import ConnectorKind
from mirrorspark.config.forms.spread import full_config, spread
from mirrorspark.control.connect.states import (
    Namer,
    checkpoint_status,
    heartbeat_status,
    source_status,
    task_configs,
    topics_written,
    with_restarts,
)
from mirrorspark.control.flow_offsets import FlowOffsets, offsets_document
from mirrorspark.control.flow_on_target import NeverRan
from mirrorspark.control.flow_set import FlowSet
from mirrorspark.names import Flow
from mirrorspark.release import commit_id
from mirrorspark.rest.connector_host import (
    ConnectorInfo,
    ConnectorState,
    ConnectorStatus,
    Health,
    Refusal,
    ServerInfo,
    TargetState,
    no_connector,
)

__all__ = ["FileConnectors"]


@dataclass(frozen=True)
class _Known:
    flow: Flow
    kind: ConnectorKind
    config: Mapping[str, str] = field(repr=False)


class FileConnectors:
    def __init__(
        self,
        file: str,
        flows: FlowSet,
        document: Callable[[], Document],
        *,
        hold: Callable[[Flow, bool], Awaitable[object]],
        restart: Callable[[Flow], None],
        worker_id: Callable[[], str] = lambda: "",
    ) -> None:
        """``document``: the file as it was last read; ``hold`` pauses a flow, or lets it go."""
        self._file = file
        self._flows = flows
        self._document = document
        self._hold = hold
        self._restart = restart
        self._worker_id = worker_id
        self._topics_since: dict[str, float] = {}
        self._spread: tuple[Document, dict[tuple[Flow, ConnectorKind], Mapping[str, str]]] | None = None

    # -- which there are --------------------------------------------------------------------------------------------

    def _configs(self) -> dict[tuple[Flow, ConnectorKind], Mapping[str, str]]:
        """By pair of clusters; worked out anew when the file was."""
        document = self._document()
        if self._spread is None or self._spread[0] is not document:
            result = spread(document)
            running = (one for one in result.connectors if not one.is_off)
            self._spread = (document, {(one.flow, one.kind): full_config(result, one) for one in running})
        return self._spread[1]

    def _known(self) -> dict[str, _Known]:
        configs = self._configs()
        found = {}
        for flow, _, _ in self._flows.pairs:
            for kind in ConnectorKind:
                config = configs.get((Flow(flow.source, flow.target), kind))
                if config is not None:
                    name = f"{flow}.{kind.value}"
                    found[name] = _Known(flow, kind, {"name": name, **config})
        return found

    def _need(self, name: str) -> _Known:
        known = self._known().get(name)
        if known is None:
            raise no_connector(name)
        return known

    # -- facts ------------------------------------------------------------------------------------------------------

    async def server(self) -> ServerInfo:
        return ServerInfo(__version__, commit_id(), "")

    async def health(self) -> Health:
        return Health("healthy", "Worker has completed startup and is ready to handle requests.")

    def names(self) -> Sequence[str]:
        return list(self._known())

    def info(self, name: str) -> ConnectorInfo:
        return ConnectorInfo(name, self._need(name).config, len(self.status(name).tasks))

    def task_configs(self, name: str) -> Sequence[Mapping[str, str]]:
        return task_configs(self._need(name).kind, self.info(name))

    def status(self, name: str) -> ConnectorStatus:
        known = self._need(name)
        namer = Namer(name, self._worker_id())
        if (error := self._flows.refused.get(known.flow)) is not None:
            return namer.failed(error.message)
        life = self._flows.life_of(known.flow)
        if known.kind is ConnectorKind.HEARTBEAT:
            return heartbeat_status(namer, TargetState.RUNNING, self._flows.status_of(known.flow))
        if known.kind is ConnectorKind.CHECKPOINT:
            return checkpoint_status(namer, TargetState.RUNNING, life)
        return source_status(namer, TargetState.RUNNING, life)

    def topics(self, name: str) -> Sequence[str]:
        known = self._need(name)
        return topics_written(known.kind, self._flows.status_of(known.flow), self._topics_since.get(name))

    async def reset_topics(self, name: str) -> None:
        status = self._flows.status_of(self._need(name).flow)
        if status is not None:
            self._topics_since[name] = status.clock()

    async def offsets(self, name: str) -> Sequence[Mapping[str, Any]]:
        known = self._need(name)
        life = self._flows.life_of(known.flow)
        if known.kind is not ConnectorKind.SOURCE or life is None:
            return []
        try:
            async with FlowOffsets(life.settings) as offsets:
                found: list[dict[str, Any]] = offsets_document(life.settings, dict(await offsets.show()))["offsets"]
                return found
        except NeverRan:
            return []

    # -- what may be done here --------------------------------------------------------------------------------------

    async def aim(self, name: str, state: TargetState) -> None:
        known = self._need(name)
        if state is TargetState.STOPPED:
            self._refuse(name, "cannot be stopped by REST: set its enabled = false there")
        if known.kind is not ConnectorKind.SOURCE:
            self._refuse(
                name, "cannot be paused by itself: its switch is there. Pause the flow's MirrorSourceConnector"
            )
        await self._hold(known.flow, state is TargetState.PAUSED)

    async def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """As in ``serve``: without its tasks only what failed is started anew."""
        known, status = self._need(name), self.status(name)
        has_failed = ConnectorState.FAILED in (status.state, *(task.state for task in status.tasks))
        if known.kind is ConnectorKind.SOURCE and (has_failed or (include_tasks and not only_failed)):
            self._restart(known.flow)
        return status if only_failed and not has_failed else with_restarts(status, include_tasks=include_tasks)

    async def restart_task(self, name: str, task: int) -> None:
        known = self._need(name)
        if known.kind is ConnectorKind.SOURCE:
            self._restart(known.flow)

    # -- what may not -----------------------------------------------------------------------------------------------

    def _refuse(self, name: str, what: str) -> NoReturn:
        raise Refusal(f"Connector {name} is owned by {self._file} and {what}", 409)

    def _refuse_change(self, name: str) -> NoReturn:
        self._refuse(
            name,
            "cannot be changed by REST: edit the file, then send SIGHUP (with --watch it is read by itself). Pause, resume "
            "and restart work here; mirrorspark serve takes connectors by REST",
        )

    async def create(self, name: str, config: Mapping[str, str], state: TargetState) -> ConnectorInfo:
        self._refuse_change(name)

    async def put_config(self, name: str, config: Mapping[str, str]) -> tuple[ConnectorInfo, bool]:
        self._refuse_change(name)

    async def patch_config(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo:
        self._need(name)
        self._refuse_change(name)

    async def delete(self, name: str) -> None:
        self._need(name)
        self._refuse_change(name)

    async def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        self._need(name)
        self._refuse(name, "its offsets change only while the mirror is stopped: see mirrorspark offsets")

    async def reset_offsets(self, name: str) -> str:
        self._need(name)
        self._refuse(name, "its offsets change only while the mirror is stopped: see mirrorspark offsets")
