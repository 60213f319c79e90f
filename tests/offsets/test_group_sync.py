"""What becomes a checkpoint and what is written to the target's group; invariant E, over any history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.consumer_offsets_record import Commit, CommitRecord
from mirrorspark.offsets.group_sync import (
    GroupBook,
    Place,
    Synced,
    Verdict,
    decide,
    decide_again,
    is_worth_a_checkpoint,
)

AT, REMOTE = TopicPartition("orders", 0), TopicPartition("east.orders", 0)
offsets = st.integers(0, 20)


@pytest.mark.parametrize(
    ("wanted", "target", "ours", "verdict"),
    [
        (Synced(10, 110), None, None, Verdict.WRITE_FIRST),
        (Synced(10, 110), -1, None, Verdict.WRITE_FIRST),
        (Synced(10, 110), 110, None, Verdict.IN_STEP),
        (Synced(10, 110), 100, None, Verdict.WRITE_FORWARD),
        (Synced(10, 110), 100, Synced(5, 105), Verdict.WRITE_FORWARD),
        (Synced(10, 110), 120, None, Verdict.TARGET_AHEAD),
        (Synced(10, 110), 120, Synced(20, 120), Verdict.WRITE_BACK),  # the source went back and it is ours
        (Synced(10, 110), 121, Synced(20, 120), Verdict.TARGET_AHEAD),  # somebody read on, on the target
        (Synced(10, 110), 120, Synced(10, 120), Verdict.TARGET_AHEAD),  # the source did not go back
        (Synced(30, 110), 120, Synced(20, 120), Verdict.TARGET_AHEAD),  # less exact than before: never back
    ],
)
def test_each_case_has_its_verdict(wanted: Synced, target: int | None, ours: Synced | None, verdict: Verdict) -> None:
    assert decide(wanted, target, ours) is verdict
    assert verdict.writes == verdict.value.startswith("write")
    if target is not None:
        is_ahead = verdict is Verdict.TARGET_AHEAD
        assert decide_again(verdict, target, target) is verdict
        assert decide_again(verdict, target, target - 1) is (Verdict.WRITE_INTO_LOG if is_ahead else verdict)


@given(st.lists(st.tuples(st.booleans(), offsets), max_size=40))
def test_invariant_e_over_any_history(history: list[tuple[bool, int]]) -> None:
    """The source group commits here and there, a consumer on the target moves its offset: who went back?"""
    target: int | None = None
    ours: Synced | None = None
    for is_source, offset in history:
        if not is_source:
            target = offset
            continue
        wanted = Synced(offset, offset + 100)
        if decide(wanted, target, ours).writes:
            went_back = target is not None and wanted.downstream < target
            if went_back:
                assert ours is not None
                assert wanted.upstream < ours.upstream, "E: back though the source was not"
                assert target == ours.downstream, "E: took back what somebody else committed"
            target, ours = wanted.downstream, wanted


@pytest.mark.parametrize(
    ("wanted", "previous", "is_emitted"),
    [
        (Synced(10, 5), None, True),
        (Synced(10, 5), Synced(10, 5), False),
        (Synced(11, 5), Synced(10, 5), False),
        (Synced(11, 6), Synced(10, 5), True),
        (Synced(12, 4), Synced(10, 5), False),
        (Synced(9, 4), Synced(10, 5), True),
        (Synced(9, 5), Synced(10, 5), True),
    ],
)
def test_checkpoints_follow_mirrormaker_2s_rule(wanted: Synced, previous: Synced | None, is_emitted: bool) -> None:
    assert is_worth_a_checkpoint(wanted, previous) is is_emitted


def committed(offset: int, metadata: str = "", group: str = "g", at: TopicPartition = AT) -> CommitRecord:
    return CommitRecord(group, at, Commit(offset, metadata))


def test_only_what_changed_is_looked_at() -> None:
    book = GroupBook()
    book.take(committed(5))
    assert book.take_changed() == [Place("g", AT)]
    book.take(committed(5))
    assert book.take_changed() == []
    book.take(committed(5, "by hand"))
    book.take(committed(6))
    assert book.take_changed() == [Place("g", AT)]
    assert book.commits[Place("g", AT)].offset == 6


def test_what_waits_is_looked_at_when_its_ledger_moved() -> None:
    book = GroupBook()
    place = Place("g", AT)
    book.take(committed(5))
    book.take_changed()
    book.wait(place, REMOTE)
    book.moved([TopicPartition("east.other", 0)])
    assert book.take_changed() == []
    assert book.waiting == {place}
    book.moved([REMOTE])
    assert book.take_changed() == [place]
    book.done(place, REMOTE)
    book.moved([REMOTE])
    assert book.take_changed() == []
    assert not book.waiting


def test_groups_vanish_offset_by_offset_and_may_come_back() -> None:
    book = GroupBook()
    other = TopicPartition("orders", 1)
    book.take(committed(5))
    book.take(committed(7, at=other))
    book.wait(Place("g", AT), REMOTE)
    book.take(CommitRecord("g", AT, None))
    assert not book.waiting
    assert book.take_vanished() == []
    assert book.take_changed() == [Place("g", other)]
    book.take(CommitRecord("g", other, None))
    assert book.take_vanished() == ["g"]
    assert book.take_vanished() == []
    assert list(book.groups) == []
    book.take(committed(5))
    assert list(book.groups) == ["g"]
    assert book.take_vanished() == []
    book.take(CommitRecord("stranger", AT, None))
    book.keep_only(["other"])
    assert book.take_vanished() == ["g"]


def test_a_look_at_everything_finds_what_was_missed() -> None:
    book = GroupBook()
    book.take(committed(5))
    book.take(committed(5, group="h"))
    book.take_changed()
    book.take_all("g", {TopicPartition("orders", 1): Commit(1)})
    assert book.take_changed() == [Place("g", TopicPartition("orders", 1))]
    book.look_again_at(["h", "unknown"])
    assert book.take_changed() == [Place("h", AT)]
