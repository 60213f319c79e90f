"""MirrorMaker 2's translation, by its own vectors."""

from __future__ import annotations

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.mm2_translation import DROPPED, Mm2OffsetSyncStore
from mirrorspark.offsets.offset_sync import OffsetSync, OffsetSyncs

AT = TopicPartition("topic1", 2)


def _store(*, must_read_to_end: bool) -> Mm2OffsetSyncStore:
    """Syncs every ten records, up to 1,000 from before, then up to 10,000 as they come."""
    store = Mm2OffsetSyncStore(must_read_to_end=must_read_to_end)
    for offset in range(0, 1_001, 10):
        store.fold(OffsetSync(AT, offset, offset))
        assert store.translate(AT, offset) is None
    store.loaded()
    return store


def _go_on(store: Mm2OffsetSyncStore) -> None:
    for offset in range(1_010, 10_001, 10):
        store.fold(OffsetSync(AT, offset, offset))


def test_when_checkpoints_could_not_be_read() -> None:
    store = _store(must_read_to_end=True)
    assert store.translate(AT, 999) == DROPPED
    assert store.translate(AT, 1_000) == 1_000
    _go_on(store)
    kept = [10_000, 9_990, 9_970, 9_940, 9_880, 9_640, 9_160, 8_680, 6_760, 4_840, 1_000]
    assert [sync.upstream for sync in store.syncs(AT)] == kept
    wanted = {999: DROPPED, 1_000: 1_000, 4_839: 1_001, 9_159: 8_681, 10_500: 10_001}
    assert {offset: store.translate(AT, offset) for offset in wanted} == wanted


def test_when_they_could_and_after_a_rewind() -> None:
    store = _store(must_read_to_end=False)
    wanted = {479: 1, 480: 480, 719: 481, 999: 991}
    assert {offset: store.translate(AT, offset) for offset in wanted} == wanted
    _go_on(store)
    kept = [10_000, 9_990, 9_960, 9_900, 9_840, 9_600, 9_120, 8_640, 7_680, 3_840, 0]
    assert [sync.upstream for sync in store.syncs(AT)] == kept
    store.fold(OffsetSync(AT, 1_500, 11_000))
    wanted = {1_499: DROPPED, 1_500: 11_000, 2_000: 11_001}
    assert {offset: store.translate(AT, offset) for offset in wanted} == wanted


def test_one_past_the_nearest_sync_below() -> None:
    store = Mm2OffsetSyncStore()
    store.loaded()
    assert store.translate(AT, 150) is None
    store.fold(OffsetSync(AT, 100, 200))
    assert store.translate(AT, 150) == 201
    store.fold(OffsetSync(AT, 150, 251))
    assert store.translate(AT, 150) == 251
    assert store.translate(AT, 5) == DROPPED


def test_how_much_of_a_million_is_read_again() -> None:
    """The figures beside ours: a store with the default lag keeps about 15 syncs of a million records."""
    store = Mm2OffsetSyncStore()
    store.loaded()
    syncs = OffsetSyncs(AT, 100)
    for first in range(0, 1_000_000, 50):
        syncs.see(first, first + 49, first)
        due = syncs.take(delayed=False)
        if due is not None:
            store.fold(due)
    assert len(store.syncs(AT)) == 15
    groups = (1_000_000, 999_000, 990_000, 900_000, 500_000, 100_000)
    again = {group: group - (store.translate(AT, group) or 0) for group in groups}
    assert again == {1_000_000: 99, 999_000: 311, 990_000: 1_007, 900_000: 72_607, 500_000: 86_303, 100_000: 99_999}
