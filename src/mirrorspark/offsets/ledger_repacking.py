"""Making the ledger smaller: neighbouring pages put together, runs merged to an outline, pages cut off.

Pure; called by ``ledger_store``. Merging forgets which offsets inside a run are records, never how many: translations
there become lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mirrorspark.offsets.ledger import LedgerPage, Run

__all__ = ["RUNS_PER_PAGE_MAX", "cut_off", "merge_runs", "repack"]

RUNS_PER_PAGE_MAX = 500
"""Runs in a page that was put together; it is unpacked for a question, so not too many."""


def merge_runs(runs: Sequence[Run], records_max: int) -> list[Run]:
    """Neighbours become one while they hold no more than ``records_max`` records together; longer runs stay as they are."""
    merged: list[Run] = []
    for run in runs:
        if merged and merged[-1].records + run.records <= records_max:
            merged[-1] = merged[-1].joined(run)
        else:
            merged.append(run)
    return merged


def repack(pages: Sequence[LedgerPage], records_max: int, runs_max: int) -> list[LedgerPage]:
    """The same knowledge in as few pages as ``runs_max`` runs in each allow; with ``records_max`` as an outline."""
    return [page for chain in _chains(pages) for page in _repack_chain(chain, records_max, runs_max)]


def _chains(pages: Sequence[LedgerPage]) -> Iterator[list[LedgerPage]]:
    """Pages of which each begins where the one before ends: only those may become one."""
    chain: list[LedgerPage] = []
    for page in pages:
        if chain and (chain[-1].upstream_next != page.upstream_start or chain[-1].ids != page.ids):
            yield chain
            chain = []
        chain.append(page)
    if chain:
        yield chain


def _repack_chain(chain: list[LedgerPage], records_max: int, runs_max: int) -> Iterator[LedgerPage]:
    first, last = chain[0], chain[-1]
    runs = _join_dense([run for page in chain for run in page.runs()])
    if records_max:
        runs = merge_runs(runs, records_max)
    start, downstream_start = first.upstream_start, first.downstream_start
    for index in range(0, max(1, len(runs)), runs_max):
        some = runs[index : index + runs_max]
        is_last = index + runs_max >= len(runs)
        upstream_next = last.upstream_next if is_last else runs[index + runs_max].upstream_first
        yield LedgerPage.of(
            some,
            upstream_start=start,
            upstream_next=upstream_next,
            downstream_start=downstream_start,
            topic_id=first.topic_id,
            remote_id=first.remote_id,
        )
        if not is_last:
            start, downstream_start = upstream_next, runs[index + runs_max].downstream_first


def _join_dense(runs: list[Run]) -> list[Run]:
    """A run that a page's end had cut in two is one again."""
    joined: list[Run] = []
    for run in runs:
        if joined and joined[-1].is_dense and run.is_dense and (together := joined[-1].joined(run)).is_dense:
            joined[-1] = together
        else:
            joined.append(run)
    return joined


def cut_off(page: LedgerPage, upstream_end: int) -> LedgerPage | None:
    """What the page says of offsets before ``upstream_end``; None if nothing. A merged run is left out, not cut."""
    if upstream_end <= page.upstream_start:
        return None
    if upstream_end >= page.upstream_next:
        return page
    kept: list[Run] = []
    upstream_next = upstream_end
    for run in page.runs():
        if run.upstream_last < upstream_end:
            kept.append(run)
            continue
        if run.upstream_first < upstream_end:
            if run.is_dense:
                count = upstream_end - run.upstream_first
                last = run.downstream_first + count - 1
                kept.append(Run(run.upstream_first, upstream_end - 1, run.downstream_first, last, count))
            else:
                upstream_next = run.upstream_first
        break
    return LedgerPage.of(
        kept,
        upstream_start=page.upstream_start,
        upstream_next=upstream_next,
        downstream_start=page.downstream_start,
        topic_id=page.topic_id,
        remote_id=page.remote_id,
    )
