"""Latency from produce on the source to consume on the target, while a party runs at a modest rate.

Called by ``comparison.py`` for one party after the other. The mirrorspark phase holds at least one epoch boundary and one
new topic, the MirrorMaker 2 phase neither: that favours MirrorMaker 2.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy
from confluent_kafka import TopicPartition

from mirrorspark.errors import LabError
from mirrorspark.lab.bench.parties import MM2, OURS, Errand, Party, Running, end, launch, prepare
from mirrorspark.lab.bench.probe import Probe
from mirrorspark.lab.bench.remote_topics import Gauge
from mirrorspark.lab.bench.shapes import PARTITIONS
from mirrorspark.lab.clients import consumer, create_topic, end_offsets, producer, wait_for
from mirrorspark.offsets.internal_topics import status_topic
from mirrorspark.settings import FlowSettings

__all__ = ["NO_MIRROR", "Latency", "LatencyOrder", "measure_floor", "measure_latency"]

NO_MIRROR = "no mirror"
FLOOR_S = 15.0
START_DEADLINE_S = 180.0
NEW_TOPIC_RECORDS = 100
NEW_TOPIC_DEADLINE_S = 120.0
EPOCH_DEFAULT_S = int(FlowSettings.epoch_s)
STARTUP_GUESS_S = 8.0
LOAD_WARM_S = 2.0
"""The load runs at least this long before anything counts."""


@dataclass(frozen=True, slots=True)
class LatencyOrder:
    """Measure for ``seconds`` at ``rate`` records a second, from ``warm_s`` after the process started."""

    seconds: float
    rate: float
    warm_s: float

    @property
    def epoch_s(self) -> int:
        """The default where it puts a boundary inside the time measured; else one that does."""
        if self.warm_s + self.seconds >= EPOCH_DEFAULT_S + 2 * STARTUP_GUESS_S:
            return EPOCH_DEFAULT_S
        return max(2, int(self.warm_s + self.seconds / 2 - STARTUP_GUESS_S))


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles in ms. The last three are known for mirrorspark only."""

    party: str
    seconds: float
    rate: float
    sent: int
    received: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    epoch_s: int | None = None
    epoch_boundaries: int | None = None
    new_topic_s: float | None = None


def measure_floor(bootstrap: str, order: LatencyOrder) -> Latency:
    """The same clients on one cluster, with no mirror between them: what they and the broker take by themselves."""
    create_topic(bootstrap, "latency-floor", PARTITIONS)
    probe = Probe((bootstrap, "latency-floor"), (bootstrap, "latency-floor"), PARTITIONS)
    with probe.running(order.rate):
        time.sleep(LOAD_WARM_S)
        began_s = time.monotonic()
        time.sleep(min(FLOOR_S, order.seconds))
        ended_s = time.monotonic()
    return _percentiles(NO_MIRROR, order, probe, began_s, ended_s)


def measure_latency(party: Party, errand: Errand, order: LatencyOrder, tell: Callable[[str], None]) -> Latency:
    """``errand.topics`` is a prefix pattern: the topic that is measured and the new one both match it."""
    topic, new_topic = f"latency-{errand.alias}", f"latency-{errand.alias}-new"
    create_topic(errand.source, topic, PARTITIONS)
    _produce(errand.source, topic, PARTITIONS)
    is_ours = party == OURS
    assert is_ours or party == MM2
    process = prepare(party, errand, {"epoch.seconds": str(order.epoch_s)} if is_ours else None)
    started_s = time.monotonic()
    try:
        launch(process)
        _wait_offsets(process, Gauge(errand.target, errand.remote(topic), PARTITIONS), PARTITIONS, START_DEADLINE_S)
        probe = Probe((errand.source, topic), (errand.target, errand.remote(topic)), PARTITIONS)
        with probe.running(order.rate):
            _sleep_until(max(started_s + order.warm_s, time.monotonic() + LOAD_WARM_S), process)
            began_s, began_ms = time.monotonic(), time.time() * 1000
            _sleep_until(began_s + order.seconds / 2, process)
            new_topic_s = _carry_new_topic(process, errand, new_topic) if is_ours else None
            if new_topic_s is not None:
                tell(f"  a new topic's records were on the target {new_topic_s:.1f} s after its creation")
            _sleep_until(began_s + order.seconds, process)
            ended_s, ended_ms = time.monotonic(), time.time() * 1000
        if not is_ours:
            return _percentiles(party.key, order, probe, began_s, ended_s)
        boundaries = _boundaries(errand, began_ms, ended_ms)
        return _percentiles(party.key, order, probe, began_s, ended_s, (order.epoch_s, boundaries, new_topic_s))
    finally:
        end(process)


