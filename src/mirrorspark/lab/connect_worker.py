"""MirrorMaker 2's connectors on a real Kafka Connect worker: the other way in which people run it.

Used by takeover tests. One worker in distributed mode whose topics, group and connectors have names of the caller's, as a
user of Connect gives them; connectors are made through its REST interface.
"""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mirrorspark.errors import LabError
from mirrorspark.lab.child import QUICK_START, STOP_TIMEOUT_S, Child, JavaProgram
from mirrorspark.lab.clients import wait_for
from mirrorspark.lab.mirror_maker import Endpoint

__all__ = ["ConnectWorker", "mirror_connectors"]

HEAP_MB = 512
READY_DEADLINE_S = 180.0
CALL_TIMEOUT_S = 90.0
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def mirror_connectors(
    source: Endpoint, target: Endpoint, *, topics: str, names: tuple[str, str], tasks_max: int = 2
) -> list[dict[str, Any]]:
    """Source and checkpoint connector of one flow, under these names."""
    shared = {
        "source.cluster.alias": source.alias,
        "target.cluster.alias": target.alias,
        "source.cluster.bootstrap.servers": source.bootstrap,
        "target.cluster.bootstrap.servers": target.bootstrap,
        "tasks.max": str(tasks_max),
        "topics": topics,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "refresh.topics.interval.seconds": "5",
        "refresh.groups.interval.seconds": "5",
    }
    classes = ("MirrorSourceConnector", "MirrorCheckpointConnector")
    return [
        {"name": name, "config": {**shared, "connector.class": f"org.apache.kafka.connect.mirror.{one}"}}
        for name, one in zip(names, classes, strict=True)
    ]


class ConnectWorker:
    """``with ConnectWorker(...) as worker: worker.create(...)``. Its log is ``<folder>/connect.log``."""

    def __init__(self, bootstrap: str, folder: Path, *, group: str, offsets_topic: str, status_topic: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "connect.log"
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._file = self._write(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "offset.storage.topic": offsets_topic,
                "status.storage.topic": status_topic,
                "config.storage.topic": f"{group}-configs",
                "offset.storage.replication.factor": "1",
                "status.storage.replication.factor": "1",
                "config.storage.replication.factor": "1",
                "key.converter": BYTES,
                "value.converter": BYTES,
                "header.converter": BYTES,
                "listeners": f"http://127.0.0.1:{self._port}",
                "plugin.discovery": "only_scan",
            }
        )
        self._child: Child | None = None

    def _write(self, settings: Mapping[str, str]) -> Path:
        file = self._folder / "connect.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return file

    def __enter__(self) -> ConnectWorker:
        program = JavaProgram(
            "org.apache.kafka.connect.cli.ConnectDistributed", [self._file], folder=self._folder, log=self.log
        )
        self._child = program.start([f"-Xmx{HEAP_MB}m", "-Xms128m", "-XX:+UseG1GC", *QUICK_START])
        try:
            wait_for(self._is_ready, "the Connect worker", READY_DEADLINE_S, 0.3)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(STOP_TIMEOUT_S)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def create(self, connectors: Sequence[Mapping[str, Any]]) -> None:
        for one in connectors:
            self.call("POST", "/connectors", one)

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Its answer. Raises LabError with what it says against the request."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=CALL_TIMEOUT_S) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise LabError(f"Connect: {method} {path}: {error.code} {error.read().decode(errors='replace')}") from error
        return json.loads(text) if text else None

    def _is_ready(self) -> bool:
        assert self._child is not None
        if not self._child.is_alive:
            raise LabError(f"the Connect worker ended; its log ends:\n{self._child.log_tail()}")
        try:
            self.call("GET", "/connectors")
        except (OSError, LabError):
            return False
        return True
