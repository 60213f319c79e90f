"""Steps run in order, once; whatever goes wrong, the next run goes on at the first that is not done."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.control.failover.journal import Journal
from mirrorspark.control.failover.record import Mode, Outcome, Record, StepState, format_record, parse_record
from mirrorspark.control.failover.steps import Step, StepFailed, StepRunner
from mirrorspark.errors import MirrorError

NAMES = ("one", "two", "three")


class Killed(BaseException):
    pass


class KeptRecord:
    """What ``Journal`` keeps, in memory, in the bytes that it would write."""

    def __init__(self) -> None:
        self.raw = format_record(Record("r", "east->west", Mode.CUT, "me", 0))

    @property
    def record(self) -> Record:
        found = parse_record(self.raw, "memory")
        assert found is not None
        return found

    async def write(self, record: Record) -> None:
        self.raw = format_record(record)


class Play:
    """Three steps that only note what was called."""

    def __init__(self) -> None:
        self.kept = KeptRecord()
        self.calls: list[str] = []
        self.told: list[str] = []
        self.postponed = False

    def steps(self) -> list[Step]:
        def act(name: str) -> Step:
            async def work(_: Record) -> Outcome:
                self.calls.append(name)
                is_late = self.postponed and name == "three"
                return Outcome(f"{name} is done", state=StepState.POSTPONED if is_late else StepState.DONE)

            async def undo() -> str:
                self.calls.append(f"undo {name}")
                return "taken back"

            return Step(name, f"do {name}", work, undo if name == "two" else None, repeats=("one",) * (name == "two"))

        return [act(name) for name in NAMES]

    def run(self, hook: object = lambda step, moment: None) -> Record:
        runner = StepRunner(cast("Journal", self.kept), self.told.append, hook)  # type: ignore[arg-type]
        return asyncio.run(runner.run(self.steps()))


def failing(step: str, moment: str, error: BaseException) -> object:
    def hook(now: str, at: str) -> None:
        if (now, at) == (step, moment):
            raise error

    return hook


def test_each_step_runs_once_and_in_order() -> None:
    play = Play()
    assert play.run().is_finished
    assert play.run().is_finished
    assert play.calls == list(NAMES)
    assert "step 1 of 3, one: was done before: one is done" in play.told


@given(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.sampled_from(["before", "acted", "stored"]), st.booleans()), max_size=9
    )
)
def test_whatever_fails_the_last_run_ends_it(failures: list[tuple[str, str, bool]]) -> None:
    play = Play()
    for step, moment, is_kill in failures:
        error = Killed() if is_kill or moment == "stored" else MirrorError("injected")
        try:
            play.run(failing(step, moment, error))
        except (Killed, StepFailed):
            continue
    record = play.run()
    assert record.is_finished
    assert all(record.is_done(name) for name in NAMES)
    acted = [name for name in play.calls if name in NAMES]
    assert [name for index, name in enumerate(acted) if name not in acted[:index]] == list(NAMES)  # never out of order


def test_a_failed_step_is_undone_and_what_led_to_it_is_done_again() -> None:
    play = Play()
    with pytest.raises(StepFailed, match="two: injected\ntaken back; run the same command again") as failed:
        play.run(failing("two", "acted", MirrorError("injected")))
    assert failed.value.facts["step"] == "two"
    play.run()
    assert play.calls == ["one", "two", "undo two", "one", "two", "three"]


def test_a_kill_undoes_nothing() -> None:
    play = Play()
    with pytest.raises(Killed):
        play.run(failing("two", "acted", Killed()))
    play.run()
    assert play.calls == ["one", "two", "two", "three"]


def test_a_postponed_step_holds_up_nothing_and_is_tried_again() -> None:
    play = Play()
    play.postponed = True
    record = play.run()
    assert (record.is_finished, record.postponed) == (True, ["three"])
    play.postponed = False
    assert play.run().postponed == []
    assert play.calls == [*NAMES, "three"]


def test_an_undo_that_fails_is_told_too() -> None:
    play = Play()

    async def refuse() -> str:
        raise MirrorError("no answer")

    async def fail(_: Record) -> Outcome:
        raise MirrorError("injected")

    runner = StepRunner(cast("Journal", play.kept), play.told.append)
    with pytest.raises(StepFailed, match=r"could not be taken back \(no answer\).*--abandon"):
        asyncio.run(runner.run([Step("one", "", fail, refuse)]))
