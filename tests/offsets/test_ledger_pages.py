"""The pen of the ledger: which pages a lane writes, and what its position says of them."""

from __future__ import annotations

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import LedgerPage, parse_ledger_entry
from mirrorspark.offsets.ledger_pages import PAGE_RUNS_MAX, LedgerDraft, LedgerPages
from mirrorspark.offsets.position import Booked

AT = TopicPartition("east.orders", 0)


def _begun(upstream: int = 100, downstream: int = 40, *, is_new: bool = True) -> LedgerPages:
    pages = LedgerPages(AT, b"s" * 16)
    pages.begin(Booked(upstream, downstream), b"r" * 16, is_new=is_new)
    return pages


def _pages(draft: LedgerDraft) -> list[LedgerPage]:
    parsed = [parse_ledger_entry(*entry) for entry in draft.entries]
    assert all(one is not None and one[0] == AT for one in parsed)
    return [one[1] for one in parsed if one is not None]


def test_a_partition_with_nothing_carried_is_told_too() -> None:
    (page,) = _pages(_begun().draft(100, 40))
    assert (page.upstream_start, page.upstream_next, page.downstream_start, page.run_count) == (100, 100, 40, 0)
    assert page.ids == (b"s" * 16, b"r" * 16)


def test_dense_stretches_are_one_run_and_what_was_left_out_counts_as_covered() -> None:
    pages = _begun()
    pages.add(102, 104, 40)
    pages.add(105, 109, 43)
    (page,) = _pages(pages.draft(112, 48))
    assert list(page.runs()) == [(102, 109, 40, 47, 8)]
    assert (page.upstream_start, page.upstream_next, page.downstream_end) == (100, 112, 48)


def test_a_full_page_is_closed_and_the_next_begins_where_it_ends() -> None:
    pages = _begun()
    for number in range(PAGE_RUNS_MAX + 3):
        pages.add(100 + 2 * number, 100 + 2 * number, 40 + number)
    assert pages.pages_pending == 1
    draft = pages.draft(100 + 2 * PAGE_RUNS_MAX + 6, 40 + PAGE_RUNS_MAX + 3)
    full, rest = _pages(draft)
    assert (full.run_count, rest.run_count) == (PAGE_RUNS_MAX, 3)
    assert full.upstream_next == rest.upstream_start
    assert full.downstream_end == rest.downstream_start
    pages.confirm(draft)
    assert pages.pages_pending == 0
    (again,) = _pages(pages.draft(1_000, 999))
    assert again.upstream_start == rest.upstream_start


def test_what_comes_while_a_draft_is_written_is_not_lost() -> None:
    pages = _begun()
    for number in range(PAGE_RUNS_MAX):
        pages.add(100 + 2 * number, 100 + 2 * number, 40 + number)
    draft = pages.draft(600, 290)
    for number in range(PAGE_RUNS_MAX, 2 * PAGE_RUNS_MAX + 1):
        pages.add(100 + 2 * number, 100 + 2 * number, 40 + number)
    pages.confirm(draft)
    later = _pages(pages.draft(2_000, 1_000))
    runs = {run for page in (*_pages(draft), *later) for run in page.runs()}
    assert {run.upstream_first for run in runs} == {100 + 2 * number for number in range(2 * PAGE_RUNS_MAX + 1)}


def test_a_dense_page_goes_on_in_the_next_attempt() -> None:
    """Months of dense records, an epoch every five minutes: one page."""
    pages = _begun()
    pages.add(100, 149, 40)
    draft = pages.draft(150, 90)
    pages.confirm(draft)
    booked = pages.booked(150)
    assert booked == Booked(150, 90, (100, 40), (100, 149, 40))
    successor = LedgerPages(AT)
    successor.begin(booked)
    successor.add(150, 159, 90)
    (page,) = _pages(successor.draft(160, 100))
    assert list(page.runs()) == [(100, 159, 40, 99, 60)]


def test_a_page_of_several_runs_is_left_and_the_next_begins_there() -> None:
    pages = _begun()
    pages.add(100, 109, 40)
    pages.add(111, 119, 50)
    pages.confirm(pages.draft(120, 59))
    booked = pages.booked(120)
    assert booked == Booked(120, 59)
    successor = LedgerPages(AT)
    successor.begin(booked)
    successor.add(120, 129, 60)
    (page,) = _pages(successor.draft(130, 70))
    assert (page.upstream_start, page.downstream_start) == (120, 59)


def test_a_position_says_nothing_of_a_ledger_that_has_not_begun() -> None:
    """Else a partition that stays empty would never be told of, should the lane end before its first write."""
    pages = _begun()
    assert pages.booked(100) is None
    assert pages.booked(110) == Booked(100, 40)  # carried and not booked: to be walked from there
    pages.confirm(pages.draft(100, 40))
    assert pages.booked(100) == Booked(100, 40, (100, 40))
