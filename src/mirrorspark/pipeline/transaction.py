"""Data and progress of a lane in real transactions (``exactly.once.source.support=enabled``).

One transaction after the other, each a tenth of a second or so long. A cycle: (1) put the partitions that have batches in
line into the transaction, (2) let them send, (3) stop sending and wait for the answers, (4) add MirrorMaker 2's progress and
the positions, (5) commit, (6) only then write the ledger. Fetching goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import encode_entries
from mirrorspark.cluster.writer import Writer, add_partitions, commit_positions_in_transaction, end_transaction
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.position import Position
from mirrorspark.pipeline.bookkeeping import Bookkeeping
from mirrorspark.pipeline.express import Express
from mirrorspark.pipeline.track import Track
from mirrorspark.settings import FlowSettings
from mirrorspark.wire.record_batch import split_batches, stamp

__all__ = ["Transactions"]

REQUEST_TIMEOUT_S_MAX = 60.0
"""For one step of a cycle; then the attempt ends, and the next one commits what it left open."""


class Transactions:
    def __init__(
        self,
        target: ClusterClient,
        settings: FlowSettings,
        express: Express,
        books: Bookkeeping,
        *,
        group: str,
        writer: Callable[[], Writer],
        signed: Callable[[Track], Position],
        turn: asyncio.Lock,
    ) -> None:
        self._target = target
        self._limits = settings.limits
        self._express = express
        self._books = books
        self._group = group
        self._writer = writer
        self._signed = signed
        self._turn = turn
        self._members: set[Track] = set()
        self._progress_sequences: dict[tuple[int, int], int] = {}
        self._stopping = False
        self.failed = False
        """Asked by who has the turn: whether a cycle broke off, so that what was acknowledged may yet be aborted."""

    async def run(self) -> None:
        """Cycle until stopped. Any error ends the lane's attempt: the next one recovers from the log."""
        express = self._express
        while True:
            if not express.unadmitted and not self._members:
                if self._stopping:
                    return
                express.data_waiting.clear()
                try:
                    async with asyncio.timeout(0.5):
                        await express.data_waiting.wait()
                except TimeoutError:
                    continue
            async with self._turn:
                self.failed = True  # until the cycle is through
                await self._admit()
                await asyncio.sleep(self._limits.transaction_interval_ms / 1000)
                await self._commit()
                self.failed = False

    def stop(self) -> None:
        """End after what is in line has been committed."""
        self._stopping = True
        self._express.data_waiting.set()

    async def settled(self, deadline: Deadline) -> bool:
        """Wait for the cycle that is under way, if any: then all that was acknowledged is committed. False if not."""
        try:
            async with asyncio.timeout(deadline.left_s), self._turn:
                return not self.failed
        except TimeoutError:
            return False

    def _deadline(self) -> Deadline:
        return Deadline(min(self._limits.transaction_timeout_ms / 1000, REQUEST_TIMEOUT_S_MAX))

    async def _admit(self) -> None:
        waiting = {track for track in self._express.unadmitted if track.queue.waiting}
        self._express.unadmitted.clear()
        if not waiting:
            return
        await add_partitions(self._target, self._writer(), [track.remote for track in waiting], self._deadline())
        self._members |= waiting
        for track in waiting:
            track.queue.admitted = True
            self._express.appender.offer(track.queue)
        self._express.appender.pump()

    async def _commit(self) -> None:
        members, self._members = self._members, set()
        if not members:
            return
        for track in members:
            track.queue.admitted = False
        deadline = self._deadline()
        while any(track.queue.outstanding or track.queue.locating for track in members):
            await asyncio.sleep(0.001)
            if deadline.passed:
                raise TimeoutError("the target did not answer within a transaction's time")
        writer = self._writer()
        moved = [track for track in members if track.uncommitted]
        if moved:
            await self._write_progress(writer, moved, deadline)
            positions = {track.remote: self._signed(track).to_commit() for track in moved}
            await commit_positions_in_transaction(self._target, writer, self._group, positions, deadline)
        await end_transaction(self._target, writer, commit=True, deadline=deadline)
        self._books.count("transactions")
        for track in moved:
            track.uncommitted = track.progress_due = False
        self._books.touch(moved)
        await self._books.write_ledger(moved)
        self._express.uncommitted_bytes = 0
        self._express.unadmitted.update(track for track in members if track.queue.waiting)

    async def _write_progress(self, writer: Writer, moved: list[Track], deadline: Deadline) -> None:
        topic = self._books.progress
        spread = topic.split(self._books.progress_entries(moved))
        await add_partitions(self._target, writer, [TopicPartition(topic.topic, number) for number in spread], deadline)
        for number, entries in spread.items():
            raw = encode_entries(entries)
            (batch,) = split_batches(memoryview(raw), topic.topic, number)
            place = (number, writer.epoch)
            sequence = self._progress_sequences.get(place, 0)
            stamp(
                batch,
                producer_id=writer.producer_id,
                producer_epoch=writer.epoch,
                base_sequence=sequence,
                transactional=True,
            )
            await topic.append_batch(number, raw, deadline, transactional_id=writer.transactional_id)
            self._progress_sequences[place] = sequence + len(entries)
