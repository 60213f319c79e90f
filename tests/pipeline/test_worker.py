"""A lane's worker: which errors mean another attempt, and that any other is logged, told and only then raised."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from mirrorspark.cluster.broker_errors import broker_error
from mirrorspark.errors import AuthenticationFailed, Fenced, MirrorError, RequestTimedOut, Unreachable
from mirrorspark.events import Event, EventKind
from mirrorspark.names import Flow
from mirrorspark.pipeline import worker
from mirrorspark.pipeline.lane import LaneSpec
from mirrorspark.pipeline.troubles_that_pass import passes
from mirrorspark.pipeline.worker import carry
from mirrorspark.settings import ClusterSettings, FlowSettings

SPEC = LaneSpec(
    FlowSettings(Flow("east", "west"), ClusterSettings("east", ()), ClusterSettings("west", ())), 3, 7, 1, 3600.0
)
PASSING = [
    Unreachable("away"),
    RequestTimedOut("no answer"),
    Fenced("frozen"),
    TimeoutError(),
    broker_error(47, "Produce"),
    broker_error(48, "EndTxn"),
    broker_error(49, "AddPartitionsToTxn"),
    broker_error(90, "InitProducerId"),
    broker_error(6, "Fetch"),
]
STAYING = [
    AuthenticationFailed("refused"),
    broker_error(29, "OffsetCommit"),
    MirrorError("no plan"),
    KeyError("a bug"),
    AssertionError("invariant A"),
]


class FakeRun:
    """An attempt that hands out receipts, then ends or fails."""

    def __init__(self, receipts: list[Any], error: Exception | None = None, superseded: str = "") -> None:
        self.receipts, self.error, self.superseded = receipts, error, superseded

    async def next_receipts(self) -> Any:
        if self.receipts:
            return self.receipts.pop(0)
        if self.error is not None:
            raise self.error
        return None


class FakeWorker:
    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.attempts: list[FakeRun | Exception] = []
        self.started: list[LaneSpec] = []
        self.told: list[Event] = []

    async def attempt(self, spec: LaneSpec) -> FakeRun:
        self.started.append(spec)
        one = self.attempts.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    async def tell(self, spec: LaneSpec, event: Event) -> None:
        self.told.append(event)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorker]:
    made = FakeWorker()
    monkeypatch.setattr(worker, "_worker", made)
    for pause in ("ATTEMPT_PAUSE_S", "SUPERSEDED_PAUSE_S", "FAILED_PAUSE_S"):
        monkeypatch.setattr(worker, pause, 0.0)
    yield made
    made.runner.close()


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_what_passes(error: Exception) -> None:
    assert passes(error)


@pytest.mark.parametrize("error", STAYING, ids=repr)
def test_what_stays(error: Exception) -> None:
    assert not passes(error)


def test_receipts_come_until_the_attempt_ends(world: FakeWorker) -> None:
    world.attempts = [FakeRun([["one"], [], ["two", "three"]])]
    assert list(carry(SPEC)) == [["one"], ["two", "three"]]


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_another_attempt_follows_in_the_same_task(world: FakeWorker, error: Exception) -> None:
    world.attempts = [error, FakeRun([["one"]], error), FakeRun([["two"]])]
    assert list(carry(SPEC)) == [["one"], ["two"]]
    assert len(world.started) == 3
    assert all(spec.epoch_s <= SPEC.epoch_s for spec in world.started)
    assert world.told == []


@pytest.mark.parametrize("error", STAYING, ids=repr)
def test_any_other_error_is_logged_told_and_raised(
    world: FakeWorker, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    world.attempts = [FakeRun([["one"]], error)]
    lane = carry(SPEC)
    assert next(lane) == ["one"]
    with caplog.at_level(logging.ERROR), pytest.raises(type(error)):
        next(lane)
    assert "east->west, lane 3" in caplog.text
    [event] = world.told
    assert event.kind == EventKind.LANE_FAILED
    assert event.key == "event/lane.failed/lane/3/-1"
    assert str(error.args[0]) in event.text


def test_a_superseded_lane_ends_quietly(world: FakeWorker, caplog: pytest.LogCaptureFixture) -> None:
    world.attempts = [FakeRun([], superseded="led by another")]
    assert list(carry(SPEC)) == []
    assert "led by another" in caplog.text


def test_an_event_that_cannot_be_written_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    real = worker._Worker()
    settings = SPEC.settings
    nowhere = ClusterSettings("west", (("127.0.0.1", 1),))
    spec = LaneSpec(FlowSettings(settings.flow, settings.source, nowhere), 3, 7, 1, 1.0)
    real.runner.run(real.tell(spec, Event(EventKind.LANE_FAILED, "x")))
    real.runner.close()
    assert "the event could not be written" in caplog.text
