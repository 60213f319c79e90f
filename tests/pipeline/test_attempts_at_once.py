"""Invariant B where two attempts own the same new partition at the same moment: whichever way they meet, every record is
on the target once. One of them is held at a given point while the other goes as far as it will; and the older one is the
last to hear of a newer plan."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.reconcile import ensure_internal_topics
from mirrorspark.errors import BrokerError, Fenced
from mirrorspark.lab.clients import create_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.plain_records import read_records, write_values
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.offsets.internal_topics import PLAN_KEY, plan_topic
from mirrorspark.pipeline.bridge import is_fence
from mirrorspark.pipeline.lane import BRIDGE_EPOCH, LaneRun, LaneSpec
from mirrorspark.plan.lanes import Assignment, Owner, Plan
from mirrorspark.settings import ClusterSettings, FlowSettings, parse_bootstrap

PATIENCE_S = 60.0
SAY_S = 3.0
"""For the one that was held to find out, or to do what it should not."""
LOOK_EVERY_S = 0.2
_flows = count(1)


@dataclass(frozen=True)
class Meeting:
    """(generation, lane, epoch) of both."""

    older: tuple[int, int, int]
    newer: tuple[int, int, int]


MEETINGS = {
    "spark's lane after the bridge's": Meeting((1, 0, BRIDGE_EPOCH), (1, 0, 1)),
    "a newer attempt of a task": Meeting((1, 0, 1), (1, 0, 1)),
    "another lane by a newer plan": Meeting((1, 0, 1), (1, 1, 1)),
    "another driver's lane of that number": Meeting((1, 0, 1), (2, 0, 1)),
    "another driver's other lane": Meeting((1, 0, 1), (2, 1, 1)),
}


POINTS = ("older has read", "older is to sign", "newer is to sign")
"""Who is held, and where: when it has read who holds the partition, or when it is about to put its name on it."""


class Held:
    """Lets one call of an object go no further until ``go`` is set; ``after``: its answer is held back."""

    def __init__(self, of: object, call: str, *, after: bool = False) -> None:
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        real: Callable[..., Awaitable[Any]] = getattr(of, call)

        async def held(*args: Any) -> Any:
            answer = await real(*args) if after else None
            self.reached.set()
            await self.go.wait()
            return answer if after else await real(*args)

        setattr(of, call, held)


async def _publish(
    target: ClusterClient, partition: Partition, who: tuple[int, int, int], version: int, resized: int = 0
) -> None:
    generation, lane, _ = who
    lanes = tuple((partition.assignment,) if number == lane else () for number in range(2))
    plan = Plan(Owner(generation, f"driver {generation}", "here", os.getpid()), version, lanes=lanes, resized=resized)
    await KeyedTopic(target, plan_topic(partition.flow.books)).append(
        [(PLAN_KEY, plan.to_json())], Deadline(PATIENCE_S)
    )


class Attempts:
    """As a worker runs a lane: a fenced attempt is followed by another one, a superseded one is not; nor is the bridge's."""

    def __init__(
        self, settings: FlowSettings, who: tuple[int, int, int], clients: tuple[ClusterClient, ClusterClient]
    ) -> None:
        self._generation, self._lane, self._epoch = who
        self._settings = settings
        self._clients = clients
        self.run = self._made()
        self.stopping = False

    def _made(self) -> LaneRun:
        spec = LaneSpec(self._settings, self._lane, self._generation, self._epoch, PATIENCE_S)
        return LaneRun(spec, *self._clients)

    async def carry(self) -> None:
        while not self.stopping:
            try:
                await self.run.start()
                while await self.run.next_receipts() is not None:
                    pass
                return
            except (Fenced, BrokerError) as error:
                if not is_fence(error):
                    raise
                if self._epoch == BRIDGE_EPOCH:
                    return
                self.run = self._made()

    def stop(self) -> None:
        self.stopping = True
        self.run._end.set()


class Partition:
    """A new one with two records, not carried yet, and a flow of its own."""

    def __init__(self, source: ClusterOfBrokers, target: ClusterOfBrokers, topic: str) -> None:
        self.flow = Flow(f"atonce{next(_flows)}-{os.getpid()}", "west")
        self._source, self._target, self._topic = source.bootstrap, target.bootstrap, topic
        self._remote = f"{self.flow.source}.{topic}"
        self.settings = FlowSettings(
            self.flow,
            ClusterSettings(self.flow.source, parse_bootstrap(self._source, "source")),
            ClusterSettings("west", parse_bootstrap(self._target, "target")),
            replication_factor=1,
            tasks_max=2,
        )
        self.assignment = Assignment(TopicPartition(topic, 0), self._remote, "")
        create_topic(self._source, topic, 1)
        create_topic(self._target, self._remote, 1)
        self.write(b"one", b"two")

    def write(self, *values: bytes) -> None:
        write_values(self._source, self._topic, values)

    def carried(self) -> list[bytes | None]:
        (part,) = read_records(self._target, self._remote).values()
        return [record.value for record in part]

    async def wait_carried(self, records: int) -> None:
        while len(await asyncio.to_thread(self.carried)) < records:
            await asyncio.sleep(LOOK_EVERY_S)


