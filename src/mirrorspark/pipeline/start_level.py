"""Bringing an empty remote partition to a wanted next offset, through the public protocol (``offsets=identical``).

Filler is appended up to the level, then deleted: the partition is empty, and the next record gets the wanted offset. Filler
is there to be seen for as long as that takes, so a remote topic is brought to its level before anything else is in it.
Called by ``identical``, on the lane's event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import EARLIEST, LATEST, list_offset
from mirrorspark.cluster.record_deletion import delete_records_before
from mirrorspark.errors import BrokerError, MirrorError
from mirrorspark.names import TopicPartition
from mirrorspark.pipeline.filler_writer import FillerWriter
from mirrorspark.wire.filler import FILLER_RECORDS_MAX, filler_batch
from mirrorspark.wire.record_batch import split_batches

__all__ = ["LEVEL_OFFSETS_MAX", "LevelNotReached", "raise_level"]

STEP_TIMEOUT_S = 60.0
"""For each batch of filler and for the deletion, not for the whole."""
LEVEL_OFFSETS_MAX = 10_000_000_000
"""Beyond this many offsets filler is not tried: at 2 million a second (measured on a busy machine) it would take hours."""
TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class LevelNotReached(MirrorError):
    code = "LEVEL_NOT_REACHED"


async def raise_level(
    target: ClusterClient, filler: FillerWriter, at: TopicPartition, level: int, tell: Callable[[str], None]
) -> None:
    """The partition holds no record and its next offset is ``level``, or LevelNotReached says what is in the way."""
    end = await list_offset(target, at, LATEST, Deadline(STEP_TIMEOUT_S))
    if level - end > LEVEL_OFFSETS_MAX:
        raise LevelNotReached(f"{level - end} offsets of filler are more than {LEVEL_OFFSETS_MAX}")
    begins = await list_offset(target, at, EARLIEST, Deadline(STEP_TIMEOUT_S))
    # Changes nothing, but is refused if the one at the end would be: then no filler is left behind.
    await delete_records_before(target, at, begins, Deadline(STEP_TIMEOUT_S))
    count, filled, raw = FILLER_RECORDS_MAX, 0, bytearray()
    while end < level:
        tell(f"brought to its start level: offset {end} of {level}")
        count = min(count, level - end)
        if count != filled:
            raw, filled = filler_batch(count, int(time.time() * 1000)), count
        (batch,) = split_batches(memoryview(raw), *at)
        try:
            base_offset = await filler.append(at, batch, Deadline(STEP_TIMEOUT_S), transactional=False)
        except BrokerError as error:
            if error.error_code not in TOO_LARGE or count == 1:
                raise
            count = (count + 1) // 2  # a topic that recompresses, or takes small batches only
            continue
        if base_offset != end:
            raise LevelNotReached(f"filler came to offset {base_offset} instead of {end}: somebody else appends to it")
        end += count
    if end > level:
        raise LevelNotReached(f"its log ends at {end}, beyond the level {level}")
    begins = await delete_records_before(target, at, level, Deadline(STEP_TIMEOUT_S))
    if begins != level:
        raise LevelNotReached(f"its log begins at {begins} instead of {level} after DeleteRecords")
