"""A Kafka cluster of one or more real brokers on this machine.

Used by tests, the demo and benchmarks as ``with ClusterOfBrokers("east") as east: ... east.bootstrap``. Clusters are
independent of each other and may start in parallel: ``with started_together(east, west): ...``.
"""

from __future__ import annotations

import random
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from mirrorspark.errors import LabError
from mirrorspark.lab.broker import Broker, BrokerSpec
from mirrorspark.lab.class_archive import class_archive_flags
from mirrorspark.lab.clients import admin, wait_for
from mirrorspark.lab.kafka_version import LATEST, KafkaVersion
from mirrorspark.lab.storage import is_formatted, new_kafka_id
from mirrorspark.lab.zookeeper import ZooKeeper

__all__ = ["ClusterOfBrokers", "free_port", "started_together"]

HEAP_MB = 512
JOIN_DEADLINE_S = 120.0
# Below the range of ports for outgoing connections: while a broker is down, nobody may take its port.
PORT_FIRST, PORT_LAST = 15_000, 31_999

# An archive of classes would cost more than it saves where a version is started once in a run.
_STARTED_ONCE = ["-XX:TieredStopAtLevel=1"]

_given_ports: set[int] = set()


class ClusterOfBrokers:
    """Some brokers that form one cluster. Of three or more, the first three are its controllers; else node 1 alone."""

    def __init__(
        self,
        name: str,
        *,
        brokers: int = 1,
        ports: Sequence[int] | None = None,
        folder: Path | None = None,
        settings: Mapping[str, str] | None = None,
        heap_mb: int = HEAP_MB,
        jvm_flags: Sequence[str] = (),
        client: Mapping[str, Any] | None = None,
        listeners: Mapping[str, str] | None = None,
        java_properties: Mapping[str, str] | None = None,
        kafka: KafkaVersion = LATEST,
    ) -> None:
        """``settings`` are server properties over ours, for every broker; ``client`` what a client needs to log in.

        ``listeners`` stand beside the plain one on each broker: name to security protocol (``secured_cluster``).
        ``java_properties`` are of the process (``-D``).

        ``jvm_flags`` stand in place of those that make the start quick. G1 is named since Kafka's scripts name it; a
        small machine would choose the serial collector. ``kafka`` is whose jars run; a version before KRaft brings its
        ZooKeeper along.
        """
        assert brokers >= 1, "a cluster has a broker"
        if ports is not None and len(ports) != brokers:
            raise LabError(f"cluster {name} has {brokers} brokers but {len(ports)} ports were given")
        self.name = name
        self._is_temporary = folder is None
        # Made when the first broker starts: a cluster that never starts leaves nothing behind.
        self.folder = (folder or Path(tempfile.gettempdir()) / f"mirrorspark-{name}-{token_hex(6)}").absolute()
        self._client = dict(client or {})
        self._ports = list(ports) if ports is not None else [free_port() for _ in range(brokers)]
        self._listeners = dict(listeners or {})
        self._listener_ports = {name: [free_port() for _ in self._ports] for name in self._listeners}
        self._controller_ports = [free_port() for _ in range(3 if brokers >= 3 else 1)]
        self.kafka = kafka
        self._zookeeper = ZooKeeper(self.folder, free_port(), kafka) if kafka.has_zookeeper else None
        self._first_cluster_id = _cluster_id_in(self.folder) or new_kafka_id()
        flags = [
            f"-Xmx{heap_mb}m",
            f"-Xms{min(heap_mb, 256)}m",
            "-XX:+UseG1GC",
            *(jvm_flags or _quick_start_flags(kafka)),
        ]
        flags += [f"-D{key}={value}" for key, value in (java_properties or {}).items()]
        self.brokers = [self._broker(node_id, settings or {}, flags) for node_id in range(1, brokers + 1)]

    @property
    def cluster_id(self) -> str:
        """What the data says, once there is some: a ZooKeeper gives ids by itself."""
        return _cluster_id_in(self.folder) or self._first_cluster_id

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    def bootstrap_of(self, listener: str) -> str:
        """Addresses of one of the ``listeners``."""
        return ",".join(f"127.0.0.1:{port}" for port in self._listener_ports[listener])

    def broker(self, node_id: int) -> Broker:
        """By its node id, from 1 on."""
        return self.brokers[node_id - 1]

    def start(self) -> None:
        try:
            self.launch()
            self.wait_ready()
        except BaseException:
            self.stop()
            raise

    def launch(self) -> None:
        """Start the processes and do not wait for them; ``wait_ready`` does."""
        if self._zookeeper is not None:
            self._zookeeper.start()
        for broker in self.brokers:
            broker.start(wait=False)

    def wait_ready(self) -> None:
        for broker in self.brokers:
            broker.wait_ready()
        client = admin(self.bootstrap, self._client)
        wanted = len(self.brokers)
        wait_for(
            lambda: len(client.list_topics(timeout=2).brokers) == wanted,
            f"all {wanted} brokers of cluster {self.name}",
            JOIN_DEADLINE_S,
        )

    def stop(self) -> None:
        """End all brokers: in order where the data is kept, at once where it is thrown away."""
        if not self._is_temporary:
            # All together: the last of a quorum cannot end in order alone.
            for broker in self.brokers:
                broker.ask_to_stop()
            for broker in self.brokers:
                broker.stop()
            if self._zookeeper is not None:
                self._zookeeper.stop()
            return
        for broker in self.brokers:
            broker.kill()
        if self._zookeeper is not None:
            self._zookeeper.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def upgrade(self, kafka: KafkaVersion) -> None:
        """A rolling one: each broker in turn goes on with its data under this version's jars."""
        for broker in self.brokers:
            broker.upgrade(kafka)
        self.kafka = kafka

    def __enter__(self) -> ClusterOfBrokers:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __str__(self) -> str:
        return f"cluster {self.name} ({self.bootstrap})"

    def _broker(self, node_id: int, settings: Mapping[str, str], jvm_flags: list[str]) -> Broker:
        return Broker(
            BrokerSpec(
                cluster=self.name,
                cluster_id=self._first_cluster_id,
                node_id=node_id,
                port=self._ports[node_id - 1],
                folder=self.folder,
                properties={**self._identity(node_id), **_sizes(len(self._ports)), **settings},
                jvm_flags=jvm_flags,
                client=self._client,
                kafka=self.kafka,
            )
        )

    def _identity(self, node_id: int) -> dict[str, str]:
        """Who a node is, where it listens, and who coordinates."""
        ports = {"CLIENT": self._ports, **self._listener_ports}
        clients = [f"{name}://127.0.0.1:{given[node_id - 1]}" for name, given in ports.items()]
        listening = {
            "listeners": ",".join(clients),
            "advertised.listeners": ",".join(clients),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}"
                for name, protocol in {"CLIENT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **self._listeners}.items()
            ),
            "inter.broker.listener.name": "CLIENT",
        }
        if self._zookeeper is not None:
            return {"broker.id": str(node_id), **listening, **self._zookeeper.broker_properties}
        return {**listening, **self._in_quorum(node_id, clients)}

    def _in_quorum(self, node_id: int, clients: list[str]) -> dict[str, str]:
        """KRaft: which nodes are controllers, and their listener where this is one."""
        is_controller = node_id <= len(self._controller_ports)
        listeners = list(clients)
        if is_controller:
            listeners.append(f"CONTROLLER://127.0.0.1:{self._controller_ports[node_id - 1]}")
        voters = (f"{number}@127.0.0.1:{port}" for number, port in enumerate(self._controller_ports, start=1))
        return {
            "process.roles": "broker,controller" if is_controller else "broker",
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(voters),
        }


