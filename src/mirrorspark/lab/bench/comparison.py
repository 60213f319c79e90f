"""The whole run: brokers, preloaded topics, parties in turn, latency, and everything gone at the end.

``command/bench.py`` calls it. The walk: (1) find room, (2) start two brokers, (3) for each shape: warm the brokers up with a
carry that does not count, preload its topic, let every party carry it in every round, (4) latency, one party after
the other, (5) start-up: from process to first record,
(6) end all processes and remove all data, whatever happened.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from mirrorspark.lab.bench.byte_code import byte_code_kept, is_byte_code_off
from mirrorspark.lab.bench.latency import LatencyOrder, measure_floor, measure_latency
from mirrorspark.lab.bench.log_files import stored
from mirrorspark.lab.bench.machine import describe_machine
from mirrorspark.lab.bench.narration import Narrator
from mirrorspark.lab.bench.parties import BARE, MM2, OURS, TARGET, Errand, Party
from mirrorspark.lab.bench.remote_topics import delete_topics
from mirrorspark.lab.bench.result import Comparison, Preload
from mirrorspark.lab.bench.room import Room, find_room, fit
from mirrorspark.lab.bench.shapes import PARTITIONS, Load, Shape
from mirrorspark.lab.bench.throughput import Carry, measure_carry
from mirrorspark.lab.bench.tls_link import TlsLink
from mirrorspark.lab.clients import create_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.preload import preload

__all__ = ["ComparisonOrder", "brokers_of_a_run", "run_comparison"]

START_RECORDS = 1_000
BROKER_HEAP_MB = 1_536
BROKER_JVM_FLAGS = (
    *("-XX:MetaspaceSize=96m", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"),
    *("-XX:G1HeapRegionSize=16M", "-XX:MinMetaspaceFreeRatio=50", "-XX:MaxMetaspaceFreeRatio=80"),
)
"""As Kafka's documentation advises for production, but for the heap's size. With G1's own small regions each produce request
of a megabyte would be a humongous object, and the benchmark one of the collector."""
WARM_UP_PART = 10
WARM_UP_RECORDS_MAX = 2_000_000
BROKER_WARM_UPS_MAX = 6
WARM_ENOUGH = 0.9
"""Of a broker's CPU time per record in the carry before: from here on it counts as warm."""
OLD_S = 50 * 60.0
"""Records older than an hour are carried with more care (docs/decisions/0006): a preload that gets there is noted."""


@dataclass(frozen=True, slots=True)
class ComparisonOrder:
    """What to compare. ``latency`` None leaves that phase out."""

    loads: Sequence[Load]
    parties: Sequence[Party]
    rounds: int
    tasks_max: int
    batch_bytes: int
    folder: Path | None
    latency: LatencyOrder | None
    start_rounds: int = 3
    over_tls: bool = False
    warms_up: bool = True


def run_comparison(order: ComparisonOrder, result: Comparison, narrator: Narrator) -> None:
    """Fills ``result`` as it goes. Raises LabError when a party fails."""
    room = find_room(order.folder, order.loads)
    loads, notes = fit(order.loads, room)
    result.machine = describe_machine()
    result.settings = _settings(order, loads, room)
    result.notes += [*notes, *_notes(order)]
    for note in notes:
        narrator.tell(note)
    narrator.tell(f"two brokers start; their data is in {room}")
    with data_folder(room) as folder, byte_code_kept(folder / "byte-code"):
        link = TlsLink(folder / "tls") if order.over_tls else None
        with brokers_of_a_run(folder, link) as clusters:
            _compare(order, loads, _Run(order, clusters, folder, link, result, narrator))
    result.is_complete = True


def _compare(order: ComparisonOrder, loads: Sequence[Load], run: _Run) -> None:
    for load in loads:
        run.throughput(load)
    if order.start_rounds:
        run.starts(loads[0].shape)
    if order.latency is not None:
        run.latency(order.latency)


def _settings(order: ComparisonOrder, loads: Sequence[Load], room: Room) -> dict[str, object]:
    latency = order.latency
    return {
        "partitions": PARTITIONS,
        "tasks_max": order.tasks_max,
        "rounds": order.rounds,
        "batch_bytes": order.batch_bytes,
        "records": {load.shape.key: load.records for load in loads},
        "data": str(room),
        "data_in_memory": room.is_memory,
        "heap_mb": {party.key: party.heap_mb for party in order.parties if party.heap_mb},
        "over_tls": order.over_tls,
        "latency": {"seconds": latency.seconds, "rate": latency.rate, "warm_s": latency.warm_s} if latency else None,
    }