def _percentiles(
    party: str,
    order: LatencyOrder,
    probe: Probe,
    began_s: float,
    ended_s: float,
    events: tuple[int | None, int | None, float | None] = (None, None, None),
) -> Latency:
    sent, latencies_ms = probe.between(began_s, ended_s)
    if sent == 0 or len(latencies_ms) < sent:
        raise LabError(f"{party}: {sent} records were sent in the time measured but {len(latencies_ms)} arrived")
    p50, p90, p99, p999 = (float(value) for value in numpy.percentile(latencies_ms, [50, 90, 99, 99.9]))
    span_s = ended_s - began_s
    worst = float(numpy.max(latencies_ms))
    return Latency(party, span_s, sent / span_s, sent, len(latencies_ms), p50, p90, p99, p999, worst, *events)


def _carry_new_topic(process: Running, errand: Errand, topic: str) -> float:
    """Seconds from a topic's creation on the source until all of its records are on the target."""
    began_s = time.monotonic()
    create_topic(errand.source, topic, 1)
    _produce(errand.source, topic, NEW_TOPIC_RECORDS, 1)
    gauge = Gauge(errand.target, errand.remote(topic), 1)
    _wait_offsets(process, gauge, NEW_TOPIC_RECORDS, NEW_TOPIC_DEADLINE_S)
    return time.monotonic() - began_s


def _produce(bootstrap: str, topic: str, records: int, partitions: int = PARTITIONS) -> None:
    client = producer(bootstrap)
    for number in range(records):
        client.produce(topic, b"hello", partition=number % partitions)
    if client.flush(30.0):
        raise LabError(f"{topic}: records could not be written to {bootstrap}")


def _wait_offsets(process: Running, gauge: Gauge, wanted: int, deadline_s: float) -> None:
    def are_there() -> bool:
        _check_alive(process)
        return gauge.offsets() >= wanted

    wait_for(are_there, f"{wanted} records on the target", deadline_s)


def _sleep_until(at_s: float, process: Running) -> None:
    while (left_s := at_s - time.monotonic()) > 0:
        _check_alive(process)
        time.sleep(min(1.0, left_s))


def _check_alive(process: Running) -> None:
    if not process.is_alive:
        raise LabError(f"the process ended while its latency was measured; its log ends:\n{process.log_tail()}")


def _boundaries(errand: Errand, began_ms: float, ended_ms: float) -> int:
    """How many epochs began in that time, by the lanes' reports on the status topic: a lane's fewest."""
    topic = status_topic(errand.alias)
    ((_, last),) = end_offsets(errand.target, topic).values()
    begins: dict[str, set[int]] = {}
    reader = consumer(errand.target)
    try:
        reader.assign([TopicPartition(topic, 0, 0)])
        give_up_s = time.monotonic() + 30.0
        while time.monotonic() < give_up_s:
            message = reader.poll(1.0)
            if message is None or message.error() is not None:
                continue
            if message.key().startswith(b"lane/") and message.value() is not None:
                since_ms = json.loads(message.value())["since_ms"]
                begins.setdefault(message.key().decode(), set()).add(since_ms)
            if message.offset() + 1 >= last:
                break
    finally:
        reader.close()
    return min((sum(began_ms <= at <= ended_ms for at in lane) for lane in begins.values()), default=0)