async def _meet(
    partition: Partition, meeting: Meeting, point: str, clients: tuple[ClusterClient, ClusterClient]
) -> list[bytes | None]:
    _, target = clients
    await ensure_internal_topics(target, partition.settings)
    await _publish(target, partition, meeting.older, 1)
    older = Attempts(partition.settings, meeting.older, clients)
    waits = Held(older.run._positions, "commit" if point == "older is to sign" else "fetch", after="has read" in point)
    news = Held(older.run._plans._topic, "follow")
    carrying = [asyncio.ensure_future(older.carry())]
    await asyncio.gather(waits.reached.wait(), news.reached.wait())
    await _publish(target, partition, meeting.newer, 2)
    newer = Attempts(partition.settings, meeting.newer, clients)
    if point == "newer is to sign":
        begun, waits = waits, Held(newer.run._positions, "commit")
        carrying.append(asyncio.ensure_future(newer.carry()))
        await waits.reached.wait()
        begun.go.set()
        await asyncio.wait(carrying, timeout=SAY_S, return_when=asyncio.FIRST_COMPLETED)
    else:
        carrying.append(asyncio.ensure_future(newer.carry()))
        await partition.wait_carried(2)
    waits.go.set()
    await asyncio.wait(carrying, timeout=SAY_S, return_when=asyncio.FIRST_COMPLETED)
    news.go.set()
    await asyncio.to_thread(partition.write, b"three")
    await partition.wait_carried(3)
    older.stop()
    newer.stop()
    await asyncio.gather(*carrying)
    return await asyncio.to_thread(partition.carried)


def test_of_two_owners_at_once_one_appends(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    topic_name: str,
) -> None:
    """All meetings side by side, each on a partition of its own."""
    cases = [(name, point) for name in MEETINGS for point in POINTS]
    partitions = [Partition(source_cluster, target_cluster, f"{topic_name}-{i}") for i in range(len(cases))]
    clients = connect(source_cluster), connect(target_cluster)

    async def main() -> list[list[bytes | None]]:
        return await asyncio.gather(
            *(
                _meet(partition, MEETINGS[name], point, clients)
                for (name, point), partition in zip(cases, partitions, strict=True)
            )
        )

    found = dict(zip(cases, in_loop(main()), strict=True))
    assert found == {case: [b"one", b"two", b"three"] for case in cases}


def test_a_lane_of_the_bridge_does_not_shut_out_the_one_of_spark_that_has_just_shut_it_out(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    topic_name: str,
) -> None:
    """Spark's has fenced and not signed: by the partition's name the bridge's would still be the one to carry it."""
    partition = Partition(source_cluster, target_cluster, topic_name)
    clients = connect(source_cluster), connect(target_cluster)

    async def main() -> None:
        await ensure_internal_topics(clients[1], partition.settings)
        await _publish(clients[1], partition, (1, 0, BRIDGE_EPOCH), 1)
        bridges, sparks = (Attempts(partition.settings, (1, 0, epoch), clients) for epoch in (BRIDGE_EPOCH, 1))
        carrying = asyncio.ensure_future(bridges.carry())
        await partition.wait_carried(2)
        signing = Held(sparks.run._positions, "commit")
        taking_over = asyncio.ensure_future(sparks.carry())
        await signing.reached.wait()
        await asyncio.to_thread(partition.write, b"three")
        await carrying
        signing.go.set()
        await partition.wait_carried(3)
        first = sparks.run
        await asyncio.sleep(SAY_S)
        assert sparks.run is first
        assert not taking_over.done()
        sparks.stop()
        await taking_over

    in_loop(main())
    assert partition.carried() == [b"one", b"two", b"three"]


def test_a_lane_of_an_epoch_from_before_the_number_of_lanes_changed_ends(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    topic_name: str,
) -> None:
    """Also when the plan has as many again: others of its epoch ended meanwhile, and only a new one brings them back."""
    partition = Partition(source_cluster, target_cluster, topic_name)
    clients = connect(source_cluster), connect(target_cluster)

    async def attempt(resized: int) -> LaneRun:
        run = LaneRun(LaneSpec(partition.settings, 0, 1, 1, PATIENCE_S, resized), *clients)
        await run.start()
        return run

    async def main() -> None:
        await ensure_internal_topics(clients[1], partition.settings)
        await _publish(clients[1], partition, (1, 0, 1), 3, resized=3)
        late = await attempt(resized=2)
        while await late.next_receipts() is not None:
            pass
        assert partition.carried() == []
        run = await attempt(resized=3)
        await partition.wait_carried(2)
        await _publish(clients[1], partition, (1, 0, 1), 4, resized=4)
        while await run.next_receipts() is not None:
            pass

    in_loop(main())
    assert partition.carried() == [b"one", b"two"]
