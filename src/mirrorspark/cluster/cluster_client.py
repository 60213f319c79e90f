"""One cluster as seen by one process: its brokers, its leaders, its coordinators, and requests to them.

Everything above this room asks a ``ClusterClient``. Bulk traffic gets connections of its own by ``purpose`` so that a
long poll never stands before a commit. asyncio, one loop; not thread-safe.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest, MetadataResponse

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error, is_retriable
from mirrorspark.cluster.connection import Connection
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.security import Security
from mirrorspark.cluster.traffic import Traffic, traffic_by_node
from mirrorspark.errors import AuthenticationFailed, BrokerError, ClusterError, MirrorError, Unreachable
from mirrorspark.names import TopicPartition
from mirrorspark.settings import ClusterSettings

__all__ = ["ClusterClient", "PartitionLeader", "TopicMetadata"]

# Where newer versions would change the meaning: transactions stay in the form in which the epoch is bumped by
# InitProducerId alone (EndTxn 5 bumps it too), groups and coordinators in the form of one key per request.
VERSION_CAPS = {
    "EndTxnRequest": 4,
    "AddPartitionsToTxnRequest": 3,
    "AddOffsetsToTxnRequest": 3,
    "TxnOffsetCommitRequest": 3,
    "InitProducerIdRequest": 4,
    "OffsetFetchRequest": 7,
    "OffsetCommitRequest": 8,
    "FindCoordinatorRequest": 3,
    "MetadataRequest": 12,
}
RETRY_PAUSE_S = 0.1
SILENT_S = 3.0
"""A broker that owes an answer for longer is not asked where others may be, and may be gone (``lost_brokers``)."""
COORDINATOR_GROUP = 0
COORDINATOR_TRANSACTION = 1
_COORDINATOR_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_PASSING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS, *_COORDINATOR_MOVED)


@dataclass(frozen=True, slots=True)
class PartitionLeader:
    node: int
    epoch: int


@dataclass(slots=True)
class TopicMetadata:
    name: str
    topic_id: bytes  # 16 zero bytes where the broker has no topic ids
    internal: bool
    partitions: dict[int, PartitionLeader] = field(default_factory=dict)
    error_code: int = 0


class ClusterClient:
    """``await start()`` first; ``close()`` at the end."""

    def __init__(self, settings: ClusterSettings, client_id: str) -> None:
        self.settings = settings
        self.alias = settings.alias
        self._client_id = client_id
        self._security = Security(settings.login, settings.alias)
        self._brokers: dict[int, tuple[str, int]] = {}
        self._controller = -1
        self._connections: dict[tuple[int, str], Connection] = {}
        self._opening: dict[tuple[int, str], asyncio.Lock] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self.traffic: dict[tuple[int, str], Traffic] = {}
        """By broker and purpose, since the client was made; bootstrap servers are -1, -2, … until they are known."""
        self.topics: dict[str, TopicMetadata] = {}
        self._denied: set[str] = set()
        self.cluster_id = ""
        self.request_timeout_s = settings.request_timeout_s

    async def start(self, timeout_s: float = 15.0) -> None:
        """Find the cluster through one of its bootstrap servers. Raises the last server's error if none answers."""
        await self.refresh([], Deadline(timeout_s))

    @property
    def is_plain(self) -> bool:
        """Whether bytes go to its brokers as they are."""
        return not self._security.is_encrypted

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(self._brokers)

    async def refresh(self, topics: list[str] | None, deadline: Deadline | None = None) -> list[TopicMetadata]:
        """Look up brokers and these topics' leaders (None: all topics). Any broker that answers will do."""
        deadline = deadline or Deadline(self.request_timeout_s)
        request_topics = (
            None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        )
        last: MirrorError | None = None
        for connection in await self._any_connections(deadline):
            if isinstance(connection, MirrorError):
                last = connection
                continue
            try:
                version = connection.version(3, 1, VERSION_CAPS["MetadataRequest"], "Metadata")
                request = MetadataRequest(
                    topics=request_topics if version > 0 or request_topics else [], allow_auto_topic_creation=False
                )
                answer = await connection.request(
                    request, MetadataResponse, version, max(0.5, deadline.at_most(self.request_timeout_s))
                )
            except ClusterError as error:
                last = error
                continue
            return self._learn(answer, topics)
        raise last or Unreachable(f"cluster {self.alias}: no broker is known")

    async def _any_connections(self, deadline: Deadline) -> list[Connection | MirrorError]:
        """Open connections first; else the known brokers, else the bootstrap servers, tried side by side."""
        silent = self.silent_nodes()
        alive: list[Connection | MirrorError] = [
            link
            for (node, purpose), link in self._connections.items()
            if purpose == "control" and link.closed is None and node not in silent
        ]
        return alive or await self._bootstrap_candidates(deadline)

    async def _bootstrap_candidates(self, deadline: Deadline) -> list[Connection | MirrorError]:
        timeout = max(0.5, deadline.at_most(10.0))

        async def known(node: int) -> Connection | MirrorError:
            try:
                return await self.connection(node, timeout_s=timeout)
            except MirrorError as error:
                return error

        async def unknown(index: int, host: str, port: int) -> Connection | MirrorError:
            try:
                return await self._open((-1 - index, "control"), (host, port), timeout)
            except MirrorError as error:
                return error

        answering = [node for node in self._brokers if node not in self.silent_nodes()]
        found = list(await asyncio.gather(*(known(node) for node in answering or self._brokers)))
        if not any(isinstance(one, Connection) for one in found):
            servers = enumerate(self.settings.bootstrap)
            found += await asyncio.gather(*(unknown(index, host, port) for index, (host, port) in servers))
        return sorted(found, key=lambda one: isinstance(one, MirrorError))

    def _learn(self, answer: Any, asked: list[str] | None) -> list[TopicMetadata]:
        brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        for node, address in brokers.items():
            if self._brokers.get(node, address) != address:
                self.hang_up(node)
        self._brokers = brokers
        self._controller = answer.controller_id if answer.controller_id is not None else -1
        self.cluster_id = getattr(answer, "cluster_id", None) or self.cluster_id
        found = []
        for topic in answer.topics:
            raw_id = getattr(topic, "topic_id", None)
            known = TopicMetadata(topic.name, raw_id.bytes if raw_id else bytes(16), bool(topic.is_internal))
            known.error_code = topic.error_code
            for part in topic.partitions:
                epoch = getattr(part, "leader_epoch", None)
                known.partitions[part.partition_index] = PartitionLeader(part.leader_id, -1 if epoch is None else epoch)
            found.append(known)
            if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self._denied.add(topic.name)
            else:
                self._denied.discard(topic.name)
            if topic.error_code in (0, 5):
                self.topics[topic.name] = known
            elif topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self.topics.pop(topic.name, None)
        if asked is None:
            names = {topic.name for topic in found}
            self.topics = {name: known for name, known in self.topics.items() if name in names}
        return found

    def check_allowed(self, at: TopicPartition, request: str) -> None:
        """Raises BrokerError that names the ACL if the last look-up of the topic was denied: then it has no leader for us,
        and waiting for one would be in vain."""
        if at.topic in self._denied:
            about = f"{at} on cluster {self.alias}"
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            raise broker_error(code, "Metadata", about, before=request, topic=at.topic, partition=at.partition)

    def no_leader(self, at: TopicPartition, request: str) -> ClusterError:
        """Why the partition has none for us, to raise or to keep: an ACL that is missing, or what passes by itself."""
        try:
            self.check_allowed(at, request)
        except BrokerError as error:
            return error
        return Unreachable(f"{at}: no leader on cluster {self.alias} now", topic=at.topic, partition=at.partition)

    def leader(self, at: TopicPartition) -> PartitionLeader | None:
        """The leader as last looked up; None if unknown or there is none now."""
        topic = self.topics.get(at.topic)
        found = topic.partitions.get(at.partition) if topic else None
        return found if found is not None and found.node in self._brokers else None

    async def connection(self, node: int, purpose: str = "control", timeout_s: float = 10.0) -> Connection:
        """The connection for this purpose, opened if need be."""
        key = (node, purpose)
        link = self._connections.get(key)
        if link is not None and link.closed is None:
            return link
        async with self._opening.setdefault(key, asyncio.Lock()):
            link = self._connections.get(key)
            if link is not None and link.closed is None:
                return link
            address = self._brokers.get(node)
            if address is None:
                raise Unreachable(f"cluster {self.alias}: broker {node} is not in the metadata", node=node)
            return await self._open(key, address, timeout_s)

    async def _open(self, key: tuple[int, str], address: tuple[str, int], timeout_s: float) -> Connection:
        traffic = self.traffic.setdefault(key, Traffic())
        try:
            link = await Connection.open(*address, self._security, self._client_id, timeout_s)
        except AuthenticationFailed:
            traffic.logins_failed += 1
            raise
        traffic.opened += 1
        traffic.add(link.traffic)
        link.traffic = traffic
        self._connections[key] = link
        return link

    async def request(
        self, message: Any, *, node: int | None = None, timeout_s: float | None = None, purpose: str = "control"
    ) -> Any:
        """One message to one broker (any, if none is named), at the newest version both sides know. No retries."""
        name = message.name
        link = await self.connection(node if node is not None else await self._any_node(), purpose)
        cap = min(message.max_version, VERSION_CAPS.get(name, message.max_version))
        version = link.version(message.API_KEY, 0, cap, name)
        answer = await link.request(message, _response_class(name), version, timeout_s or self.request_timeout_s)
        if getattr(answer, "throttle_time_ms", 0):
            link.throttled_until = time.monotonic() + answer.throttle_time_ms / 1000
        return answer

    async def request_controller(self, message: Any, timeout_s: float | None = None) -> Any:
        node = self._controller if self._controller in self._brokers else None
        return await self.request(message, node=node, timeout_s=timeout_s)

    async def request_coordinator(self, message: Any, kind: int, key: str, deadline: Deadline, about: str = "") -> Any:
        """To the group's or transactional id's coordinator; waits out moves, loading and unfinished transactions.

        Raises BrokerError for any other code in the answer's top-level ``error_code``.
        """
        while True:
            try:
                node = await self._coordinator(kind, key, deadline, message.name)
                answer = await self.request(message, node=node, timeout_s=max(1.0, deadline.at_most(30.0)))
                code = _first_error(answer)
            except ClusterError as error:
                if not error.retriable or deadline.passed:
                    raise
                self._coordinators.pop((kind, key), None)
            else:
                if code not in _PASSING:
                    return answer
                if deadline.passed:
                    raise broker_error(code, message.name, about or key)
                if code in _COORDINATOR_MOVED:
                    self._coordinators.pop((kind, key), None)
            await asyncio.sleep(RETRY_PAUSE_S if self._coordinators.get((kind, key)) is None else 0.005)

    async def _coordinator(self, kind: int, key: str, deadline: Deadline, asked_for: str) -> int:
        """``asked_for`` is the request that shall go there: a refusal names the ACL which that one needs."""
        known = self._coordinators.get((kind, key))
        if known is not None and known in self._brokers:
            return known
        while True:
            request = FindCoordinatorRequest(key=key, key_type=kind)
            try:
                answer = await self.request(request, timeout_s=max(1.0, deadline.at_most(10.0)))
            except ClusterError as error:
                if not error.retriable or deadline.passed:
                    raise
                await self._refresh_quietly(deadline)
            else:
                if answer.error_code == 0:
                    if answer.node_id not in self._brokers:
                        await self._refresh_quietly(deadline)
                    self._coordinators[(kind, key)] = answer.node_id
                    return int(answer.node_id)
                if not is_retriable(answer.error_code) or deadline.passed:
                    before = asked_for.removesuffix("Request")
                    raise broker_error(answer.error_code, "FindCoordinator", f"{key} on {self.alias}", before=before)
            await asyncio.sleep(RETRY_PAUSE_S)

    async def _refresh_quietly(self, deadline: Deadline) -> None:
        """The caller retries anyway until its deadline and then reports its own error."""
        try:
            await self.refresh([], deadline)
        except ClusterError as error:
            if not error.retriable:
                raise

    async def _any_node(self) -> int:
        for (node, purpose), link in self._connections.items():
            if purpose == "control" and link.closed is None and node in self._brokers and not _is_silent(link):
                return node
        last: ClusterError | None = None
        silent = self.silent_nodes()
        for node in sorted(self._brokers, key=lambda node: node in silent):
            try:
                await self.connection(node)
                return node
            except ClusterError as error:
                last = error
        raise last or Unreachable(f"cluster {self.alias}: no broker is known")

    def silent_nodes(self) -> set[int]:
        """Brokers that owe an answer for longer than SILENT_S; bootstrap servers are negative."""
        return {node for (node, _), link in self._connections.items() if link.closed is None and _is_silent(link)}

    def hang_up(self, node: int) -> None:
        """Every request to this broker that is not answered fails, and can be retried."""
        for key in [key for key in self._connections if key[0] == node]:
            self._connections.pop(key).close()

    def traffic_by_node(self) -> dict[int, dict[str, float]]:
        """Plain figures of all purposes together."""
        return traffic_by_node((node, book) for (node, _), book in self.traffic.items())

    @property
    def peer_certificates(self) -> list[bytes]:
        """What brokers showed on the connections that are open (DER), where TLS is spoken."""
        links = [link for link in self._connections.values() if link.closed is None]
        return [shown for link in links if (shown := link.peer_certificate) is not None]

    def close(self) -> None:
        for link in self._connections.values():
            link.close()
        self._connections.clear()


def _is_silent(link: Connection) -> bool:
    return time.monotonic() - link.owed_since > SILENT_S


def _response_class(request_name: str) -> Any:
    name = request_name.replace("Request", "Response")
    for module in (
        kafka.protocol.metadata,
        kafka.protocol.producer,
        kafka.protocol.consumer,
        kafka.protocol.admin,
    ):
        found = getattr(module, name, None)
        if found is not None:
            return found
    raise AssertionError(f"no schema for {name}")


def _first_error(answer: Any) -> int:
    """The top-level error, or the first one inside, of the coordinator answers that have only inner ones."""
    code = getattr(answer, "error_code", None)
    if code:
        return int(code)
    for topic in getattr(answer, "topics", None) or getattr(answer, "results_by_topic_v3_and_below", None) or []:
        for part in getattr(topic, "partitions", None) or getattr(topic, "results_by_partition", None) or []:
            inner = getattr(part, "error_code", None)
            if inner is None:
                inner = getattr(part, "partition_error_code", 0)
            if inner:
                return int(inner)
    return 0
