"""One carry: a party starts, copies a preloaded topic, is watched from outside, and is stopped.

Called by ``comparison.py`` for each party, shape and round. What has arrived is asked of the target with an ordinary
client; CPU time is read at three moments (first record, 5 %, all), so that start effects can be told apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mirrorspark.errors import LabError
from mirrorspark.lab.bench.log_files import stored
from mirrorspark.lab.bench.machine import CpuTimes, PssWatch, cpu_times
from mirrorspark.lab.bench.parties import Errand, Party, Running, end, launch, prepare
from mirrorspark.lab.bench.remote_topics import Gauge
from mirrorspark.lab.bench.shapes import PARTITIONS, Load
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.process_tree import ProcessTree

__all__ = ["Carry", "measure_carry"]

SAMPLE_EVERY_S = 0.05
STALL_S_MAX = 180.0
STEADY_FROM = 0.05
"""Of the records: from here on a carry counts as steady."""


@dataclass(frozen=True, slots=True)
class Carry:
    """The figures of one carry. ``steady`` ones run from 5 % to all, the others from the first record to the last.

    MB are values before compression. ``bench_cores`` is what watching took, ``others_cores`` what neither party, brokers
    nor benchmark used, stolen time included: 0.1 or less on a quiet machine.
    """

    party: str
    shape: str
    round: int
    records: int
    duplicates: int
    seconds: float
    startup_s: float
    records_per_s: float
    mb_per_s: float
    steady_records_per_s: float
    steady_mb_per_s: float
    cpu_us_per_record: float
    steady_cpu_us_per_record: float
    cpu_us_per_record_with_startup: float
    brokers_cpu_us_per_record: float
    bench_cores: float
    others_cores: float
    rss_peak_mb: float
    pss_peak_mb: float | None


@dataclass(frozen=True, slots=True)
class _Mark:
    """A moment: how many offsets the target held, and what had been used by then."""

    at_s: float
    offsets: int
    party_cpu_s: float
    machine: CpuTimes


@dataclass(frozen=True, slots=True)
class _Course:
    """The moments of a carry. ``empty_s`` is when the target was last seen empty."""

    began_s: float
    empty_s: float
    first: _Mark
    steady: _Mark
    last: _Mark


def measure_carry(
    party: Party,
    errand: Errand,
    load: Load,
    clusters: tuple[ClusterOfBrokers, ClusterOfBrokers],
    *,
    topic: str,
    number: int,
    progress: Callable[[float], None] = lambda done: None,
) -> Carry:
    """Start to end. Raises LabError if the party ends early, stands still or loses a record."""
    remote = errand.remote(topic)
    gauge = Gauge(errand.target, remote, PARTITIONS)
    gauge.offsets()  # so that the client's own connecting is no part of what follows
    brokers = [broker.pid for cluster in clusters for broker in cluster.brokers]
    data = clusters[1].broker(1).data
    process = prepare(party, errand)
    began_s = time.monotonic()
    try:
        launch(process)
        with ProcessTree(process.pid) as tree, PssWatch(process.pid) as pss:

            def mark(offsets: int) -> _Mark:
                return _Mark(time.monotonic(), offsets, tree.usage().cpu_s, cpu_times(brokers))

            watch = _Watch(process, gauge, load.records, mark, lambda: stored(data, remote).total, progress)
            course = watch.follow(began_s)
            pss.look()
            rss_peak_bytes = tree.usage().rss_bytes_peak
        arrived = stored(data, remote).records
        _check(party, arrived, stored(clusters[0].broker(1).data, topic).records)
    finally:
        end(process)
    return _figures(
        party,
        load,
        course,
        number=number,
        duplicates=sum(arrived.values()) - load.records,
        rss_peak_bytes=rss_peak_bytes,
        pss_peak_bytes=pss.peak_bytes,
    )


class _Watch:
    """Looks at the target again and again until everything is there."""

    def __init__(
        self,
        process: Running,
        gauge: Gauge,
        records: int,
        mark: Callable[[int], _Mark],
        count_stored: Callable[[], int],
        progress: Callable[[float], None],
    ) -> None:
        self._process = process
        self._gauge = gauge
        self._records = records
        self._mark = mark
        self._count_stored = count_stored
        self._progress = progress

    def follow(self, began_s: float) -> _Course:
        empty_s = began_s
        first: _Mark | None = None
        steady: _Mark | None = None
        moved_s, offsets = began_s, 0
        while True:
            looked_s = time.monotonic()
            before, offsets = offsets, max(offsets, self._gauge.offsets())
            if offsets == 0:
                empty_s = looked_s
            elif first is None:
                first = self._mark(offsets)
            if steady is None and offsets >= self._records * STEADY_FROM:
                steady = self._mark(offsets)
            # Markers take offsets too: the files have the last word.
            if offsets >= self._records:
                last = self._mark(offsets)
                if self._count_stored() >= self._records:
                    assert first is not None
                    assert steady is not None
                    return _Course(began_s, empty_s, first, steady, last)
            if offsets > before:
                moved_s = looked_s
                self._progress(offsets)
            self._check_alive(looked_s - moved_s, offsets)
            time.sleep(max(0.0, looked_s + SAMPLE_EVERY_S - time.monotonic()))

    def _check_alive(self, still_s: float, offsets: int) -> None:
        where = f"{offsets} of {self._records} records were on the target; its log ends:\n"
        if not self._process.is_alive:
            raise LabError(f"the process ended while {where}{self._process.log_tail()}")
        if still_s > STALL_S_MAX:
            raise LabError(f"nothing moved for {still_s:.0f} s; {where}{self._process.log_tail()}")


def _check(party: Party, arrived: dict[int, int], wanted: dict[int, int]) -> None:
    short = {
        number: count - arrived.get(number, 0) for number, count in wanted.items() if arrived.get(number, 0) < count
    }
    if short:
        raise LabError(f"{party.label} has not carried everything; missing by partition: {short}", missing=short)


def _figures(
    party: Party,
    load: Load,
    course: _Course,
    *,
    number: int,
    duplicates: int,
    rss_peak_bytes: int,
    pss_peak_bytes: int | None,
) -> Carry:
    first, steady, last = course.first, course.steady, course.last
    if last.offsets == first.offsets:
        # So few that they came between two looks: only the time since the target was last seen empty is known.
        first = steady = _Mark(course.empty_s, 0, 0.0, first.machine)
    elif last.offsets == steady.offsets:
        steady = first
    rate = load.records / (last.at_s - course.empty_s)
    steady_rate = (last.offsets - steady.offsets) / (last.at_s - steady.at_s)
    value_mb = load.shape.record_bytes / 1e6
    carried = last.offsets - first.offsets
    return Carry(
        party=party.key,
        shape=load.shape.key,
        round=number,
        records=load.records,
        duplicates=duplicates,
        seconds=last.at_s - course.empty_s,
        startup_s=course.first.at_s - course.began_s,
        records_per_s=rate,
        mb_per_s=rate * value_mb,
        steady_records_per_s=steady_rate,
        steady_mb_per_s=steady_rate * value_mb,
        cpu_us_per_record=1e6 * (last.party_cpu_s - first.party_cpu_s) / carried,
        steady_cpu_us_per_record=1e6 * (last.party_cpu_s - steady.party_cpu_s) / (last.offsets - steady.offsets),
        cpu_us_per_record_with_startup=1e6 * last.party_cpu_s / load.records,
        brokers_cpu_us_per_record=1e6 * (last.machine.brokers_s - first.machine.brokers_s) / carried,
        bench_cores=(last.machine.bench_s - first.machine.bench_s) / (last.at_s - first.at_s),
        others_cores=_others_s(first, last) / (last.at_s - first.at_s),
        rss_peak_mb=rss_peak_bytes / 1e6,
        pss_peak_mb=pss_peak_bytes / 1e6 if pss_peak_bytes is not None else None,
    )


def _others_s(first: _Mark, last: _Mark) -> float:
    before, after = first.machine, last.machine
    used_s = after.all_s - before.all_s + after.stolen_s - before.stolen_s
    known_s = after.brokers_s - before.brokers_s + after.bench_s - before.bench_s
    return max(0.0, used_s - known_s - (last.party_cpu_s - first.party_cpu_s))
