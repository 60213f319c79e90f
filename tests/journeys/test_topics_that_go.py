"""A topic that goes while no lane holds it, before the driver has noticed: it waits by itself, and the others flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.clients import create_topic, delete_topic, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import write_values
from mirrorspark.settings import FlowSettings, TopicSync

DEADLINE_S = 120.0
SELDOM = TopicSync(refresh_interval_s=3_600.0)
"""The driver looks at topics once, as far as this test goes: MirrorMaker 2's default is ten minutes."""


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_topic_that_is_gone_when_a_lane_starts_holds_up_no_other(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., Any],
    side: str,
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    goes, stays = f"{topic_name}-goes", f"{topic_name}-stays"
    settings = flow_settings(f"{goes}, {stays}", topic_sync=SELDOM)
    remote = {topic: f"{settings.flow.source}.{topic}" for topic in (goes, stays)}
    for topic in (goes, stays):
        create_topic(source, topic, 1)
        write_values(source, topic, [b"first"])
    flow: FlowWithoutSpark = lanes_without_spark(settings)
    for topic in (goes, stays):
        wait_until_caught_up(source, target, topic, remote[topic])
    assert flow.lanes is not None

    delete_topic(*((source, goes) if side == "source" else (target, remote[goes])))
    flow.lanes.kill(restart=True)
    write_values(source, stays, [b"second"])
    wait_until_caught_up(source, target, stays, remote[stays])

    waiting = f"{remote[goes]}-0"
    wait_for(lambda: waiting in flow.status.waiting, f"{waiting} to wait, not {flow.status.waiting}", DEADLINE_S)
    assert "no leader on cluster" in flow.status.waiting[waiting]
    flow.stop()
