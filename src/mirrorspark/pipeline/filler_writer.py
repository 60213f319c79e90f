"""The second writer of a lane, for offsets that no record is to be seen at (``offsets=identical``).

It has a transactional id of its own, next to the lane's: its transactions are aborted without exception, and the lane's own
batches go on outside of any. Whatever an earlier holder left open is aborted when the id is obtained; that puts a marker
where nothing but a marker could have followed. Used by ``hole_filling`` and ``start_level``, on the lane's event loop.
"""

from __future__ import annotations

from collections.abc import Iterable

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.cluster.writer import Writer, add_partitions, end_transaction, obtain_writer
from mirrorspark.names import TopicPartition
from mirrorspark.wire.record_batch import Batch, stamp

__all__ = ["FillerWriter", "filler_id"]

SEQUENCE_MASK = 0x7FFFFFFF


def filler_id(transactional_id: str) -> str:
    """Of the lane whose own id this is."""
    return f"{transactional_id}-filler"


class FillerWriter:
    def __init__(self, target: ClusterClient, transactional_id: str, transaction_timeout_ms: int) -> None:
        self._target = target
        self._id = filler_id(transactional_id)
        self._transaction_timeout_ms = transaction_timeout_ms
        self._sequences: dict[TopicPartition, int] = {}
        self._writer: Writer | None = None

    async def obtain(self, deadline: Deadline) -> Writer:
        """A new epoch. Returns when the markers of what was left open are in the log."""
        self._writer = await obtain_writer(
            self._target, self._id, transaction_timeout_ms=self._transaction_timeout_ms, deadline=deadline
        )
        self._sequences.clear()
        return self._writer

    @property
    def writer(self) -> Writer:
        assert self._writer is not None, "the filler's writer was not obtained"
        return self._writer

    async def end_open_of(self, transactional_id: str, deadline: Deadline) -> None:
        """Shut out another lane's filler, and end what it left open."""
        await obtain_writer(
            self._target,
            filler_id(transactional_id),
            transaction_timeout_ms=self._transaction_timeout_ms,
            deadline=deadline,
        )

    async def begin(self, partitions: Iterable[TopicPartition], deadline: Deadline) -> None:
        await add_partitions(self._target, self.writer, partitions, deadline)

    async def abort(self, deadline: Deadline) -> None:
        """One marker in each partition, a little after this returns."""
        await end_transaction(self._target, self.writer, commit=False, deadline=deadline)

    async def append(self, at: TopicPartition, batch: Batch, deadline: Deadline, *, transactional: bool) -> int:
        """The offset that the batch got. A repeat is recognised by its sequence."""
        writer, sequence = self.writer, self._sequences.get(at, 0)
        stamp(
            batch,
            producer_id=writer.producer_id,
            producer_epoch=writer.epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        base_offset = await KeyedTopic(self._target, at.topic).append_batch(
            at.partition, batch.buffer, deadline, writer.transactional_id if transactional else None
        )
        self._sequences[at] = (sequence + batch.record_count) & SEQUENCE_MASK
        return base_offset
