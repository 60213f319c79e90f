"""Tasks end, also those that lose a cancellation on the way."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from mirrorspark.control import ending
from mirrorspark.control.ending import end_tasks


def test_all_kinds_of_tasks_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "ASK_AGAIN_S", 0.001)

    async def forgetful() -> None:
        lost = 0
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                lost += 1
                if lost == 3:
                    raise

    async def failing() -> None:
        raise ValueError("dropped")

    async def main() -> None:
        tasks = [
            asyncio.ensure_future(work) for work in (forgetful(), failing(), asyncio.sleep(3600), asyncio.sleep(0))
        ]
        await asyncio.sleep(0.01)
        await end_tasks(tasks)
        assert [task.done() for task in tasks] == [True] * 4
        assert tasks[0].cancelled()

    asyncio.run(main())


def test_nothing_to_end() -> None:
    asyncio.run(end_tasks([]))


def test_who_ends_tasks_and_is_cancelled_leaves_none_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "ASK_AGAIN_S", 0.001)

    async def forgetful() -> None:
        for _ in range(5):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)

    async def main() -> None:
        job = asyncio.ensure_future(forgetful())

        async def owner() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                await end_tasks([job])

        owning = asyncio.ensure_future(owner())
        await asyncio.sleep(0.01)
        await end_tasks([owning])
        assert owning.cancelled()
        assert job.done()

    asyncio.run(main())
