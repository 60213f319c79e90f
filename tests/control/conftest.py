"""Fixtures of the control room's tests: files of flows between the run's clusters, and flows that are led."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.control import group_rounds, group_sync
from mirrorspark.lab.clients import create_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers

from .led_flow import LedFlow
from .led_groups import LedGroups

_aliases = itertools.count(1)


@pytest.fixture
def flow_file(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, tmp_path: Path
) -> Callable[..., Path]:
    """Writes an mm2.properties of one flow between the run's clusters, under a source alias of its own."""

    def make(topics: str, **changes: str) -> Path:
        alias = f"c{next(_aliases)}-{os.getpid()}"
        properties = {
            "clusters": f"{alias}, west",
            f"{alias}.bootstrap.servers": source_cluster.bootstrap,
            "west.bootstrap.servers": target_cluster.bootstrap,
            f"{alias}->west.enabled": "true",
            f"{alias}->west.topics": topics,
            "replication.factor": "1",
            "refresh.topics.interval.seconds": "1",
            # The run's clusters are shared: another test's heartbeats would be one topic more.
            "emit.heartbeats.enabled": "false",
            "heartbeats.replication.enabled": "false",
            **{key.replace("__", "."): value for key, value in changes.items()},
        }
        path = tmp_path / f"{alias}.properties"
        path.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
        return path

    return make


@pytest.fixture
def led_flow(flow_file: Callable[..., Path]) -> Iterator[Callable[..., LedFlow]]:
    begun: list[LedFlow] = []

    def begin(topics: str, **changes: str) -> LedFlow:
        flow = LedFlow(flow_file(topics, **changes))
        begun.append(flow)
        flow.start()
        return flow

    yield begin
    for flow in begun:
        flow.stop()


@pytest.fixture
def groups(
    led_flow: Callable[..., LedFlow],
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., LedGroups]:
    """Leads a flow of one topic that syncs the groups whose names begin with the topic's."""
    create_topic(source_cluster.bootstrap, topic_name, 1)
    monkeypatch.setattr(group_sync, "STATUS_INTERVAL_S", 0.2)
    monkeypatch.setattr(group_rounds, "INEXACT_AFTER_S", 0.2)

    def make(**changes: str) -> LedGroups:
        settings = {"sync__group__offsets__enabled": "true", "groups": f"{topic_name}-.*", **changes}
        flow = led_flow(topic_name, **settings)
        made = LedGroups(flow, connect(source_cluster), connect(target_cluster), in_loop, topic_name)
        made.wait(lambda: made.picture.get("mode") == "following", "the groups to be followed")
        return made

    return make
