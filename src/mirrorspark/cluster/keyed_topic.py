"""A small compacted topic of keys and values: plans, status, ledger, MirrorMaker 2's progress.

Append is at least once with acks=all (the newest value of a key is what counts); reading folds to the newest value.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from kafka.partitioner.default import murmur2

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error, is_retriable, is_stale_metadata
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offset, read_log
from mirrorspark.errors import ClusterError, RequestTimedOut
from mirrorspark.names import TopicPartition
from mirrorspark.wire.messages.produce import (
    PRODUCE_API_KEY,
    PRODUCE_VERSION_MAX,
    PRODUCE_VERSION_MIN,
    decode_produce,
    encode_produce,
)
from mirrorspark.wire.records import Record, decode_records, encode_batch

__all__ = ["KeyedTopic", "partition_of"]

RETRY_PAUSE_S = 0.1
CODEC_NONE, CODEC_ZSTD = 0, 4
COMPRESSED_FROM_BYTES = 64 * 1024
"""Larger batches (a plan of thousands of partitions) are compressed, to stay below the topic's message limit."""
Entry = tuple[bytes, bytes | None]


def partition_of(key: bytes, partitions: int) -> int:
    """Java's default partitioner for a keyed record."""
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


def encode_entries(entries: Sequence[Entry]) -> bytearray:
    now = int(time.time() * 1000)
    records = [Record(i, now, key, value, ()) for i, (key, value) in enumerate(entries)]
    size = sum(len(key) + len(value or b"") for key, value in entries)
    return encode_batch(records, codec=CODEC_NONE if size < COMPRESSED_FROM_BYTES else CODEC_ZSTD)


class KeyedTopic:
    """One topic; ``partitions`` must be what it was created with."""

    def __init__(self, client: ClusterClient, topic: str, partitions: int = 1) -> None:
        self._client = client
        self.topic = topic
        self.partitions = partitions
        self._next: dict[int, int] = {}

    @property
    def next_offset(self) -> int:
        """Up to where it was read. For one-partition topics."""
        assert self.partitions == 1
        return self._next.get(0, 0)

    def split(self, entries: Sequence[Entry]) -> dict[int, list[Entry]]:
        spread: dict[int, list[Entry]] = {}
        for entry in entries:
            spread.setdefault(partition_of(entry[0], self.partitions), []).append(entry)
        return spread

    async def append_batch(
        self, partition: int, batch: bytearray | memoryview, deadline: Deadline, transactional_id: str | None = None
    ) -> int:
        """A batch that the caller has encoded (and stamped, where it belongs to a transaction); the offset that it got."""
        return await self._append(TopicPartition(self.topic, partition), batch, deadline, transactional_id)

    async def append(self, entries: Sequence[Entry], deadline: Deadline) -> None:
        for partition, some in self.split(entries).items():
            await self._append(TopicPartition(self.topic, partition), encode_entries(some), deadline)

    async def _append(
        self,
        at: TopicPartition,
        batch: bytearray | memoryview,
        deadline: Deadline,
        transactional_id: str | None = None,
    ) -> int:
        client = self._client
        base_offset = -1
        while True:
            try:
                leader = client.leader(at)
                if leader is None:
                    await client.refresh([at.topic], deadline)
                    leader = client.leader(at)
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if leader is None:
                    client.check_allowed(at, "Produce")
                else:
                    link = await client.connection(leader.node)
                    version = link.version(PRODUCE_API_KEY, PRODUCE_VERSION_MIN, PRODUCE_VERSION_MAX, "Produce")
                    body = encode_produce(
                        {at.topic: [(at.partition, [batch])]}, timeout_ms=10_000, transactional_id=transactional_id
                    )
                    future = link.send_raw(PRODUCE_API_KEY, version, False, body)
                    try:
                        async with asyncio.timeout(client.request_timeout_s):
                            answer = await future
                    except TimeoutError:
                        link.close()
                        raise
                    results, _ = decode_produce(version, answer.view)
                    code, base_offset = results[0].error_code, results[0].base_offset
            except TimeoutError:
                code = ErrorCode.REQUEST_TIMED_OUT
            except ClusterError as error:
                if not error.retriable or deadline.passed:
                    raise
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            if code == 0:
                return base_offset
            if not is_retriable(code) or deadline.passed:
                about = f"{at} on cluster {client.alias}"
                raise broker_error(code, "Produce", about, topic=at.topic, partition=at.partition)
            await asyncio.sleep(RETRY_PAUSE_S)
            if is_stale_metadata(code):
                client.topics.pop(at.topic, None)

    async def read_all(self, deadline: Deadline) -> dict[bytes, bytes | None]:
        """The newest value of each key, from the log's start to its end as of now; ``follow`` goes on from there."""
        newest: dict[bytes, bytes | None] = {}

        async def read_one(partition: int) -> None:
            at = TopicPartition(self.topic, partition)
            self._next[partition] = await list_offset(self._client, at, EARLIEST, deadline)
            while True:
                entries, caught_up = await self._read(at, deadline, 0)
                newest.update(entries)
                if caught_up:
                    break

        readers = [asyncio.ensure_future(read_one(partition)) for partition in range(self.partitions)]
        try:
            await asyncio.gather(*readers)
        finally:
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
        return newest

    async def catch_up(self, deadline: Deadline) -> list[Entry]:
        """Everything that was acknowledged before this call and not read yet, in order.

        The end is asked for, not taken from a fetch: a leader that was chosen a moment ago may show less than was
        acknowledged, and only ListOffsets tells that it does not know yet (KIP-207).
        """
        found: list[Entry] = []
        for partition in range(self.partitions):
            at = TopicPartition(self.topic, partition)
            end = await list_offset(self._client, at, LATEST, deadline)
            if partition not in self._next:
                self._next[partition] = await list_offset(self._client, at, EARLIEST, deadline)
            while (start := self._next[partition]) < end:
                found += (await self._read(at, deadline, 0))[0]
                if self._next[partition] == start:
                    if deadline.passed:
                        raise RequestTimedOut(f"{at}: read to {start}, but its end {end} does not come")
                    await asyncio.sleep(RETRY_PAUSE_S)
        return found

    async def follow(self, deadline: Deadline, wait_ms: int) -> list[Entry]:
        """What came since; waits up to ``wait_ms`` for the first. For one-partition topics."""
        assert self.partitions == 1
        entries, _ = await self._read(TopicPartition(self.topic, 0), deadline, wait_ms)
        return entries

    async def _read(self, at: TopicPartition, deadline: Deadline, wait_ms: int) -> tuple[list[Entry], bool]:
        start = self._next.get(at.partition, 0)
        # a connection of its own: a long poll must not stand before other requests
        purpose = f"follow {at.topic}" if wait_ms else "walk"
        found = await read_log(self._client, at, start, deadline=deadline, wait_ms=wait_ms, purpose=purpose)
        entries: list[Entry] = []
        for batch in found.batches:
            if not batch.is_control:
                entries += [
                    (record.key or b"", record.value)
                    for record in decode_records(batch, at.topic, at.partition)
                    if record.offset >= start
                ]
            self._next[at.partition] = max(start, batch.next_offset)
        return entries, self._next.get(at.partition, 0) >= found.high_watermark
