"""Seeded faults under load, and the checker's verdict: lost, duplicated, reordered, corrupted.

``mirrorspark chaos`` and the journeys run it: ``run_chaos`` kills processes on clusters of one broker, ``run_broker_chaos``
does to clusters of several what happens to them. A seed gives the same faults in the same order at the same pauses; what the
machine does in between is its own.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mirrorspark.errors import LabError
from mirrorspark.lab.broker_faults import IN_SYNC_MIN, NAMES, Side, broker_faults
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import Verdict, check_copy
from mirrorspark.lab.clients import wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.faults import Fault, Struck, drawn, table
from mirrorspark.lab.kills import KINDS, process_kills
from mirrorspark.lab.mirror import Mirror, mirror_properties
from mirrorspark.lab.proxied_cluster import ProxiedCluster
from mirrorspark.lab.replicas import wait_all_in_sync
from mirrorspark.lab.stall_watch import StallWatch
from mirrorspark.lab.workload import Workload

__all__ = ["BROKER_SETTINGS", "Carrier", "ChaosResult", "run_broker_chaos", "run_chaos"]

PAUSE_S = (0.5, 4.0)
BROKER_PAUSE_S = (0.5, 2.0)
RECOVERS = 2 / 3
"""In how many cases the next kill of a process waits until the flow has caught up. Without that most kills would hit a
mirror that is still starting, since a new start of Spark takes longer than the pauses."""
CATCH_UP_DEADLINE_S = 300.0
SETTLED_DEADLINE_S = 180.0
BROKER_SETTINGS = {"min.insync.replicas": str(IN_SYNC_MIN)}
"""For the clusters of ``run_broker_chaos``: MirrorMaker 2's rules, which are ours, leave this key to the target."""

Tell = Callable[[str], None]


class Carrier(Protocol):
    """Whoever carries the flow through the faults: a ``Mirror``, or lanes without Spark in a journey."""

    @property
    def is_alive(self) -> bool: ...
    def start(self) -> None: ...
    def wait_carrying(self) -> None: ...
    def stop(self) -> object: ...
    def kill_everything(self) -> None: ...
    def log_tail(self, lines: int = 30) -> str: ...


@dataclass
class ChaosResult:
    seed: int
    struck: list[Struck] = field(default_factory=list)
    records: int = 0
    source: Verdict = field(default_factory=Verdict)
    """What the workload's own producers left on the source: a flaw there is not the mirror's."""
    committed: Verdict = field(default_factory=Verdict)
    uncommitted: Verdict = field(default_factory=Verdict)

    @property
    def kills(self) -> Counter[str]:
        return Counter(one.name for one in self.struck)

    @property
    def is_clean(self) -> bool:
        """The target shows what the source shows: what the workload's producers themselves doubled there is no fault."""
        wanted = str(self.source)
        return self.source.lost == 0 and str(self.committed) == wanted and str(self.uncommitted) == wanted

    def report(self) -> str:
        return (
            f"seed {self.seed}, faults {dict(self.kills)}, records {self.records}\n"
            f"the source:       {self.source.report()}\n"
            f"read_committed:   {self.committed.report()}\n"
            f"read_uncommitted: {self.uncommitted.report()}"
        )

    def stalls(self) -> str:
        return table(self.struck)

    def to_json(self) -> dict[str, Any]:
        verdicts = {"source": self.source, "read_committed": self.committed, "read_uncommitted": self.uncommitted}
        counted = ("lost", "duplicated", "reordered", "corrupted", "extra", "read")
        return {
            "seed": self.seed,
            "records": self.records,
            "clean": self.is_clean,
            "verdicts": {who: {word: getattr(one, word) for word in counted} for who, one in verdicts.items()},
            "faults": [one.to_json() for one in self.struck],
        }


