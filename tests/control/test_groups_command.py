"""``groups list``, ``describe``, ``translate`` and ``sync``: what they show, what they write, and all that they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.lab.clients import consumer, producer, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.group_checkpoint import GroupCheckpoint

from .led_groups import LedGroups

DEADLINE_S = 60.0
AHEAD = 3


def command(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["groups", *map(str, words)])
    assert result.exit_code == code, result.output
    return str(result.output)


def as_json(*words: object, code: int = 0) -> Any:
    return json.loads(command(*words, "--json", code=code))


def write(bootstrap: str, topic: str, count: int) -> None:
    client = producer(bootstrap)
    for _ in range(count):
        client.produce(topic, b"x", partition=0)
    assert client.flush(DEADLINE_S) == 0


@pytest.fixture
def one(
    groups: Callable[..., LedGroups], source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers
) -> LedGroups:
    """20 records on the source, of which 15 are mirrored, 3 further on; the mirror itself writes no offsets."""
    made = groups(sync__group__offsets__enabled="false")
    made.flow.wait(lambda: made.remote in made.flow.planned, "the remote topic")
    write(source_cluster.bootstrap, made.at.topic, 20)
    write(target_cluster.bootstrap, made.remote.topic, 15 + AHEAD)
    made.mirror(15, AHEAD)
    return made


@pytest.fixture
def member(one: LedGroups, target_cluster: ClusterOfBrokers) -> Iterator[str]:
    """A group that is in use on the target; its name."""
    name = f"{one.at.topic}-used"
    client = consumer(target_cluster.bootstrap, {"group.id": name, "auto.offset.reset": "earliest"})
    client.subscribe([one.remote.topic])

    def has_joined() -> bool:
        client.poll(0.1)
        return bool(client.assignment())

    wait_for(has_joined, "the member", DEADLINE_S)
    yield name
    client.close()


def test_groups_are_listed_described_translated_and_synced(one: LedGroups, member: str) -> None:
    file, group, ahead = one.flow.file, f"{one.at.topic}-a", f"{one.at.topic}-ahead"
    for name, offset in ((group, 10), (ahead, 18), (member, 5)):
        one.commit(name, offset, metadata="kept")

    [flow] = as_json("list", file)["flows"]
    listed = {each["group"]: each for each in flow["groups"]}
    assert sorted(listed) == sorted([group, ahead, member])
    assert (listed[group]["lag"], listed[group]["exact"], listed[group]["text"]) == (10, True, "not on the target")
    assert (listed[ahead]["lag"], listed[ahead]["exact"]) == (2, False)
    assert listed[member]["text"] == "in use on the target (1 members)"
    text = command("list", file)
    assert "3 groups, 3 not in step" in text
    assert "sync.group.offsets.enabled is false" in text

    [described] = as_json("describe", file, group)["groups"]
    [partition] = described["partitions"]
    assert partition["upstream_offset"] == 10
    assert partition["downstream_offset"] == 13
    assert partition["exact"]
    assert partition["target_offset"] is None
    assert partition["verdict"] == "write.first"
    assert "ahead of what is mirrored" in command("describe", file, ahead)

    [found] = as_json("translate", file, group)["translations"]
    assert (found["remote_topic"], found["downstream_offset"]) == (one.remote.topic, 13)
    place = ("--topic", one.at.topic, "--partition", 0, "--offset")
    assert f"{one.remote} 17 (exactly" in command("translate", file, *place, 14)
    assert f"{one.remote} 18 (not exactly" in command("translate", file, *place, 19, code=3)

    assert f"{one.remote} would be at 13" in command("sync", file, group, "--dry-run")
    assert one.on_target(group) is None
    assert f"{one.remote} is at 13" in command("sync", file, group)
    assert one.on_target(group) == (13, "kept")
    assert "nothing to write" in command("sync", file, group)
    assert "in step" in command("list", file)

    # Not exact, in use: nothing is written, and it is said why.
    assert "ahead of what is mirrored" in command("sync", file, ahead, code=3)
    assert one.on_target(ahead) is None
    [result] = as_json("sync", file, ahead, "--allow-inexact")["groups"]
    assert result["written"] == {str(one.remote): 18}
    assert "it is in use on the target" in command("sync", file, member, code=3)

    # Where the target's group is further it stays, though the source went back.
    one.commit(group, 4)
    assert "target.ahead" in command("sync", file, group)
    assert one.on_target(group) == (13, "kept")


def test_bad_input_gets_a_clear_answer_and_nothing_is_written(
    one: LedGroups, target_cluster: ClusterOfBrokers, tmp_path: Path
) -> None:
    file, topic, group = one.flow.file, one.at.topic, f"{one.at.topic}-a"
    one.commit(group, 10)
    for verb in ("describe", "translate", "sync"):
        assert f"group {group}b is not on cluster" in command(verb, file, f"{group}b", code=2)
        assert f"there is {group}" in command(verb, file, f"{group}b", code=2)
    assert "is not on cluster" in command("sync", file, group, "nobody", code=2)
    assert one.on_target(group) is None, "all groups are known, or nothing is written"
    place = ("--topic", topic, "--partition", 0, "--offset")
    assert "ends at 20" in command("translate", file, *place, 21, code=2)
    assert "not in topics" in command("translate", file, "--topic", "other", "--partition", 0, "--offset", 1, code=2)
    assert f"{topic}-7 is not on cluster" in command(
        "translate", file, "--topic", topic, "--partition", 7, "--offset", 1, code=2
    )
    assert "give a GROUP" in command("translate", file, code=2)
    assert "go together" in command("translate", file, "--topic", topic, code=2)
    assert "not an enabled flow" in command("list", file, "--flow", "a->b", code=2)
    one.commit(group, 25)
    assert "beyond the end of the source's log" in command("sync", file, group, "--allow-inexact", code=3)
    assert "beyond the end" in command("describe", file, group)
    assert one.on_target(group) is None

    # From checkpoints alone, as any mirror writes them.
    client = tmp_path / "client.properties"
    client.write_text(f"bootstrap.servers={target_cluster.bootstrap}\ngroup.id=whatever\n")
    with_source = ("--source", one.alias)
    assert "has no topic wrong.checkpoints.internal" in command("sync", client, group, "--source", "wrong", code=2)
    assert "no such replication policy" in command("sync", client, group, *with_source, "--policy", "x.Y", code=2)
    assert "leave out --source" in command("sync", file, group, *with_source, code=2)
    checkpoints = f"{one.alias}.checkpoints.internal"
    one.append(checkpoints, b"no checkpoint", b"at all")
    assert "has no checkpoint of group nobody (1 records" in command("sync", client, "nobody", *with_source, code=2)

    def tell(offset: int, at: TopicPartition = one.remote) -> None:
        checkpoint = GroupCheckpoint(f"{group}-by-hand", at, 10, offset, "text")
        one.append(checkpoints, checkpoint.key, checkpoint.value)

    by_hand = f"{group}-by-hand"
    tell(99)
    assert f"beyond its end on cluster target, {15 + AHEAD}" in command("sync", client, by_hand, *with_source, code=3)
    assert one.on_target(by_hand) is None
    tell(12)
    assert "1 offsets would be written" in command("sync", client, by_hand, *with_source, "--dry-run")
    assert one.on_target(by_hand) is None
    assert "1 offsets written" in command("sync", client, by_hand, *with_source)
    assert one.on_target(by_hand) == (12, "text")


def test_a_flow_that_never_ran_has_no_ledger(flow_file: Callable[..., Path], topic_name: str) -> None:
    assert "NEVER_RAN" in command("list", flow_file(topic_name), code=1)
