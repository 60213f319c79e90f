"""A real ZooKeeper for brokers of the time before KRaft, as a Java process from the same jars.

Made and ended by ``lab/cluster_of_brokers.py`` beside its brokers. One node, no ensemble: what is tested is Kafka.
"""

from __future__ import annotations

from pathlib import Path

from mirrorspark.lab.child import Child, JavaProgram
from mirrorspark.lab.kafka_version import KafkaVersion

__all__ = ["ZooKeeper"]

HEAP_MB = 128
TICK_MS = 500
"""ZooKeeper counts in ticks: sessions may last 2 to 20 of them."""
BROKER_SESSION_MS = 6_000
"""A killed broker's name is taken for so long; one that is started again earlier is refused."""
BROKER_CONNECTION_MS = 60_000
"""Brokers are started at the same time and wait for the ZooKeeper to be there."""


class ZooKeeper:
    """``start`` does not wait: brokers do. Port and data stay the same over its lives."""

    def __init__(self, folder: Path, port: int, kafka: KafkaVersion) -> None:
        self._folder = folder
        self._port = port
        self._kafka = kafka
        self._child: Child | None = None

    @property
    def broker_properties(self) -> dict[str, str]:
        return {
            "zookeeper.connect": f"127.0.0.1:{self._port}",
            "zookeeper.session.timeout.ms": str(BROKER_SESSION_MS),
            "zookeeper.connection.timeout.ms": str(BROKER_CONNECTION_MS),
        }

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        properties = self._folder / "zookeeper.properties"
        lines = {
            "dataDir": str(self._folder / "zookeeper"),
            "clientPort": str(self._port),
            "clientPortAddress": "127.0.0.1",
            "tickTime": str(TICK_MS),
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
        }
        properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        program = JavaProgram(
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            [properties],
            folder=self._folder,
            log=self._folder / "zookeeper.log",
            kafka=self._kafka,
        )
        self._child = program.start([f"-Xmx{HEAP_MB}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
