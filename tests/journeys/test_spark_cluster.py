"""On a real standalone Spark cluster whose workers share nothing with the driver but the network.

The shortest loses a worker for good. The others kill everything in turn, take slots away, freeze an executor, heat a
partition up, and bring the third-party packages along in an archive. All are outside ``make test``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from tests.journeys.marked_secrets import JAAS, MARK, marked_lines, process_lines

import mirrorspark
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import create_topic, end_offsets, topic_partitions, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.mirror import Mirror, mirror_properties
from mirrorspark.lab.plain_records import write_values
from mirrorspark.lab.spark_cluster import SparkCluster, conf_arguments, pack_environment
from mirrorspark.lab.workload import Workload

SEED = 20261116
PARTITIONS = 4
PATIENCE_S = 180.0
KILLS = 10
HOT_BYTES = 20_000

Begin = Callable[..., "Flow"]


class Flow:
    """A mirror on a Spark cluster between the run's two clusters, with a workload to compare by."""

    def __init__(self, spark: SparkCluster, mirror: Mirror, workload: Workload, target: str, alias: str) -> None:
        self.spark, self.mirror, self.workload, self.target, self.alias = spark, mirror, workload, target, alias
        self._heard = 0

    @property
    def remote(self) -> str:
        return f"{self.alias}.{self.workload.topic}"

    def wait_lanes(self, count: int) -> None:
        """Python workers on the cluster, which are there as long as their lanes, and a little longer."""
        wait_for(lambda: len(self.spark.lane_workers) >= count, f"{count} lanes on the cluster", PATIENCE_S)

    def wait_told(self, text: str) -> None:
        """After what was waited for before: an old line is no news."""

        def is_told() -> bool:
            found = self.mirror.log.read_text(errors="replace").find(text, self._heard)
            self._heard = found + len(text) if found >= 0 else self._heard
            return found >= 0

        wait_for(is_told, f"the mirror to say: {text}", PATIENCE_S, 0.3)

    def wait_flowing(self) -> None:
        """Until every partition has got more than it has now."""

        def counts() -> dict[int, int]:
            if topic_partitions(self.target, self.remote) < PARTITIONS:
                return dict.fromkeys(range(PARTITIONS), 0)
            return {number: end for number, (_, end) in end_offsets(self.target, self.remote).items()}

        before = counts()
        wait_for(
            lambda: all(end > before[number] for number, end in counts().items()),
            f"records on every partition of {self.remote}",
            PATIENCE_S,
            0.2,
        )

    def finish(self) -> None:
        """End the workload, wait for the copy, compare, stop the mirror."""
        self.workload.stop()
        wait_until_caught_up(self.workload.bootstrap, self.target, self.workload.topic, self.remote)
        for isolation in ("read_committed", "read_uncommitted"):
            verdict = check_copy(self.target, self.remote, self.workload.ledger, isolation=isolation)
            print(f"{isolation}: {verdict.report()}")
            assert verdict.is_clean, f"{isolation}: {verdict.report()}\n{self.mirror.log_tail(100)}"
        assert self.mirror.stop() == 0, self.mirror.log_tail(60)


@pytest.fixture
def begin(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path
) -> Iterator[Begin]:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    workload = Workload(source, topic_name, PARTITIONS, SEED)

    @contextmanager
    def start(
        spark: SparkCluster, arguments: list[str] | None = None, tasks_max: int = 2, rate: float = 300.0, **extra: str
    ) -> Iterator[Flow]:
        alias = f"onspark{os.getpid()}"
        workload.create_topic()
        flow = f"{alias}->west"
        settings = {f"{flow}.topics": topic_name, f"{flow}.emit.heartbeats.enabled": "false"}
        settings |= {
            f"{flow}.heartbeats.replication.enabled": "false",
            f"{alias}.sasl.jaas.config": JAAS.format("lane"),
        }
        properties = mirror_properties(
            (alias, source), ("west", target), tasks_max=tasks_max, extra={**settings, **extra}
        )
        mirror = Mirror(properties, folder=tmp_path / "driver", arguments=arguments or spark.arguments)
        with mirror:
            if rate:
                workload.start(rate)
            yield Flow(spark, mirror, workload, target, alias)

    yield start
    workload.stop()


