"""``mirrorspark acls``: what it lists is enough for everything, and with any single line left out something named fails.

Clusters on which nothing is allowed that no ACL allows. Each flow has users of its own, so that flows run side by side.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journeys.acl_proof import all_removals, everything_works, listening, shorten_pauses
from tests.journeys.locked_flows import LockedFlow
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.lab.clients import create_topic, delete_topic, topic_partitions
from mirrorspark.lab.locked_pair import LockedPair
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC
from mirrorspark.offsets.internal_topics import WRITERS_TOPIC
from mirrorspark.plan.required_acls import RequiredAcl

SEED = 20261118
USERS = 80
REMOVALS_IN_SHORT = 4
SHARED = (HEARTBEATS_TOPIC, WRITERS_TOPIC)
"""Topics of the target that flows have in common: who may not make one is told only while it is missing."""


@pytest.fixture(scope="module")
def pair() -> Iterator[LockedPair]:
    with LockedPair(USERS) as pair:
        create_topic(pair.source.bootstrap, HEARTBEATS_TOPIC, 1)
        yield pair


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_pauses(monkeypatch)


@pytest.mark.timeout(900)
def test_a_few_lines_by_a_seed_are_needed_and_enough(pair: LockedPair, tmp_path: Path) -> None:
    """Each is left out of a flow of its own, told, and granted; then everything works there."""
    lines = LockedFlow(pair, 0, tmp_path).lines()
    able = [number for number, acl in enumerate(lines) if not (acl.name in SHARED and acl.operation == "Create")]
    numbers = random.Random(SEED).sample(able, REMOVALS_IN_SHORT)
    flows = {number: LockedFlow(pair, index, tmp_path) for index, number in enumerate(numbers)}
    with listening(list(flows.values())):
        told = asyncio.run(all_removals(flows))
    assert len(told) == REMOVALS_IN_SHORT


@pytest.mark.timeout(900)
@pytest.mark.parametrize("transactions", [False, True], ids=["default mode", "with transactions"])
def test_what_is_listed_is_enough_for_everything(pair: LockedPair, tmp_path: Path, transactions: bool) -> None:
    flow = LockedFlow(pair, 6 + transactions, tmp_path, transactions=transactions)
    with listening([flow]):
        asyncio.run(everything_works(flow))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_line_can_be_left_out(pair: LockedPair, tmp_path: Path) -> None:
    first = LockedFlow(pair, 10, tmp_path)
    lines = first.lines()
    print(f"{len(lines)} lines")
    flows = {number: LockedFlow(pair, 10 + number, tmp_path) for number in range(len(lines))}
    told: dict[RequiredAcl, str] = {}
    with listening(list(flows.values())):
        for number in list(flows):
            acl = lines[number]
            if acl.name in SHARED and acl.operation == "Create":
                if topic_partitions(pair.target.bootstrap, acl.name):
                    delete_topic(pair.target.bootstrap, acl.name)
                told.update(asyncio.run(all_removals({number: flows.pop(number)})))
        told.update(asyncio.run(all_removals(flows)))
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
