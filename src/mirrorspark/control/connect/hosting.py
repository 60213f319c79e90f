"""The host behind the REST interface: connectors kept in Kafka, run as flows.

Every change is written to Kafka first, then answered, then brought about (``steering``), as a Connect worker does. Reads are
answered from memory. ``serving`` makes one for its process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mirrorspark import __version__
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.config.connector_secrets import kept
from mirrorspark.config.connector_validation import faults_of, kind_of
from mirrorspark.config.document import Document
from mirrorspark.config.forms.layout import ConnectorKind
from mirrorspark.config.levels import Effective
from mirrorspark.control.connect.offsets import ConnectorOffsets
from mirrorspark.control.connect.states import (
    Namer,
    checkpoint_status,
    heartbeat_status,
    source_status,
    task_configs,
    topics_written,
    with_restarts,
)
from mirrorspark.control.connect.steering import Steering
from mirrorspark.control.connect.topics import ConnectTopics, status_records
from mirrorspark.control.connect.wanted import Wanted, WantedFlows, wanted_flows
from mirrorspark.control.ending import end_tasks
from mirrorspark.control.flow_set import FlowSet
from mirrorspark.errors import MirrorError
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
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

__all__ = ["Hosting"]

log = logging.getLogger("mirrorspark.connect")

TELL_INTERVAL_S = 1.0
TELL_RETRY_S = 5.0
CONNECTORS_MAX = 10_000
HOLD_S_MAX = 10.0
"""A pause is in Kafka by then; a flow that cannot take it yet takes it later."""


class Hosting:
    """``await start()``; ``await stop()`` leaves the flows to their owner."""

    def __init__(
        self,
        client: ClusterClient,
        topics: ConnectTopics,
        flows: FlowSet,
        *,
        worker: Document | None = None,
        worker_id: Callable[[], str] = lambda: "",
    ) -> None:
        self._client = client
        self._topics = topics
        self._flows = flows
        self._worker = worker
        self._worker_id = worker_id
        self._connectors: dict[str, Wanted] = {}
        self._flows_wanted = WantedFlows()
        self._changing = asyncio.Lock()
        self._steering = Steering(flows, lambda: self._flows_wanted)
        self._offsets = ConnectorOffsets(worker)
        self._topics_since: dict[str, float] = {}
        self._told: dict[bytes, bytes] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.is_ready = False
        self.fault = ""
        """Why connectors cannot be read, where that does not pass by itself."""

    # -- life -------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        await self._topics.open()
        self._connectors = await self._topics.connectors()
        self._look_again()
        self.is_ready = True
        self._tasks = [asyncio.ensure_future(self._steering.run()), asyncio.ensure_future(self._tell_statuses())]
        self._steering.ring()

    async def stop(self) -> None:
        await end_tasks(self._tasks)

    def _look_again(self) -> None:
        self._flows_wanted = wanted_flows(self._connectors.values(), self._worker)

    def _changed(self) -> None:
        self._look_again()
        self._steering.ring()

    async def _tell_statuses(self) -> None:
        """What has changed since it was last written, gone connectors with it."""
        while True:
            now = {key: value for name in self.names() for key, value in status_records(self.status(name)).items()}
            entries: list[tuple[bytes, bytes | None]] = [
                (key, value) for key, value in now.items() if self._told.get(key) != value
            ]
            entries += [(key, None) for key in self._told if key not in now]
            try:
                if entries:
                    await self._topics.tell(entries)
                self._told = now
                await asyncio.sleep(TELL_INTERVAL_S)
            except MirrorError as error:
                log.warning("connectors' states are not written: %s", error)
                await asyncio.sleep(TELL_RETRY_S)

    # -- facts ------------------------------------------------------------------------------------------------------

    async def server(self) -> ServerInfo:
        return ServerInfo(__version__, commit_id(), self._client.cluster_id)

    async def health(self) -> Health:
        if self.is_ready:
            return Health("healthy", "Worker has completed startup and is ready to handle requests.")
        return Health("unhealthy", self.fault) if self.fault else Health("starting", "Worker is still starting up.")

    def _check_ready(self) -> None:
        """Nothing is said or changed before what is kept in Kafka has been read."""
        if not self.is_ready:
            raise Refusal(self.fault or "The worker is still starting up; its connectors are being read", 503)

    def names(self) -> Sequence[str]:
        self._check_ready()
        return list(self._connectors)

    def _need(self, name: str) -> Wanted:
        self._check_ready()
        if name not in self._connectors:
            raise no_connector(name)
        return self._connectors[name]

    def info(self, name: str) -> ConnectorInfo:
        one = self._need(name)
        return ConnectorInfo(name, one.config, len(self.status(name).tasks))

    def task_configs(self, name: str) -> Sequence[Mapping[str, str]]:
        return task_configs(self._flows_wanted.kinds.get(name, ConnectorKind.SOURCE), self.info(name))

    def status(self, name: str) -> ConnectorStatus:
        one = self._need(name)
        namer = Namer(name, self._worker_id())
        pair = self._flows_wanted.pairs.get(name)
        fault = self._flows_wanted.faults.get(name)
        if fault is not None or pair is None:
            return namer.failed(fault or "its configuration is wrong")
        settings = self._steering.settings(pair)
        life = self._flows.life_of(settings.flow) if settings is not None else None
        kind = self._flows_wanted.kinds[name]
        if kind is ConnectorKind.HEARTBEAT:
            return heartbeat_status(namer, one.state, self._status_of(name))
        if kind is ConnectorKind.CHECKPOINT:
            return checkpoint_status(namer, one.state, life)
        if self._steering.is_restarting(pair):
            return namer.alike(ConnectorState.RESTARTING, settings.tasks_max if settings else 0)
        status = source_status(namer, one.state, life)
        later = self._steering.faults.get(pair)
        return replace(status, trace=later) if later and not status.trace else status

    def _status_of(self, name: str) -> FlowStatus | None:
        pair = self._flows_wanted.pairs.get(name)
        settings = self._steering.settings(pair) if pair is not None else None
        return self._flows.status_of(settings.flow) if settings is not None else None

    # -- make and change --------------------------------------------------------------------------------------------

    async def create(self, name: str, config: Mapping[str, str], state: TargetState) -> ConnectorInfo:
        self._check_ready()
        meant = self._checked(name, config, {})
        async with self._changing:
            if name in self._connectors:
                raise Refusal(f"Connector {name} already exists", 409)
            await self._add(Wanted(name, meant, state))
        return ConnectorInfo(name, meant, 0)

    async def _add(self, one: Wanted) -> None:
        if len(self._connectors) >= CONNECTORS_MAX:
            raise Refusal(f"there are {CONNECTORS_MAX} connectors already", 409)
        # A state that was left behind by one of the same name must not count.
        await self._topics.put(one, with_state=True)
        self._connectors[one.name] = one
        self._changed()

    async def put_config(self, name: str, config: Mapping[str, str]) -> tuple[ConnectorInfo, bool]:
        self._check_ready()
        async with self._changing:
            before = self._connectors.get(name)
            meant = self._checked(name, config, before.config if before else {})
            if before is None:
                await self._add(Wanted(name, meant))
            else:
                await self._change(replace(before, config=meant))
        return (ConnectorInfo(name, meant, 0), True) if before is None else (self.info(name), False)

    async def patch_config(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo:
        async with self._changing:
            before = self._need(name)
            given = {key: value for key, value in {**before.config, **patch}.items() if value is not None}
            await self._change(replace(before, config=self._checked(name, given, before.config)))
        return self.info(name)

    async def _change(self, one: Wanted) -> None:
        await self._topics.put(one)
        self._connectors[one.name] = one
        self._changed()

    def _checked(self, name: str, config: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
        """The configuration that is meant. Raises Refusal with every fault that it has by itself."""
        meant, unknown = kept({**config, "name": name}, before)
        if unknown:
            raise Refusal(f"{', '.join(unknown)}: hidden in what was read; give the secret itself", 400)
        if "connector.class" not in meant:
            raise Refusal(f"Connector config of {name or 'a connector'} contains no connector type", 400)
        kind = kind_of(meant["connector.class"])
        if kind is None:
            known = ", ".join(one.java_class for one in ConnectorKind)
            raise Refusal(
                "Failed to find any class that implements Connector and which name matches "
                f"{meant['connector.class']}, available connectors are: {known}",
                400,
            )
        if faults := faults_of(kind, meant, self._worker or Document(())):
            listed = "\n".join(faults)
            raise Refusal(
                f"Connector configuration is invalid and contains the following {len(faults)} error(s):\n{listed}\n"
                "You can also find the above list of errors at the endpoint "
                "`/connector-plugins/{connectorType}/config/validate`",
                400,
            )
        return meant

    async def delete(self, name: str) -> None:
        async with self._changing:
            self._need(name)
            await self._topics.remove(name)
            del self._connectors[name]
            self._topics_since.pop(name, None)
            self._changed()

    # -- steer ------------------------------------------------------------------------------------------------------

    async def aim(self, name: str, state: TargetState) -> None:
        async with self._changing:
            one = self._need(name)
            await self._topics.put_state(name, state)
            self._connectors[name] = replace(one, state=state)
            self._changed()
            pair = self._flows_wanted.pairs.get(name)
            is_source = self._flows_wanted.kinds.get(name) is ConnectorKind.SOURCE
            if pair is not None and is_source and state is TargetState.RUNNING:
                self._steering.resume(pair)

    async def hold(self, flow: Flow, is_held: bool) -> None:
        """A whole flow, by the state of its source connector; returns when that has been brought about, or soon after."""
        name = self._source_of(Flow(flow.source, flow.target))
        if name is None:
            raise Refusal(f"{flow} has no MirrorSourceConnector that could be paused", 409)
        await self.aim(name, TargetState.PAUSED if is_held else TargetState.RUNNING)
        with suppress(TimeoutError):
            async with asyncio.timeout(HOLD_S_MAX):
                await self._steering.settled()

    def _source_of(self, pair: Flow) -> str | None:
        wanted = self._flows_wanted
        named = (name for name, its in wanted.pairs.items() if its == pair and self._is_source(name))
        return next((name for name in named if name not in wanted.faults), None)

    def effective(self, flow: Flow) -> Sequence[Effective]:
        """Every value that counts for a flow, with the connector and the key where it stands."""
        return self._flows_wanted.effective.get(Flow(flow.source, flow.target), ())

    async def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Without its tasks a connector has nothing to be started anew, unless it failed. Checkpoints and heartbeats try
        again by themselves: they are no reason to start the data anew."""
        status = self.status(name)
        has_failed = ConnectorState.FAILED in (status.state, *(task.state for task in status.tasks))
        pair = self._flows_wanted.pairs.get(name)
        is_asked = has_failed or (include_tasks and not only_failed)
        if pair is not None and is_asked and self._is_source(name):
            self._steering.restart(pair)
        if only_failed and not has_failed:
            return status
        return with_restarts(status, include_tasks=include_tasks)

    async def restart_task(self, name: str, task: int) -> None:
        """Lanes of a flow share one query: all of them are drained and started anew."""
        self._need(name)
        pair = self._flows_wanted.pairs.get(name)
        if pair is not None and self._is_source(name):
            self._steering.restart(pair)

    # -- topics and offsets -----------------------------------------------------------------------------------------

    def topics(self, name: str) -> Sequence[str]:
        self._need(name)
        kind = self._flows_wanted.kinds.get(name, ConnectorKind.SOURCE)
        return topics_written(kind, self._status_of(name), self._topics_since.get(name))

    async def reset_topics(self, name: str) -> None:
        status = self._status_of(name)
        if status is not None:
            self._topics_since[name] = status.clock()

    async def offsets(self, name: str) -> Sequence[Mapping[str, Any]]:
        one = self._need(name)
        return await self._offsets.show(one) if self._is_source(name) else []

    async def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        one = await self._stopped(name)
        if not self._is_source(name):
            raise Refusal(f"{name} keeps no offsets: positions of groups follow from what the flow carries", 400)
        return await self._offsets.alter(one, offsets)

    async def reset_offsets(self, name: str) -> str:
        one = await self._stopped(name)
        return await self._offsets.reset(one, keeps_any=self._is_source(name))

    def _is_source(self, name: str) -> bool:
        return self._flows_wanted.kinds.get(name) is ConnectorKind.SOURCE

    async def _stopped(self, name: str) -> Wanted:
        """The connector, when it has come to rest. Raises Refusal if nobody stopped it."""
        one = self._need(name)
        if one.state is not TargetState.STOPPED:
            raise Refusal(
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the "
                f"specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint",
                400,
            )
        await self._offsets.wait_for(self._steering.settled())
        return one
