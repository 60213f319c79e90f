"""From an offset in a remote topic back to the offset in the topic that it was mirrored from: the failback direction.

A group that reads ``west.orders`` on east goes on in ``orders`` on west. The ledger of the flow that brought the topic,
west->east, says where: read from the other side. Same answers and reasons as ``translation``, same promise: never skips a
record, exact where it says so. Pure.
"""

from __future__ import annotations

from bisect import bisect_right

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import LedgerPage
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.translation import Reason, Translation

__all__ = ["translate_back"]


def translate_back(store: LedgerStore, remote: TopicPartition, offset: int) -> Translation:
    """``store``: the ledger of the flow that brought ``remote``; ``offset``: one in its log. The answer is the other's."""
    pages = store.pages(remote)
    if not pages:
        return Translation(None, False, Reason.UNKNOWN)
    index = bisect_right(pages, offset, key=lambda page: page.downstream_start) - 1
    if index < 0:
        return Translation(pages[0].upstream_start, False, Reason.BEFORE_LEDGER)
    page = pages[index]
    found = _within(page, offset)
    if found is not None:
        return found
    is_last = index == len(pages) - 1
    if is_last:
        is_at_end = offset == page.downstream_end
        return Translation(page.upstream_next, is_at_end, Reason.AT_END if is_at_end else Reason.AHEAD)
    # All of the page was read, nothing of the next one.
    has_no_gap = page.upstream_next == pages[index + 1].upstream_start
    return Translation(page.upstream_next, has_no_gap, Reason.NEXT if has_no_gap else Reason.NOT_TOLD)


def _within(page: LedgerPage, offset: int) -> Translation | None:
    """At the first record of the page at or after the offset; None if there is none."""
    for run in page.runs():
        if offset <= run.downstream_first:
            return Translation(
                run.upstream_first, True, Reason.MIRRORED if offset == run.downstream_first else Reason.NEXT
            )
        if offset <= run.downstream_last:
            if run.is_dense:
                return Translation(run.upstream_first + offset - run.downstream_first, True, Reason.MIRRORED)
            # Which offsets inside are records is forgotten: all after the run's first may be unread.
            extra = run.downstream_last - run.downstream_first + 1 - run.records
            read = max(1, offset - run.downstream_first - extra)
            return Translation(run.upstream_first + read, False, Reason.MERGED)
    return None
