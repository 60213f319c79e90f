"""Many topics at once: all made, all carried within one refresh of their appearance; and the dry run of thousands."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.cluster.cluster_admin import NewTopic, create_topics, grow_topics
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.control.reconcile import Reconciler
from mirrorspark.lab.clients import producer, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, started_together
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.names import Flow
from mirrorspark.settings import ClusterSettings, FlowSettings, TopicSync, parse_bootstrap

DETECTED_S_MAX = 10.0
"""Must show 3: from the moment that new topics are there to the moment that they are in the plan, with defaults."""
PLAN_S_MAX = 10.0
PATIENCE_S = 300.0

slow = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def pair() -> Iterator[tuple[ClusterOfBrokers, ClusterOfBrokers]]:
    source, target = (ClusterOfBrokers(name, heap_mb=1024) for name in ("topics-source", "topics-target"))
    with started_together(source, target):
        yield source, target


def make_topics(client: ClusterClient, names: list[str], in_loop: Callable[..., Any]) -> None:
    assert in_loop(create_topics(client, [NewTopic(name, 1, 1) for name in names], timeout_s=PATIENCE_S)) == {}


@pytest.mark.parametrize(
    ("count", "seconds_max"),
    [
        (100, PATIENCE_S),  # other tests use the machine too: the time is told, not judged
        pytest.param(1, DETECTED_S_MAX, marks=slow),
        pytest.param(100, DETECTED_S_MAX, marks=slow),
        pytest.param(1_000, PATIENCE_S, marks=slow),
    ],
)
def test_topics_created_at_once_are_all_mirrored(
    count: int,
    seconds_max: float,
    source_cluster: ClusterOfBrokers,
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
    topic_name: str,
) -> None:
    settings = flow_settings(f"{topic_name}-.*", topic_sync=TopicSync())
    flow = lanes_without_spark(settings)
    names = [f"{topic_name}-{number}" for number in range(count)]
    make_topics(connect(source_cluster), names, in_loop)
    made_at = time.monotonic()
    wait_for(lambda: len(flow.status.planned or ()) == count, f"{count} topics in the plan", PATIENCE_S)
    detected_s = time.monotonic() - made_at
    print(f"\n{count} topics: in the plan {detected_s:.1f} s after the last one was made")
    assert detected_s < seconds_max
    writer = producer(source_cluster.bootstrap, {"linger.ms": 50})
    for name in names:
        writer.produce(name, name.encode())
        writer.poll(0)
    assert writer.flush(PATIENCE_S) == 0
    wait_for(lambda: flow.status.records == count, f"{count} records", PATIENCE_S)
    print(f"{count} topics: a record of each arrived {time.monotonic() - made_at:.1f} s after")
    in_loop(grow_topics(connect(source_cluster), {names[0]: 3}))
    grown_at = time.monotonic()
    wait_for(lambda: len(flow.status.planned or ()) == count + 2, "two more partitions in the plan", PATIENCE_S)
    grown_s = time.monotonic() - grown_at
    print(f"{count} topics: two new partitions in the plan {grown_s:.1f} s after they were made")
    assert grown_s < seconds_max
    assert flow.events == []
    flow.stop()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_plan_of_5000_topics(
    pair: tuple[ClusterOfBrokers, ClusterOfBrokers],
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    tmp_path: Path,
) -> None:
    """Half of them mirrored, half still to be made: settings of both sides are compared for the one, listed for the rest."""
    clients = [connect(cluster) for cluster in pair]
    names = [f"t{number:04}" for number in range(5_000)]
    make_topics(clients[0], names, in_loop)
    # A broker lists topics when it has made their logs, which takes it longer than the controller.
    wait_for(lambda: len(in_loop(clients[0].refresh(None))) >= 5_000, "all of them to be listed", PATIENCE_S)
    settings = FlowSettings(
        Flow("east", "west"),
        *(ClusterSettings(name, parse_bootstrap(one.bootstrap, name)) for name, one in zip("ew", pair, strict=True)),
        topics="t[0-2][0-4].*|t[01][5-9].*",
        replication_factor=1,
    )
    reconciler = Reconciler(*clients)
    wait_for(
        lambda: len(in_loop(reconciler.reconcile(settings)).assignments) >= 2_500, "half of them mirrored", PATIENCE_S
    )
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = east, west\n"
        f"east.bootstrap.servers = {pair[0].bootstrap}\nwest.bootstrap.servers = {pair[1].bootstrap}\n"
        "east->west.enabled = true\neast->west.topics = t.*\nreplication.factor = 1\n"
    )
    started, cpu = time.monotonic(), os.times()
    result = CliRunner().invoke(app, ["plan", str(file), "--json"])
    took, now = time.monotonic() - started, os.times()
    print(f"\n5,000 topics planned in {took:.1f} s ({now.user + now.system - cpu.user - cpu.system:.1f} s of our CPU)")
    assert result.exit_code == 10, result.output
    summary = json.loads(result.stdout)["flows"][0]["summary"]
    assert (summary["carry"] + summary["create"], summary["create"]) == (5_000, 2_500)
    assert took < PLAN_S_MAX
