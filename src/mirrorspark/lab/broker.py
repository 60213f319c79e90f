"""One real Kafka broker as a Java process.

Made by ``lab/cluster_of_brokers.py``, which decides ports, roles and properties; tests reach it as
``cluster.broker(1)`` to stop, kill, pause and restart it. Port and data stay the same over its lives.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from mirrorspark.errors import LabError
from mirrorspark.lab.child import STOP_TIMEOUT_S, Child, JavaProgram
from mirrorspark.lab.clients import admin
from mirrorspark.lab.kafka_version import LATEST, KafkaVersion
from mirrorspark.lab.storage import format_data_folder, is_formatted

__all__ = ["Broker", "BrokerSpec"]

READY_DEADLINE_S = 180.0


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    """All that a broker needs to know; ``client`` are settings with which a client may ask whether it is ready."""

    cluster: str
    cluster_id: str
    node_id: int
    port: int
    folder: Path
    properties: Mapping[str, str]
    jvm_flags: Sequence[str]
    client: Mapping[str, Any] = field(default_factory=dict)
    kafka: KafkaVersion = LATEST


class Broker:
    """A broker that can be started, stopped, killed, paused and started again on the same port and data."""

    def __init__(self, spec: BrokerSpec) -> None:
        self.spec = spec
        self.data = spec.folder / f"data-{spec.node_id}"
        self.log = spec.folder / f"broker-{spec.node_id}.log"
        self._child: Child | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.spec.port}"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_alive(self) -> bool:
        return self._child is not None and self._child.is_alive

    def start(self, *, wait: bool = True) -> None:
        if self.is_alive:
            raise LabError(f"{self} is running already")
        self.spec.folder.mkdir(parents=True, exist_ok=True)
        kafka = self.spec.kafka
        if not kafka.has_zookeeper and not is_formatted(self.data):
            format_data_folder(self.data, cluster_id=self.spec.cluster_id, node_id=self.spec.node_id, kafka=kafka)
        properties = self.spec.folder / f"broker-{self.spec.node_id}.properties"
        lines = {**self.spec.properties, "log.dirs": str(self.data)}
        properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        program = JavaProgram("kafka.Kafka", [properties], folder=self.spec.folder, log=self.log, kafka=kafka)
        self._child = program.start(self.spec.jvm_flags)
        if wait:
            self.wait_ready()

    def wait_ready(self, deadline_s: float = READY_DEADLINE_S) -> None:
        """Until the broker answers a metadata request and lists itself in it."""
        end = time.monotonic() + deadline_s
        client = None
        while True:
            self._check_alive()
            if client is None and self._accepts():
                client = admin(self.bootstrap, self.spec.client)
            if client is not None and self._lists_itself(client):
                return
            if time.monotonic() >= end:
                raise LabError(f"{self} was not ready within {deadline_s:.0f} s; its log ends:\n{self.log_tail()}")
            time.sleep(0.02)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """An orderly end: leadership is handed over, logs are flushed."""
        if self._child is not None:
            self._child.stop(timeout_s)

    def ask_to_stop(self) -> None:
        """As ``stop`` but without waiting, for a cluster that ends all its brokers at once."""
        if self._child is not None:
            self._child.ask_to_stop()

    def kill(self) -> None:
        """A sudden end (SIGKILL)."""
        if self._child is not None:
            self._child.kill()

    def restart(self) -> None:
        """Stop if it still runs, then start on the same port and data and wait until it is ready."""
        self.stop()
        self.start()

    def upgrade(self, kafka: KafkaVersion) -> None:
        """Stop in order, then start another version's jars on the data that is there."""
        if kafka.has_zookeeper != self.spec.kafka.has_zookeeper:
            raise LabError(f"{self} cannot go from {self.spec.kafka} to {kafka}: only one of them has a ZooKeeper")
        self.stop()
        self.spec = replace(self.spec, kafka=kafka)
        self.start()

    def pause(self) -> None:
        """It holds its port and its connections but does nothing any more (SIGSTOP)."""
        self._running().pause()

    def resume(self) -> None:
        self._running().resume()

    def log_tail(self, lines: int = 20) -> str:
        return self._child.log_tail(lines) if self._child is not None else ""

    def __str__(self) -> str:
        return f"broker {self.spec.node_id} of cluster {self.spec.cluster} ({self.bootstrap})"

    def _running(self) -> Child:
        if self._child is None or not self._child.is_alive:
            raise LabError(f"{self} is not running")
        return self._child

    def _check_alive(self) -> None:
        if self._child is None:
            raise LabError(f"{self} was not started")
        if not self._child.is_alive:
            code = self._child.exit_code
            raise LabError(f"{self} ended with code {code}; its log ends:\n{self.log_tail()}", exit_code=code)

    def _accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.spec.port), timeout=1).close()
        except OSError:
            return False
        return True

    def _lists_itself(self, client: Any) -> bool:
        try:
            return self.spec.node_id in client.list_topics(timeout=2).brokers
        except KafkaException:
            return False
