"""The pen of the ledger: pages of one remote partition as a lane writes them, from receipts.

Owned by a track. ``add`` for every dense stretch that was appended (cheap: most only lengthen the last run), ``draft`` now
and then for what is to be written, ``confirm`` once that is in the topic. The page that is open is written again and again
under its key until it is full. ``booked`` is how far the ledger is known to tell it all; it travels with the committed
position, so that the next owner walks the target's log from there and no record is left out of the ledger by a kill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import NO_TOPIC_ID, LedgerPage, LedgerRange, ledger_entry, pack_dense
from mirrorspark.offsets.position import Booked

__all__ = ["PAGE_RUNS_MAX", "LedgerDraft", "LedgerPages"]

PAGE_RUNS_MAX = 250
"""Runs in one page. The open one is written about once a second: 1 KB or so where every batch is a run of its own."""


@dataclass(frozen=True, slots=True)
class LedgerDraft:
    """What to write, and what is booked once that is done."""

    entries: Sequence[tuple[bytes, bytes | None]]
    booked: Booked
    pages_closed: int


class LedgerPages:
    def __init__(self, at: TopicPartition, topic_id: bytes = NO_TOPIC_ID) -> None:
        self._at = at
        self._topic_id = topic_id
        self._remote_id = NO_TOPIC_ID
        self._closed: list[LedgerPage] = []
        self._start = 0
        self._downstream_start = 0
        self._packed = bytearray()  # the runs before the last
        self._packed_runs = 0
        self._packed_upstream = self._packed_downstream = 0  # the offsets after those
        self._run: LedgerRange | None = None
        self._booked = Booked(0, 0)
        self._is_new = True

    def begin(self, booked: Booked, remote_id: bytes = NO_TOPIC_ID, *, is_new: bool = False) -> None:
        """Go on where the ledger ended: with the page that was open, where the position could hold it.

        ``is_new``: it says nothing of the partition yet, not even that nothing was carried before.
        """
        self._remote_id = remote_id
        self._closed.clear()
        self._booked = booked
        self._is_new = is_new
        if booked.page_start is None:
            self._open(booked.upstream_next, booked.downstream_end)
            return
        self._open(*booked.page_start)
        if booked.run is not None:
            self._run = LedgerRange(*booked.run)

    def _open(self, upstream: int, downstream: int) -> None:
        self._start = self._packed_upstream = upstream
        self._downstream_start = self._packed_downstream = downstream
        self._packed = bytearray()
        self._packed_runs = 0
        self._run = None

    def add(self, first: int, last: int, downstream: int) -> None:
        """Upstream ``first..last`` lie at ``downstream`` and on."""
        run = self._run
        if run is not None:
            if run.extend(first, last, downstream):
                return
            assert first > run.upstream_last, f"{self._at}: a run before the last one (invariant A)"
            assert downstream > run.downstream_last, f"{self._at}: a run before the last one (invariant A)"
            if self._packed_runs + 1 >= PAGE_RUNS_MAX:
                self._closed.append(self._page(first))
                self._open(first, downstream)
            else:
                self._pack(self._packed, run)
                self._packed_runs += 1
                self._packed_upstream, self._packed_downstream = run.upstream_last + 1, run.downstream_last + 1
        self._run = LedgerRange(first, last, downstream)

    def _pack(self, packed: bytearray, run: LedgerRange) -> None:
        pack_dense(
            packed,
            run.upstream_last - run.upstream_first + 1,
            run.upstream_first - self._packed_upstream,
            run.downstream_first - self._packed_downstream,
        )

    def _page(self, upstream_next: int) -> LedgerPage:
        packed, count, end = bytearray(self._packed), self._packed_runs, self._packed_downstream
        if self._run is not None:
            self._pack(packed, self._run)
            count, end = count + 1, self._run.downstream_last + 1
        return LedgerPage(
            self._start,
            upstream_next,
            self._downstream_start,
            end,
            bytes(packed),
            count,
            self._topic_id,
            self._remote_id,
        )

    def open_page(self, upstream_next: int) -> LedgerPage:
        return self._page(upstream_next)

    @property
    def pages_pending(self) -> int:
        """Full pages that are not in the topic yet."""
        return len(self._closed)

    def draft(self, upstream_next: int, downstream_end: int) -> LedgerDraft:
        """All since the last confirmed one; the arguments are the track's position, which these pages reach."""
        pages = [*self._closed, self._page(upstream_next)]
        fits = self._packed_runs == 0
        run = self._run
        booked = Booked(
            upstream_next,
            downstream_end,
            (self._start, self._downstream_start) if fits else None,
            (run.upstream_first, run.upstream_last, run.downstream_first) if fits and run is not None else None,
        )
        return LedgerDraft([ledger_entry(self._at, page) for page in pages], booked, len(self._closed))

    def confirm(self, draft: LedgerDraft) -> None:
        """The draft is in the topic."""
        del self._closed[: draft.pages_closed]
        self._booked = draft.booked
        self._is_new = False

    def booked(self, upstream_next: int) -> Booked | None:
        """For a position at ``upstream_next``; None while the ledger says nothing and there is nothing that it left out."""
        return None if self._is_new and self._booked.upstream_next == upstream_next else self._booked
