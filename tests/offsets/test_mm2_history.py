"""MirrorMaker 2's offset syncs as an outline in the ledger: by its own rule, with all its pairs, and nothing is skipped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.ledger import ledger_entry
from mirrorspark.offsets.ledger_repacking import RUNS_PER_PAGE_MAX
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.mm2_history import SyncHistory, outline_pages
from mirrorspark.offsets.offset_sync import OffsetSync
from mirrorspark.offsets.translation import Reason, translate

AT = TopicPartition("orders", 2)
REMOTE = TopicPartition("east.orders", 2)


def history(*pairs: tuple[int, int], syncs_max: int = 20_000) -> SyncHistory:
    found = SyncHistory({AT}, syncs_max=syncs_max)
    for upstream, downstream in pairs:
        sync = OffsetSync(AT, upstream, downstream)
        found.fold(sync.key, sync.value)
    return found


def pairs_of(found: SyncHistory, **limits: int) -> list[tuple[int, int]]:
    return [(sync.upstream, sync.downstream) for sync in found.syncs(AT, **limits)]


def store_of(found: SyncHistory, upstream_next: int, downstream_end: int) -> LedgerStore:
    """As the ledger topic gives it back."""
    store = LedgerStore()
    for page in outline_pages(found.syncs(AT), upstream_next, downstream_end):
        store.fold(*ledger_entry(REMOTE, page))
    assert store.damaged_entries == 0
    return store


def test_pairs_ascend_and_newer_ones_take_away_what_contradicts_them() -> None:
    assert pairs_of(history((0, 0), (100, 100), (200, 200))) == [(0, 0), (100, 100), (200, 200)]
    assert pairs_of(history((0, 0), (100, 100), (50, 101), (150, 201))) == [(0, 0), (50, 101), (150, 201)], "went back"
    assert pairs_of(history((0, 5), (100, 105), (101, 0))) == [(101, 0)], "the remote topic was made anew"
    assert pairs_of(history((70, 70), (0, 71))) == [(0, 71)], "the source topic was"
    assert pairs_of(history((0, 0), (100, 100), (200, 200)), downstream_from=100) == [(100, 100), (200, 200)]


def test_what_is_no_sync_is_counted_and_what_is_not_asked_for_left_out() -> None:
    found = history((1, 1))
    found.fold(b"no sync", b"at all")
    found.fold(None, b"x")
    found.fold(OffsetSync(AT, 5, 5).key, None)
    damaged = OffsetSync(AT, -5, 7)
    found.fold(damaged.key, damaged.value)
    other = OffsetSync(TopicPartition("other", 0), 9, 9)
    found.fold(other.key, other.value)
    assert (found.damaged, pairs_of(found)) == (3, [(1, 1)])


def test_it_stays_within_its_bound_and_keeps_both_ends() -> None:
    found = pairs_of(history(*((i, 2 * i) for i in range(1_000)), syncs_max=100))
    assert len(found) <= 100
    assert (found[0], found[-1]) == ((0, 0), (999, 1998))


def test_an_offset_translates_to_one_after_the_nearest_pair_below() -> None:
    store = store_of(history((10, 110), (20, 120), (40, 139)), 60, 160)
    answers = {upstream: translate(store, REMOTE, upstream) for upstream in (5, 10, 11, 19, 20, 39, 40, 59, 60, 61)}
    assert {upstream: (one.downstream_offset, one.exact) for upstream, one in answers.items()} == {
        5: (None, False),
        10: (110, True),
        11: (111, False),
        19: (111, False),
        20: (120, True),
        39: (121, False),
        40: (139, True),
        59: (140, False),
        60: (160, True),
        61: (160, False),
    }
    assert answers[5].reason is Reason.BEFORE_LOG_START


def test_many_pairs_take_several_pages() -> None:
    pages = outline_pages(history(*((3 * i, 2 * i) for i in range(1_200))).syncs(AT), 4_000, 3_000)
    assert [page.run_count for page in pages] == [RUNS_PER_PAGE_MAX, RUNS_PER_PAGE_MAX, 200]
    assert [page.upstream_next for page in pages[:-1]] == [page.upstream_start for page in pages[1:]]


@st.composite
def mirrored(draw: st.DrawFn) -> tuple[list[int], SyncHistory, list[int]]:
    """Upstream offsets of the source's records, the syncs, and what lies at each offset of the target's log (-1: nothing).

    MirrorMaker 2 in several lives: it may go back at each start, leave markers, and lose any of its syncs.
    """
    records = sorted(draw(st.sets(st.integers(0, 60), min_size=1, max_size=40)))
    copied: list[int] = []
    pairs: list[tuple[int, int]] = []
    place = 0
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, place))
        end = draw(st.integers(place, len(records)))
        while place < end:
            if draw(st.booleans()):
                pairs.append((records[place], len(copied)))
            copied.append(records[place])
            place += 1
            if draw(st.integers(0, 9)) == 0:
                copied.append(-1)
    return records[:place], history(*pairs), copied


@given(mirrored())
def test_invariant_e_nothing_is_skipped_and_nothing_goes_back(
    case: tuple[list[int], SyncHistory, list[int]],
) -> None:
    records, found, copied = case
    if not records or not found.syncs(AT):
        return
    upstream_next, downstream_end = records[-1] + 1, len(copied)
    if found.syncs(AT)[-1].upstream >= upstream_next:
        return  # it went back and stopped before it came to where it had been: the takeover leaves such pairs out
    store = store_of(found, upstream_next, downstream_end)
    last = -1
    for upstream in range(upstream_next + 1):
        answer = translate(store, REMOTE, upstream)
        if answer.downstream_offset is None:
            continue
        assert answer.downstream_offset <= downstream_end  # E1
        for record in records:
            if record >= upstream:
                assert record in copied[answer.downstream_offset :], (upstream, answer, record)  # E2
        if answer.exact and upstream in records:
            assert copied[answer.downstream_offset] == upstream  # E3
        assert answer.downstream_offset >= last  # E4
        last = answer.downstream_offset
