"""How long a fetch waits for partitions that are left out of it: never longer than they have slept."""

from __future__ import annotations

from mirrorspark.names import TopicPartition
from mirrorspark.pipeline.sleepers import WAKE_PATIENCE_S, Sleepers
from mirrorspark.pipeline.track import Track
from mirrorspark.plan.lanes import Assignment

HERE, THERE = 1, 2


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def _track(partition: int) -> Track:
    return Track(Assignment(TopicPartition("orders", partition), "east.orders", ""))


def test_nobody_asleep_holds_nothing_up() -> None:
    sleepers = Sleepers(Clock())
    assert sleepers.patience_s(HERE) == 0
    assert sleepers.wait_ms(HERE) > 86_400_000


def test_a_fetch_is_put_off_for_a_moment_and_then_waits_no_longer_than_the_last_one_has_slept() -> None:
    clock = Clock()
    sleepers = Sleepers(clock)
    first, second = _track(0), _track(1)
    sleepers.put(first, HERE)
    assert first.asleep
    assert sleepers.patience_s(HERE) == WAKE_PATIENCE_S
    clock.now += 2 * WAKE_PATIENCE_S
    assert sleepers.patience_s(HERE) == 0
    assert 1 <= sleepers.wait_ms(HERE) <= 2_000 * WAKE_PATIENCE_S
    clock.now += 10
    assert sleepers.wait_ms(HERE) > 10_000
    sleepers.put(second, HERE)
    assert sleepers.patience_s(HERE) == WAKE_PATIENCE_S
    assert sleepers.wait_ms(HERE) == 1
    sleepers.wake(second)
    assert not second.asleep
    assert sleepers.patience_s(HERE) == 0


def test_sleepers_of_one_broker_do_not_hold_up_another() -> None:
    sleepers = Sleepers(Clock())
    sleepers.put(_track(0), THERE)
    assert sleepers.patience_s(HERE) == 0
    assert sleepers.patience_s(THERE) > 0


def test_one_whose_queue_was_dropped_sleeps_no_more() -> None:
    sleepers = Sleepers(Clock())
    track = _track(0)
    sleepers.put(track, HERE)
    track.asleep = False
    assert sleepers.patience_s(HERE) == 0
