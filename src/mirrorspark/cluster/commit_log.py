"""Following what all groups of a cluster commit, as it happens: the tail of ``__consumer_offsets``, over all its partitions.

Incremental fetch sessions and long polls: an idle group costs nothing, whatever their number. Offsets that belong to a
transaction are given out when it commits. Entries are raw keys and values; ``offsets.consumer_offsets_record`` reads them.
``control.group_sync`` calls it, from the driver's loop. May not commit anything.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest

from mirrorspark.cluster.broker_errors import broker_error, is_retriable, is_stale_metadata
from mirrorspark.cluster.buffer_pool import BufferPool, PooledBuffer
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.fetch_session import FetchSession
from mirrorspark.cluster.log_reader import LATEST, list_offsets
from mirrorspark.errors import ClusterError, CorruptBatch, MirrorError, RequestTimedOut
from mirrorspark.names import TopicPartition
from mirrorspark.wire.aborted import control_type
from mirrorspark.wire.messages.fetch import FetchAnswer, FetchedPartition, FetchLimits
from mirrorspark.wire.record_batch import Batch, split_batches, verify_crc
from mirrorspark.wire.records import decode_records

__all__ = ["CommitLog"]

log = logging.getLogger("mirrorspark.groups")

Entry = tuple[bytes | None, bytes | None]
ANSWER_BYTES_MAX = 8 * 1024 * 1024
PARTITION_BYTES_MAX = 1024 * 1024
RETRY_PAUSE_S = 0.2
OPEN_ENTRIES_MAX = 200_000
"""Offsets of transactions that have not ended; beyond that something is wrong, and the log is opened anew."""
READ_COMMITTED = 1


class CommitLog:
    """``start`` at the log's end, then ``poll`` again and again. ``damaged`` counts batches that could not be read."""

    def __init__(self, client: ClusterClient, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._next: dict[TopicPartition, int] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._homes: dict[TopicPartition, int] = {}
        self._asked: dict[int, asyncio.Future[tuple[FetchAnswer, PooledBuffer]]] = {}
        self._open: dict[tuple[int, int], list[Entry]] = {}
        self._pool = BufferPool(0, 0)
        self._settle_at = 0.0
        self.damaged = 0

    @property
    def partitions(self) -> int:
        return len(self._next)

    async def start(self, deadline: Deadline) -> None:
        """At the log's end, or where a transaction that is open there began. Raises BrokerError if it may not be read."""
        (found,) = await self._client.refresh([self._topic], deadline)
        if found.error_code:
            about = f"topic {self._topic} of {self._client.alias}"
            raise broker_error(found.error_code, "Metadata", about, before="Fetch")
        ends = await self._stable_ends([TopicPartition(self._topic, number) for number in found.partitions], deadline)
        self._next = ends
        await self._settle(deadline)

    async def skip(self, deadline: Deadline) -> None:
        """Leave out all up to the log's end as of now: for who looks only now and then."""
        for future in self._asked.values():
            await asyncio.wait([future])
        for node in list(self._asked):
            await self._take_answer(node, self._asked.pop(node))
        self._open.clear()
        for at, end in (await list_offsets(self._client, list(self._next), LATEST, deadline)).items():
            if end > self._next[at]:
                self._next[at] = end
                if (session := self._sessions.get(self._homes.get(at, -1))) is not None:
                    self._want(session, at)

    async def catch_up(self, deadline: Deadline) -> list[Entry]:
        """Everything up to the log's end as of this call."""
        ends = await list_offsets(self._client, list(self._next), LATEST, deadline)
        entries: list[Entry] = []
        while any(self._next[at] < end for at, end in ends.items()):
            if deadline.passed:
                raise RequestTimedOut(f"{self._topic} of {self._client.alias} is not read to its end in time")
            entries += await self.poll(wait_ms=100)
        return entries

    async def poll(self, wait_ms: int) -> list[Entry]:
        """What came since; waits up to ``wait_ms`` for the first. Follows leaders; raises what does not pass by itself."""
        if len(self._homes) < len(self._next) and time.monotonic() >= self._settle_at:
            self._settle_at = time.monotonic() + RETRY_PAUSE_S
            await self._settle(Deadline(self._client.request_timeout_s))
        await self._ask(wait_ms)
        if not self._asked:
            await asyncio.sleep(RETRY_PAUSE_S)
            return []
        done, _ = await asyncio.wait(self._asked.values(), return_when=asyncio.FIRST_COMPLETED)
        entries: list[Entry] = []
        for node in [node for node, future in self._asked.items() if future in done]:
            entries += await self._take_answer(node, self._asked.pop(node))
        return entries

    def close(self) -> None:
        for future in self._asked.values():
            future.cancel()
        self._asked.clear()

    # -- asking -----------------------------------------------------------------------------------------------------

    async def _ask(self, wait_ms: int) -> None:
        limits = FetchLimits(wait_ms, 1, ANSWER_BYTES_MAX, PARTITION_BYTES_MAX, False)
        for node, session in list(self._sessions.items()):
            if node in self._asked or not len(session):
                continue
            try:
                self._asked[node] = asyncio.ensure_future(session.answer(await session.ask(limits)))
            except ClusterError as error:
                if not error.retriable:
                    raise
                self._leave(node)

    async def _take_answer(self, node: int, future: asyncio.Future[tuple[FetchAnswer, PooledBuffer]]) -> list[Entry]:
        try:
            answer, buffer = future.result()
        except ClusterError as error:
            if not error.retriable:
                raise
            self._leave(node)
            return []
        try:
            if answer.error_code and not is_retriable(answer.error_code):
                raise broker_error(answer.error_code, "Fetch", self._topic)
            entries: list[Entry] = []
            for part in answer.partitions:
                entries += self._take_partition(node, part)
            return entries
        finally:
            buffer.release()

    def _take_partition(self, node: int, part: FetchedPartition) -> list[Entry]:
        at = TopicPartition(self._topic, part.partition)
        session = self._sessions.get(node)
        if session is None or at not in session:
            return []
        if part.error_code:
            if not is_retriable(part.error_code) and not is_stale_metadata(part.error_code):
                raise broker_error(part.error_code, "Fetch", f"{at} of {self._client.alias}")
            session.forget(at)
            self._homes.pop(at, None)
            return []
        entries: list[Entry] = []
        for batch in split_batches(part.records, at.topic, at.partition):
            if batch.next_offset > self._next[at]:
                entries += self._take_batch(at, batch)
                self._next[at] = batch.next_offset
        self._want(session, at)
        return entries

    def _take_batch(self, at: TopicPartition, batch: Batch) -> list[Entry]:
        """Its entries, unless they wait for their transaction's end."""
        try:
            verify_crc(batch, at.topic, at.partition)
            key = at.partition, batch.producer_id
            if batch.is_control:
                held = self._open.pop(key, [])
                return held if control_type(batch, at.topic, at.partition) == "commit" else []
            records = decode_records(batch, at.topic, at.partition) if batch.magic == 2 else []
        except CorruptBatch as error:
            self.damaged += 1
            log.warning("cluster %s: left out: %s", self._client.alias, error)
            return []
        first = self._next[at]
        entries = [(record.key, record.value) for record in records if record.offset >= first]
        if not batch.is_transactional:
            return entries
        self._open.setdefault(key, []).extend(entries)
        if sum(map(len, self._open.values())) > OPEN_ENTRIES_MAX:
            raise MirrorError(
                f"{self._topic} of {self._client.alias}: more than {OPEN_ENTRIES_MAX} offsets are undecided"
            )
        return []

    # -- leaders ----------------------------------------------------------------------------------------------------

    def _leave(self, node: int) -> None:
        """A broker that is gone: its partitions are looked for elsewhere."""
        self._sessions.pop(node, None)
        if (future := self._asked.pop(node, None)) is not None:
            future.cancel()
        self._homes = {at: home for at, home in self._homes.items() if home != node}

    async def _settle(self, deadline: Deadline) -> None:
        """Put partitions that have no session with the leader that they have now."""
        homeless = [at for at in self._next if at not in self._homes]
        if not homeless:
            return
        try:
            await self._client.refresh([self._topic], deadline)
        except ClusterError as error:
            if not error.retriable:
                raise
            return
        for at in homeless:
            leader = self._client.leader(at)
            if leader is not None:
                session = self._sessions.setdefault(leader.node, FetchSession(self._client, leader.node, self._pool))
                self._homes[at] = leader.node
                self._want(session, at)

    def _want(self, session: FetchSession, at: TopicPartition) -> None:
        known = self._client.topics.get(self._topic)
        leader = self._client.leader(at)
        session.want(at, known.topic_id if known else bytes(16), self._next[at], leader.epoch if leader else -1, -1)

    async def _stable_ends(self, partitions: list[TopicPartition], deadline: Deadline) -> dict[TopicPartition, int]:
        """Where the earliest open transaction of each begins, or its end."""
        await list_offsets(self._client, partitions, LATEST, deadline)  # leaders are there and answer, or it raises
        by_node: dict[int, list[Any]] = {}
        topic_class = ListOffsetsRequest.ListOffsetsTopic
        for at in partitions:
            leader = self._client.leader(at)
            if leader is not None:
                by_node.setdefault(leader.node, []).append(
                    topic_class.ListOffsetsPartition(
                        partition_index=at.partition, current_leader_epoch=-1, timestamp=LATEST
                    )
                )
        found: dict[TopicPartition, int] = {}
        for node, parts in by_node.items():
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=READ_COMMITTED,
                topics=[topic_class(name=self._topic, partitions=parts)],
            )
            answer = await self._client.request(request, node=node)
            for topic in answer.topics:
                for part in topic.partitions:
                    if part.error_code:
                        raise broker_error(part.error_code, "ListOffsets", f"{self._topic}-{part.partition_index}")
                    found[TopicPartition(topic.name, part.partition_index)] = int(part.offset)
        return found