def _assert_apart(spark: SparkCluster) -> None:
    """Lanes run in the workers' own world: their folder, the archive that came by Spark, nothing of the checkout."""
    checkout = str(Path(mirrorspark.__file__).parents[1])
    for worker in spark.workers:
        for pid in worker.lane_workers:
            process = psutil.Process(pid)
            assert process.cwd().startswith(str(worker.folder))
            assert (Path(process.cwd()) / "mirrorspark.zip").exists()
            told = {name: value for name, value in process.environ().items() if checkout in value}
            assert told == {}


def _assert_no_secret(flow: Flow) -> None:
    assert marked_lines(process_lines()) == []
    assert marked_lines([flow.mirror.log.read_text()]) == []
    told = []
    for file in list(flow.spark.folder.rglob("*")):
        with suppress(OSError):  # a folder, or gone meanwhile: Spark tidies up
            told += [file] if MARK.encode() in file.read_bytes() else []
    assert told == []


@pytest.mark.slow
def test_a_worker_is_lost_and_its_lanes_come_back_on_the_other(begin: Begin) -> None:
    with SparkCluster(workers=2, cores=2, awaits_workers=False) as spark, begin(spark, rate=150.0) as flow:
        flow.wait_lanes(2)
        lost, left = sorted(spark.workers, key=lambda worker: -len(worker.lane_workers))
        flow.wait_flowing()
        _assert_apart(spark)
        _assert_no_secret(flow)
        assert "does not encrypt what it sends to executors" in flow.mirror.log.read_text()
        lost.kill()
        wait_for(lambda: len(left.lane_workers) >= 2, "both lanes on the worker that is left", PATIENCE_S)
        flow.wait_flowing()
        flow.finish()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("transactions", [False, True], ids=["default mode", "with transactions"])
def test_executors_workers_lanes_and_drivers_killed_leave_an_exact_copy(begin: Begin, transactions: bool) -> None:
    dice = random.Random(SEED)
    extra = {"west.exactly.once.source.support": "enabled"} if transactions else {}
    order = [
        *("executor", "driver", "worker", "lane"),
        *(dice.choice(("executor", "driver", "worker", "lane")) for _ in range(KILLS - 4)),
    ]
    with SparkCluster(workers=2, cores=2) as spark, begin(spark, **extra) as flow:
        flow.wait_lanes(2)
        flow.wait_flowing()
        for number, kind in enumerate(order, 1):
            time.sleep(dice.uniform(0.0, 4.0))
            print(f"kill {number} of {len(order)}: {kind}", flush=True)
            _kill(kind, dice, flow)
            began = time.monotonic()
            flow.wait_flowing()
            print(f"  all partitions flow again after {time.monotonic() - began:.1f} s", flush=True)
        flow.finish()


