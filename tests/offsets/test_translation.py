"""Invariant E, by its parts: E1 never past the end, E2 never skips, E3 exact where it says so, E4 in order."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.offsets.mirrored_partition import ID, REMOTE, MirroredPartition

from mirrorspark.offsets.ledger import LedgerPage, ledger_entry
from mirrorspark.offsets.ledger_pages import PAGE_RUNS_MAX
from mirrorspark.offsets.ledger_store import OUTLINE_RECORDS, LedgerStore
from mirrorspark.offsets.translation import Reason, translate

counts = st.integers(1, 6)
steps = st.lists(
    st.tuples(st.just("carry"), counts)
    | st.tuples(st.just("leave_out"), counts)
    | st.tuples(st.just("mark"), counts)
    | st.tuples(st.sampled_from(["write", "stop", "kill"]), st.just(0)),
    max_size=60,
)


def life(moves: list[tuple[str, int]], *, store: LedgerStore | None = None) -> MirroredPartition:
    mirrored = MirroredPartition(store or LedgerStore(), upstream=1_000, downstream=50)
    for move, count in moves:
        match move:
            case "carry":
                mirrored.carry(count)
            case "leave_out":
                mirrored.leave_out(count)
            case "mark":
                mirrored.mark(count)
            case "write":
                mirrored.write()
            case "stop":
                mirrored.restart(clean=True)
            case "kill":
                mirrored.restart(clean=False)
    mirrored.write()
    return mirrored


def check_invariant_e(mirrored: MirroredPartition, *, all_exact: bool) -> None:
    before = -1
    ups = [up for up, _ in mirrored.records]
    downs = [down for _, down in mirrored.records]
    for upstream in range(1_000, mirrored.upstream + 3):
        found = translate(mirrored.store, REMOTE, upstream, ID)
        offset = found.downstream_offset
        assert offset is not None
        assert offset <= mirrored.downstream, "E1"
        read = bisect_left(ups, upstream)
        assert read == len(downs) or offset <= downs[read], "E2"
        assert not (found.exact and read and downs[read - 1] >= offset), "E3"
        assert offset >= before, "E4"
        if upstream > mirrored.upstream:
            assert found.reason is Reason.AHEAD
            assert not found.exact
        elif all_exact:
            assert found.exact, (upstream, found)
        before = offset


@settings(max_examples=300, deadline=None)
@given(steps)
def test_invariant_e_whatever_a_flow_went_through(moves: list[tuple[str, int]]) -> None:
    check_invariant_e(life(moves), all_exact=True)


@settings(max_examples=20, deadline=None)
@given(steps, st.integers(1, 40))
def test_invariant_e_when_memory_is_short(moves: list[tuple[str, int]], rounds: int) -> None:
    """Runs beyond the limit become an outline: not exact, and never a record skipped."""
    store = LedgerStore(partition_bytes_max=900)
    holes = [("carry", 2), ("leave_out", 3), ("mark", 1)] * (rounds * 20)
    mirrored = life([*moves, *holes, ("stop", 0), *moves], store=store)
    check_invariant_e(mirrored, all_exact=False)


@settings(max_examples=50, deadline=None)
@given(steps, st.integers(0, 30))
def test_invariant_e_after_tidying(moves: list[tuple[str, int]], restarts: int) -> None:
    """What the keeper of the topic puts together says the same as before, to the store and to who reads the topic."""
    mirrored = life([*moves, *[("carry", 3), ("leave_out", 1), ("stop", 0)] * restarts, *moves])
    before = len(mirrored.store.pages(REMOTE))
    mirrored.store.tidy(REMOTE)
    check_invariant_e(mirrored, all_exact=True)
    assert len(mirrored.store.pages(REMOTE)) <= min(before, 4)
    anew = LedgerStore()
    for entry in [*mirrored.entries, *mirrored.store.take_rewrites()]:
        anew.fold(*entry)
    assert anew.pages(REMOTE) == mirrored.store.pages(REMOTE)


def test_an_outline_reads_again_no_more_than_it_says() -> None:
    store = LedgerStore(partition_bytes_max=4_000)
    mirrored = life([("carry", 3), ("leave_out", 2), ("mark", 1)] * 5_000, store=store)
    assert store.bytes <= 4_000
    answers = [(up, down, translate(store, REMOTE, up, ID)) for up, down in mirrored.records]
    inexact = [(up, down, found) for up, down, found in answers if not found.exact]
    assert len(inexact) > 1_000
    assert {found.reason for _, _, found in inexact} == {Reason.MERGED}
    assert max(down - (found.downstream_offset or 0) for _, down, found in inexact) <= OUTLINE_RECORDS * 16
    assert all(found.downstream_offset == down for _, down, found in answers if found.exact)
    assert answers[-1][2].exact  # the newest pages stay as they are


def test_a_range_a_hole_and_the_end() -> None:
    mirrored = life([("carry", 10), ("leave_out", 5), ("mark", 1), ("carry", 3), ("leave_out", 1)])
    answers = {
        1_000: (50, Reason.MIRRORED),
        1_009: (59, Reason.MIRRORED),
        1_010: (60, Reason.NEXT),  # a hole: read on from after the last record before it
        1_014: (60, Reason.NEXT),
        1_015: (61, Reason.MIRRORED),
        1_018: (64, Reason.NEXT),
        1_019: (64, Reason.AT_END),  # a marker is the last offset of the source
    }
    for upstream, (downstream, reason) in answers.items():
        found = translate(mirrored.store, REMOTE, upstream, ID)
        assert (found.downstream_offset, found.exact, found.reason) == (downstream, True, reason), upstream


def test_ahead_of_the_mirror() -> None:
    found = translate(life([("carry", 10)]).store, REMOTE, 1_011, ID)
    assert (found.downstream_offset, found.exact, found.reason) == (60, False, Reason.AHEAD)


def test_a_partition_with_nothing_in_it_is_exact_too() -> None:
    """Whoever read nothing, because there is nothing, begins where the mirror will."""
    found = translate(life([]).store, REMOTE, 1_000, ID)
    assert (found.downstream_offset, found.exact, found.reason) == (50, True, Reason.AT_END)


def test_below_the_sources_log_start_goes_on_there() -> None:
    store = life([("carry", 10)]).store
    found = translate(store, REMOTE, 5, ID, source_log_start=1_004)
    assert (found.downstream_offset, found.exact) == (54, True)
    assert translate(store, REMOTE, 5, ID, source_log_start=1_000).downstream_offset == 50


def test_before_the_ledger_is_the_oldest_on_the_target_and_not_exact() -> None:
    store = life([("carry", 10)]).store
    found = translate(store, REMOTE, 999, ID)
    assert (found.downstream_offset, found.exact, found.reason) == (None, False, Reason.BEFORE_LOG_START)
    store.drop_before(REMOTE, 20)
    found = translate(store, REMOTE, 999, ID)
    assert (found.downstream_offset, found.exact, found.reason) == (20, False, Reason.BEFORE_LEDGER)


def test_what_the_targets_retention_took() -> None:
    store = life([("carry", 10)]).store
    store.drop_before(REMOTE, 55)
    found = translate(store, REMOTE, 1_001, ID)
    assert (found.downstream_offset, found.exact, found.reason) == (55, False, Reason.GONE)
    assert translate(store, REMOTE, 1_005, ID).downstream_offset == 55
    store.drop_before(REMOTE, 63)  # all of it, and markers after it: a group at the end has lost nothing
    found = translate(store, REMOTE, 1_010, ID)
    assert (found.downstream_offset, found.exact, found.reason) == (63, True, Reason.AT_END)


def test_a_stretch_that_no_page_covers_is_not_exact() -> None:
    """Such as when the source's retention took what a killed lane had carried and not booked."""
    store = LedgerStore()
    for first, downstream in ((0, 0), (100, 100)):
        page = LedgerPage.of([], upstream_start=first, upstream_next=first + 50, downstream_start=downstream)
        store.fold(*ledger_entry(REMOTE, page))
    found = translate(store, REMOTE, 60)
    assert (found.downstream_offset, found.exact, found.reason) == (0, False, Reason.NOT_TOLD)
    assert translate(store, REMOTE, 50).exact  # all before it is known
    assert translate(store, REMOTE, 100).exact


def test_a_topic_that_was_made_anew() -> None:
    store = life([("carry", 10)]).store
    assert translate(store, REMOTE, 3, b"n" * 16).reason is Reason.RECREATED
    assert translate(store, REMOTE, 1_003).downstream_offset == 53  # an id that nobody knows contradicts nothing


def test_an_unknown_partition() -> None:
    found = translate(LedgerStore(), REMOTE, 3)
    assert (found.downstream_offset, found.exact, found.reason) == (None, False, Reason.UNKNOWN)
    assert str(found) == f"nowhere: {Reason.UNKNOWN.value}"


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9, 0.99, 1.0])
def test_a_source_full_of_holes_is_exact_over_many_pages(share: float) -> None:
    """A compacted source, or a transaction every few records: each run is short."""
    mirrored = life([("carry", 3), ("leave_out", 2), ("carry", 1), ("mark", 1)] * (PAGE_RUNS_MAX * 4))
    assert len(mirrored.store.pages(REMOTE)) > 4
    upstream = mirrored.records[int(share * len(mirrored.records)) - 1][0] + 1
    found = translate(mirrored.store, REMOTE, upstream, ID)
    assert found.exact
    assert found.downstream_offset == mirrored.expected(upstream)
