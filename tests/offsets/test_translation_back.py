"""Back from a remote topic's offset to the original's: what the ledger says forward holds in the other direction."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import LedgerPage, Run, ledger_entry
from mirrorspark.offsets.ledger_repacking import merge_runs
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.translation import Reason
from mirrorspark.offsets.translation_back import translate_back

REMOTE = TopicPartition("west.orders", 2)


def page(runs: list[Run], start: int, upstream_next: int, downstream_start: int) -> LedgerPage:
    return LedgerPage.of(runs, upstream_start=start, upstream_next=upstream_next, downstream_start=downstream_start)


def store_of(*pages: LedgerPage) -> LedgerStore:
    store = LedgerStore()
    for one in pages:
        store.fold(*ledger_entry(REMOTE, one))
    return store


def test_nothing_is_known_of_a_partition_without_ledger() -> None:
    assert translate_back(LedgerStore(), REMOTE, 0).reason is Reason.UNKNOWN


def test_every_place_has_its_reason() -> None:
    first = page([Run(10, 12, 100, 102, 3), Run(15, 16, 104, 105, 2)], 10, 20, 100)
    later = page([Run(30, 30, 110, 110, 1)], 30, 31, 110)
    store = store_of(first, later)
    expected = {
        99: (10, False, Reason.BEFORE_LEDGER),
        100: (10, True, Reason.MIRRORED),
        102: (12, True, Reason.MIRRORED),
        103: (15, True, Reason.NEXT),  # a marker on the remote side, a hole on the original's
        105: (16, True, Reason.MIRRORED),
        106: (20, False, Reason.NOT_TOLD),  # of 20 to 29 the ledger says nothing
        110: (30, True, Reason.MIRRORED),
        111: (31, True, Reason.AT_END),
        115: (31, False, Reason.AHEAD),
    }
    for offset, (original, exact, reason) in expected.items():
        found = translate_back(store, REMOTE, offset)
        assert (found.downstream_offset, found.exact, found.reason) == (original, exact, reason), offset


gaps = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 5)), min_size=1, max_size=12)


@given(gaps, st.integers(0, 40), st.integers(0, 60))
def test_no_record_is_skipped_and_exact_is_exact(runs: list[tuple[int, int, int]], merged: int, offset: int) -> None:
    up, down, listed, where = 0, 0, [], {}
    for upstream_gap, downstream_gap, count in runs:
        up, down = up + upstream_gap, down + downstream_gap
        listed.append(Run(up, up + count - 1, down, down + count - 1, count))
        where |= {down + i: up + i for i in range(count)}
        up, down = up + count, down + count
    kept = merge_runs(listed, merged) if merged else listed
    found = translate_back(store_of(page(kept, 0, up, 0)), REMOTE, offset)
    unread = [original for place, original in where.items() if place >= offset]
    assert found.downstream_offset is not None
    assert all(original >= found.downstream_offset for original in unread), "a record would be skipped"
    if found.exact:
        read = [original for place, original in where.items() if place < offset]
        assert all(original < found.downstream_offset for original in read), "a record would be read again"
