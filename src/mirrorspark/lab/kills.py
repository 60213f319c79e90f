"""The kills of a mirror's processes and of lone brokers, as faults: what ``mirrorspark chaos`` has always done.

Made for ``lab/chaos.py``; the demo uses ``kill_lane``. Always SIGKILL.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from mirrorspark.lab.broker import Broker
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.faults import Fault
from mirrorspark.lab.mirror import Mirror

__all__ = ["KINDS", "kill_lane", "process_kills"]

KINDS = ("lane", "executor", "driver", "source", "target")
DOWN_S = (0.2, 2.0)
GONE_DEADLINE_S = 60.0


def process_kills(source: ClusterOfBrokers, target: ClusterOfBrokers, mirror: Mirror) -> dict[str, Fault]:
    """By kind. The mirror is started again by whoever runs them, as its supervisor would do."""
    once = partial(_once, mirror)
    return {
        "lane": Fault("lane", partial(once, lambda dice: kill_lane(mirror, dice.randrange(1 << 30)))),
        "executor": Fault("executor", partial(once, lambda dice: _kill_executor(mirror))),
        "driver": Fault("driver", partial(once, lambda dice: mirror.kill_driver())),
        "source": Fault("source", partial(_bounced, source.brokers[0])),
        "target": Fault("target", partial(_bounced, target.brokers[0])),
    }


@contextmanager
def _once(mirror: Mirror, kill: Callable[[random.Random], None], dice: random.Random) -> Iterator[str]:
    kill(dice)
    yield "" if mirror.is_alive else "the mirror ended"


@contextmanager
def _bounced(broker: Broker, dice: random.Random) -> Iterator[str]:
    broker.kill()
    time.sleep(dice.uniform(*DOWN_S))
    try:
        yield str(broker)
    finally:
        broker.start()


def kill_lane(mirror: Mirror, seed: int) -> None:
    """One of the workers in which lanes run, if there is one just now."""
    workers = sorted(mirror.lane_workers())
    if workers:
        _kill_process(workers[seed % len(workers)])


def _kill_executor(mirror: Mirror) -> None:
    jvms = mirror.jvms()
    if jvms:
        _kill_process(jvms[0])
        _wait_gone(mirror)


def _kill_process(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _wait_gone(mirror: Mirror) -> None:
    """In local mode the executor is the driver's JVM too: the mirror ends by itself and its supervisor starts it again."""
    deadline = time.monotonic() + GONE_DEADLINE_S
    while mirror.is_alive and time.monotonic() < deadline:
        time.sleep(0.1)
    if mirror.is_alive:
        mirror.kill_everything()
