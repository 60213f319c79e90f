"""The registry of mirror writers on one cluster: enter a producer id, read all that were entered.

A lane of any flow enters its producer id on its target before its first append there; a flow that keeps topic names reads
the registry of its source to tell what a mirror wrote (docs/decisions/0009). Whoever needs the topic makes it. On the
lane's event loop.
"""

from __future__ import annotations

import asyncio
import time

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error
from mirrorspark.cluster.cluster_admin import NewTopic, create_topics
from mirrorspark.cluster.cluster_client import ClusterClient, TopicMetadata
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.writer import Writer
from mirrorspark.errors import BrokerError, MirrorError, RequestTimedOut
from mirrorspark.names import Flow
from mirrorspark.offsets.internal_topics import WRITERS_TOPIC
from mirrorspark.offsets.writer_registry import MirrorWriter, parse_writer, writer_entry

__all__ = ["FlowWriters", "WriterRegistry"]

VISIBLE_POLL_S = 0.05
COMPACT = {"cleanup.policy": "compact"}


class WriterRegistry:
    """``writers`` and ``notes`` are what the last ``read`` knew; ids are never given twice, so they only grow."""

    def __init__(self, client: ClusterClient, replication_factor: int) -> None:
        self._client = client
        self._replication_factor = replication_factor
        self._topic: KeyedTopic | None = None
        self._topic_id = b""
        self._turn = asyncio.Lock()
        self.writers: dict[int, MirrorWriter] = {}
        self.notes: set[bytes] = set()

    def of_flow(self, flow: Flow) -> list[MirrorWriter]:
        return [writer for writer in self.writers.values() if writer.flow == flow]

    def has_flow(self, source: str, target: str) -> bool:
        return any((writer.flow.source, writer.flow.target) == (source, target) for writer in self.writers.values())

    async def read(self, deadline: Deadline) -> None:
        """Learn everything that was entered before this call. Raises where the topic cannot be read: nobody may guess."""
        async with self._turn:  # two at once would each take in a part
            await self._read(deadline)

    async def _read(self, deadline: Deadline) -> None:
        topic = await self._found(deadline)
        try:
            entries = await topic.catch_up(deadline)
        except BrokerError as error:
            if error.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            # Its beginning was cut off, or it was made anew since the look-up: from the start.
            self._topic = topic = KeyedTopic(self._client, WRITERS_TOPIC, topic.partitions)
            entries = await topic.catch_up(deadline)
        for key, value in entries:
            writer = parse_writer(key, value)
            if writer is not None:
                self.writers[writer.producer_id] = writer
            elif value is not None:
                self.notes.add(key)

    async def enter(self, writer: MirrorWriter, deadline: Deadline) -> None:
        """Returns when the entry is on all in-sync replicas. An entry of the same flow stays: it says since when."""
        known = self.writers.get(writer.producer_id)
        if known is None or known.flow != writer.flow:
            await (await self._found(deadline)).append([writer_entry(writer)], deadline)
            self.writers[writer.producer_id] = writer

    async def note(self, key: bytes, deadline: Deadline) -> None:
        """Remember that something was told."""
        await (await self._found(deadline)).append([(key, b"1")], deadline)
        self.notes.add(key)

    async def _found(self, deadline: Deadline) -> KeyedTopic:
        """The topic as it is now; made where it is missing. One that was deleted and made anew is read from its start."""
        known = await self._look(deadline)
        if known is None:
            known = await self._make(deadline)
        if self._topic is None or known.topic_id != self._topic_id or len(known.partitions) != self._topic.partitions:
            self._topic = KeyedTopic(self._client, WRITERS_TOPIC, len(known.partitions))
            self._topic_id = known.topic_id
        return self._topic

    async def _look(self, deadline: Deadline) -> TopicMetadata | None:
        for topic in await self._client.refresh([WRITERS_TOPIC], deadline):
            if topic.name != WRITERS_TOPIC or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue
            if topic.error_code:
                raise broker_error(topic.error_code, "Metadata", f"{WRITERS_TOPIC} on cluster {self._client.alias}")
            if topic.partitions:
                return topic
        return None

    async def _make(self, deadline: Deadline) -> TopicMetadata:
        factor = min(self._replication_factor, max(1, len(self._client.nodes)))
        refused = await create_topics(self._client, [NewTopic(WRITERS_TOPIC, 1, factor, COMPACT)])
        if refused:
            raise MirrorError(
                f"cluster {self._client.alias} has no topic {WRITERS_TOPIC}, and it cannot be made: "
                f"{refused[WRITERS_TOPIC]}; allow Create on it, or make it with one partition and cleanup.policy=compact",
                topic=WRITERS_TOPIC,
            )
        while (known := await self._look(deadline)) is None:
            if deadline.passed:
                raise RequestTimedOut(f"cluster {self._client.alias}: {WRITERS_TOPIC} was made but is not listed yet")
            await asyncio.sleep(VISIBLE_POLL_S)
        return known


class FlowWriters:
    """One flow's part of its target's registry, as its recovery needs it."""

    def __init__(self, registry: WriterRegistry, flow: Flow, lane: int, generation: int) -> None:
        self._registry = registry
        self._flow = flow
        self._lane = lane
        self._generation = generation
        self._entered: set[int] = set()

    async def enter(self, writer: Writer, deadline: Deadline) -> None:
        """To be awaited before the first append: whoever reads there must know from our first batch on who wrote it.

        Looked up once in each attempt, for the topic may have been deleted since the last one.
        """
        if writer.producer_id in self._entered:
            return
        await self._registry.read(deadline)
        now_ms = int(time.time() * 1000)
        mine = MirrorWriter(writer.producer_id, self._flow, self._lane, writer.epoch, self._generation, now_ms)
        await self._registry.enter(mine, deadline)
        self._entered.add(writer.producer_id)

    async def read(self, deadline: Deadline) -> None:
        await self._registry.read(deadline)

    @property
    def ids(self) -> frozenset[int]:
        """Producer ids of this flow's lanes, of all times."""
        return frozenset(writer.producer_id for writer in self._registry.of_flow(self._flow))

    @property
    def are_new(self) -> bool:
        """Whether this flow never wrote on the target before the lead of its driver of now."""
        return all(writer.generation == self._generation for writer in self._registry.of_flow(self._flow))
