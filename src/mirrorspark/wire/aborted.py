"""Which fetched batches belong to transactions that were aborted, so that a flow that reads committed leaves them out.

Called by the carrying loop, with one filter per partition and answer. A Fetch under isolation level 1 still returns
aborted data; beside it stands a list of (producer id, first offset), and the end of each is the producer's ABORT
marker among the batches. May not open a data batch: only a marker of a producer in question is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from mirrorspark.wire.record_batch import Batch
from mirrorspark.wire.records import decode_records

__all__ = ["AbortedFilter", "ControlType", "control_type"]

ControlType: TypeAlias = Literal["abort", "commit", "other"]

_CONTROL_KEY: Final = struct.Struct(">hh")  # version, type
_CONTROL_TYPES: Final[dict[int, ControlType]] = {0: "abort", 1: "commit"}


class AbortedFilter:
    """Says of each batch of one partition's answer whether to drop it; to be asked of every batch, in order.

    Invariants, as Kafka's own consumer keeps them:
    A. A producer is in ``_aborted_now`` from the batch that reaches its listed first offset to its next ABORT marker.
    B. Only transactional data batches of such a producer are dropped; others of the same producer id are not.
    """

    __slots__ = ("_aborted_now", "_partition", "_pending", "_topic")

    def __init__(self, aborted: Iterable[tuple[int, int]], topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        # Last first, so that the next one to begin is popped off the end.
        self._pending = sorted(((first_offset, producer_id) for producer_id, first_offset in aborted), reverse=True)
        self._aborted_now: set[int] = set()

    def drops(self, batch: Batch) -> bool:
        """True for aborted data. A control batch must be shown too, and gives False: it is never carried anyway."""
        while self._pending and self._pending[-1][0] <= batch.last_offset:
            self._aborted_now.add(self._pending.pop()[1])
        if batch.producer_id not in self._aborted_now:
            return False
        if batch.is_control:
            if control_type(batch, self._topic, self._partition) == "abort":
                self._aborted_now.discard(batch.producer_id)
            return False
        return batch.is_transactional


def control_type(batch: Batch, topic: str = "", partition: int = -1) -> ControlType:
    """What a control batch says, from the key of its one record; "other" also for one that compaction has emptied."""
    assert batch.is_control, "a data batch says nothing of the kind"
    for record in decode_records(batch, topic, partition):
        if record.key is not None and len(record.key) >= _CONTROL_KEY.size:
            return _CONTROL_TYPES.get(_CONTROL_KEY.unpack_from(record.key)[1], "other")
    return "other"
