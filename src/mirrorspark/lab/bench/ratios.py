"""What the figures say against what is wanted: ratios of medians, each with a verdict.

Called by ``report.py``. The wanted figures are the promise of the engine: against a *tuned* MirrorMaker 2 for throughput
and CPU, against the *default* one for latency and start-up, against our own loop without Spark for what Spark costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from mirrorspark.lab.bench.latency import Latency
from mirrorspark.lab.bench.parties import BARE, MM2, MM2_TUNED, OURS
from mirrorspark.lab.bench.shapes import SHAPES
from mirrorspark.lab.bench.throughput import Carry

__all__ = ["Check", "all_checks"]

THROUGHPUT_MIN = {"1k": 3.0, "200b": 8.0}
THROUGHPUT_OVER_TLS_MIN = 3.0
CPU_MAX = 0.10
STARTUP_MAX = 0.50
BARE_LOOP_MIN = 0.70
P50_MAX = 0.50
P99_MAX = 1.00


@dataclass(frozen=True, slots=True)
class Check:
    """``at_least`` and ``at_most`` are the wanted bound; neither means that the figure is for information."""

    what: str
    measured: float
    by_round: tuple[float, ...] = ()
    at_least: float | None = None
    at_most: float | None = None

    @property
    def verdict(self) -> str:
        if self.at_least is None and self.at_most is None:
            return "info"
        is_high_enough = self.at_least is None or self.measured >= self.at_least
        is_low_enough = self.at_most is None or self.measured <= self.at_most
        return "PASS" if is_high_enough and is_low_enough else "MISS"

    @property
    def wanted(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return f"<= {self.at_most:g}" if self.at_most is not None else "-"


Figure = Callable[[Carry], float]


def all_checks(
    carries: Sequence[Carry], starts: Sequence[Carry], latencies: Sequence[Latency], *, over_tls: bool = False
) -> list[Check]:
    """Those for which both parties were measured. Over TLS the promise is one of throughput alone."""
    found: list[Check | None] = []
    for shape in SHAPES.values():
        of_shape = [carry for carry in carries if carry.shape == shape.key]
        found += _over_tls(of_shape, shape.label) if over_tls else _of_shape(of_shape, shape.key, shape.label)
    found.append(
        _ratio(starts, "start to first record / MirrorMaker 2 default", MM2.key, _startup, at_most=STARTUP_MAX)
    )
    found += _of_latency(latencies)
    return [check for check in found if check is not None]


def _of_shape(carries: Sequence[Carry], key: str, label: str) -> list[Check | None]:
    least = THROUGHPUT_MIN[key]
    tuned = "/ MirrorMaker 2 tuned"
    return [
        _ratio(carries, f"{label}: throughput {tuned}", MM2_TUNED.key, _throughput, at_least=least),
        _ratio(carries, f"{label}: throughput {tuned}, 5 to 100 %", MM2_TUNED.key, _steady, at_least=least),
        _ratio(carries, f"{label}: CPU per record {tuned}", MM2_TUNED.key, _cpu, at_most=CPU_MAX),
        _ratio(carries, f"{label}: CPU per record {tuned}, 5 to 100 %", MM2_TUNED.key, _steady_cpu, at_most=CPU_MAX),
        _ratio(carries, f"{label}: CPU per record {tuned}, start-up included", MM2_TUNED.key, _whole_cpu),
        _ratio(carries, f"{label}: throughput / bare loop", BARE.key, _throughput, at_least=BARE_LOOP_MIN),
        _ratio(carries, f"{label}: throughput / bare loop, 5 to 100 %", BARE.key, _steady, at_least=BARE_LOOP_MIN),
    ]


def _over_tls(carries: Sequence[Carry], label: str) -> list[Check | None]:
    least, tuned = THROUGHPUT_OVER_TLS_MIN, "over TLS / MirrorMaker 2 tuned"
    return [
        _ratio(carries, f"{label}: throughput {tuned}", MM2_TUNED.key, _throughput, at_least=least),
        _ratio(carries, f"{label}: throughput {tuned}, 5 to 100 %", MM2_TUNED.key, _steady, at_least=least),
        _ratio(carries, f"{label}: CPU per record {tuned}", MM2_TUNED.key, _cpu),
        _ratio(carries, f"{label}: throughput over TLS / bare loop", BARE.key, _throughput),
    ]


def _of_latency(latencies: Iterable[Latency]) -> list[Check | None]:
    by_party = {one.party: one for one in latencies}
    ours, theirs = by_party.get(OURS.key), by_party.get(MM2.key)
    if ours is None:
        return []
    found: list[Check | None] = []
    if theirs is not None:
        default = "/ MirrorMaker 2 default"
        found.append(Check(f"latency p50 {default}", ours.p50_ms / theirs.p50_ms, at_most=P50_MAX))
        found.append(Check(f"latency p99 {default}", ours.p99_ms / theirs.p99_ms, at_most=P99_MAX))
    found.append(Check("epoch boundaries while latency was measured", ours.epoch_boundaries or 0, at_least=1))
    found.append(Check("new topics carried meanwhile", 0 if ours.new_topic_s is None else 1, at_least=1))
    return found


def _ratio(
    carries: Sequence[Carry],
    what: str,
    peer: str,
    figure: Figure,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Check | None:
    """Ours by theirs: of the medians, and for each round in which both ran."""
    ours, theirs = ([one for one in carries if one.party == party] for party in (OURS.key, peer))
    if not ours or not theirs:
        return None
    measured = median(map(figure, ours)) / max(median(map(figure, theirs)), 1e-9)
    peers = {(one.shape, one.round): figure(one) for one in theirs}
    pairs = [(figure(one), peers[one.shape, one.round]) for one in ours if (one.shape, one.round) in peers]
    return Check(what, measured, tuple(own / max(other, 1e-9) for own, other in pairs), at_least, at_most)


def _throughput(carry: Carry) -> float:
    return carry.records_per_s


def _steady(carry: Carry) -> float:
    return carry.steady_records_per_s


def _cpu(carry: Carry) -> float:
    return carry.cpu_us_per_record


def _steady_cpu(carry: Carry) -> float:
    return carry.steady_cpu_us_per_record


def _whole_cpu(carry: Carry) -> float:
    return carry.cpu_us_per_record_with_startup


def _startup(carry: Carry) -> float:
    return carry.startup_s
