"""What MirrorMaker 2 told of a partition before the flow was taken over, as pages of our ledger.

Its offset syncs are single pairs of offsets that name one record on both sides. ``SyncHistory`` folds them in the topic's
order; ``outline_pages`` makes runs of them of which only the first record is known: an offset between two pairs
translates to one record after the lower pair, MirrorMaker 2's own rule, but with all of its pairs rather than the 64 that
it keeps. Called once for each partition, by ``control.takeover``. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import NO_TOPIC_ID, OFFSET_MAX, LedgerPage, Run
from mirrorspark.offsets.ledger_repacking import RUNS_PER_PAGE_MAX
from mirrorspark.offsets.offset_sync import OffsetSync

__all__ = ["SyncHistory", "outline_pages"]

SYNCS_PER_PARTITION_MAX = 20_000
"""Above it the older half loses every second one: some records more are read again there."""


class SyncHistory:
    """Pairs that ascend on both sides; a newer one takes away what contradicts it.

    MirrorMaker 2 that went back (an unclean end, a reset) writes a lower upstream offset at a higher downstream one; a topic
    that was made anew has lower ones. Either way the older pair no longer leads to its record first.
    """

    def __init__(self, wanted: Container[TopicPartition], *, syncs_max: int = SYNCS_PER_PARTITION_MAX) -> None:
        self._wanted = wanted
        self._syncs_max = syncs_max
        self._syncs: dict[TopicPartition, list[OffsetSync]] = {}
        self.damaged = 0
        """Records of the topic that are no offset syncs."""

    def fold(self, key: bytes | None, value: bytes | None) -> None:
        sync = OffsetSync.from_record(key, value)
        if sync is None or not (0 <= sync.upstream <= OFFSET_MAX and 0 <= sync.downstream <= OFFSET_MAX):
            self.damaged += value is not None
            return
        if sync.at not in self._wanted:
            return
        syncs = self._syncs.setdefault(sync.at, [])
        while syncs and (syncs[-1].upstream >= sync.upstream or syncs[-1].downstream >= sync.downstream):
            syncs.pop()
        syncs.append(sync)
        if len(syncs) > self._syncs_max:
            half = len(syncs) // 2
            syncs[:half] = syncs[:half:2]

    def syncs(self, at: TopicPartition, *, downstream_from: int = 0) -> Sequence[OffsetSync]:
        """Oldest first. ``downstream_from``: what lies before it is known better."""
        return [sync for sync in self._syncs.get(at, []) if sync.downstream >= downstream_from]


def outline_pages(
    syncs: Sequence[OffsetSync],
    upstream_next: int,
    downstream_end: int,
    *,
    topic_id: bytes = NO_TOPIC_ID,
    remote_id: bytes = NO_TOPIC_ID,
) -> list[LedgerPage]:
    """Pages from the first pair up to ``upstream_next``, which lies at ``downstream_end`` or after."""
    ends = [*((sync.upstream, sync.downstream) for sync in syncs[1:]), (upstream_next, downstream_end)]
    runs = [
        Run(sync.upstream, upstream_end - 1, sync.downstream, downstream_end - 1, records=1)
        for sync, (upstream_end, downstream_end) in zip(syncs, ends, strict=True)
    ]
    assert all(run.upstream_last >= run.upstream_first for run in runs), "pairs that do not ascend"
    assert all(run.downstream_last >= run.downstream_first for run in runs), "pairs that do not ascend"
    return [
        LedgerPage.of(
            some := runs[first : first + RUNS_PER_PAGE_MAX],
            upstream_start=some[0].upstream_first,
            upstream_next=some[-1].upstream_last + 1,
            downstream_start=some[0].downstream_first,
            topic_id=topic_id,
            remote_id=remote_id,
        )
        for first in range(0, len(runs), RUNS_PER_PAGE_MAX)
    ]
