"""What journeys share: flows without Spark on the run's two clusters, each under an alias of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, started_together
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.names import Flow
from mirrorspark.settings import ClusterSettings, FlowSettings, Heartbeats, TopicSync, parse_bootstrap

_aliases = itertools.count(1)

NO_HEARTBEATS = Heartbeats(emitted=False, replicated=False)
"""The run's clusters are shared: another test's heartbeats would be one topic more."""


@pytest.fixture(scope="module")
def clusters_to_kill() -> Iterator[tuple[ClusterOfBrokers, ClusterOfBrokers]]:
    east, west = ClusterOfBrokers("east"), ClusterOfBrokers("west")
    with started_together(east, west):
        yield east, west


@pytest.fixture
def flow_settings(source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers) -> Callable[..., FlowSettings]:
    """Settings of a new flow between the run's two clusters. Internal topics carry the alias, so flows do not meet."""

    def make(
        topics: str, *, source: ClusterOfBrokers | None = None, target: ClusterOfBrokers | None = None, **changes: Any
    ) -> FlowSettings:
        alias = f"s{next(_aliases)}-{os.getpid()}"
        return FlowSettings(
            Flow(alias, "west"),
            ClusterSettings(alias, parse_bootstrap((source or source_cluster).bootstrap, "source")),
            ClusterSettings("west", parse_bootstrap((target or target_cluster).bootstrap, "target")),
            topics=topics,
            replication_factor=1,
            **{"topic_sync": TopicSync(refresh_interval_s=1.0), "heartbeats": NO_HEARTBEATS, **changes},
        )

    return make


@pytest.fixture
def lanes_without_spark(tmp_path: Path) -> Iterator[Callable[..., FlowWithoutSpark]]:
    """Starts a flow whose lanes are plain processes; whatever still runs at the test's end is killed."""
    begun: list[FlowWithoutSpark] = []

    def begin(settings: FlowSettings, *, patches: dict[str, object] | None = None) -> FlowWithoutSpark:
        flow = FlowWithoutSpark(settings, folder=tmp_path / f"flow-{len(begun)}", patches=patches)
        begun.append(flow)
        flow.start()
        return flow

    yield begin
    for flow in begun:
        flow.kill()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long seeded runs only for who asks for them: ``-m slow``."""
    if config.option.markexpr:
        return
    slow = [item for item in items if item.get_closest_marker("slow") is not None]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
