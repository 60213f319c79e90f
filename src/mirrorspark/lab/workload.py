"""A seeded stream of numbered, awkward records into a source topic, with a ledger of what was acknowledged.

Used by journeys, the demo and fault runs. ``produce`` writes a number of records and returns; ``start`` writes at a
rate in the background until ``stop``, also while brokers are killed and come back. The producers are ordinary ones
(confluent-kafka, idempotent, one per codec), so the source itself has no duplicates.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from mirrorspark.errors import LabError
from mirrorspark.lab.clients import create_topic, producer
from mirrorspark.lab.ledger import Ledger
from mirrorspark.lab.records import CODECS, Record, digest, make_record

__all__ = ["TOPIC_SETTINGS", "Workload"]

OUTSTANDING_RECORDS_MAX = 20_000
FLUSH_DEADLINE_S = 120.0
POLL_S = 0.01
FORGET_S = 10.0

# Records of 1970 and of 2095 must be accepted, and not be deleted for their age.
TOPIC_SETTINGS = {
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "retention.ms": "-1",
}


class Workload:
    """One topic's stream of records. Not for use by two threads at once, but for its own background thread.

    Records of 1970 belong to it only where the source is left in peace. A broker judges by *record* time whether an
    idempotent producer has been idle for a day, and forgets it then, at the latest when it is restarted: what the
    producer sends again after a kill would be appended a second time (seen on 4.3.1).
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int, seed: int = 1) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.partitions = partitions
        self.seed = seed
        self.now_ms = int(time.time() * 1000)
        self.ledger = Ledger(topic, partitions)
        self._next = [0] * partitions
        self._turn = 0
        self._outstanding = 0
        self._producers: dict[str, Any] = {}
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._failure: BaseException | None = None

    def create_topic(self, settings: Mapping[str, str] | None = None, *, replication_factor: int = 1) -> None:
        create_topic(
            self.bootstrap, self.topic, self.partitions, replication_factor, {**TOPIC_SETTINGS, **(settings or {})}
        )

    def produce(self, count: int, *, has_ancient: bool = True, deadline_s: float = FLUSH_DEADLINE_S) -> None:
        """Write that many records, in turn over all partitions, and return when their fate is known."""
        for _ in range(count):
            self._send_next(has_ancient)
        self.settle(deadline_s)

    def start(self, rate: float, *, has_ancient: bool = False) -> None:
        """Write ``rate`` records a second in a thread of its own until ``stop``."""
        if self._thread is not None:
            raise LabError(f"the workload on {self.topic} is running already")
        self._stopping.clear()
        self._thread = threading.Thread(
            target=self._run, args=(rate, has_ancient), name=f"workload-{self.topic}", daemon=True
        )
        self._thread.start()

    def stop(self, *, deadline_s: float = FLUSH_DEADLINE_S) -> None:
        """End the background thread and settle. What the brokers do not answer by then is in doubt."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None
        self.settle(deadline_s)
        if self._failure is not None:
            raise LabError(f"the workload on {self.topic} failed: {self._failure!r}") from self._failure

    def settle(self, deadline_s: float) -> None:
        """Wait until every record sent is acknowledged; give up on the rest when time is over."""
        end = time.monotonic() + deadline_s
        while self._outstanding > 0 and time.monotonic() < end:
            self._poll(POLL_S)
        if self._outstanding > 0:
            for client in self._producers.values():
                client.purge(in_queue=True, in_flight=True)
                client.flush(FORGET_S)
            # A producer that was made to forget what it sent would leave a hole in its numbering.
            self._producers.clear()
        assert self._outstanding == 0, "each record is acknowledged or in doubt"

    def _run(self, rate: float, has_ancient: bool) -> None:
        began, sent = time.monotonic(), 0
        try:
            while not self._stopping.is_set():
                due = int((time.monotonic() - began) * rate)
                for _ in range(due - sent):
                    if self._stopping.is_set():
                        break
                    self._send_next(has_ancient)
                    sent += 1
                self._poll(POLL_S)
        except Exception as error:  # noqa: BLE001  (raised by ``stop``: a run whose load has ended proves nothing)
            self._failure = self._failure or error

    def _send_next(self, has_ancient: bool) -> None:
        """The next record of the partition whose turn it is; waits while too many are outstanding."""
        partition = self._turn
        self._turn = (self._turn + 1) % self.partitions
        sequence = self._next[partition]
        record = make_record(self.seed, partition, sequence, now_ms=self.now_ms, has_ancient=has_ancient)
        self._next[partition] += 1
        while self._outstanding >= OUTSTANDING_RECORDS_MAX and not self._stopping.is_set():
            self._poll(POLL_S)
        self._send(record)

    def _send(self, record: Record) -> None:
        content = digest(record.key, record.value, record.headers, record.timestamp_ms)

        def settled(error: KafkaError | None, message: Any) -> None:
            self._outstanding -= 1
            try:
                # A broker that knows a repeated batch but no longer where it is answers without an offset.
                offset = message.offset()
                if error is None and offset is not None and offset >= 0:
                    self.ledger.acknowledge(record.partition, record.sequence, offset, content)
                    return
            except Exception as problem:  # noqa: BLE001  (raised by ``stop``; the client's own code would lose its name)
                self._failure = problem
            self.ledger.doubt(record.partition, record.sequence, content)

        while True:
            client = self._producer(record.codec)
            try:
                client.produce(
                    self.topic,
                    partition=record.partition,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    timestamp=record.timestamp_ms,
                    on_delivery=settled,
                )
            except BufferError:
                self._poll(POLL_S)
                continue
            except KafkaException as error:
                if not error.args[0].fatal():
                    raise
                # A new producer starts a new numbering; all that the old one had under way is in doubt.
                client.flush(FORGET_S)
                del self._producers[record.codec]
                continue
            self._outstanding += 1
            return

    def _poll(self, wait_s: float) -> None:
        for client in list(self._producers.values()):
            client.poll(0)
        time.sleep(wait_s)

    def _producer(self, codec: str) -> Any:
        assert codec in CODECS, f"no such codec: {codec}"
        if codec not in self._producers:
            self._producers[codec] = producer(
                self.bootstrap,
                {
                    "compression.type": codec,
                    "enable.idempotence": True,
                    "message.timeout.ms": 0,
                    "linger.ms": 5,
                    "queue.buffering.max.messages": 2 * OUTSTANDING_RECORDS_MAX,
                },
            )
        return self._producers[codec]
