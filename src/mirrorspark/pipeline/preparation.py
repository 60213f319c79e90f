"""Look, don't open: from fetched batches to what goes to the target.

Nothing is left out, opened or signed anew before its checksum was checked; what goes as it is keeps the source's, and the
target checks it. Markers, aborted data and, where asked, what a mirror wrote are left
out; a batch that a broker would not take, or that would look different to consumers, is re-encoded, that batch alone;
everything else goes as it is.
The same rules serve the carrying loop and the recovery's tail walk, so both expect the same bytes on the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mirrorspark.cluster.buffer_pool import PooledBuffer
from mirrorspark.names import TopicPartition
from mirrorspark.pipeline.track import CarriedBatch, ReencodedBatch
from mirrorspark.wire.aborted import AbortedFilter
from mirrorspark.wire.record_batch import PATCH_BYTES_MIN, Batch, split_batches, verify_crc
from mirrorspark.wire.records import Record, encode_batch
from mirrorspark.wire.reencoding import decode

__all__ = ["carry_records", "prepare"]


def prepare(
    batches: Iterable[Batch],
    position: int,
    at: TopicPartition,
    *,
    aborted: tuple[tuple[int, int], ...] = (),
    held: PooledBuffer | None = None,
    left_out: Callable[[Batch], bool] | None = None,
    with_aborted: bool = False,
    target_checks: bool = False,
) -> Iterator[CarriedBatch | int]:
    """Yields what to append, in order; a bare int means "nothing to send up to here" and is the next offset.

    ``position`` is the first upstream offset that is still wanted; ``left_out`` tells what else is not for the target
    (what a mirror wrote). Raises CorruptBatch at the first damaged batch. ``with_aborted``: data of aborted transactions is
    yielded too, marked so. ``target_checks``: damage of a large batch that goes as it is is left to the target to find; its
    checksum is never computed anew on the way, so it still tells.
    """
    topic, partition = at
    dropped = AbortedFilter(aborted, topic, partition) if aborted else None
    for batch in batches:
        is_aborted = dropped is not None and dropped.drops(batch)
        if batch.last_offset < position:
            continue
        is_left_out = (
            batch.is_control or (is_aborted and not with_aborted) or (left_out is not None and left_out(batch))
        )
        unopened = not is_left_out and goes_unopened(batch, position)
        if not (unopened and target_checks and batch.size >= PATCH_BYTES_MIN):
            verify_crc(batch, topic, partition)
        if is_left_out:
            yield batch.next_offset
        elif unopened:
            if held is not None:
                held.hold()
            carried = CarriedBatch(batch, (batch.base_offset, batch.last_offset), batch.leader_epoch, held)
            carried.is_aborted = is_aborted
            yield carried
        else:
            records = [record for record in decode(batch, topic, partition) if record.offset >= position]
            if records:
                carried = carry_records(records, batch.codec, batch.leader_epoch, at)
                carried.upstream_next = batch.next_offset
                carried.is_aborted = is_aborted
                if held is not None:
                    storage = carried.buffer.obj
                    assert isinstance(storage, bytearray)
                    carried.held = held.adopt(storage)
                yield carried
            else:
                yield batch.next_offset
        position = batch.next_offset


def goes_unopened(batch: Batch, position: int) -> bool:
    """The named reasons why a batch must be opened: each is rare, and each costs only its own batch."""
    old_format = batch.magic < 2
    begins_before_position = batch.base_offset < position
    shows_append_time = batch.is_log_append_time
    empty = batch.record_count == 0
    return not (old_format or begins_before_position or shows_append_time or empty or batch.has_holes)


def carry_records(records: list[Record], codec: int, leader_epoch: int, at: TopicPartition) -> CarriedBatch:
    """Records as one dense batch, with the stretches of upstream offsets that it stands for."""
    (batch,) = split_batches(memoryview(encode_batch(records, codec=codec)), *at)
    span = (records[0].offset, records[-1].offset)
    runs = _runs(records)
    return ReencodedBatch(batch, span, leader_epoch, None, runs if len(runs) > 1 else None)


def _runs(records: list[Record]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for record in records:
        if runs and record.offset == runs[-1][0] + runs[-1][1]:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((record.offset, 1))
    return runs
