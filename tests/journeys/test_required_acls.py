"""``mirrorspark acls``: what it lists is enough for everything, and with any single line left out something named fails.

Clusters on which nothing is allowed that no ACL allows. Each flow has users of its own, so that flows run side by side.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.locked_flows import DEADLINE_S, LockedFlow, is_seen_only_when_carried
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.control import (
    config_sync,
    flow_life,
    group_sync,
    heartbeats,
    offset_books,
    source_groups,
    target_groups,
)
from mirrorspark.lab.clients import create_topic, delete_topic, topic_partitions
from mirrorspark.lab.locked_pair import LockedPair
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC
from mirrorspark.offsets.internal_topics import WRITERS_TOPIC
from mirrorspark.plan.required_acls import RequiredAcl

SEED = 20261118
USERS = 80
AT_ONCE = 4
REMOVALS_IN_SHORT = 4
PAUSES = {
    flow_life: "RETRY_PAUSE_S_MAX",
    config_sync: "DENIED_AGAIN_S",
    group_sync: "RETRY_PAUSE_S_MAX",
    heartbeats: "RETRY_PAUSE_S_MAX",
    offset_books: "SYNCS_TOPIC_AGAIN_S",
    source_groups: "FOLLOW_AGAIN_S",
    target_groups: "REFUSED_AGAIN_S",
}
SHARED = (HEARTBEATS_TOPIC, WRITERS_TOPIC)
"""Topics of the target that flows have in common: who may not make one is told only while it is missing."""


@pytest.fixture(scope="module")
def pair() -> Iterator[LockedPair]:
    with LockedPair(USERS) as pair:
        create_topic(pair.source.bootstrap, HEARTBEATS_TOPIC, 1)
        yield pair


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in PAUSES.items():
        monkeypatch.setattr(module, name, 1.0)


class _Listener(logging.Handler):
    """Hands each flow the lines of the driver's log that are about it."""

    def __init__(self, flows: list[LockedFlow]) -> None:
        super().__init__(logging.INFO)
        self._flows = flows

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        for flow in self._flows:
            if flow.alias in text or flow.target_alias in text:
                flow.logged.append(text)


def _listening(flows: list[LockedFlow]) -> Callable[[], None]:
    logger, listener = logging.getLogger("mirrorspark"), _Listener(flows)
    logger.addHandler(listener)
    return lambda: logger.removeHandler(listener)


async def _everything_works(flow: LockedFlow) -> None:
    await asyncio.to_thread(flow.prepare)
    await asyncio.to_thread(flow.grant_all_but)

    async def work() -> None:
        await flow.until_works(whole=False)
        await flow.drive()
        await flow.until_works(whole=True)
        lacking = [text for text in flow.texts() if "our user lacks" in text]
        assert not lacking, lacking
        assert flow.lanes[-1].starts > 1, "its lane was not killed"

    await flow.live(work)
    await asyncio.to_thread(flow.check_copy)


async def _until_told(flow: LockedFlow, acl: RequiredAcl, *, or_works: bool) -> str:
    """What names the ACL; empty if everything that was driven so far works without."""
    seen = ""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not (told := flow.told(acl)):
                if or_works and not (missing := await asyncio.to_thread(flow.missing, whole=False)):
                    break
                if or_works and missing != seen:
                    print(f"{flow.alias}: without it there is still to come: {missing}", flush=True)
                    seen = missing
                await asyncio.sleep(0.25)
    except TimeoutError:
        raise AssertionError(f"{acl}: nothing says so; missing: {seen}\n{flow.report()}") from None
    return told


async def _fails_without(flow: LockedFlow, acl: RequiredAcl) -> str:
    """Leave it out, see it told; put it back, see the flow recover. Returns what was told."""
    comes_later = is_seen_only_when_carried(acl, flow)
    await asyncio.to_thread(flow.prepare)
    await asyncio.to_thread(flow.grant_all_but, None if comes_later else acl)
    found: list[str] = []

    async def work() -> None:
        if comes_later:
            await flow.until_works(whole=False)
            await asyncio.to_thread(flow.revoke, acl)
        told = await _until_told(flow, acl, or_works=not comes_later)
        if not told:
            await flow.drive()
            if acl.name.endswith(HEARTBEATS_TOPIC) and acl.operation == "Alter":
                await asyncio.to_thread(flow.grow_heartbeats)
            told = await _until_told(flow, acl, or_works=False)
        found.append(told)
        await asyncio.to_thread(flow.grant, acl)
        await flow.drive()
        await asyncio.to_thread(flow.nudge)
        await flow.until_works(whole=True)

    await flow.live(work)
    await asyncio.to_thread(flow.check_copy)
    return found[0]


