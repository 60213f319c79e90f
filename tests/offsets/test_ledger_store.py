"""The ledger in memory: what it takes, what it drops, what it asks its keeper to write."""

from __future__ import annotations

import pytest

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import LedgerPage, Run, ledger_entry, ledger_key
from mirrorspark.offsets.ledger_repacking import cut_off, merge_runs, repack
from mirrorspark.offsets.ledger_store import NEWEST_KEPT, PAGE_BYTES, LedgerStore

AT, OTHER = TopicPartition("east.orders", 0), TopicPartition("east.clicks", 3)
OLD, NEW = b"o" * 16, b"n" * 16


def page(first: int, last: int, downstream: int, *, end: int | None = None, remote_id: bytes = OLD) -> LedgerPage:
    run = Run(first, last, downstream, downstream + last - first, last - first + 1)
    upstream_next = last + 1 if end is None else end
    return LedgerPage.of(
        [run], upstream_start=first, upstream_next=upstream_next, downstream_start=downstream, remote_id=remote_id
    )


def folded(*pages: LedgerPage) -> LedgerStore:
    store = LedgerStore()
    for one in pages:
        assert store.fold(*ledger_entry(AT, one)) == AT
    return store


def test_pages_lie_in_order_and_a_newer_one_replaces_its_earlier_self() -> None:
    store = folded(page(100, 149, 100), page(0, 49, 0), page(100, 199, 100))
    assert [(one.upstream_start, one.upstream_next) for one in store.pages(AT)] == [(0, 50), (100, 200)]
    assert store.bytes == 2 * PAGE_BYTES + sum(len(one.packed) for one in store.pages(AT))
    assert (store.partition_count, AT in store, OTHER in store, list(store)) == (1, True, False, [AT])
    assert store.take_rewrites() == []


def test_a_tombstone_takes_a_page_away() -> None:
    store = folded(page(0, 49, 0), page(50, 99, 50))
    store.fold(ledger_key(AT, 0), None)
    assert [one.upstream_start for one in store.pages(AT)] == [50]
    store.fold(ledger_key(AT, 7), None)
    store.fold(ledger_key(OTHER, 0), None)
    store.fold(ledger_key(AT, 50), None)
    assert (store.partition_count, store.bytes, store.newest(AT)) == (0, 0, None)


@pytest.mark.parametrize("value", [b"", b"{}", b"\0\2"])
def test_what_is_no_page_is_counted_and_left_out(value: bytes) -> None:
    store = folded(page(0, 49, 0))
    assert store.fold(ledger_key(AT, 50), value) is None
    assert store.fold(b"?", None) is None
    assert (store.damaged_entries, len(store.pages(AT))) == (1, 1)


def test_a_remote_topic_that_was_made_anew_drops_what_was_known() -> None:
    store = folded(page(0, 49, 0), page(50, 99, 60), page(100, 109, 0, remote_id=NEW))
    assert [one.upstream_start for one in store.pages(AT)] == [100]
    assert dict(store.take_rewrites()) == {ledger_key(AT, 0): None, ledger_key(AT, 50): None}


def test_one_made_anew_may_begin_with_the_same_key() -> None:
    store = folded(page(0, 49, 0), page(50, 99, 60), page(0, 9, 0, remote_id=NEW))
    assert [one.upstream_next for one in store.pages(AT)] == [10]
    assert dict(store.take_rewrites()) == {ledger_key(AT, 50): None}  # not the one that was written anew


def test_copied_once_more_is_what_counts() -> None:
    """A position that was reset: the records come a second time, after the first copy."""
    store = folded(page(0, 499, 0), page(600, 999, 500), page(0, 99, 900))
    assert [(one.upstream_start, one.downstream_start) for one in store.pages(AT)] == [(0, 900)]


def test_what_a_recovery_books_again_overlaps_in_peace() -> None:
    """The ledger was ahead of the position: the walk tells the same again."""
    store = folded(page(0, 499, 0), page(300, 599, 300))
    assert [(one.upstream_start, one.upstream_next, one.downstream_end) for one in store.pages(AT)] == [
        (0, 300, 300),
        (300, 600, 600),
    ]


