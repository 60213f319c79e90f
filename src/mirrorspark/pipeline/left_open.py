"""Transactions that a dead attempt left open (``exactly.once.source.support=enabled``): finished, not aborted.

What it appended is true; aborting would show it twice to those who read uncommitted. The tail walk then proves how far it
came. Called by ``recovery``.
"""

from __future__ import annotations

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.writer import Writer, end_transaction
from mirrorspark.errors import BrokerError
from mirrorspark.offsets.position import LastWriter, Position

__all__ = ["finish_left_open", "finish_transaction"]

NOTHING_OPEN = (
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)


async def finish_left_open(
    target: ClusterClient, positions: GroupPositions, transactional_id: str, deadline: Deadline
) -> None:
    """Commit what the writers of this id that did not leave cleanly have open."""
    left = {
        position.writer
        for offset, text in (await positions.fetch_all(deadline)).values()
        if (position := Position.from_commit(offset, text)) and position.writer and not position.writer.clean
    }
    for writer in left:
        if writer.transactional_id == transactional_id:
            await finish_transaction(target, writer, deadline)


async def finish_transaction(target: ClusterClient, writer: LastWriter, deadline: Deadline) -> None:
    holder = Writer(writer.transactional_id, writer.producer_id, writer.epoch)
    try:
        await end_transaction(target, holder, commit=True, deadline=deadline)
    except BrokerError as error:
        if error.error_code not in NOTHING_OPEN:
            raise
