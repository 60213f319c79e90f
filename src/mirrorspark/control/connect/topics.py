"""Connect's config and status topics, in Connect's own formats: connectors survive the process that runs them.

``hosting`` calls it. A Connect worker's topics can be taken over as they are, and are left so that a worker could go on with
them. Records of Connect that have no meaning here (tasks, session keys) are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mirrorspark import __version__
from mirrorspark.cluster.cluster_admin import NewTopic, create_topics
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.connect.wanted import Wanted
from mirrorspark.errors import SettingsError
from mirrorspark.rest.connector_host import ConnectorStatus, TargetState

__all__ = ["ConnectTopics", "TopicNames", "connectors_in", "state_record", "status_records"]

OPEN_TIMEOUT_S = 60.0
WRITE_TIMEOUT_S = 30.0
CONNECTOR, TARGET_STATE = "connector-", "target-state-"
STATUS_CONNECTOR, STATUS_TASK = "status-connector-", "status-task-"
STATUS_PARTITIONS = 5
"""Connect's default; a topic that is there keeps what it has."""
GENERATION = 0
"""Connect's is that of its group; here no group stands behind it."""
COMPACTED = {"cleanup.policy": "compact"}
_STARTED = "STARTED"

Entry = tuple[bytes, bytes | None]


@dataclass(frozen=True)
class TopicNames:
    config: str
    status: str
    replication_factor: int = 3
    """At most the number of brokers."""


# -- formats -----------------------------------------------------------------------------------------------------------


def connector_record(one: Wanted) -> Entry:
    return f"{CONNECTOR}{one.name}".encode(), _json({"properties": dict(one.config)})


def state_record(name: str, state: TargetState) -> Entry:
    """``state`` is for workers from before 3.5, which know no STOPPED."""
    newest = _STARTED if state is TargetState.RUNNING else state.value
    oldest = _STARTED if state is TargetState.RUNNING else TargetState.PAUSED.value
    return f"{TARGET_STATE}{name}".encode(), _json({"state": oldest, "state.v2": newest})


def connectors_in(records: Mapping[bytes, bytes | None]) -> dict[str, Wanted]:
    """The newest value of each key -> connectors, in their order. Raises SettingsError for what Connect did not write."""
    states: dict[str, TargetState] = {}
    configs: dict[str, dict[str, str]] = {}
    for raw_key, raw in records.items():
        key = raw_key.decode(errors="replace")
        if raw is None or not key.startswith((CONNECTOR, TARGET_STATE)):
            continue
        try:
            value = json.loads(raw)
            if key.startswith(TARGET_STATE):
                text = value.get("state.v2") or value["state"]
                states[key.removeprefix(TARGET_STATE)] = TargetState.RUNNING if text == _STARTED else TargetState(text)
            else:
                properties = value["properties"].items()
                configs[key.removeprefix(CONNECTOR)] = {
                    name: str(text) for name, text in properties if text is not None
                }
        except (ValueError, KeyError, TypeError, AttributeError):
            raise SettingsError(
                f"the config topic's record {key} is not in Connect's format (JSON without schema); delete or mend it",
                key=key,
            ) from None
    return {name: Wanted(name, config, states.get(name, TargetState.RUNNING)) for name, config in configs.items()}


def status_records(status: ConnectorStatus) -> dict[bytes, bytes]:
    found = {f"{STATUS_CONNECTOR}{status.name}".encode(): _status(status.state, status.trace, status.worker_id)}
    for task in status.tasks:
        found[f"{STATUS_TASK}{status.name}-{task.id}".encode()] = _status(task.state, task.trace, task.worker_id)
    return found


def _status(state: str, trace: str, worker_id: str) -> bytes:
    return _json(
        {
            "state": str(state),
            "trace": trace or None,
            "worker_id": worker_id,
            "generation": GENERATION,
            "version": __version__,
        }
    )


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


# -- topics ------------------------------------------------------------------------------------------------------------


class ConnectTopics:
    """``await open()`` first."""

    def __init__(self, client: ClusterClient, names: TopicNames) -> None:
        self._client = client
        self._names = names
        self._configs = KeyedTopic(client, names.config)
        self._statuses = KeyedTopic(client, names.status, STATUS_PARTITIONS)

    async def open(self) -> None:
        """Makes what is missing. Raises SettingsError for a config topic that is not Connect's."""
        deadline = Deadline(OPEN_TIMEOUT_S)
        factor = min(self._names.replication_factor, max(1, len(self._client.nodes)))
        refused = await create_topics(
            self._client,
            [
                NewTopic(self._names.config, 1, factor, COMPACTED),
                NewTopic(self._names.status, STATUS_PARTITIONS, factor, COMPACTED),
            ],
        )
        for error in refused.values():
            raise error
        counts = {}
        for name in (self._names.config, self._names.status):
            (topic,) = await self._client.refresh([name], deadline)
            counts[name] = len(topic.partitions) or (1 if name == self._names.config else STATUS_PARTITIONS)
        if counts[self._names.config] != 1:
            raise SettingsError(
                f"config.storage.topic: {self._names.config} has {counts[self._names.config]} partitions; Connect's has one",
                key="config.storage.topic",
            )
        self._statuses = KeyedTopic(self._client, self._names.status, counts[self._names.status])

    async def connectors(self) -> dict[str, Wanted]:
        return connectors_in(await self._configs.read_all(Deadline(OPEN_TIMEOUT_S)))

    async def put(self, one: Wanted, *, with_state: bool = False) -> None:
        """The state first, as Connect does: whoever reads in between must not start what shall be paused."""
        records = [state_record(one.name, one.state)] if with_state else []
        await self._append(self._configs, [*records, connector_record(one)])

    async def put_state(self, name: str, state: TargetState) -> None:
        await self._append(self._configs, [state_record(name, state)])

    async def remove(self, name: str) -> None:
        await self._append(
            self._configs, [(f"{CONNECTOR}{name}".encode(), None), (f"{TARGET_STATE}{name}".encode(), None)]
        )

    async def tell(self, entries: Sequence[Entry]) -> None:
        await self._append(self._statuses, entries)

    async def _append(self, topic: KeyedTopic, entries: Sequence[Entry]) -> None:
        await topic.append(entries, Deadline(WRITE_TIMEOUT_S))
