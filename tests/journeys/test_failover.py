"""There and back again: real producers and consumers move to the other cluster, read on, and move back; nothing is lost and
nothing is read twice. A failure at every step, by an error and by a kill, leaves what the next run takes up.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.config.load import load_deployment
from mirrorspark.control.failover import holding
from mirrorspark.control.failover.failover import Choices, Failover
from mirrorspark.control.failover.report import Report
from mirrorspark.control.failover.reverse_flow import ReverseFlow
from mirrorspark.errors import MirrorError
from mirrorspark.lab.clients import consumer, create_topic, producer, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import read_records
from mirrorspark.settings import FlowSettings

PARTITIONS = 2
PATIENCE_S = 120.0
Begin = Callable[[FlowSettings], FlowWithoutSpark]

EXACTLY_ONCE = "exactly.once.source.support"
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

_pairs = itertools.count(1)


class Killed(BaseException):
    """As if the process had gone: nobody undoes anything."""


class Pair:
    """Two clusters, one file with both flows, one topic, and what was written and read so far."""

    def __init__(self, east: ClusterOfBrokers, west: ClusterOfBrokers, case: dict[str, str], folder: Path) -> None:
        number = f"{os.getpid()}x{next(_pairs)}"
        self.aliases = {"east": f"fe{number}", "west": f"fw{number}"}
        self.bootstrap = {"east": east.bootstrap, "west": west.bootstrap}
        self.topic = f"orders{number}"
        self.keeps_names = "replication.policy.class" in case
        self.file = folder / f"{number}.properties"
        self.file.write_text("".join(f"{key} = {value}\n" for key, value in self._keys(dict(case)).items()))
        flows = load_deployment(self.file).flows
        by_source = {one.flow.source: one for one in flows}
        self.westward, self.eastward = by_source[self.aliases["east"]], by_source[self.aliases["west"]]
        self.flow = str(self.westward.flow)
        self.written: list[str] = []
        self.read: dict[str, list[str]] = {}
        self._numbers = itertools.count()

    def _keys(self, case: dict[str, str]) -> dict[str, str]:
        east, west = self.aliases["east"], self.aliases["west"]
        keys = {
            "clusters": f"{east}, {west}",
            f"{east}.bootstrap.servers": self.bootstrap["east"],
            f"{west}.bootstrap.servers": self.bootstrap["west"],
            "replication.factor": "1",
            "refresh.topics.interval.seconds": "1",
            "emit.heartbeats.enabled": "false",
            "heartbeats.replication.enabled": "false",
        }
        if once := case.pop(EXACTLY_ONCE, ""):
            keys |= {f"{alias}.{EXACTLY_ONCE}": once for alias in (east, west)}
        for pair in (f"{east}->{west}", f"{west}->{east}"):
            keys |= {f"{pair}.enabled": "true", f"{pair}.topics": self.topic, f"{pair}.groups": f"{self.topic}-.*"}
        return keys | case

    def group(self, name: str) -> str:
        return f"{self.topic}-{name}"

    def topics_on(self, side: str) -> list[str]:
        """What a consumer subscribes to there."""
        other = self.aliases["west" if side == "east" else "east"]
        return [self.topic] if self.keeps_names else [self.topic, f"{other}.{self.topic}"]

    def produce(self, side: str, count: int) -> None:
        client = producer(self.bootstrap[side], {"enable.idempotence": True})
        for number in itertools.islice(self._numbers, count):
            value = f"{side}/{number:06d}"
            client.produce(self.topic, value.encode(), partition=number % PARTITIONS)
            self.written.append(value)
        assert client.flush(PATIENCE_S) == 0

    def consume(self, side: str, name: str, count: int | None) -> None:
        """As a member of the group: so many records, or (None) all that are left; then commit and leave."""
        settings = {
            "group.id": self.group(name),
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "queued.min.messages": 1,
            "fetch.queue.backoff.ms": 10,
        }
        client = consumer(self.bootstrap[side], {**settings, "max.partition.fetch.bytes": 1_000})
        client.subscribe(self.topics_on(side))
        read = self.read.setdefault(name, [])
        wanted = len(self.written) if count is None else len(read) + count
        end = time.monotonic() + PATIENCE_S
        while (len(read) < wanted or not client.assignment()) and time.monotonic() < end:
            message = client.poll(0.2)
            if message is not None and message.error() is None:
                read.append(message.value().decode())
        if count is None:
            late = client.poll(0.3)
            assert late is None or late.error() is not None, f"{late.value()} is one too many"
        if client.position(client.assignment()):
            client.commit(asynchronous=False)
        client.close()

    def assert_all_read_once(self) -> None:
        for name, read in self.read.items():
            twice = [value for value, count in Counter(read).items() if count > 1]
            missing = set(self.written) - set(read)
            assert (twice, missing) == ([], set()), f"{name}: twice {sorted(twice)[:9]}, never {sorted(missing)[:9]}"

    def assert_nothing_went_round(self) -> None:
        for side in ("east", "west"):
            found = [
                (record.value or b"").decode()
                for topic in self.topics_on(side)
                for records in read_records(self.bootstrap[side], topic).values()
                for record in records
            ]
            assert sorted(found) == sorted(self.written), side

    # -- commands ---------------------------------------------------------------------------------------------------

    def command(self, *words: str, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [words[0], str(self.file), *words[1:], "--json"])
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def attempt(self, hook: Callable[[str, str], None], *, back: bool = False) -> Report:
        moved, other = (self.eastward, self.westward) if back else (self.westward, self.eastward)

        async def run() -> Report:
            reverse = ReverseFlow(other, is_in_file=True)
            async with Failover(moved, reverse, Choices(), hook=hook, goes_back=back) as moving:
                report = await moving.plan()
                assert report.is_well, "\n".join(report.lines())
                return await moving.run()

        return asyncio.run(run())


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
