"""Spark's start beside everything else: nobody waits for it who need not, and nothing of it is left."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from mirrorspark.control import spark_start
from mirrorspark.control.spark_start import SparkStart
from mirrorspark.errors import SparkLost


class Session:
    def __init__(self, error: Exception | None = None) -> None:
        self.stops = 0
        self.error = error

    def stop(self) -> None:
        self.stops += 1
        if self.error:
            raise self.error


def _nothing() -> None:
    return None


def test_a_session_for_all_who_wait_and_one_stop() -> None:
    session = Session()

    async def main() -> None:
        start = SparkStart(_nothing, lambda: session, _nothing)
        assert await asyncio.gather(start.session(), start.session()) == [session, session]
        assert start.is_up
        assert start.up is session
        start.close()

    asyncio.run(main())
    assert session.stops == 1


def test_a_stop_that_fails_is_no_failure() -> None:
    async def main() -> None:
        start = SparkStart(_nothing, lambda: Session(OSError("its JVM was killed")), _nothing)
        await start.session()
        start.close()

    asyncio.run(main())


def test_what_keeps_it_from_starting_is_told_to_all() -> None:
    def fail() -> Any:
        raise ZeroDivisionError("odd")

    async def main() -> None:
        start = SparkStart(_nothing, fail, _nothing)
        for _ in range(2):
            with pytest.raises(SparkLost, match=r"could not be started: .*odd"):
                await start.session()
        assert not start.is_up
        start.close()

    asyncio.run(main())


def test_the_jvm_is_held_back_until_a_cluster_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_start, "HOLD_BACK_S_MAX", 3600.0)
    loaded, opened = threading.Event(), threading.Event()

    def open_session() -> Session:
        opened.set()
        return Session()

    async def abandoned() -> None:
        SparkStart(loaded.set, open_session, _nothing).close()

    asyncio.run(abandoned())
    assert not loaded.is_set()
    assert not opened.is_set()

    async def wanted() -> None:
        start = SparkStart(_nothing, open_session, _nothing)
        await start.session()
        start.close()

    asyncio.run(wanted())
    assert opened.is_set()


def test_abandoning_kills_what_is_starting() -> None:
    opening, killed = threading.Event(), threading.Event()

    def open_session() -> Session:
        opening.set()
        killed.wait()
        raise SparkLost("killed")

    async def main() -> None:
        start = SparkStart(_nothing, open_session, killed.set)
        waiting = asyncio.ensure_future(start.session())
        await asyncio.to_thread(opening.wait)
        start.close()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    asyncio.run(main())
    assert killed.is_set()
