"""Offset syncs: MirrorMaker 2's bytes, and its rule for when to write one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.offset_sync import OffsetSync, OffsetSyncs

AT = TopicPartition("topic1", 2)
SYNC = OffsetSync(AT, 3, 4)


def test_bytes_of_a_sync() -> None:
    assert SYNC.key == bytes.fromhex("0006746f7069633100000002")
    assert SYNC.value == bytes.fromhex("00000000000000030000000000000004")
    assert OffsetSync.from_record(SYNC.key, SYNC.value) == SYNC


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, SYNC.value),
        (b"", SYNC.value),
        (SYNC.key, None),
        (SYNC.key, b""),
        (SYNC.key[:-1], SYNC.value),
        (SYNC.key + b"\0", SYNC.value),
        (SYNC.key, SYNC.value + b"\0"),
        (b"\xff\xff" + SYNC.key[2:], SYNC.value),
        (b"\0\1\xff\0\0\0\2", SYNC.value),
    ],
)
def test_what_is_no_sync(key: bytes | None, value: bytes | None) -> None:
    assert OffsetSync.from_record(key, value) is None


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_arbitrary_bytes_never_raise(key: bytes, value: bytes) -> None:
    OffsetSync.from_record(key, value)


def test_mirror_makers_rule() -> None:
    syncs = OffsetSyncs(AT, 50)
    steps = [
        (0, 100, True),  # the first
        (2, 102, True),  # a gap
        (3, 152, False),
        (4, 153, True),  # too stale
        (5, 154, False),
        (6, 203, False),
        (7, 204, True),
        (2, 206, True),  # rewound
        (3, 207, False),
        (4, 3, True),  # the target was truncated
        (5, 4, False),
        (7, 6, True),
    ]
    assert [(up, down, syncs.update(up, down)) for up, down, _ in steps] == steps


def test_without_lag_every_record_is_worth_one() -> None:
    syncs = OffsetSyncs(AT, 0)
    assert all(syncs.update(offset, offset + 5) for offset in range(10))


def test_what_was_delayed_comes_with_the_next_commit() -> None:
    syncs = OffsetSyncs(AT, 100)
    syncs.see(0, 9, 50)
    assert syncs.take(delayed=False) == OffsetSync(AT, 0, 50)
    assert syncs.take(delayed=False) is None
    assert syncs.take(delayed=True) == OffsetSync(AT, 9, 59)
    assert syncs.take(delayed=True) is None


stretches = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 300), st.integers(0, 2)), max_size=20)


@given(stretches, st.sampled_from([0, 1, 2, 7, 100]))
def test_a_stretch_counts_as_its_records_one_by_one(pieces: list[tuple[int, int, int]], lag_max: int) -> None:
    one_by_one, at_once = OffsetSyncs(AT, lag_max), OffsetSyncs(AT, lag_max)
    up, down = 0, 1_000
    for gap, count, marker in pieces:
        up, down = up + gap, down + marker
        for i in range(count):
            one_by_one.update(up + i, down + i)
        at_once.see(up, up + count - 1, down)
        up, down = up + count, down + count
        assert at_once.take(delayed=False) == one_by_one.take(delayed=False)
    assert at_once.take(delayed=True) == one_by_one.take(delayed=True)
