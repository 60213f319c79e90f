"""There and back again: real producers and consumers move to the other cluster, read on, and move back; nothing is lost and
nothing is read twice. A failure at every step, by an error and by a kill, leaves what the next run takes up.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.journeys.failover_pair import EXACTLY_ONCE, PARTITIONS, PATIENCE_S, Pair

from mirrorspark.control.failover import holding
from mirrorspark.errors import MirrorError
from mirrorspark.lab.clients import create_topic, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.settings import FlowSettings

Begin = Callable[[FlowSettings], FlowWithoutSpark]

CASES: dict[str, dict[str, str]] = {
    "default": {},
    "same-name": {"replication.policy.class": "same-name"},
}
"""What the file says besides the clusters; another way of mirroring is another line."""
FAILING_BACK = "default, with failures on the way back"
MORE_CASES: dict[str, dict[str, str]] = {
    FAILING_BACK: {},
    "default, exactly once": {EXACTLY_ONCE: "enabled"},
    "same-name, exactly once": {"replication.policy.class": "same-name", EXACTLY_ONCE: "enabled"},
    "identical": {"offsets": "identical"},
}


class Killed(BaseException):
    """As if the process had gone: nobody undoes anything."""


@pytest.fixture
def make_pair(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Pair]:
    monkeypatch.setattr(holding, "QUIET_S", 0.5)  # producers here have stopped for certain
    monkeypatch.setattr(holding, "STILL_S", 1.2)
    return lambda case: Pair(source_cluster, target_cluster, (CASES | MORE_CASES)[case], tmp_path)


class Failing:
    """Fails once, at a moment of a step; remembers which steps began."""

    def __init__(self, step: str, moment: str, error: BaseException) -> None:
        self._where = step, moment
        self._error = error
        self.begun: list[str] = []

    def __call__(self, step: str, moment: str) -> None:
        if moment == "before":
            self.begun.append(step)
        if (step, moment) == self._where:
            raise self._error


def move_with_failures(pair: Pair, *, back: bool = False) -> None:
    """At every step: an error, which the run tells and undoes, then a kill before the step is written down, or after."""
    first = "drain"
    for step, moment in (("drain", "acted"), ("hold", "acted"), ("groups", "stored"), ("reverse", "acted")):
        failing = Failing(step, "acted", MirrorError("injected"))
        report = pair.attempt(failing, back=back)
        assert report.state == "failed"
        assert "injected" in report.error
        assert "run the same command again" in report.error
        assert report.record is not None
        assert not report.record.is_done(step)
        assert failing.begun[0] == first
        begins_anew = "drain" if step == "hold" else step  # a pause that is taken back lets the flow carry on
        failing = Failing(step, moment, Killed())
        with pytest.raises(Killed):
            pair.attempt(failing, back=back)
        assert failing.begun[0] == begins_anew
        first = "reverse" if moment == "stored" else step


@pytest.mark.parametrize("case", [*CASES, *(pytest.param(case, marks=pytest.mark.slow) for case in MORE_CASES)])
def test_there_and_back_again(case: str, make_pair: Callable[[str], Pair], lanes_without_spark: Begin) -> None:
    pair = make_pair(case)
    create_topic(pair.bootstrap["east"], pair.topic, PARTITIONS)
    pair.produce("east", 200)
    westward = lanes_without_spark(pair.westward)
    pair.consume("east", "early", 40)
    pair.consume("east", "late", 90)
    pair.produce("east", 60)

    wait_for(lambda: pair.command("lag", "--flow", pair.flow)["flows"][0]["records"] == 0, "all to arrive", PATIENCE_S)
    if case == "default":
        assert pair.command("failover", "--flow", pair.flow, "--dry-run")["state"] == "ready"
        move_with_failures(pair)
    report = pair.command("failover", "--flow", pair.flow, "--yes")
    assert report["state"] == "done"
    assert report["stranded"]["records"] == 0
    assert report["groups"]["how"] == "exactly"
    if not pair.keeps_names:
        assert pair.command("failover", "--flow", pair.flow, "--yes")["state"] == "done"  # once more is not twice
        create_topic(pair.bootstrap["west"], pair.topic, PARTITIONS)
    pair.produce("west", 50)
    pair.consume("west", "early", 30)  # still among what came from east
    pair.consume("west", "late", 190)  # beyond it
    eastward = lanes_without_spark(pair.eastward)
    pair.produce("west", 30)

    if case == FAILING_BACK:
        move_with_failures(pair, back=True)
    back = pair.command("failback", "--flow", pair.flow, "--yes")
    assert (back["state"], back["flow"]) == ("done", str(pair.eastward.flow)), back
    assert back["groups"]["how"] == "exactly"
    assert back["reverse"]["resumed"] or case == FAILING_BACK  # there a run that was killed had resumed it
    pair.produce("east", 20)
    for name in ("early", "late"):
        pair.consume("east", name, None)
    pair.assert_all_read_once()

    def arrived() -> bool:
        return bool(pair.command("lag", "--flow", pair.flow)["flows"][0]["records"] == 0)

    wait_for(arrived, "the flow to carry on", PATIENCE_S)
    pair.assert_nothing_went_round()
    assert not westward.events
    assert not eastward.events
    if pair.keeps_names:  # and once more, after both have written
        pair.produce("east", 20)
        pair.consume("east", "early", 5)
        assert pair.command("failover", "--flow", pair.flow, "--yes")["groups"]["how"] == "exactly"
        for name in ("early", "late"):
            pair.consume("west", name, None)
        pair.assert_all_read_once()
