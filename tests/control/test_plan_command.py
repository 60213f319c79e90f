"""``mirrorspark plan``: every topic with its reason, the exit code for CI, and nothing changed anywhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.cluster.cluster_admin import NewTopic, create_topics, grow_topics
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.topic_acls import create_acls, delete_acls, describe_acls
from mirrorspark.cluster.topic_configs import alter_configs, describe_configs
from mirrorspark.lab.clients import create_topic, delete_topic, topic_partitions, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.names import TopicAcl

from .led_flow import LedFlow

TOPICS = 300
SECONDS_MAX = 60.0
"""On a machine that others use; what 5,000 topics take on a quiet one is measured in journeys/test_many_topics.py."""
SEEN_S = 60.0

InLoop = Callable[..., Any]


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["plan", *map(str, words)])


def plan(file: Path, code: int) -> dict[str, Any]:
    result = run(file, "--json")
    assert result.exit_code == code, result.output
    [flow] = json.loads(result.stdout)["flows"]
    return dict(flow)


def by_topic(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["topic"]: (one["action"], one["reason"]) for one in found["topics"]}


async def everything(client: ClusterClient) -> tuple[object, ...]:
    """All topics with ids and partitions, all settings, all ACLs."""
    topics = sorted((one.name, one.topic_id, len(one.partitions)) for one in await client.refresh(None))
    settings = (await describe_configs(client, [name for name, _, _ in topics])).settings
    return topics, settings, await describe_acls(client)


def test_every_topic_has_its_verdict_and_nothing_is_changed(
    flow_file: Callable[..., Path],
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    connect: Callable[..., ClusterClient],
    in_loop: InLoop,
    topic_name: str,
) -> None:
    names = [f"{topic_name}-{number}" for number in range(TOPICS)]
    source, target = connect(source_cluster), connect(target_cluster)
    assert in_loop(create_topics(source, [NewTopic(name, 1, 1) for name in names])) == {}
    wait_for(lambda: topic_partitions(source_cluster.bootstrap, names[-1]) == 1, names[-1], SEEN_S)
    file = flow_file(f"{topic_name}-.*")
    before = in_loop(everything(source)), in_loop(everything(target))

    # A flow that never ran: all is to be made.
    found = plan(file, 10)
    verdicts = by_topic(found)
    assert {verdicts[name] for name in names} == {("create", "missing.on.target")}
    assert found["summary"]["create"] == TOPICS
    text = run(file).stdout
    assert text.startswith(f"{found['flow']}: {TOPICS} to create")
    assert (
        f"  create  {names[0]} -> {found['flow'].split('->')[0]}.{names[0]} [missing.on.target]: 1 partitions" in text
    )
    assert (in_loop(everything(source)), in_loop(everything(target))) == before, "plan changed something"

    # It ran: nothing to do, and that is said in no time.
    flow = LedFlow(file)
    flow.start()
    flow.wait(lambda: len(flow.planned) == TOPICS, "all topics in the plan")
    flow.wait(lambda: bool(flow.runtime.status.sync), "a first look at the settings")
    assert flow.runtime.status.sync["settings_requests"] == 0
    flow.stop()
    started = time.monotonic()
    found = plan(file, 0)
    assert time.monotonic() - started < SECONDS_MAX
    assert {by_topic(found)[name] for name in names} == {("carry", "in.step")}
    assert by_topic(found).get("__consumer_offsets", ("skip", ""))[0] == "skip"

    # Drift of every kind.
    remote = [f"{flow.settings.flow.source}.{name}" for name in names]
    acl = TopicAcl("LITERAL", names[0], f"User:{topic_name}", "*", "READ", "ALLOW")
    in_loop(grow_topics(source, {names[1]: 3}))
    in_loop(alter_configs(source, {names[2]: {"retention.ms": "77"}}))
    in_loop(alter_configs(target, {remote[3]: {"retention.ms": "88"}}))
    in_loop(create_acls(source, [acl]))
    delete_topic(source_cluster.bootstrap, names[4])
    delete_topic(target_cluster.bootstrap, remote[5])
    wait_for(lambda: topic_partitions(source_cluster.bootstrap, names[1]) == 3, names[1], SEEN_S)
    wait_for(lambda: acl in in_loop(describe_acls(source)), str(acl), SEEN_S)
    before = in_loop(everything(source)), in_loop(everything(target))
    found = plan(file, 10)
    verdicts = by_topic(found)
    assert verdicts[names[1]] == ("grow", "fewer.partitions.on.target")
    assert verdicts[names[2]] == verdicts[names[3]] == ("change", "in.step")
    assert verdicts[names[4]] == ("keep", "source.topic.deleted")
    assert verdicts[names[5]] == ("wait", "target.topic.deleted")
    changes = {one["topic"]: one["changes"] for one in found["topics"] if one["changes"]}
    assert changes[names[2]] == [
        {
            "setting": "retention.ms",
            "source": "77",
            "target": "604800000",
            "wanted": "77",
            "sent": True,
            "reason": "source.value",
        }
    ]
    assert [one["wanted"] for one in changes[names[3]]] == [None]
    assert acl._replace(name=remote[0])._asdict() in found["acls"]["grant"]
    text = run(file, "--settings").stdout
    assert "            retention.ms: 604800000 -> 77 (the source topic has it)\n" in text
    assert f"  grant   ALLOW READ on {remote[0]} to User:{topic_name} from *\n" in text
    assert f"  replication.factor = 1 (top level, {file}:6)\n" in text
    assert (in_loop(everything(source)), in_loop(everything(target))) == before, "plan changed something"
    in_loop(delete_acls(source, [acl]))


def test_plan_of_a_cluster_that_is_not_there(flow_file: Callable[..., Path]) -> None:
    file = flow_file("x", west__bootstrap__servers="127.0.0.1:1")
    result = run(file)
    assert result.exit_code == 1
    assert "west.bootstrap.servers" in result.stderr
    assert result.stdout == ""
    result = run(file, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["flows"][0]["error"]["code"] == "UNREACHABLE"


@pytest.mark.parametrize(
    "words",
    [
        ["nothing.properties"],
        ["{file}", "--flow", "a->b"],
        ["{file}", "--clusters", "nowhere"],
    ],
)
def test_plan_of_bad_input(words: list[str], flow_file: Callable[..., Path]) -> None:
    file = flow_file("x")
    result = run(*[word.format(file=file) for word in words])
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("mirrorspark: SETTINGS: ")


def test_settings_of_topics_that_shall_not_be_synced_are_not_asked_for(
    flow_file: Callable[..., Path], source_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1)
    off = {f"{part}__enabled": "false" for part in ("refresh__topics", "sync__topic__configs", "sync__topic__acls")}
    found = plan(flow_file(topic_name, **off), 10)
    assert [text.rsplit(" ", 1)[-1] for text in found["notices"]] == [
        "sync.topic.configs.enabled=false",
        "sync.topic.acls.enabled=false",
        "refresh.topics.enabled=false",
    ]
