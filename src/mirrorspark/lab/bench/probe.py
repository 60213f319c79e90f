"""Ordinary clients that time records on their way: a producer at a steady rate, a consumer on the other side.

Used by ``latency.py``. Each record's value is its send time. The consumer polls record by record: asking for many at once
would wait for many.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
from confluent_kafka import KafkaException, TopicPartition

from mirrorspark.errors import LabError
from mirrorspark.lab.clients import consumer, end_offsets, producer, wait_for

__all__ = ["Probe"]

DRAIN_DEADLINE_S = 60.0
_PRODUCER = {"linger.ms": 0, "acks": 1, "socket.nagle.disable": True}
_CONSUMER = {"fetch.wait.max.ms": 100, "fetch.min.bytes": 1, "socket.nagle.disable": True}


class Probe:
    """``with probe.running(rate): sleep``; then ``between`` gives what was sent and how long it took."""

    def __init__(self, source: tuple[str, str], target: tuple[str, str], partitions: int) -> None:
        """``source`` and ``target`` are (bootstrap, topic)."""
        self._source, self._target = source, target
        self._partitions = partitions
        self._ending, self._closing = threading.Event(), threading.Event()
        # Arrays, not lists: hundreds of thousands of objects would give the garbage collector something to pause for.
        self._sent_s = array("d")
        self._arrived_sent_s, self._arrived_s = array("d"), array("d")
        self._failure: Exception | None = None

    @contextmanager
    def running(self, rate: float) -> Iterator[None]:
        """Every record that was sent has been received when this ends, or it raises LabError."""
        bootstrap, topic = self._target
        ends = end_offsets(bootstrap, topic)
        reader = consumer(bootstrap, _CONSUMER)
        reader.assign([TopicPartition(topic, number, ends[number][1]) for number in range(self._partitions)])
        writer = producer(self._source[0], _PRODUCER)
        receiving = threading.Thread(target=self._guard, args=(self._receive, reader), name="probe consumer")
        sending = threading.Thread(target=self._guard, args=(self._send, writer, rate), name="probe producer")
        receiving.start()
        sending.start()
        try:
            yield
            self._ending.set()
            sending.join()
            self._wait_drained()
        finally:
            self._ending.set()
            self._closing.set()
            sending.join()
            receiving.join()
            reader.close()

    def between(self, began_s: float, ended_s: float) -> tuple[int, Any]:
        """Of the records sent in that time: how many, and the latencies (ms) of those that arrived."""
        sent_s = numpy.array(self._sent_s)
        arrived_sent_s = numpy.array(self._arrived_sent_s)
        latencies_ms = (numpy.array(self._arrived_s) - arrived_sent_s) * 1000
        is_within = (arrived_sent_s >= began_s) & (arrived_sent_s < ended_s)
        return int(((sent_s >= began_s) & (sent_s < ended_s)).sum()), latencies_ms[is_within]

    def _wait_drained(self) -> None:
        def all_arrived() -> bool:
            if self._failure is not None:
                raise self._failure
            return len(self._arrived_s) >= len(self._sent_s)

        wait_for(all_arrived, f"the last of {len(self._sent_s)} records on {self._target[1]}", DRAIN_DEADLINE_S)

    def _guard(self, work: Any, *arguments: Any) -> None:
        try:
            work(*arguments)
        except (KafkaException, LabError, ValueError) as error:
            self._failure = LabError(f"the latency probe failed: {error}")

    def _send(self, writer: Any, rate: float) -> None:
        """By the clock: a late record does not delay those after it."""
        topic = self._source[1]
        began_s, number = time.monotonic(), 0
        while not self._ending.is_set():
            due_s = began_s + number / rate
            now_s = time.monotonic()
            if now_s < due_s:
                time.sleep(due_s - now_s)
                now_s = time.monotonic()
            writer.produce(topic, repr(now_s).encode(), partition=number % self._partitions)
            self._sent_s.append(now_s)
            writer.poll(0)
            number += 1
        if writer.flush(DRAIN_DEADLINE_S):
            raise LabError(f"records could not be written to {topic}")

    def _receive(self, reader: Any) -> None:
        while not self._closing.is_set():
            message = reader.poll(0.05)
            if message is None or message.error() is not None:
                continue
            now_s = time.monotonic()
            self._arrived_sent_s.append(float(message.value()))
            self._arrived_s.append(now_s)
