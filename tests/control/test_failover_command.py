"""``failover``, ``failback`` and ``lag`` on real brokers, without lanes: what they refuse, and a cut without a mirror."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control import flow_lag
from mirrorspark.control.command.lag import _watch
from mirrorspark.control.failover import failover as failover_room
from mirrorspark.control.failover.failover import Choices, Failover
from mirrorspark.control.failover.record import FAILOVER_KEY, Mode
from mirrorspark.control.failover.reverse_flow import ReverseFlow, reversed_settings
from mirrorspark.control.flow_runtime import reach_cluster
from mirrorspark.control.pauses import PAUSE_KEY
from mirrorspark.errors import MirrorError
from mirrorspark.lab.clients import consumer, producer, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.offsets.group_checkpoint import GroupCheckpoint
from mirrorspark.offsets.internal_topics import plan_topic

from .led_groups import LedGroups

DEADLINE_S = 60.0
AHEAD = 3
NOBODY_LISTENS = "127.0.0.1:1"


def invoke(verb: str, file: Path, *words: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [verb, str(file), *words])
    assert result.exit_code == code, result.output
    return result


def report_of(verb: str, file: Path, *words: str, code: int = 0) -> Any:
    return json.loads(invoke(verb, file, *words, "--json", code=code).stdout)


def write(bootstrap: str, topic: str, count: int) -> None:
    client = producer(bootstrap)
    for _ in range(count):
        client.produce(topic, b"x", partition=0)
    assert client.flush(DEADLINE_S) == 0


@pytest.fixture
def one(
    groups: Callable[..., LedGroups],
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    monkeypatch: pytest.MonkeyPatch,
) -> LedGroups:
    """20 records on the source, of which 15 are mirrored, 3 further on; a driver leads, but no lane carries."""
    monkeypatch.setattr(failover_room, "WATCH_S", 0.2)
    made = groups(sync__group__offsets__enabled="false")
    made.flow.wait(lambda: made.remote in made.flow.planned, "the remote topic")
    write(source_cluster.bootstrap, made.at.topic, 20)
    write(target_cluster.bootstrap, made.remote.topic, 15 + AHEAD)
    made.mirror(15, AHEAD)
    return made


def kept(one: LedGroups) -> dict[bytes, bytes | None]:
    found: dict[bytes, bytes | None]
    found = one.in_loop(KeyedTopic(one.client, plan_topic(one.alias)).read_all(Deadline(DEADLINE_S)))
    return found


def test_lag_is_known_without_a_mirror(one: LedGroups) -> None:
    file, topic = one.flow.file, one.at.topic
    [flow] = report_of("lag", file)["flows"]
    [part] = flow["partitions"]
    assert (part["source_end"], part["mirrored_to"], part["records"], flow["records"]) == (20, 15, 5, 5)
    assert flow["seconds"] is not None
    assert flow["seconds"] < DEADLINE_S
    assert flow["topics"][0]["remote_topic"] == one.remote.topic
    invoke("lag", file, "--max-lag", "5")
    invoke("lag", file, "--max-lag", "4", code=3)
    invoke("lag", file, "--max-seconds", "0", code=3)
    text = invoke("lag", file, "--topic", topic).output
    assert "5 records behind, the oldest for" in text
    assert f"{topic}-0" in text
    assert "not carried" in invoke("lag", file, "--topic", "nothing", code=2).output
    assert asyncio.run(_watch(file, None, [], (4, None), False, rounds=1)) == 3


def test_whatever_is_wrong_is_said_and_nothing_is_written(one: LedGroups, target_cluster: ClusterOfBrokers) -> None:
    file, flow, group = one.flow.file, str(one.flow.settings.flow), f"{one.at.topic}-a"
    one.commit(group, 10)
    before = kept(one)
    assert "no mirror runs" in invoke("failover", file, "--dry-run", code=3).output
    assert "is not on cluster" in invoke("failover", file, "--cut", "--group", "nobody", "--yes", code=2).output
    assert "is not on cluster" in invoke("failover", file, "--cut", "--leave-group", "nobody", "--yes", code=2).output
    assert "not an enabled flow" in invoke("failover", file, "--flow", "a->b", "--yes", code=2).output
    assert "has not been made" in invoke("failback", file, "--flow", flow, "--yes", code=2).output
    assert "give --yes" in invoke("failover", file, "--cut", code=2).output
    invoke("failover", file, "--cut", "--drain", "--yes", code=2)
    client = consumer(target_cluster.bootstrap, {"group.id": group, "auto.offset.reset": "earliest"})
    client.subscribe([one.remote.topic])
    wait_for(lambda: client.poll(0.1) is None and bool(client.assignment()), "the member", DEADLINE_S)
    report = report_of("failover", file, "--cut", "--yes", code=3)
    client.close()
    assert report["state"] == "not ready"
    [stop] = [found for found in report["checks"] if found["level"] == "stop"]
    assert f"group {group} is in use on the target" in stop["text"]
    after = kept(one)
    assert FAILOVER_KEY not in after
    assert after.get(PAUSE_KEY) == before.get(PAUSE_KEY)
    assert one.on_target(group) is None


def test_a_cut_says_what_is_left_behind_and_can_be_taken_back(one: LedGroups) -> None:
    file, topic = one.flow.file, one.at.topic
    group, ahead = f"{topic}-a", f"{topic}-ahead"
    one.commit(group, 10)
    one.commit(ahead, 18)
    report = report_of("failover", file, "--cut", "--yes")
    assert report["state"] == "done"
    assert report["stranded"]["ranges"] == [[topic, 0, 15, 19]]
    assert one.on_target(group) == (13, "")
    assert one.on_target(ahead) == (18, "")  # the copy's end: what it read beyond never arrived
    assert any("never arrived" in text for text in report["notices"])
    assert any(".enabled = true" in text for text in report["next"])  # the file has no flow back
    one.flow.wait(lambda: one.flow.runtime.status.is_paused, "the pause")
    assert report_of("failover", file, "--cut", "--yes")["steps"] == report["steps"]  # once more changes nothing
    assert "is finished" in invoke("failover", file, "--abandon", code=2).output


def test_an_unfinished_one_can_be_taken_back(one: LedGroups) -> None:
    file, group = one.flow.file, f"{one.at.topic}-a"
    one.commit(group, 10)
    assert "no failover" in invoke("failover", file, "--abandon", code=2).output

    def fail(step: str, moment: str) -> None:
        if (step, moment) == ("groups", "before"):
            raise MirrorError("injected")

    async def cut() -> str:
        settings = one.flow.settings
        reverse = ReverseFlow(reversed_settings(settings), is_in_file=False)
        async with Failover(settings, reverse, Choices(Mode.CUT), hook=fail) as moving:
            await moving.plan()
            return (await moving.run()).state

    assert asyncio.run(cut()) == "failed"
    one.flow.wait(lambda: one.flow.runtime.status.is_paused, "the pause")
    assert "go on with --cut" in invoke("failover", file, "--yes", code=2).output
    assert "is not finished" in invoke("failback", file, "--yes", code=2).output
    assert report_of("failover", file, "--abandon")["state"] == "abandoned"
    one.flow.wait(lambda: not one.flow.runtime.status.is_paused, "the pause to be lifted")
    assert kept(one).get(FAILOVER_KEY) is None
    one.append(plan_topic(one.alias), FAILOVER_KEY, b"{")
    assert "cannot be read" in invoke("failover", file, "--cut", "--yes", code=2).output
    assert report_of("failover", file, "--abandon")["notices"]
    assert kept(one).get(FAILOVER_KEY) is None


def test_without_the_source_a_drain_stops_and_a_cut_goes_by_checkpoints(
    one: LedGroups, source_cluster: ClusterOfBrokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = f"{one.at.topic}-a"
    one.commit(group, 12)
    checkpoint = GroupCheckpoint(group, one.remote, 10, 10 + AHEAD, "")
    one.append(f"{one.alias}.checkpoints.internal", checkpoint.key, checkpoint.value)
    one.flow.stop()  # its own group sync would go on writing checkpoints
    file = tmp_path / "cut-off.properties"
    file.write_text(one.flow.file.read_text().replace(source_cluster.bootstrap, NOBODY_LISTENS))
    monkeypatch.setattr(flow_lag, "reach_cluster", partial(reach_cluster, timeout_s=2.0))
    report = report_of("failover", file, "--yes", code=3)
    assert [found["subject"] for found in report["checks"] if found["level"] == "stop"] == ["source"]
    assert report_of("lag", file)["flows"][0]["records"] is None
    invoke("lag", file, "--max-lag", "1000000", code=3)
    report = report_of("failover", file, "--cut", "--yes")
    assert report["state"] == "done"
    assert report["stranded"] == {
        "known": False,
        "records": None,
        "partitions": 1,
        "ranges": [[one.at.topic, 0, 15, None]],
    }
    states = {step["name"]: step["state"] for step in report["steps"]}
    assert states == {"hold": "done", "groups": "done", "reverse": "postponed"}
    written = one.on_target(group)
    assert written is not None
    assert written[0] >= 10 + AHEAD
    assert any("run the same command again" in text for text in report["next"])
    again = report_of("failover", one.flow.file, "--cut", "--yes")  # the source is back
    assert {step["name"]: step["state"] for step in again["steps"]}["reverse"] == "done"
