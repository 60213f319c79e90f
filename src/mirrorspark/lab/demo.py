"""The demo: two real clusters, a live flow, kills on the way, a failover, the checker's verdict, a plot.

``mirrorspark demo`` runs it; everything it starts ends with it.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mirrorspark.errors import LabError
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import Verdict, check_copy
from mirrorspark.lab.clients import consumer, end_offsets, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, started_together
from mirrorspark.lab.kills import kill_lane
from mirrorspark.lab.mirror import Mirror, mirror_properties
from mirrorspark.lab.workload import Workload

__all__ = ["DemoReport", "run_demo"]

TOPIC = "orders"
PARTITIONS = 4
STEADY_S = 6.0


@dataclass
class DemoReport:
    verdict: Verdict = field(default_factory=Verdict)
    records: int = 0
    samples: list[tuple[float, int, int]] = field(default_factory=list)  # s, records on the source, on the target
    marks: list[tuple[float, str]] = field(default_factory=list)
    after_failover: int = 0
    plot: Path | None = None


class _Sampler:
    """How many records each side holds, twice a second."""

    def __init__(self, source: str, target: str) -> None:
        self._source, self._target = source, target
        self.started = time.monotonic()
        self.samples: list[tuple[float, int, int]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="demo sampler")
        self._thread.start()

    def _run(self) -> None:
        last = (0, 0)
        while not self._stop.wait(0.5):
            counts = []
            for index, (bootstrap, topic) in enumerate(((self._source, TOPIC), (self._target, f"east.{TOPIC}"))):
                try:
                    counts.append(sum(end for _, end in end_offsets(bootstrap, topic, deadline_s=1.0).values()))
                except LabError:
                    counts.append(last[index])  # the broker is down just now: that is the show
            last = (counts[0], counts[1])
            self.samples.append((time.monotonic() - self.started, *last))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30.0)


def run_demo(*, rate: float, seed: int, plot: Path | None, tell: Callable[[str], None]) -> DemoReport:
    report = DemoReport()
    folder = Path(tempfile.mkdtemp(prefix="mirrorspark-demo-"))
    tell("starting two Kafka clusters, east and west")
    east, west = ClusterOfBrokers("east"), ClusterOfBrokers("west")
    with started_together(east, west):
        tell(f"east is at {east.bootstrap}, west at {west.bootstrap}")
        workload = Workload(east.bootstrap, TOPIC, PARTITIONS, seed)
        workload.create_topic()
        mirror = Mirror(mirror_properties(("east", east.bootstrap), ("west", west.bootstrap)), folder=folder)
        sampler = _Sampler(east.bootstrap, west.bootstrap)

        def mark(what: str) -> None:
            tell(what)
            report.marks.append((time.monotonic() - sampler.started, what))

        try:
            mark("the workload starts on east: every awkward record shape, all five codecs")
            workload.start(rate)
            mark(f"mirrorspark run {mirror.file.name}: flow east->west, 2 lanes on embedded Spark")
            mirror.start()
            mirror.wait_carrying()
            mark("the flow carries")
            time.sleep(STEADY_S)
            mark("kill -9 of a lane's worker")
            kill_lane(mirror, seed)
            time.sleep(STEADY_S)
            mark("kill -9 of west's broker, then start it again")
            west.broker(1).kill()
            west.broker(1).start()
            time.sleep(STEADY_S)
            mark("the workload ends")
            workload.stop()
            wait_until_caught_up(east.bootstrap, west.bootstrap, TOPIC, f"east.{TOPIC}")
            mark("west has everything; now east fails: kill -9 of its broker")
            east.broker(1).kill()
            report.after_failover = _consume(west.bootstrap, f"east.{TOPIC}")
            mark(f"failover: a plain consumer reads {report.after_failover} records from west while east is down")
            east.broker(1).start()
            code = mirror.stop()
            mark(f"mirrorspark stopped by SIGTERM, exit code {code}")
            if code != 0:
                raise LabError(f"the mirror ended with code {code}:\n{mirror.log_tail()}")
            report.records = workload.ledger.acknowledged
            tell("checking every record on west with an ordinary consumer")
            report.verdict = check_copy(west.bootstrap, f"east.{TOPIC}", workload.ledger, isolation="read_committed")
        except BaseException:
            tell(f"the mirror's last words:\n{mirror.log_tail() if mirror.log.exists() else '(none)'}")
            raise
        finally:
            sampler.stop()
            mirror.kill_everything()
            shutil.rmtree(folder, ignore_errors=True)
        report.samples = sampler.samples
    if plot is not None:
        _draw(report, plot)
        report.plot = plot
    return report


def _consume(bootstrap: str, topic: str) -> int:
    """How many records an ordinary consumer group reads from the beginning to the end."""
    total = sum(end for _, end in end_offsets(bootstrap, topic).values())
    reader = consumer(bootstrap, {"group.id": "after-failover", "auto.offset.reset": "earliest"})
    reader.subscribe([topic])
    read = 0
    ends: dict[int, int] = {}

    def take(count: int, wait_s: float) -> bool:
        nonlocal read
        messages = reader.consume(count, wait_s)
        for message in messages:
            if message.error() is None:
                read += 1
                ends[message.partition()] = message.offset() + 1
        return bool(messages)

    def has_all() -> bool:
        take(500, 0.5)
        return sum(ends.values()) >= total - MARKERS_MAX and not take(1, 0.2)

    wait_for(has_all, "the consumer on west to reach the end", 120.0)
    reader.close()
    return read


MARKERS_MAX = 1_000
"""Offsets on the target that fence markers may take: they are no records."""


def _draw(report: DemoReport, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    times = [sample[0] for sample in report.samples]
    figure, axes = pyplot.subplots(figsize=(10, 4.5))
    axes.plot(times, [sample[1] for sample in report.samples], label="east (source)", linewidth=3, alpha=0.4)
    axes.plot(times, [sample[2] for sample in report.samples], label="west (target)", linewidth=1.5)
    for number, (at, _) in enumerate(report.marks, 1):
        axes.axvline(at, color="grey", linestyle=":", linewidth=0.8)
        axes.text(at, axes.get_ylim()[1], str(number), fontsize=7, va="bottom", ha="center")
    axes.set_xlabel("seconds")
    axes.set_ylabel("records")
    axes.legend(loc="upper left")
    axes.set_title("mirrorspark demo: records on both sides (numbers: see the report)", pad=16)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
