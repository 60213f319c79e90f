"""``mirrorspark acls --with-failover``: enough to move the work there and back, and each line that it adds is needed.

Groups are not kept in step meanwhile (``sync.group.offsets.enabled`` is false), so that the failover alone moves them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.failover_pair import PARTITIONS, PATIENCE_S, Pair
from tests.journeys.locked_flows import beyond, naming
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.control import target_groups
from mirrorspark.control.acl_list import AclChoices, acls_of
from mirrorspark.control.failover import holding
from mirrorspark.lab.clients import create_topic, wait_for
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.locked_pair import LockedPair, grant
from mirrorspark.plan.required_acls import RequiredAcl
from mirrorspark.settings import FlowSettings

USERS = 12
Begin = Callable[[FlowSettings], FlowWithoutSpark]


@pytest.fixture(scope="module")
def running_pair() -> Iterator[LockedPair]:
    with LockedPair(USERS) as pair:
        yield pair


@pytest.fixture
def pair(running_pair: LockedPair, monkeypatch: pytest.MonkeyPatch) -> LockedPair:
    monkeypatch.setattr(holding, "QUIET_S", 0.5)  # producers here have stopped for certain
    monkeypatch.setattr(holding, "STILL_S", 1.2)
    monkeypatch.setattr(target_groups, "REFUSED_AGAIN_S", 1.0)
    return running_pair


class LockedWork:
    """The work of a pair of locked clusters, by users who have what the list says, or all but one line."""

    def __init__(self, pair: LockedPair, user: int, folder: Path, case: dict[str, str], *, is_one_way: bool) -> None:
        self._locked = pair
        self._user = user
        logins = {}
        for side, name in (("east", "source"), ("west", "target")):
            settings = pair.settings(name, side, user)
            servers = ",".join(f"{host}:{port}" for host, port in settings.bootstrap)
            logins[side] = {"bootstrap.servers": servers, **settings.login}
        self.pair = Pair(pair.source, pair.target, case, folder, logins, is_one_way=is_one_way)
        self._flows = [self.pair.westward] if is_one_way else [self.pair.westward, self.pair.eastward]

    def lines(self, *, with_failover: bool = True) -> list[RequiredAcl]:
        found = acls_of(self._flows, AclChoices({}, {}, with_failover=with_failover))
        return [acl for one in found for acl in one.acls]

    def added(self) -> list[RequiredAcl]:
        lines = self.lines()
        return [lines[number] for number in beyond(lines, self.lines(with_failover=False))]

    def grant(self, acls: list[RequiredAcl]) -> None:
        sides = {self.pair.aliases["east"]: self._locked.source, self.pair.aliases["west"]: self._locked.target}
        for alias, cluster in sides.items():
            name = "source" if cluster is self._locked.source else "target"
            if wanted := [acl for acl in acls if acl.cluster == alias]:
                grant(cluster.bootstrap, f"User:{name}-{self._user}", wanted)

    def begin(self, begin: Begin) -> None:
        """Records on east, all of them on west, and two groups in the middle of them."""
        work = self.pair
        create_topic(work.bootstrap["east"], work.topic, PARTITIONS)
        work.produce("east", 60)
        begin(work.westward)
        work.consume("east", "early", 20)
        work.consume("east", "late", 40)

        def lag() -> Any:
            return work.command("lag", "--flow", work.flow)["flows"][0]["records"]

        wait_for(lambda: lag() == 0, "all to arrive", PATIENCE_S)

    def go_on(self) -> None:
        """On west, from where the groups stood."""
        work = self.pair
        if not work.keeps_names:
            create_topic(work.bootstrap["west"], work.topic, PARTITIONS)
        work.produce("west", 30)

    def read_all(self, side: str) -> None:
        for name in ("early", "late"):
            self.pair.consume(side, name, None)
        self.pair.assert_all_read_once()


def _refused(work: LockedWork, command: str, acl: RequiredAcl, caplog: pytest.LogCaptureFixture) -> str:
    """What the command says, or its log: it must name operation, kind and name of what is missing."""
    caplog.clear()
    with caplog.at_level(logging.INFO):
        answer = CliRunner().invoke(app, [command, str(work.pair.file), "--flow", work.pair.flow, "--yes"])
    told = naming(acl, [*answer.output.splitlines(), *caplog.messages])
    assert told, f"{acl}: nothing says so\n{answer.output}\n{caplog.text}"
    assert answer.exit_code != 0 or acl.without, answer.output
    return told


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_list_is_enough_there_and_back_again(pair: LockedPair, tmp_path: Path, lanes_without_spark: Begin) -> None:
    work = LockedWork(pair, 0, tmp_path, {}, is_one_way=False)
    work.grant(work.lines())
    work.begin(lanes_without_spark)
    report = work.pair.command("failover", "--flow", work.pair.flow, "--yes")
    assert (report["state"], report["groups"]["how"]) == ("done", "exactly")
    work.go_on()
    work.pair.consume("west", "early", 50)
    lanes_without_spark(work.pair.eastward)
    back = work.pair.command("failback", "--flow", work.pair.flow, "--yes")
    assert (back["state"], back["groups"]["how"]) == ("done", "exactly")
    work.read_all("east")


CASES: dict[str, dict[str, str]] = {"default": {}, "same-name": {"replication.policy.class": "same-name"}}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", CASES)
def test_each_line_that_it_adds_is_needed(
    pair: LockedPair,
    tmp_path: Path,
    lanes_without_spark: Begin,
    caplog: pytest.LogCaptureFixture,
    case: str,
) -> None:
    """From a file that has the flow in one direction alone."""
    first = 1 + 5 * list(CASES).index(case)
    count = len(LockedWork(pair, first, tmp_path, CASES[case], is_one_way=True).added())
    assert count == (4 if case == "default" else 5)
    for index in range(count):
        work = LockedWork(pair, first + index, tmp_path, CASES[case], is_one_way=True)
        left_out = work.added()[index]
        work.grant([acl for acl in work.lines() if acl.key != left_out.key])
        work.begin(lanes_without_spark)
        print(f"{left_out}:\n    {_refused(work, 'failover', left_out, caplog)}", flush=True)
        work.grant([left_out])
        assert work.pair.command("failover", "--flow", work.pair.flow, "--yes")["state"] == "done"
        work.go_on()
        work.read_all("west")