@dataclass(frozen=True)
class _Chaos:
    """A flow under load between two clusters, and what is done to it. ``settled`` waits until a fault is over."""

    source: ClusterOfBrokers
    target: ClusterOfBrokers
    workload: Workload
    carrier: Carrier
    remote: str
    rate: float
    tell: Tell
    pause_s: tuple[float, float] = PAUSE_S
    lasting_s: tuple[float, float] | None = None

    def run(
        self,
        result: ChaosResult,
        dice: random.Random,
        count: int,
        choose: Callable[[int], Fault],
        settled: Callable[[StallWatch, str], None],
    ) -> None:
        workload, carrier = self.workload, self.carrier
        try:
            carrier.start()
            workload.start(self.rate)
            carrier.wait_carrying()
            with StallWatch(workload.ledger, self._folders, self.remote) as watch:
                wait_for(lambda: sum(watch.behind.values()) < workload.ledger.acknowledged, "the first record", 120.0)
                run_began = time.monotonic()
                for number in range(1, count + 1):
                    time.sleep(dice.uniform(*self.pause_s))
                    fault = choose(number)
                    self.tell(f"fault {number} of {count}: {fault.name}")
                    began = time.monotonic()
                    what = self._strike(fault, dice)
                    undone = time.monotonic()
                    if not carrier.is_alive:
                        carrier.start()
                    settled(watch, fault.name)
                    ended = time.monotonic()
                    stalls = watch.longest(began, ended)
                    self.tell("  longest stall {:.1f} s, of a partition {:.1f} s".format(*stalls))
                    began_s, undone_s, ended_s = (one - run_began for one in (began, undone, ended))
                    result.struck.append(Struck(fault.name, what, began_s, undone_s, ended_s, *stalls))
                workload.stop()
            self._compare(result)
            carrier.stop()
            if not result.is_clean:
                self.tell(f"the mirror's last words:\n{carrier.log_tail(200)}")
        except BaseException:
            self.tell(f"seed {result.seed}; the mirror's last words:\n{carrier.log_tail(60)}")
            raise
        finally:
            carrier.kill_everything()

    def _strike(self, fault: Fault, dice: random.Random) -> str:
        with fault.strike(dice) as what:
            self.tell(f"  {what}" if what else f"  {fault.name}")
            time.sleep(dice.uniform(*(self.lasting_s or fault.lasts_s)))
        return what

    def _compare(self, result: ChaosResult) -> None:
        workload, source, target = self.workload, self.source.bootstrap, self.target.bootstrap
        result.records = workload.ledger.acknowledged
        self.tell(f"{result.records} records acknowledged by the source; waiting for the target")
        if not self.carrier.is_alive:
            self.carrier.start()
        wait_until_caught_up(source, target, workload.topic, self.remote, CATCH_UP_DEADLINE_S)
        result.source = check_copy(source, workload.topic, workload.ledger, isolation="read_uncommitted")
        result.committed = check_copy(target, self.remote, workload.ledger, isolation="read_committed")
        result.uncommitted = check_copy(target, self.remote, workload.ledger, isolation="read_uncommitted")

    def _folders(self) -> list[Path]:
        return [broker.data for broker in self.target.brokers]