def _sizes(brokers: int) -> dict[str, str]:
    """Internal topics that fit the cluster and are quick to create; all else is as Kafka ships it."""
    copies, copies_in_sync = min(brokers, 3), 2 if brokers >= 3 else 1
    sizes: dict[str, object] = {
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": 0,
        "default.replication.factor": copies,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": copies_in_sync,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": copies_in_sync,
        "share.coordinator.state.topic.num.partitions": 1,
        # With the default of 9 s a killed broker may not come back before 9 s have passed.
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
        # The default takes 128 MB of the heap at once.
        "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,
        "log.segment.delete.delay.ms": 1000,
    }
    return {key: str(value) for key, value in sizes.items()}


@contextmanager
def started_together(*clusters: ClusterOfBrokers) -> Iterator[tuple[ClusterOfBrokers, ...]]:
    """Start several clusters in parallel, stop them all at the end."""
    try:
        for cluster in clusters:
            cluster.launch()
        for cluster in clusters:
            cluster.wait_ready()
        yield clusters
    finally:
        for cluster in clusters:
            cluster.stop()


def _quick_start_flags(kafka: KafkaVersion) -> Sequence[str]:
    if kafka is not LATEST:
        return _STARTED_ONCE

    def run_once(flags: list[str]) -> None:
        with (
            tempfile.TemporaryDirectory(prefix="mirrorspark-") as folder,
            ClusterOfBrokers("class-archive", folder=Path(folder), jvm_flags=flags),
        ):
            pass

    return class_archive_flags(run_once)


def _cluster_id_in(folder: Path) -> str | None:
    """The id that the data of an earlier run carries, so that a kept folder can be started again."""
    for data in sorted(folder.glob("data-*")):
        if is_formatted(data):
            for line in (data / "meta.properties").read_text().splitlines():
                if line.startswith("cluster.id="):
                    return line.removeprefix("cluster.id=")
    return None


def free_port() -> int:
    """One that nobody in this process was given before."""
    for _ in range(1000):
        port = random.SystemRandom().randint(PORT_FIRST, PORT_LAST)
        if port in _given_ports:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given_ports.add(port)
        return port
    raise LabError(f"no free port between {PORT_FIRST} and {PORT_LAST} on 127.0.0.1")
