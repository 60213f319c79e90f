"""Fault schedules: the same seed plans the same faults; what happened is told; what was paused is resumed."""

from __future__ import annotations

import itertools
import subprocess
import sys

from mirrorspark.errors import LabError
from mirrorspark.lab.faults import FaultSchedule, bounce, kill_one_of, pause_for


class FakeBroker:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")

    def kill(self) -> None:
        self.calls.append("kill")

    def restart(self) -> None:
        self.calls.append("restart")


def _schedule(seed: int) -> FaultSchedule:
    actions = {name: (lambda: None) for name in ("kill", "pause", "bounce")}
    return FaultSchedule(seed, actions, every_s=(1, 3), duration_s=100)


def test_same_seed_same_plan() -> None:
    assert _schedule(1).plan == _schedule(1).plan
    assert _schedule(1).plan != _schedule(2).plan
    plan = _schedule(1).plan
    assert {fault.name for fault in plan} == {"kill", "pause", "bounce"}
    assert all(1 <= later.at_s - sooner.at_s <= 3 for sooner, later in itertools.pairwise(plan))
    assert plan[-1].at_s < 100


def test_plan_is_carried_out_and_told() -> None:
    broker = FakeBroker()
    schedule = FaultSchedule(
        3,
        {"pause": pause_for(broker, 0.001), "bounce": bounce(broker), "stop": bounce(broker, orderly=True)},
        every_s=(0.001, 0.003),
        duration_s=0.1,
    )
    schedule.start()
    schedule.join()
    assert [one.fault for one in schedule.happened] == schedule.plan
    assert not schedule.failures
    assert broker.calls.count("pause") == broker.calls.count("resume") > 0
    assert broker.calls.count("restart") > broker.calls.count("kill") > 0
    assert schedule.report().startswith("faults of seed 3:")


def test_failed_action_is_told_and_the_rest_goes_on() -> None:
    def fail() -> None:
        raise LabError("no such broker")

    schedule = FaultSchedule(1, {"fail": fail}, every_s=(0.001, 0.002), duration_s=0.01)
    with schedule:
        schedule.join()
    assert len(schedule.failures) == len(schedule.plan) > 1
    assert "FAILED: no such broker" in schedule.report()


def test_stopped_schedule_does_nothing_more() -> None:
    schedule = FaultSchedule(1, {"late": lambda: None}, every_s=(1000, 2000), duration_s=10_000)
    with schedule:
        pass
    assert schedule.happened == []


def test_one_of_the_processes_found_is_killed() -> None:
    victim = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    assert kill_one_of(lambda: [victim.pid])() == f"killed {victim.pid}"
    victim.communicate()
    assert kill_one_of(list)() == "nobody there to kill"
    assert "had just ended" in str(kill_one_of(lambda: [victim.pid])())