def run_chaos(
    source: ClusterOfBrokers,
    target: ClusterOfBrokers,
    *,
    seed: int,
    kills: int,
    topic: str,
    rate: float = 400.0,
    partitions: int = 4,
    transactions: bool = False,
    kinds: tuple[str, ...] = KINDS,
    order: Sequence[str] = (),
    recovers: float = RECOVERS,
    extra: Mapping[str, str] | None = None,
    tell: Tell = lambda text: None,
) -> ChaosResult:
    """Run a mirror east->west under load through ``kills`` kills, then compare.

    ``order`` names whom to hit, one after the other, for a run too short to leave that to the dice. With the chance
    ``recovers`` a kill comes only after the flow has caught up; else it may well hit one that has not recovered.
    """
    assert not order or len(order) == kills, "an order has a kind for each kill"
    dice = random.Random(seed)
    result = ChaosResult(seed)
    folder = Path(tempfile.mkdtemp(prefix="mirrorspark-chaos-"))
    workload = Workload(source.bootstrap, topic, partitions, seed)
    workload.create_topic()
    settings = {"east->west.topics": topic, **_mode(transactions), **(extra or {})}
    clusters = ("east", source.bootstrap), ("west", target.bootstrap)
    mirror = Mirror(mirror_properties(*clusters, extra=settings), folder=folder)
    faults = process_kills(source, target, mirror)

    def settled(watch: StallWatch, name: str) -> None:
        if dice.random() < recovers:
            began = time.monotonic()
            _wait_until_arrived(workload, watch, name)
            tell(f"  caught up after {time.monotonic() - began:.1f} s")

    try:
        _Chaos(source, target, workload, mirror, f"east.{topic}", rate, tell).run(
            result,
            dice,
            kills,
            lambda number: faults[order[number - 1] if order else dice.choice(kinds)],
            settled,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def run_broker_chaos(
    source: ProxiedCluster,
    target: ProxiedCluster,
    *,
    seed: int,
    faults: int,
    topic: str,
    rate: float = 100.0,
    partitions: int = 6,
    transactions: bool = False,
    kinds: tuple[str, ...] = NAMES,
    order: Sequence[str] = (),
    lasting_s: tuple[float, float] | None = None,
    carrier: Callable[[], Carrier] | None = None,
    alias: str = "east",
    tell: Tell = lambda text: None,
) -> ChaosResult:
    """Run a mirror under load through ``faults`` faults of brokers and the way to them, then compare.

    Every kind is drawn once before any comes again. Before the next fault the flow has recovered and all replicas are in
    sync: a stall has one cause. ``lasting_s`` stands in place of each fault's own time. ``carrier`` makes whoever carries
    the topic, if not a mirror of its own.
    """
    assert not order or len(order) == faults, "an order has a name for each fault"
    result = ChaosResult(seed)
    folder = Path(tempfile.mkdtemp(prefix="mirrorspark-chaos-"))
    workload = Workload(source.bootstrap, topic, partitions, seed)
    workload.create_topic({"min.insync.replicas": str(IN_SYNC_MIN)}, replication_factor=3)
    settings = {f"{alias}->west.topics": topic, "replication.factor": "3", **_mode(transactions)}
    clusters = (alias, source.mirror_bootstrap), ("west", target.mirror_bootstrap)
    runner = carrier() if carrier else Mirror(mirror_properties(*clusters, extra=settings), folder=folder)
    remote, client = f"{alias}.{topic}", f"mirrorspark|{alias}->west"
    known = broker_faults(
        Side("source", source, topic, f"{client}|source"), Side("target", target, remote, f"{client}|target")
    )
    names = list(order) or drawn(seed, kinds, faults)

    def settled(watch: StallWatch, name: str) -> None:
        for cluster in (source, target):
            wait_all_in_sync(cluster.bootstrap)
        _wait_until_arrived(workload, watch, name)

    try:
        _Chaos(source, target, workload, runner, remote, rate, tell, BROKER_PAUSE_S, lasting_s).run(
            result, random.Random(seed), faults, lambda number: known[names[number - 1]], settled
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def _wait_until_arrived(workload: Workload, watch: StallWatch, name: str) -> None:
    """What has been acknowledged by now."""
    wanted = [len(book) for book in workload.ledger.books]
    try:
        wait_for(lambda: not watch.missing(wanted), "the flow to go on", SETTLED_DEADLINE_S)
    except LabError as error:
        raise LabError(f"after {name}: {error}; missing, by partition: {watch.missing(wanted)}") from error


def _mode(transactions: bool) -> dict[str, str]:
    return {"west.exactly.once.source.support": "enabled"} if transactions else {}
