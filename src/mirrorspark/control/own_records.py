"""Whether a stretch of a log holds anything but what one flow wrote there, and markers.

Where both clusters carry a topic into each other under one name and one of the two flows is held, nobody moves that flow's
position over what the other one brings. Before a group's place there can be told exactly, somebody has to look. Only the
offsets that the flow's ledger does not claim are read, by batch headers. Called by ``group_translation``; changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.log_reader import LATEST, list_offset, read_log
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import Run
from mirrorspark.offsets.ledger_store import LedgerStore

__all__ = ["first_own_record"]

READ_BYTES_MAX = 256 * 1024


async def first_own_record(
    client: ClusterClient, at: TopicPartition, start: int, store: LedgerStore, deadline: Deadline
) -> int:
    """The first offset from ``start`` on that is neither told by the ledger in ``store`` nor a marker; else the end."""
    end = await list_offset(client, at, LATEST, deadline)
    place = start
    for run in _runs_from(store, at, start):
        if not run.is_dense or deadline.passed:
            return place
        if run.downstream_first > place:
            place = await _past_markers(client, at, place, run.downstream_first, deadline)
            if place < run.downstream_first:
                return place
        place = max(place, run.downstream_last + 1)
    return await _past_markers(client, at, place, end, deadline)


def _runs_from(store: LedgerStore, at: TopicPartition, offset: int) -> Iterator[Run]:
    for page in store.pages(at):
        if page.downstream_end > offset:
            yield from (run for run in page.runs() if run.downstream_last >= offset)


async def _past_markers(client: ClusterClient, at: TopicPartition, place: int, upto: int, deadline: Deadline) -> int:
    """Where the first record lies between the two offsets; ``upto`` or later if there is none."""
    while place < upto and not deadline.passed:
        found = await read_log(client, at, place, deadline=deadline, wait_ms=0, bytes_max=READ_BYTES_MAX)
        before = place
        for batch in found.batches:
            if batch.next_offset <= place:
                continue
            if batch.base_offset >= upto:
                return upto
            if not batch.is_control:
                return place
            place = batch.next_offset
        if place == before:  # compaction took what was there, up to the end
            return upto if place < found.high_watermark <= upto else place
    return place
