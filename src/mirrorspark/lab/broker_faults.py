"""What may happen to the brokers of a cluster, as faults: each takes hold of one side of a flow, and lets go again.

Made for ``lab/chaos.py`` and journeys. All of them leave a majority of controllers and, but for ``min-isr``, two replicas of
every partition: a copy that survives them is what Kafka promises. Whom they hit is the dice's choice.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

from mirrorspark.lab.broker import Broker
from mirrorspark.lab.faults import Fault
from mirrorspark.lab.plain_records import alter_topic
from mirrorspark.lab.proxied_cluster import ProxiedCluster
from mirrorspark.lab.quotas import set_quotas
from mirrorspark.lab.replicas import lead_from, place, placements, wait_all_in_sync
from mirrorspark.names import TopicPartition

__all__ = ["IN_SYNC_MIN", "NAMES", "Side", "broker_faults"]

IN_SYNC_MIN = 2
"""min.insync.replicas of the topics, of three replicas."""
QUOTA_BYTES_PER_S = 20_000.0
"""Of each broker. Felt where records are large; much less would be held against the mirror for minutes afterwards."""
SLOW_BYTES_PER_S = 50_000.0
STUTTER_S = 0.4
"""A broker with a slow disk stands still for so long, and works for so long."""
ROUNDS_OF_STUTTER = 10


@dataclass(frozen=True)
class Side:
    """One cluster of a flow: its topic (the remote one, on the target), and the client id that the mirror has there."""

    name: str
    cluster: ProxiedCluster
    topic: str
    client_id: str


Act = Callable[[Side, random.Random], AbstractContextManager[str]]


def broker_faults(source: Side, target: Side) -> dict[str, Fault]:
    """By name: ``<side>-<what>``."""
    found: dict[str, Fault] = {}
    for what, (act, lasts_s) in _ON_BOTH.items():
        for side in (source, target):
            found[f"{side.name}-{what}"] = Fault(f"{side.name}-{what}", partial(act, side), lasts_s)
    for what, (act, lasts_s) in _ON_TARGET.items():
        found[f"{target.name}-{what}"] = Fault(f"{target.name}-{what}", partial(act, target), lasts_s)
    return found


# -- brokers that die, stop or stand still --------------------------------------------------------------------------------


@contextmanager
def _leader_killed(side: Side, dice: random.Random) -> Iterator[str]:
    at, broker = _leader(side, dice)
    broker.kill()
    try:
        yield f"kill -9 of {broker}, leader of {at}"
    finally:
        broker.start()


@contextmanager
def _frozen(side: Side, dice: random.Random) -> Iterator[str]:
    at, broker = _leader(side, dice)
    broker.pause()
    try:
        yield f"SIGSTOP of {broker}, leader of {at}"
    finally:
        broker.resume()


@contextmanager
def _restarted_in_turn(side: Side, dice: random.Random) -> Iterator[str]:
    brokers = side.cluster.members
    dice.shuffle(brokers)
    for broker in brokers:
        broker.restart()
        wait_all_in_sync(side.cluster.bootstrap)
    yield f"brokers {_nodes(brokers)} of cluster {side.cluster.name}, one after the other"


@contextmanager
def _lost_for_good(side: Side, dice: random.Random) -> Iterator[str]:
    at, broker = _leader(side, dice)
    cluster, node = side.cluster, broker.spec.node_id
    cluster.lose(node)
    fresh = cluster.add_broker().spec.node_id
    moved = {
        at: [fresh if one == node else one for one in found.replicas]
        for at, found in placements(cluster.bootstrap).items()
        if node in found.replicas
    }
    place(cluster.bootstrap, moved)
    yield f"{broker}, leader of {at}, is gone with its data; broker {fresh} has its {len(moved)} partitions"


# -- replicas and leaders that move ---------------------------------------------------------------------------------------


@contextmanager
def _reassigned(side: Side, dice: random.Random) -> Iterator[str]:
    """Each partition leaves the broker that leads it, whose replica is deleted, and is given back to it afterwards."""
    bootstrap = side.cluster.bootstrap
    before = placements(bootstrap, side.topic)
    place(bootstrap, {at: [node for node in one.replicas if node != one.leader] for at, one in before.items()})
    try:
        yield f"all {len(before)} partitions of {side.topic} off their leaders, then back to three replicas"
    finally:
        now = placements(bootstrap, side.topic)
        place(bootstrap, {at: [*one.replicas, before[at].leader] for at, one in now.items()})


@contextmanager
def _leaders_moved(side: Side, dice: random.Random) -> Iterator[str]:
    found = placements(side.cluster.bootstrap, side.topic)
    wanted = {at: dice.choice([node for node in one.replicas if node != one.leader]) for at, one in found.items()}
    lead_from(side.cluster.bootstrap, wanted)
    yield f"{side.topic} to leaders {', '.join(f'{at.partition}: {node}' for at, node in sorted(wanted.items()))}"


@contextmanager
def _too_few_in_sync(side: Side, dice: random.Random) -> Iterator[str]:
    """All three replicas are wanted in sync, and one is not there: every append is refused."""
    _, broker = _leader(side, dice)
    bootstrap = side.cluster.bootstrap
    alter_topic(bootstrap, side.topic, {"min.insync.replicas": "3"})
    broker.kill()
    try:
        yield f"{side.topic} wants 3 replicas in sync, and {broker} is dead"
    finally:
        broker.start()
        wait_all_in_sync(bootstrap, [side.topic])
        alter_topic(bootstrap, side.topic, {"min.insync.replicas": str(IN_SYNC_MIN)})


# -- the way between the mirror and the brokers ---------------------------------------------------------------------------


@contextmanager
def _cut(side: Side, dice: random.Random) -> Iterator[str]:
    """One broker, or in one case of three all of them."""
    brokers = side.cluster.members if dice.random() < 1 / 3 else [_leader(side, dice)[1]]
    proxies = [side.cluster.proxy(broker.spec.node_id) for broker in brokers]
    for proxy in proxies:
        proxy.cut()
    try:
        yield f"nothing passes between the mirror and brokers {_nodes(brokers)} of cluster {side.cluster.name}"
    finally:
        for proxy in proxies:
            proxy.mend()


@contextmanager
def _throttled(side: Side, dice: random.Random) -> Iterator[str]:
    kind = "consumer_byte_rate" if side.name == "source" else "producer_byte_rate"
    set_quotas(side.cluster.bootstrap, side.client_id, {kind: QUOTA_BYTES_PER_S})
    try:
        yield f"{kind}={QUOTA_BYTES_PER_S:.0f} for client id {side.client_id}"
    finally:
        set_quotas(side.cluster.bootstrap, side.client_id, {kind: None})


@contextmanager
def _slow_line(side: Side, dice: random.Random) -> Iterator[str]:
    proxies = [side.cluster.proxy(broker.spec.node_id) for broker in side.cluster.members]
    for proxy in proxies:
        proxy.limit(SLOW_BYTES_PER_S)
    try:
        yield f"{SLOW_BYTES_PER_S:.0f} bytes a second to each broker of cluster {side.cluster.name}"
    finally:
        for proxy in proxies:
            proxy.limit(None)


@contextmanager
def _stuttering(side: Side, dice: random.Random) -> Iterator[str]:
    _, broker = _leader(side, dice)
    for _ in range(ROUNDS_OF_STUTTER):
        broker.pause()
        try:
            time.sleep(STUTTER_S)
        finally:
            broker.resume()
        time.sleep(STUTTER_S)
    yield f"{broker} stood still {ROUNDS_OF_STUTTER} times for {STUTTER_S:.1f} s"


def _leader(side: Side, dice: random.Random) -> tuple[TopicPartition, Broker]:
    """The broker that leads one of the topic's partitions."""
    found = placements(side.cluster.bootstrap, side.topic)
    at = dice.choice(sorted(found))
    return at, side.cluster.broker(found[at].leader)


def _nodes(brokers: Sequence[Broker]) -> str:
    return ", ".join(str(broker.spec.node_id) for broker in brokers)


_ON_BOTH: dict[str, tuple[Act, tuple[float, float]]] = {
    "leader-kill": (_leader_killed, (2.0, 8.0)),
    "freeze": (_frozen, (30.0, 30.0)),
    "rolling-restart": (_restarted_in_turn, (0.0, 0.0)),
    "lost-for-good": (_lost_for_good, (0.0, 0.0)),
    "reassign": (_reassigned, (1.0, 3.0)),
    "leader-move": (_leaders_moved, (0.0, 1.0)),
    "cut": (_cut, (3.0, 10.0)),
    "quota": (_throttled, (8.0, 12.0)),
}
_ON_TARGET: dict[str, tuple[Act, tuple[float, float]]] = {
    "min-isr": (_too_few_in_sync, (5.0, 8.0)),
    "slow-line": (_slow_line, (8.0, 12.0)),
    "stutter": (_stuttering, (0.0, 0.0)),
}
NAMES = tuple(
    [f"{side}-{what}" for what in _ON_BOTH for side in ("source", "target")] + [f"target-{what}" for what in _ON_TARGET]
)
