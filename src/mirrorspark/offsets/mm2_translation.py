"""MirrorMaker 2's own translation: what its OffsetSyncStore would answer.

For the table beside ours, and for offsets from before a flow was taken over: then its syncs are all that is known. It keeps
64 syncs of a partition, thinner and thinner with age, and answers with one record after the nearest sync below. Invariants,
in its letters: A, the first is the newest; B and C, how far two of them lie apart at most and at least; D, the last is the
oldest that may be used. Pure.
"""

from __future__ import annotations

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.offset_sync import OffsetSync

__all__ = ["DROPPED", "Mm2OffsetSyncStore"]

SYNCS_PER_PARTITION = 64
DROPPED = -1
"""The answer for an offset from before all syncs: no checkpoint is written."""


class Mm2OffsetSyncStore:
    """``fold`` syncs in the topic's order, ``loaded`` once at its end; then ``translate``.

    ``must_read_to_end``: earlier checkpoints could not be read, so that only the last of the syncs from before may be used.
    """

    def __init__(self, *, must_read_to_end: bool = False) -> None:
        self._must_read_to_end = must_read_to_end
        self._is_loading = True
        self._syncs: dict[TopicPartition, list[OffsetSync]] = {}

    def loaded(self) -> None:
        self._is_loading = False

    def syncs(self, at: TopicPartition) -> list[OffsetSync]:
        """Newest first, each once."""
        return list(dict.fromkeys(self._syncs.get(at, [])))

    def fold(self, sync: OffsetSync) -> None:
        syncs = self._syncs.get(sync.at)
        if syncs is None:
            self._syncs[sync.at] = [sync] * SYNCS_PER_PARTITION
            return
        only_the_last = self._is_loading and self._must_read_to_end
        rewound = sync.upstream < syncs[0].upstream
        if only_the_last or rewound:
            syncs[:] = [sync] * SYNCS_PER_PARTITION
        else:
            _repair(syncs, sync)
        _check(syncs)

    def translate(self, at: TopicPartition, upstream_offset: int) -> int | None:
        """None while nothing is known (no checkpoint either); ``DROPPED`` from before all syncs."""
        if self._is_loading or at not in self._syncs:
            return None
        for sync in self._syncs[at]:
            if sync.upstream <= upstream_offset:
                return sync.downstream + (1 if upstream_offset > sync.upstream else 0)
        return DROPPED


def _b_holds(newer: OffsetSync, older: OffsetSync, i: int, j: int) -> bool:
    """Not too far apart for the places i and j."""
    return newer == older or newer.upstream <= older.upstream + (1 << j) - (1 << i)


def _c_holds(newer: OffsetSync, older: OffsetSync, i: int) -> bool:
    """Not too close together: worth a place each."""
    return newer == older or newer.upstream >= older.upstream + (1 << max(i - 2, 0))


def _repair(syncs: list[OffsetSync], sync: OffsetSync) -> None:
    """The new one comes first (A); places that B no longer allows to stay are filled from the front until one may stay."""
    filling, moved_out = sync, syncs[0]
    syncs[0] = sync
    for place in range(1, SYNCS_PER_PARTITION):
        before = syncs[place - 1]
        is_recent = _b_holds(before, moved_out, place - 1, place)
        is_apart_from_newer = _c_holds(before, moved_out, place - 1)
        is_apart_from_older = place + 1 == SYNCS_PER_PARTITION or _c_holds(moved_out, syncs[place + 1], place)
        if is_recent and is_apart_from_newer and is_apart_from_older:
            filling = moved_out  # one more distinct sync is kept
        moved_out = syncs[place]
        if _b_holds(before, syncs[place], place - 1, place):
            break  # and so may all after it
        syncs[place] = filling


def _check(syncs: list[OffsetSync]) -> None:
    for i in range(SYNCS_PER_PARTITION - 1):
        assert _b_holds(syncs[i], syncs[i + 1], i, i + 1), f"invariant B between {i} and {i + 1}"
        assert syncs[i] == syncs[i + 1] or _c_holds(syncs[i], syncs[i + 1], i), f"invariant C between {i} and {i + 1}"