def _kill(kind: str, dice: random.Random, flow: Flow) -> None:
    spark = flow.spark
    worker = dice.choice([one for one in spark.workers if one.executors] or spark.workers)
    if kind == "executor":
        worker.kill_executors()
    elif kind == "worker":
        worker.kill()
        time.sleep(dice.uniform(0.0, 5.0))
        worker.restart()
    elif kind == "lane":
        for pid in dice.sample(spark.lane_workers, min(1, len(spark.lane_workers))):
            os.kill(pid, signal.SIGKILL)
    else:
        flow.mirror.kill_driver()
        flow.mirror.start()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_with_fewer_slots_than_lanes_every_partition_is_carried_and_slots_that_come_are_used(begin: Begin) -> None:
    with SparkCluster(workers=2, cores=1) as spark:
        spark.workers[1].kill()
        with begin(spark) as flow:
            flow.wait_told(f"tasks.max = 2, but --master {spark.address} runs 1 tasks at a time for 2 lanes in all")
            flow.wait_told("lanes=1/1")
            flow.wait_flowing()
            assert len(spark.executors) == 1
            spark.workers[1].restart()
            flow.wait_told("lanes=2/2")
            flow.wait_flowing()
            assert [len(worker.executors) for worker in spark.workers] == [1, 1]
            spark.workers[0].kill()
            flow.wait_told("lanes=1/1")
            flow.wait_flowing()
            flow.finish()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_executor_that_spark_gave_up_and_whose_lane_still_lives_does_no_harm(begin: Begin) -> None:
    """Its JVM stands still, its Python carries on: the task is started a second time beside it. So it would be by
    speculation, which is off whatever spark-defaults.conf says."""
    hasty = {"network.timeout": "15s", "network.timeoutInterval": "5s", "executor.heartbeatInterval": "2s"}
    hasty = {f"spark.{key}": value for key, value in hasty.items()}
    with SparkCluster(workers=2, cores=2) as spark, begin(spark, spark.arguments + conf_arguments(hasty)) as flow:
        wait_for(lambda: all(worker.lane_workers for worker in spark.workers), "a lane on each worker", PATIENCE_S)
        flow.wait_flowing()
        before = set(spark.lane_workers)
        (jvm,) = spark.workers[0].executors
        os.kill(jvm, signal.SIGSTOP)
        try:
            wait_for(lambda: bool(set(spark.lane_workers) - before), "the lane's second attempt", PATIENCE_S)
            flow.wait_flowing()
        finally:
            with suppress(ProcessLookupError):  # its worker may have ended it
                os.kill(jvm, signal.SIGCONT)
        flow.wait_flowing()
        flow.finish()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_speculation_in_spark_defaults_is_not_taken(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As eager as it can be, with an epoch that ends again and again: no lane is ever started twice."""
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.parent.mkdir()
    eager = {"speculation": "true", "speculation.interval": "100ms", "speculation.task.duration.threshold": "1s"}
    defaults.write_text("".join(f"spark.{key} {value}\n" for key, value in eager.items()))
    monkeypatch.setenv("SPARK_CONF_DIR", str(defaults.parent))
    with SparkCluster(workers=2, cores=4) as spark, begin(spark, **{"epoch.seconds": "10"}) as flow:
        flow.wait_lanes(2)
        began = time.monotonic()
        while time.monotonic() < began + 35:
            assert len(spark.lane_workers) <= 2
            time.sleep(0.2)
        flow.finish()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_lane_with_two_hot_partitions_gives_one_away_within_two_epochs(
    begin: Begin, source_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    epoch_s = 60
    hot = f"{topic_name}-hot"
    create_topic(source_cluster.bootstrap, hot, PARTITIONS)
    ended = threading.Event()

    def heat() -> None:
        values = [bytes(HOT_BYTES)] * 20
        while not ended.wait(0.1):
            for number in (0, 2):
                write_values(source_cluster.bootstrap, hot, values, partition=number)

    with SparkCluster(workers=2, cores=1) as spark:
        alias = f"onspark{os.getpid()}"
        extra = {f"{alias}->west.topics": hot, "epoch.seconds": str(epoch_s)}
        with begin(spark, rate=0.0, **extra) as flow:
            flow.wait_lanes(2)
            flow.wait_told("lanes=2/2")
            before = _lanes_of(flow, hot)
            print(f"before: {before}")
            assert before[0] == before[2] != before[1]
            heating = threading.Thread(target=heat)
            heating.start()
            began = time.monotonic()
            try:
                wait_for(lambda: len({_lanes_of(flow, hot)[n] for n in (0, 2)}) == 2, "a move", 2 * epoch_s, 2.0)
            finally:
                took = time.monotonic() - began
                ended.set()
                heating.join()
            print(f"after {took:.0f} s, epochs of {epoch_s} s: {_lanes_of(flow, hot)}")
            wait_until_caught_up(source_cluster.bootstrap, flow.target, hot, f"{alias}.{hot}")
            assert flow.mirror.stop() == 0


def _lanes_of(flow: Flow, topic: str) -> dict[int, int]:
    command = [sys.executable, "-m", "mirrorspark", "status", str(flow.mirror.file), "--json"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    (one,) = json.loads(told.stdout)["flows"]
    return {place["partition"]: place["lane"] for place in one["partitions"] if place["topic"] == topic}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_packages_come_along_in_an_archive(begin: Begin, tmp_path: Path) -> None:
    """The workers' Python has nothing but itself."""
    archive = pack_environment(tmp_path / "packages.tar")
    bare = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    with SparkCluster(workers=2, cores=1) as spark:
        conf = {**spark.conf, "spark.archives": f"{archive}#packages", "spark.executorEnv.PYTHONPATH": "packages"}
        arguments = ["--master", spark.address, *conf_arguments({**conf, "spark.pyspark.python": str(bare)})]
        with begin(spark, arguments) as flow:
            flow.wait_lanes(2)
            flow.wait_told("lanes=2/2")
            flow.wait_flowing()
            _assert_apart(spark)
            for pid in spark.lane_workers:
                loaded = {one.path for one in psutil.Process(pid).memory_maps()}
                assert not [path for path in loaded if "site-packages" in path]
                assert [path for path in loaded if "/packages/pyarrow/" in path]
            flow.finish()