def _notes(order: ComparisonOrder) -> list[str]:
    notes = [
        "Parties run one after the other, in each second round in reverse order; afterwards their topics are deleted.",
        "Start-up: process to first record on the target, a topic of few records, each party as shipped. For throughput "
        "and CPU mirrorspark does not carry before Spark is up (start.before.spark=false): they are those of Spark's lanes.",
        f"The brokers run with the JVM flags of Kafka's documentation and a heap of {BROKER_HEAP_MB} MB each.",
        "MB are values before compression. RSS counts shared pages for each process; PSS does not.",
    ]
    if order.warms_up:
        notes.append(
            f"Before the first round of a shape {_warmer(order).label} carries a tenth of it, which does not count: what is "
            "made once after an installation is there afterwards. Then the bare loop carries all of it, again and again, "
            "until that costs the brokers no less CPU time than before: else the first parties would pay for their JIT."
        )
    if order.over_tls:
        notes.append("All parties and both clusters speak TLS, without client certificates; the preload does not.")
    if MM2 in order.parties:
        notes.append(
            "MirrorMaker 2 default writes uncompressed, as it does unless told; the tuned one uses the source's codec."
        )
    if is_byte_code_off():
        notes.append("Python was told to keep no byte code; the parties keep it all the same, as an installation does.")
    if order.latency is not None:
        notes.append(
            "Latency: an epoch boundary and a new topic fall into mirrorspark's time, neither into MirrorMaker 2's. "
            "'no mirror' is the same clients on one cluster."
        )
    return notes


def _warmer(order: ComparisonOrder) -> Party:
    return OURS if OURS in order.parties else BARE


@contextmanager
def data_folder(room: Room) -> Iterator[Path]:
    """For all that a run writes; gone with it."""
    folder = Path(tempfile.mkdtemp(prefix="mirrorspark-bench-", dir=room.folder))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def brokers_of_a_run(folder: Path, link: TlsLink | None = None) -> Iterator[tuple[ClusterOfBrokers, ClusterOfBrokers]]:
    """A cluster for each side. All data is thrown away, so no orderly end."""
    source, target = (
        ClusterOfBrokers(
            name,
            folder=folder / name,
            heap_mb=BROKER_HEAP_MB,
            jvm_flags=BROKER_JVM_FLAGS,
            settings=link.broker_settings() if link else None,
            listeners=link.listeners if link else None,
        )
        for name in ("source", "target")
    )
    try:
        for cluster in (source, target):
            cluster.launch()
        for cluster in (source, target):
            cluster.wait_ready()
        yield source, target
    finally:
        for cluster in (source, target):
            for broker in cluster.brokers:
                broker.kill()


