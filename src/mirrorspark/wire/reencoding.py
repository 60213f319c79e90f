"""A batch that cannot go as it is, opened and closed again: the same records in a batch that a broker takes.

Called by the carrying loop, for that batch alone: it has holes, is of an old format, shows the broker's append time,
begins before the wanted offset, or is too large for the target. Check the CRC first; what comes out is signed anew.
May not lose, add, reorder or alter a record as consumers see it.
"""

from __future__ import annotations

from mirrorspark.wire.legacy_batch import decode_legacy
from mirrorspark.wire.record_batch import Batch
from mirrorspark.wire.records import Record, decode_records, encode_batch

__all__ = ["decode", "reencode", "split_batch"]


def decode(batch: Batch, topic: str, partition: int) -> list[Record]:
    """The records of a batch of any format, offsets absolute."""
    assert not batch.is_control, "a control batch holds markers, not records"
    if batch.is_legacy:
        return decode_legacy(batch, topic, partition)
    return decode_records(batch, topic, partition)


def reencode(batch: Batch, topic: str, partition: int, *, first_wanted: int = 0, codec: int | None = None) -> bytearray:
    """A dense v2 batch of the records from offset ``first_wanted`` on, in the batch's codec unless another is named.

    Empty (no bytes at all) when no record is left: compaction can empty a batch, and a broker takes no empty one.
    """
    wanted = [record for record in decode(batch, topic, partition) if record.offset >= first_wanted]
    return _encode(wanted, batch.codec if codec is None else codec)


def split_batch(batch: Batch, topic: str, partition: int) -> list[bytearray]:
    """Dense v2 batches with half of the records each, in order; a single one when there is a single record."""
    records = decode(batch, topic, partition)
    middle = (len(records) + 1) // 2
    return [_encode(half, batch.codec) for half in (records[:middle], records[middle:]) if half]


def _encode(records: list[Record], codec: int) -> bytearray:
    return encode_batch(records, codec=codec) if records else bytearray()
