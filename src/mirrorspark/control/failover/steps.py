"""Runs steps in order, each once: what is done is written down before the next one begins, and never done again.

A step is idempotent: it may have been cut off anywhere, by a kill or an error, and the next run does it anew. One that fails
is undone where that is possible, and told. Knows nothing about what the steps do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from mirrorspark.control.failover.journal import Journal, now_ms
from mirrorspark.control.failover.record import Outcome, Record
from mirrorspark.errors import MirrorError

__all__ = ["Hook", "Step", "StepFailed", "StepRunner", "Tell"]

Tell = Callable[[str], None]
Hook = Callable[[str, str], None]
"""Called with a step's name and the moment: before, acted, stored. Tests fail there."""


class StepFailed(MirrorError):
    """Facts: step, undone."""

    code = "STEP_FAILED"


@dataclass(frozen=True)
class Step:
    name: str
    title: str
    """What it does, for the plan that is shown before."""
    act: Callable[[Record], Awaitable[Outcome]]
    undo: Callable[[], Awaitable[str]] | None = None
    """Takes back what a failed attempt may have changed; says what."""
    explains: str = ""
    """What a failed attempt leaves behind, where nothing is taken back."""
    repeats: tuple[str, ...] = ()
    """Earlier steps that must be done again after this one failed."""


def no_hook(step: str, moment: str) -> None:
    return None


class StepRunner:
    def __init__(self, journal: Journal, tell: Tell, hook: Hook = no_hook) -> None:
        self._journal = journal
        self._tell = tell
        self._hook = hook

    async def run(self, steps: Sequence[Step]) -> Record:
        """From the first that is not done to the end. Raises StepFailed."""
        for number, step in enumerate(steps, 1):
            name = f"step {number} of {len(steps)}, {step.name}"
            if self._record.is_done(step.name):
                self._tell(f"{name}: was done before: {self._record.steps[step.name].text}")
                continue
            self._tell(f"{name}: {step.title}")
            outcome = await self._one(step)
            await self._journal.write(self._record.with_step(step.name, outcome, now_ms()))
            self._hook(step.name, "stored")
            self._tell(f"{name}: {outcome.state.value}: {outcome.text}")
        if not self._record.is_finished:
            await self._journal.write(replace(self._record, finished_ms=now_ms()))
        return self._record

    @property
    def _record(self) -> Record:
        assert self._journal.record is not None
        return self._journal.record

    async def _one(self, step: Step) -> Outcome:
        try:
            self._hook(step.name, "before")
            outcome = await step.act(self._record)
            self._hook(step.name, "acted")
        except MirrorError as error:
            after = await self._take_back(step)
            raise StepFailed(f"{step.name}: {error}\n{after}", step=step.name, reason=error.code) from error
        return outcome

    async def _take_back(self, step: Step) -> str:
        """In words, what the failed step leaves."""
        again = "run the same command again: it goes on here"
        if step.undo is None:
            return f"{step.explains or 'nothing was changed by it'}; {again}"
        try:
            undone = await step.undo()
            if step.repeats:
                await self._journal.write(self._record.without(step.repeats))
        except MirrorError as error:
            return f"it could not be taken back ({error}); {again}, or take it back with --abandon"
        return f"{undone}; {again}"
