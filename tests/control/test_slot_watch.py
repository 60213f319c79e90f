"""Slots count when their number has stayed for a while; a Spark that does not answer changes nothing."""

from __future__ import annotations

import logging

import pytest

from mirrorspark.control.slot_watch import SETTLED_S, SlotWatch


class World:
    """Spark's answers and the time, a test's to set."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slots: int | Exception = 0
        self.watch = SlotWatch(self.look, lambda: self.now)

    def look(self) -> int:
        if isinstance(self.slots, Exception):
            raise self.slots
        return self.slots

    def after(self, seconds: float, slots: int | Exception | None = None) -> int | None:
        if slots is not None:
            self.slots = slots
            self.watch.look_once()
        self.now += seconds
        self.watch.look_once()
        return self.watch.slots


def test_an_executor_that_comes_back_in_time_is_not_missed() -> None:
    world = World()
    assert world.after(SETTLED_S * 2) is None  # no executor at all: not a number to go by
    assert world.after(SETTLED_S / 2, 2) is None
    assert world.after(SETTLED_S, 4) == 4
    assert world.after(SETTLED_S / 2, 2) == 4
    assert world.after(SETTLED_S / 2, 4) == 4
    assert world.after(SETTLED_S, 2) == 2
    assert world.after(SETTLED_S * 9, 0) == 2  # all are gone: the lanes wait for them as they are


def test_a_spark_that_does_not_answer_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    assert world.after(SETTLED_S, 3) == 3
    with caplog.at_level(logging.WARNING):
        assert world.after(SETTLED_S, OSError("gone")) == 3
        assert world.after(SETTLED_S) == 3
    assert [record.getMessage() for record in caplog.records] == [
        "how many tasks Spark runs at a time is not known now: OSError('gone')"
    ]
