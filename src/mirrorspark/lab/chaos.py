"""Seeded kills of everything under load, and the checker's verdict: lost, duplicated, reordered, corrupted.

``mirrorspark chaos`` and the journeys run it. A seed gives the same kills in the same order at the same pauses; what the
machine does in between is its own.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import Verdict, check_copy
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.mirror import Mirror, mirror_properties
from mirrorspark.lab.workload import Workload

__all__ = ["KINDS", "ChaosResult", "kill_lane", "run_chaos"]

KINDS = ("lane", "executor", "driver", "source", "target")
PAUSE_S = (0.5, 4.0)
DOWN_S = (0.2, 2.0)
CATCH_UP_DEADLINE_S = 300.0


@dataclass
class ChaosResult:
    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    records: int = 0
    source: Verdict = field(default_factory=Verdict)
    """What the workload's own producers left on the source: a flaw there is not the mirror's."""
    committed: Verdict = field(default_factory=Verdict)
    uncommitted: Verdict = field(default_factory=Verdict)

    @property
    def is_clean(self) -> bool:
        """The target shows what the source shows: what the workload's producers themselves doubled there is no fault."""
        wanted = str(self.source)
        return self.source.lost == 0 and str(self.committed) == wanted and str(self.uncommitted) == wanted

    def report(self) -> str:
        return (
            f"seed {self.seed}, kills {dict(self.kills)}, records {self.records}\n"
            f"the source:       {self.source.report()}\n"
            f"read_committed:   {self.committed.report()}\n"
            f"read_uncommitted: {self.uncommitted.report()}"
        )


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
    extra: Mapping[str, str] | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> ChaosResult:
    """Run a mirror east->west under load through ``kills`` kills, then compare.

    ``order`` names whom to hit, one after the other, for a run too short to leave that to the dice.
    """
    assert not order or len(order) == kills, "an order has a kind for each kill"
    dice = random.Random(seed)
    result = ChaosResult(seed)
    settings = {"east->west.topics": topic, **(extra or {})}
    if transactions:
        settings["west.exactly.once.source.support"] = "enabled"
    folder = Path(tempfile.mkdtemp(prefix="mirrorspark-chaos-"))
    workload = Workload(source.bootstrap, topic, partitions, seed)
    workload.create_topic()
    mirror = Mirror(
        mirror_properties(("east", source.bootstrap), ("west", target.bootstrap), extra=settings), folder=folder
    )
    try:
        mirror.start()
        workload.start(rate)
        mirror.wait_carrying()
        for number in range(1, kills + 1):
            time.sleep(dice.uniform(*PAUSE_S))
            kind = order[number - 1] if order else dice.choice(kinds)
            tell(f"kill {number} of {kills}: {kind}")
            _kill(kind, dice, source, target, mirror)
            result.kills[kind] += 1
            if not mirror.is_alive:
                mirror.start()
        workload.stop()
        result.records = workload.ledger.acknowledged
        tell(f"{result.records} records acknowledged by the source; waiting for the target")
        if not mirror.is_alive:
            mirror.start()
        wait_until_caught_up(source.bootstrap, target.bootstrap, topic, f"east.{topic}", CATCH_UP_DEADLINE_S)
        remote = f"east.{topic}"
        result.source = check_copy(source.bootstrap, topic, workload.ledger, isolation="read_uncommitted")
        result.committed = check_copy(target.bootstrap, remote, workload.ledger, isolation="read_committed")
        result.uncommitted = check_copy(target.bootstrap, remote, workload.ledger, isolation="read_uncommitted")
        mirror.stop()
        if not result.is_clean:
            tell(f"the mirror's last words:\n{mirror.log_tail(200)}")
    except BaseException:
        tell(f"seed {seed}; the mirror's last words:\n{mirror.log_tail(40)}")
        raise
    finally:
        mirror.kill_everything()
        shutil.rmtree(folder, ignore_errors=True)
    return result


def _kill(kind: str, dice: random.Random, source: ClusterOfBrokers, target: ClusterOfBrokers, mirror: Mirror) -> None:
    if kind == "lane":
        kill_lane(mirror, dice.randrange(1 << 30))
    elif kind == "executor":
        jvms = mirror.jvms()
        if jvms:
            _kill_process(jvms[0])
            _wait_gone(mirror)
    elif kind == "driver":
        mirror.kill_driver()
    else:
        broker = (source if kind == "source" else target).brokers[0]
        broker.kill()
        time.sleep(dice.uniform(*DOWN_S))
        broker.start()


def kill_lane(mirror: Mirror, seed: int) -> None:
    """One of the workers in which lanes run, if there is one just now."""
    workers = sorted(mirror.lane_workers())
    if workers:
        _kill_process(workers[seed % len(workers)])


def _kill_process(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _wait_gone(mirror: Mirror) -> None:
    """In local mode the executor is the driver's JVM too: the mirror ends by itself and its supervisor starts it again."""
    deadline = time.monotonic() + 60.0
    while mirror.is_alive and time.monotonic() < deadline:
        time.sleep(0.1)
    if mirror.is_alive:
        mirror.kill_everything()
