"""The real MirrorMaker 2, from the same jars as the brokers, as a process: the peer that we are measured against.

Used by benchmarks, the demo and takeover tests. ``flow_properties`` writes the file that a user of MirrorMaker 2 would
write: with its defaults, or tuned as well as we know how.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mirrorspark.errors import LabError
from mirrorspark.lab.child import QUICK_START, STOP_TIMEOUT_S, Child, JavaProgram
from mirrorspark.lab.clients import wait_for

__all__ = ["Endpoint", "MirrorMaker", "flow_properties"]

HEAP_MB = 1024
READY_DEADLINE_S = 180.0
_STARTED = "Kafka MirrorMaker started"

Variant = Literal["default", "tuned"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A cluster as MirrorMaker 2's file names it: alias and bootstrap servers."""

    alias: str
    bootstrap: str


def flow_properties(
    source: Endpoint,
    target: Endpoint,
    *,
    topics: str = ".*",
    variant: Variant = "default",
    tasks_max: int = 2,
    codec: str = "none",
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """One flow, source to target, on clusters of one broker. ``extra`` goes over everything."""
    flow = f"{source.alias}->{target.alias}"
    properties = {
        "clusters": f"{source.alias},{target.alias}",
        f"{source.alias}.bootstrap.servers": source.bootstrap,
        f"{target.alias}.bootstrap.servers": target.bootstrap,
        f"{flow}.enabled": "true",
        f"{flow}.topics": topics,
        f"{target.alias}->{source.alias}.enabled": "false",
        f"{target.alias}->{source.alias}.emit.heartbeats.enabled": "false",
        "tasks.max": str(tasks_max),
        "replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "config.storage.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "refresh.topics.interval.seconds": "5",
        "refresh.groups.interval.seconds": "5",
    }
    if codec != "none":
        properties[f"{target.alias}.producer.compression.type"] = codec
    if variant == "tuned":
        properties |= _tuned(source.alias, target.alias)
    return {**properties, **(extra or {})}


def _tuned(source: str, target: str) -> dict[str, str]:
    """Larger fetches and batches, and more than one request in flight, which Connect forbids by default.

    Idempotence keeps the order that several requests in flight would else endanger. Picked from some fifteen variants
    that ran once each, on two cores that others used too: 127 k records/s at 1 KB uncompressed, 237 k at 200 B lz4. It had
    the best rates but not the lowest CPU time (polls of 2,000 with batches of 512 KB had less): compare again, on a
    quiet machine and with repetitions, before a benchmark leans on it.
    """
    consumer = {
        "fetch.min.bytes": 1,
        "fetch.max.bytes": 50 * 1024 * 1024,
        "max.partition.fetch.bytes": 10 * 1024 * 1024,
        "max.poll.records": 4_000,
        "receive.buffer.bytes": 2 * 1024 * 1024,
    }
    producer = {
        "batch.size": 256 * 1024,
        "linger.ms": 10,
        "buffer.memory": 128 * 1024 * 1024,
        "max.request.size": 4 * 1024 * 1024,
        "send.buffer.bytes": 2 * 1024 * 1024,
        "enable.idempotence": "true",
        "max.in.flight.requests.per.connection": 5,
    }
    return {f"{source}.consumer.{key}": str(value) for key, value in consumer.items()} | {
        f"{target}.producer.{key}": str(value) for key, value in producer.items()
    }


class MirrorMaker:
    """MirrorMaker 2 in dedicated mode; start, wait, stop. Its log is ``<folder>/mirror-maker.log``."""

    def __init__(
        self,
        properties: Mapping[str, str] | Path,
        folder: Path | None = None,
        *,
        heap_mb: int = HEAP_MB,
        is_measured: bool = True,
    ) -> None:
        """Not ``is_measured``: its code is compiled for a quick start, not for speed."""
        self.folder = folder or Path(tempfile.mkdtemp(prefix="mirrorspark-mm2-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "mirror-maker.log"
        self.properties = properties if isinstance(properties, Path) else self._write(properties)
        self._heap_mb = heap_mb
        self._flags = [] if is_measured else [*QUICK_START]
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_alive(self) -> bool:
        return self._child is not None and self._child.is_alive

    def start(self, *, wait: bool = True) -> None:
        if self.is_alive:
            raise LabError("this MirrorMaker 2 is running already")
        program = JavaProgram(
            "org.apache.kafka.connect.mirror.MirrorMaker", [self.properties], folder=self.folder, log=self.log
        )
        self.log.unlink(missing_ok=True)
        self._child = program.start(
            [f"-Xmx{self._heap_mb}m", f"-Xms{min(self._heap_mb, 256)}m", "-XX:+UseG1GC", *self._flags]
        )
        if wait:
            self.wait_started()

    def wait_started(self, deadline_s: float = READY_DEADLINE_S) -> None:
        """Until it says that it has started; its tasks follow some seconds later."""

        def has_started() -> bool:
            if not self._running().is_alive:
                return False
            return _STARTED in self.log.read_text(errors="replace")

        wait_for(has_started, "the start of MirrorMaker 2", deadline_s)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        if self._child is not None:
            self._child.stop(timeout_s)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    def pause(self) -> None:
        self._running().pause()

    def resume(self) -> None:
        self._running().resume()

    def log_tail(self, lines: int = 20) -> str:
        return self._child.log_tail(lines) if self._child is not None else ""

    def __enter__(self) -> MirrorMaker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _write(self, properties: Mapping[str, str]) -> Path:
        file = self.folder / "mm2.properties"
        file.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
        return file

    def _running(self) -> Child:
        if self._child is None:
            raise LabError("this MirrorMaker 2 was not started")
        if not self._child.is_alive:
            code = self._child.exit_code
            raise LabError(f"MirrorMaker 2 ended with code {code}; its log ends:\n{self.log_tail()}", exit_code=code)
        return self._child
