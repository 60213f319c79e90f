"""What a person sees while the comparison runs: a line for each step, and a bar or now and then a line within one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

__all__ = ["Narrator"]

LINE_EVERY_S = 20.0


class Narrator:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()

    def tell(self, text: str) -> None:
        elapsed = time.monotonic() - self._began
        self._console.print(f"[{elapsed:7.1f} s] {text}", markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def progress(self, what: str, total: float) -> Iterator[Callable[[float], None]]:
        """Gives a function that takes how much is done by now."""
        if not self._console.is_terminal:
            yield self._lines(what, total)
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self._console, transient=True, refresh_per_second=2) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)

    def _lines(self, what: str, total: float) -> Callable[[float], None]:
        next_at = time.monotonic() + LINE_EVERY_S

        def update(done: float) -> None:
            nonlocal next_at
            if time.monotonic() >= next_at:
                next_at = time.monotonic() + LINE_EVERY_S
                self.tell(f"  {what}: {100 * done / max(total, 1):.0f} %")

        return update
