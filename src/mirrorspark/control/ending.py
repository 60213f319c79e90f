"""Ending asyncio tasks for sure."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

__all__ = ["end_tasks"]

ASK_AGAIN_S = 0.5


async def end_tasks(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Cancel them and wait until they have ended; what they raise is dropped.

    Asks more than once, since a job may lose a cancellation that comes together with a result, and one that loops would
    go on for ever. Who is cancelled in here leaves only when they have ended: a task left behind would work on clusters
    that its owner has closed.
    """
    left = {task for task in tasks if not task.done()}
    cancelled: asyncio.CancelledError | None = None
    while left:
        for task in left:
            task.cancel()
        try:
            await asyncio.wait(left, timeout=ASK_AGAIN_S)
        except asyncio.CancelledError as error:
            cancelled = error
        left = {task for task in left if not task.done()}
    for task in tasks:
        if not task.cancelled():
            task.exception()
    if cancelled is not None:
        raise cancelled
