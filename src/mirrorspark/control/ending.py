"""Ending asyncio tasks for sure."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

__all__ = ["end_tasks"]

ASK_AGAIN_S = 0.5


async def end_tasks(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Cancel them and wait until they have ended; what they raise is dropped.

    Asks more than once: ``asyncio.wait_for`` (Python 3.11) loses a cancellation that comes together with its result, and a
    job that loops would go on for ever.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=ASK_AGAIN_S)
    for task in tasks:
        if not task.cancelled():
            task.exception()
