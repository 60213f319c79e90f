"""The embedded Spark against a standalone cluster with two executors: the same topic, in turn, on the same brokers.

``mirrorspark bench spark-cluster`` runs it. Both are measured by ``throughput.measure_carry``; the cluster is up all the
time, its executors only while it carries. CPU is not compared: executors are no part of the mirror's process tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from mirrorspark.lab.bench.comparison import brokers_of_a_run, data_folder
from mirrorspark.lab.bench.parties import OURS, Errand
from mirrorspark.lab.bench.remote_topics import delete_topics
from mirrorspark.lab.bench.room import find_room, fit
from mirrorspark.lab.bench.shapes import PARTITIONS, Load
from mirrorspark.lab.bench.throughput import Carry, measure_carry
from mirrorspark.lab.clients import create_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.preload import preload
from mirrorspark.lab.spark_cluster import SparkCluster

__all__ = ["ClusterOrder", "Figures", "compare_with_cluster", "verdict"]

EXECUTORS = 2
EMBEDDED, CLUSTER = "embedded", f"{EXECUTORS} executors"
BATCH_BYTES = 1_000_000
WARM_UP_PART = 0.1


@dataclass(frozen=True, slots=True)
class ClusterOrder:
    load: Load
    rounds: int
    tasks_max: int
    folder: Path | None


@dataclass(frozen=True, slots=True)
class Figures:
    """One carry by one of the two, as ``measure_carry`` saw it."""

    where: str
    round: int
    carry: Carry


def compare_with_cluster(order: ClusterOrder, tell: Callable[[str], None]) -> list[Figures]:
    """Raises LabError when something fails. Odd rounds begin with the embedded Spark, even ones with the cluster."""
    room = find_room(order.folder, [order.load])
    (load,), notes = fit([order.load], room)
    for note in notes:
        tell(note)
    with (
        data_folder(room) as folder,
        brokers_of_a_run(folder) as clusters,
        SparkCluster(workers=EXECUTORS, cores=order.tasks_max, folder=folder / "spark") as spark,
    ):
        run = _Run(order, load, clusters, folder, spark, tell)
        run.preload("warm-up", load.scaled(WARM_UP_PART))
        for where in (EMBEDDED, CLUSTER):
            run.carry(where, 0, "warm-up", load.scaled(WARM_UP_PART))
        run.preload(load.shape.topic, load)
        found = []
        for number in range(1, order.rounds + 1):
            turns = (EMBEDDED, CLUSTER) if number % 2 else (CLUSTER, EMBEDDED)
            found += [run.carry(where, number, load.shape.topic, load) for where in turns]
    return found


def verdict(found: list[Figures]) -> str:
    """Medians over the rounds, and the cluster's part of the embedded Spark's."""
    lines = []
    for name, rate in (("whole", "mb_per_s"), ("steady", "steady_mb_per_s")):
        here, there = (
            median(getattr(one.carry, rate) for one in found if one.where == where) for where in (EMBEDDED, CLUSTER)
        )
        lines.append(f"{name}: {EMBEDDED} {here:,.0f} MB/s, {CLUSTER} {there:,.0f} MB/s, ratio {there / here:.2f}")
    return "\n".join(lines)


class _Run:
    def __init__(
        self,
        order: ClusterOrder,
        load: Load,
        clusters: tuple[ClusterOfBrokers, ClusterOfBrokers],
        folder: Path,
        spark: SparkCluster,
        tell: Callable[[str], None],
    ) -> None:
        self._order = order
        self._load = load
        self._clusters = clusters
        self._folder = folder
        self._spark = spark
        self._tell = tell

    def preload(self, topic: str, load: Load) -> None:
        source, shape = self._clusters[0], load.shape
        self._tell(f"{topic}: {load.records:,} records of {shape.record_bytes} B are written to the source")
        create_topic(source.bootstrap, topic, PARTITIONS)
        preload(
            source.bootstrap,
            topic,
            PARTITIONS,
            load.records,
            shape.record_bytes,
            shape.codec,
            shape.content,
            batch_bytes=BATCH_BYTES,
        )

    def carry(self, where: str, number: int, topic: str, load: Load) -> Figures:
        source, target = self._clusters
        alias = f"{'spc' if where == CLUSTER else 'emb'}-{number}"
        errand = Errand(
            alias,
            source.bootstrap,
            target.bootstrap,
            topic,
            load.shape.codec,
            self._order.tasks_max,
            self._folder / alias,
            starts_before_spark=False,
        )
        if where == CLUSTER:
            errand = replace(errand, arguments=tuple(self._spark.arguments))
        found = measure_carry(OURS, errand, load, self._clusters, topic=topic, number=number)
        delete_topics(target, alias)
        self._tell(
            f"round {number}, {where}: {found.records_per_s:,.0f} records/s, {found.mb_per_s:,.0f} MB/s, steady "
            f"{found.steady_mb_per_s:,.0f} MB/s, first record after {found.startup_s:.1f} s"
        )
        return Figures(where, number, found)
