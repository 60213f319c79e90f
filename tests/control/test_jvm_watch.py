"""Figures of Spark's JVM: fresh ones are told, one that does not answer holds up nobody."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest

from mirrorspark.control.jvm_watch import ASKED_WITHIN_S, FRESH_S, IDLE_POLL_S, LOOK_INTERVAL_S, JvmWatch, look_at_jvm
from mirrorspark.lab.clients import wait_for
from mirrorspark.observe.jvm_figures import Collector, JvmFigures, MemoryArea

FIGURES = JvmFigures(MemoryArea(1, 2, 3), MemoryArea(4, 5, -1), 7, 6, 9, (Collector("Copy", 2, 0.5),))
PATIENCE_S = 60.0


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_newest_figures_are_told_and_old_ones_are_not() -> None:
    clock = Clock()
    watch = JvmWatch(lambda: "session", lambda session: FIGURES, clock)
    assert watch.figures is None
    watch.look_once()
    assert watch.figures == FIGURES
    clock.now += FRESH_S
    assert watch.figures == FIGURES
    clock.now += 0.1
    assert watch.figures is None


def test_without_spark_there_is_nothing_to_look_at() -> None:
    def look(session: Any) -> JvmFigures:
        raise AssertionError("there is no session")

    watch = JvmWatch(lambda: None, look)
    watch.look_once()
    assert watch.figures is None


def test_a_jvm_that_is_gone_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    def look(session: Any) -> JvmFigures:
        raise ConnectionRefusedError("gone")

    watch = JvmWatch(lambda: "session", look)
    with caplog.at_level(logging.WARNING, "mirrorspark.jvm"):
        watch.look_once()
        watch.look_once()
    assert [record.getMessage() for record in caplog.records] == [
        "what Spark's JVM uses is not known now: ConnectionRefusedError('gone')"
    ]
    assert watch.figures is None


def test_a_jvm_that_hangs_holds_up_nobody() -> None:
    hangs, looked = threading.Event(), threading.Event()

    def look(session: Any) -> JvmFigures:
        looked.set()
        hangs.wait(PATIENCE_S)
        return FIGURES

    watch = JvmWatch(lambda: "session", look)
    watch.start()
    assert looked.wait(PATIENCE_S)
    assert watch.figures is None
    watch.close()  # returns at once
    hangs.set()


def test_nobody_looks_where_nobody_asks() -> None:
    clock, looks = Clock(), []

    def look(session: Any) -> JvmFigures:
        looks.append(clock.now)
        clock.now += ASKED_WITHIN_S
        return FIGURES

    watch = JvmWatch(lambda: "session", look, clock)
    watch.start()
    try:
        wait_for(lambda: len(looks) == 1, "the first look", PATIENCE_S)
        clock.now += LOOK_INTERVAL_S
        time.sleep(2 * IDLE_POLL_S)
        assert len(looks) == 1, "nobody asked meanwhile"
        assert watch.figures == FIGURES
        wait_for(lambda: len(looks) == 2, "a look, as somebody asked", PATIENCE_S)
    finally:
        watch.close()


def test_beans_are_read() -> None:
    class Bean:
        def __init__(self, **values: Any) -> None:
            self._values = values

        def __getattr__(self, name: str) -> Any:
            return lambda: self._values[name]

    heap, nonheap = Bean(getUsed=1, getCommitted=2, getMax=3), Bean(getUsed=4, getCommitted=5, getMax=-1)
    factory = Bean(
        getMemoryMXBean=Bean(getHeapMemoryUsage=heap, getNonHeapMemoryUsage=nonheap),
        getThreadMXBean=Bean(getThreadCount=7, getDaemonThreadCount=6, getPeakThreadCount=9),
        getGarbageCollectorMXBeans=[Bean(getName="Copy", getCollectionCount=2, getCollectionTime=500)],
    )

    class Session:
        class _jvm:
            class java:
                class lang:
                    class management:
                        ManagementFactory = factory

    assert look_at_jvm(Session) == FIGURES