def test_pages_before_both_logs_begin_are_pruned_but_for_the_newest() -> None:
    store = folded(page(0, 49, 0), page(50, 99, 60), page(100, 149, 120))
    assert store.drop_before(AT, 59) == 1
    assert [one.upstream_start for one in store.pages(AT)] == [50, 100]
    assert store.log_start(AT) == 59
    assert store.drop_before(AT, 59, upstream_log_start=100) == 1
    assert store.drop_before(AT, 1_000, upstream_log_start=1_000) == 0
    assert [one.upstream_start for one in store.pages(AT)] == [100]
    assert dict(store.take_rewrites()) == {ledger_key(AT, 0): None, ledger_key(AT, 50): None}
    assert store.take_rewrites() == []
    assert store.drop_before(OTHER, 5) == 0


def test_a_page_that_holds_more_than_what_is_gone_stays() -> None:
    store = folded(page(0, 49, 0), page(50, 99, 50))
    assert store.drop_before(AT, 49) == 0


def test_a_partition_that_is_gone_is_forgotten() -> None:
    store = folded(page(0, 49, 0), page(50, 99, 50))
    store.forget(AT)
    assert (store.partition_count, store.bytes) == (0, 0)
    assert len(store.take_rewrites()) == 2


def test_small_pages_become_one_but_for_the_newest() -> None:
    """Each epoch of a flow with holes begins a page."""
    pages = [page(10 * number, 10 * number + 8, 9 * number, end=10 * number + 10) for number in range(20)]
    store = folded(*pages)
    store.tidy(AT)
    kept = store.pages(AT)
    assert len(kept) == 1 + NEWEST_KEPT
    assert [run for one in kept for run in one.runs()] == [run for one in pages for run in one.runs()]
    rewrites = dict(store.take_rewrites())
    assert rewrites[ledger_key(AT, 0)] == ledger_entry(AT, kept[0])[1]
    assert [value for key, value in rewrites.items() if key != ledger_key(AT, 0)] == [None] * 17
    store.tidy(AT)
    assert store.take_rewrites() == []


def test_all_partitions_together_have_a_limit() -> None:
    store = LedgerStore(store_bytes_max=20_000)
    for partition in range(10):
        at = TopicPartition("east.orders", partition)
        for number in range(40):
            runs = [Run(u, u, u, u, 1) for u in range(1_000 * number, 1_000 * number + 1_000, 20)]
            start = 1_000 * number
            one = LedgerPage.of(runs, upstream_start=start, upstream_next=start + 1_000, downstream_start=start)
            store.fold(*ledger_entry(at, one))
    assert store.bytes <= 20_000
    assert store.partition_count == 10


def test_more_partitions_than_the_limit_has_room_for_are_still_all_known() -> None:
    store = LedgerStore(store_bytes_max=2_000)
    for partition in range(100):
        store.fold(*ledger_entry(TopicPartition("east.orders", partition), page(0, 9, 0)))
    assert store.partition_count == 100


def test_runs_merge_up_to_so_many_records_and_long_ones_stay() -> None:
    runs = [Run(0, 1, 0, 1, 2), Run(5, 6, 3, 4, 2), Run(8, 107, 6, 105, 100), Run(110, 110, 106, 106, 1)]
    assert merge_runs(runs, 4) == [Run(0, 6, 0, 4, 4), runs[2], runs[3]]
    assert merge_runs(runs, 1) == runs


def test_pages_with_a_gap_between_them_stay_apart() -> None:
    pages = [page(0, 9, 0), page(10, 19, 10), page(30, 39, 30)]
    assert [(one.upstream_start, one.upstream_next, one.run_count) for one in repack(pages, 0, 100)] == [
        (0, 20, 1),
        (30, 40, 1),
    ]


def test_a_page_can_be_cut_off() -> None:
    whole = page(10, 19, 110, end=25)
    assert cut_off(whole, 10) is None
    assert cut_off(whole, 25) is whole
    cut = cut_off(whole, 15)
    assert cut is not None
    assert (list(cut.runs()), cut.upstream_next) == ([Run(10, 14, 110, 114, 5)], 15)
    merged = LedgerPage.of(
        [Run(0, 1, 0, 1, 2), Run(10, 19, 5, 9, 5)], upstream_start=0, upstream_next=20, downstream_start=0
    )
    cut = cut_off(merged, 15)
    assert cut is not None
    assert (list(cut.runs()), cut.upstream_next) == ([Run(0, 1, 0, 1, 2)], 10)  # a merged run is not cut