class _Run:
    def __init__(
        self,
        order: ComparisonOrder,
        clusters: tuple[ClusterOfBrokers, ClusterOfBrokers],
        folder: Path,
        link: TlsLink | None,
        result: Comparison,
        narrator: Narrator,
    ) -> None:
        self._order = order
        self._clusters = clusters
        self._source, self._target = clusters
        self._folder = folder
        self._link = link
        self._result = result
        self._narrator = narrator

    def throughput(self, load: Load) -> None:
        """Preload, warm up, all parties in all rounds, and the source topic's end."""
        shape = load.shape
        if self._order.warms_up:
            self._warm_up(load)
        began_s = time.monotonic()
        self._result.preloads.append(self._preload(load, shape.topic))
        if self._order.warms_up:
            self._warm_brokers(load)
        total = self._order.rounds * len(self._order.parties)
        done = 0
        for number in range(1, self._order.rounds + 1):
            parties = list(self._order.parties)
            for party in parties if number % 2 else reversed(parties):
                done += 1
                self._note_age(shape, time.monotonic() - began_s)
                what = f"{shape.label}, round {number}, {party.label} ({done} of {total})"
                carry = self._carry(party, load, shape.topic, number, what)
                self._result.carries.append(carry)
        delete_topics(self._source, shape.topic)

    def starts(self, shape: Shape) -> None:
        """From process to first record, as each party is shipped."""
        load, topic = Load(shape, START_RECORDS), "bench-start"
        self._preload(load, topic)
        for number in range(1, self._order.start_rounds + 1):
            for party in (MM2, OURS) if number % 2 else (OURS, MM2):
                if party not in self._order.parties:
                    continue
                what = f"start-up, round {number}, {party.label}"
                self._result.starts.append(self._carry(party, load, topic, number, what, prefix="start"))
        delete_topics(self._source, topic)

    def latency(self, order: LatencyOrder) -> None:
        self._narrator.tell("latency: the clients alone")
        self._result.latencies.append(measure_floor(self._target.bootstrap, order))
        for party in (MM2, OURS):
            if party not in self._order.parties:
                continue
            alias = f"{party.key}-latency"
            seconds = f"{order.seconds:.0f} s at {order.rate:,.0f} records/s after {order.warm_s:.0f} s"
            self._narrator.tell(f"latency: {party.label}, {seconds}")
            errand = self._errand(party, alias, f"latency-{alias}.*", "none")
            found = measure_latency(party, errand, order, self._narrator.tell)
            self._narrator.tell(f"  p50 {found.p50_ms:.1f} ms, p99 {found.p99_ms:.1f} ms, max {found.max_ms:.1f} ms")
            self._result.latencies.append(found)
            delete_topics(self._target, alias)

    def _preload(self, load: Load, topic: str) -> Preload:
        shape, bootstrap = load.shape, self._source.bootstrap
        self._narrator.tell(f"{topic}: {load.records:,} records of {shape.record_bytes} B are written to the source")
        create_topic(bootstrap, topic, PARTITIONS)
        done = preload(
            bootstrap,
            topic,
            PARTITIONS,
            load.records,
            shape.record_bytes,
            shape.codec,
            shape.content,
            batch_bytes=self._order.batch_bytes,
        )
        held = stored(self._source.broker(1).data, topic)
        found = Preload(shape.key, held.total, held.batches, held.bytes, done.seconds)
        self._narrator.tell(f"  {found.batches:,} batches of {found.batch_bytes_mean:,.0f} B on average")
        return found

    def _warm_up(self, load: Load) -> None:
        part = load.scaled(min(1 / WARM_UP_PART, WARM_UP_RECORDS_MAX / max(load.records, 1)))
        topic = f"warm-up-{load.shape.key}"
        self._preload(part, topic)
        party = _warmer(self._order)
        self._carry(party, part, topic, 0, f"{load.shape.label}, warm-up by {party.label}, not counted")
        delete_topics(self._source, topic)

    def _warm_brokers(self, load: Load) -> None:
        """Until a record costs them no less than before: their JIT compilers take some ten million records."""
        before_us = float("inf")
        for number in range(1, BROKER_WARM_UPS_MAX + 1):
            what = f"{load.shape.label}, warming the brokers up ({number}), not counted"
            now_us = self._carry(
                BARE, load, load.shape.topic, 0, what, prefix=f"warm{number}"
            ).brokers_cpu_us_per_record
            self._narrator.tell(f"  brokers: {now_us:.2f} us CPU per record")
            if now_us > before_us * WARM_ENOUGH:
                break
            before_us = now_us

    def _carry(self, party: Party, load: Load, topic: str, number: int, what: str, prefix: str = "") -> Carry:
        """With a prefix: a start. Else what counts is what Spark's lanes carry, so nothing is carried before them."""
        alias = f"{prefix}{party.key}-{load.shape.key}-{number}"
        errand = self._errand(party, alias, topic, load.shape.codec)
        errand = replace(errand, starts_before_spark=bool(prefix))
        self._narrator.tell(what)
        with self._narrator.progress(what, load.records) as progress:
            carry = measure_carry(party, errand, load, self._clusters, topic=topic, number=number, progress=progress)
        delete_topics(self._target, alias)
        self._narrator.tell(
            f"  {carry.records_per_s:,.0f} records/s, {carry.mb_per_s:,.0f} MB/s, "
            f"{carry.cpu_us_per_record:.2f} us CPU per record, first record after {carry.startup_s:.1f} s"
        )
        return carry

    def _errand(self, party: Party, alias: str, topics: str, codec: str) -> Errand:
        tasks_max, folder = self._order.tasks_max, self._folder / alias
        errand = Errand(alias, self._source.bootstrap, self._target.bootstrap, topics, codec, tasks_max, folder)
        if self._link is None:
            return errand
        sides = ((alias, self._source), (TARGET, self._target))
        link = {key: text for side in sides for key, text in self._link.properties(*side).items()}
        return replace(errand, link=link)

    def _note_age(self, shape: Shape, age_s: float) -> None:
        if age_s > OLD_S:
            note = f"{shape.label}: the preloaded records were {age_s / 60:.0f} minutes old when a carry began."
            self._result.notes.append(note)
            self._narrator.tell(note)
