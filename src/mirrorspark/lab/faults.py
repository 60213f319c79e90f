"""A seeded schedule of faults: who is hit, how, and when, the same for the same seed.

Used by fault journeys and long runs::

    faults = FaultSchedule(seed, {
        "kill a worker": kill_one_of(lambda: task_workers(driver.pid), seed),
        "pause the target": pause_for(target.broker(1), 3.0),
        "bounce the source": bounce(source.broker(1)),
    }, every_s=(2, 6), duration_s=60)
    with faults: ...
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mirrorspark.errors import LabError

__all__ = ["Fault", "FaultSchedule", "Happened", "bounce", "kill_one_of", "pause_for"]

Action = Callable[[], str | None]


class Pausable(Protocol):
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class Restartable(Protocol):
    def kill(self) -> None: ...
    def restart(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Fault:
    """What is planned: seconds after the start, and the name of the action."""

    at_s: float
    name: str


@dataclass(frozen=True, slots=True)
class Happened:
    """What came of a fault: when it began, how long it took, what the action said, or why it failed."""

    fault: Fault
    began_s: float
    took_s: float
    note: str
    failed: bool = False

    def __str__(self) -> str:
        outcome = "FAILED: " if self.failed else ""
        return f"{self.began_s:7.2f} s  {self.fault.name} ({self.took_s:.2f} s) {outcome}{self.note}".rstrip()


class FaultSchedule:
    """Plans faults from a seed and carries them out one after another in a thread, between enter and exit."""

    def __init__(
        self,
        seed: int,
        actions: Mapping[str, Action],
        *,
        every_s: tuple[float, float],
        duration_s: float,
    ) -> None:
        self.seed = seed
        self._actions = dict(actions)
        self.plan = _planned(seed, sorted(actions), every_s, duration_s)
        self.happened: list[Happened] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"faults-{seed}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        """Wait until the whole plan is carried out."""
        self._thread.join()

    def stop(self) -> None:
        """No further faults; a running one is ended in order (what was paused is resumed)."""
        self._stopping.set()
        self._thread.join()

    @property
    def failures(self) -> list[Happened]:
        return [one for one in self.happened if one.failed]

    def report(self) -> str:
        return "\n".join([f"faults of seed {self.seed}:", *(f"  {one}" for one in self.happened)])

    def __enter__(self) -> FaultSchedule:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        began = time.monotonic()
        for fault in self.plan:
            if self._stopping.wait(max(0.0, began + fault.at_s - time.monotonic())):
                return
            at = time.monotonic()
            note, failed = "", False
            try:
                note = self._actions[fault.name]() or ""
            except (LabError, OSError) as error:
                note, failed = str(error), True
            self.happened.append(Happened(fault, at - began, time.monotonic() - at, note, failed))


def _planned(seed: int, names: Sequence[str], every_s: tuple[float, float], duration_s: float) -> list[Fault]:
    dice = random.Random(seed)
    plan: list[Fault] = []
    at_s = dice.uniform(*every_s)
    while at_s < duration_s:
        plan.append(Fault(at_s, dice.choice(names)))
        at_s += dice.uniform(*every_s)
    return plan


def kill_one_of(find: Callable[[], Sequence[int]], seed: int = 1) -> Action:
    """SIGKILL one of the processes that are there at that time; says so when there is none."""
    dice = random.Random(seed)

    def act() -> str:
        pids = sorted(find())
        if not pids:
            return "nobody there to kill"
        pid = dice.choice(pids)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return f"{pid} had just ended"
        return f"killed {pid}"

    return act


def pause_for(target: Pausable, seconds: float) -> Action:
    """Stop a process for a while, as a long garbage collection or a frozen machine would."""

    def act() -> None:
        target.pause()
        try:
            time.sleep(seconds)
        finally:
            target.resume()

    return act


def bounce(target: Restartable, *, orderly: bool = False) -> Action:
    """Kill a broker (or stop it in order) and start it again on the same port and data."""

    def act() -> None:
        if not orderly:
            target.kill()
        target.restart()

    return act