async def _all_removals(flows: dict[int, LockedFlow]) -> dict[RequiredAcl, str]:
    """By the line's number; a few at a time. Whatever fails is told together."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, flow: LockedFlow) -> tuple[RequiredAcl, str]:
        async with turns:
            acl = flow.lines()[number]
            began = time.monotonic()
            try:
                text = await _fails_without(flow, acl)
            except Exception as error:
                print(f"FAILED {acl}: {error!r}", flush=True)
                raise
            print(f"{acl}, {time.monotonic() - began:.1f} s:\n    {text}", flush=True)
            return acl, text

    return dict(await _together([one(number, flow) for number, flow in flows.items()]))


async def _together(work: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    done = await asyncio.gather(*work, return_exceptions=True)
    failures = [one for one in done if isinstance(one, Exception)]
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(done)} failed", failures)
    return done


@pytest.mark.timeout(900)
def test_a_few_lines_by_a_seed_are_needed_and_enough(pair: LockedPair, tmp_path: Path) -> None:
    """Each is left out of a flow of its own, told, and granted; then everything works there."""
    lines = LockedFlow(pair, 0, tmp_path).lines()
    able = [number for number, acl in enumerate(lines) if not (acl.name in SHARED and acl.operation == "Create")]
    numbers = random.Random(SEED).sample(able, REMOVALS_IN_SHORT)
    flows = {number: LockedFlow(pair, index, tmp_path) for index, number in enumerate(numbers)}
    stop_listening = _listening(list(flows.values()))
    try:
        told = asyncio.run(_all_removals(flows))
    finally:
        stop_listening()
    assert len(told) == REMOVALS_IN_SHORT


@pytest.mark.timeout(900)
@pytest.mark.parametrize("transactions", [False, True], ids=["default mode", "with transactions"])
def test_what_is_listed_is_enough_for_everything(pair: LockedPair, tmp_path: Path, transactions: bool) -> None:
    flow = LockedFlow(pair, 6 + transactions, tmp_path, transactions=transactions)
    stop_listening = _listening([flow])
    try:
        asyncio.run(_everything_works(flow))
    finally:
        stop_listening()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_line_can_be_left_out(pair: LockedPair, tmp_path: Path) -> None:
    first = LockedFlow(pair, 10, tmp_path)
    lines = first.lines()
    print(f"{len(lines)} lines")
    flows = {number: LockedFlow(pair, 10 + number, tmp_path) for number in range(len(lines))}
    stop_listening = _listening(list(flows.values()))
    told: dict[RequiredAcl, str] = {}
    try:
        for number in list(flows):
            acl = lines[number]
            if acl.name in SHARED and acl.operation == "Create":
                if topic_partitions(pair.target.bootstrap, acl.name):
                    delete_topic(pair.target.bootstrap, acl.name)
                told.update(asyncio.run(_all_removals({number: flows.pop(number)})))
        told.update(asyncio.run(_all_removals(flows)))
    finally:
        stop_listening()
    assert len(told) == len(lines)


def test_the_command_lists_what_was_proved(tmp_path: Path) -> None:
    """The same ACLs from a file, by the command, as a flow's settings gave. No broker is asked."""
    flow = LockedFlow(LockedPair(10), 9, tmp_path)
    file = tmp_path / "mm2.properties"
    east, west = flow.alias, flow.target_alias
    lines = [f"clusters = {east}, {west}", f"{east}->{west}.enabled = true", f"topics = {flow.settings.topics}"]
    lines += [f"groups = {flow.settings.group_sync.groups}", "sync.group.offsets.enabled = true"]
    for cluster in (flow.settings.source, flow.settings.target):
        servers = ",".join(f"{host}:{port}" for host, port in cluster.bootstrap)
        lines.append(f"{cluster.alias}.bootstrap.servers = {servers}")
        lines += [f"{cluster.alias}.{key} = {value}" for key, value in cluster.login.items()]
    file.write_text("\n".join(lines))
    answer = CliRunner().invoke(app, ["acls", str(file), "--flow", f"{east}->{west}", "--json"])
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    listed = {
        (one["alias"], acl["resource_type"], acl["pattern_type"], acl["resource_name"], acl["operation"])
        for one in found["clusters"]
        for acl in one["acls"]
    }
    assert listed == {(acl.cluster, acl.resource.name, acl.pattern, acl.name, acl.operation) for acl in flow.lines()}
    assert [one["principal"] for one in found["clusters"]] == ["User:source-9", "User:target-9"]
    assert not re.search("of a locked user", answer.output), "a password"
