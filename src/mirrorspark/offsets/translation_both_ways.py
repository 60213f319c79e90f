"""Translation where both clusters carry the same topic into each other under one name: two ledgers say what is where.

A partition of the source holds what its own producers wrote and what came from the target. The flow's ledger tells where
the first kind lies on the target, the ledger of the reverse flow (``back``) from where the second kind came. A group goes on
at the lowest offset on the target that it has not read by either; that is exact if it has read nothing behind it. Same
promise as ``translation``: never skips a record, exact where it says so. Pure; called by ``control.group_translation``.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import LedgerPage, Run
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.translation import Reason, Translation
from mirrorspark.offsets.translation_back import translate_back

__all__ = ["first_not_brought", "translate_both_ways"]

NOTHING = -1


def translate_both_ways(
    forward: Translation,
    store: LedgerStore,
    remote: TopicPartition,
    back: LedgerStore,
    at: TopicPartition,
    offset: int,
    *,
    looked_to: int = 0,
) -> Translation:
    """``forward`` is the flow's own answer for ``offset`` of ``at``. ``looked_to``: up to there, beyond the end of what the
    reverse flow has booked, somebody has seen that the target's log holds nothing of its own producers."""
    first = store.pages(remote)[0] if store.pages(remote) else None
    if forward.downstream_offset is None or first is None or not back.pages(at):
        return forward
    if forward.reason in (Reason.BEFORE_LEDGER, Reason.BEFORE_LOG_START):
        # Nothing of the source's own lies before the ledger if all of it, up to there, came from the target.
        if first_not_brought(back, at, offset) < first.upstream_start:
            return forward
        forward = Translation(first.downstream_start, True, Reason.NEXT)
    answer = _of_brought(back, at, offset, looked_to)
    assert answer.downstream_offset is not None
    if answer.reason is Reason.BEFORE_LEDGER:
        is_lower = (forward.downstream_offset or 0) <= answer.downstream_offset
        return forward if is_lower else replace(answer, exact=False)
    lowest = min(forward, answer, key=lambda one: (one.downstream_offset or 0, one.exact))
    assert lowest.downstream_offset is not None
    read = max(_last_carried(store, remote, offset), _last_brought(back, at, offset))
    exact = forward.exact and answer.exact and read < lowest.downstream_offset
    inexact = next((one.reason for one in (forward, answer) if not one.exact), Reason.MERGED)
    return Translation(lowest.downstream_offset, exact, lowest.reason if exact else inexact)


def _of_brought(back: LedgerStore, at: TopicPartition, offset: int, looked_to: int) -> Translation:
    """Where the first record from the target, at or after the offset, lies there. Behind the last one: the end of what the
    reverse flow has looked at, and somebody after it."""
    found = translate_back(back, at, offset)
    newest = back.newest(at)
    assert newest is not None
    if found.downstream_offset is not None and offset >= newest.downstream_end:
        return Translation(max(found.downstream_offset, looked_to), True, Reason.AT_END)
    return found


def _last_carried(store: LedgerStore, remote: TopicPartition, offset: int) -> int:
    """Where the last record that the flow carried from before the offset lies on the target."""
    page, _ = store.page_at(remote, offset - 1)
    if page is None:
        return NOTHING
    run = store.run_at(page, offset - 1)
    if run is None:  # before the page's first run: what the pages before it end with
        before = [one for one in store.pages(remote) if one.upstream_start < page.upstream_start and one.run_count]
        return before[-1].downstream_end - 1 if before else NOTHING
    behind = run.upstream_last - (offset - 1)
    return run.downstream_last - behind if run.is_dense and behind > 0 else run.downstream_last


def _last_brought(back: LedgerStore, at: TopicPartition, offset: int) -> int:
    """Where the last record that came from the target, of those before the offset, lies there."""
    pages = back.pages(at)
    index = bisect_left(pages, offset, key=lambda page: page.downstream_start)
    for page in reversed(pages[:index]):
        run = _last_run_before(page, offset)
        if run is not None:
            behind = run.downstream_last - (offset - 1)
            return run.upstream_last - behind if run.is_dense and behind > 0 else run.upstream_last
    return NOTHING


def _last_run_before(page: LedgerPage, offset: int) -> Run | None:
    found = None
    for run in page.runs():
        if run.downstream_first >= offset:
            break
        found = run
    return found


def first_not_brought(back: LedgerStore, at: TopicPartition, offset: int) -> int:
    """The first offset from ``offset`` on of which the reverse flow's ledger does not say that a record from there lies
    at it: somebody else's record, or a marker, or the end."""
    for page in back.pages(at):
        for run in page.runs():
            if run.downstream_last < offset:
                continue
            if run.downstream_first > offset or not run.is_dense:
                return offset
            offset = run.downstream_last + 1
    return offset
