"""A flow gets fewer lanes and more again while it carries: every partition goes on, nothing is fenced, nothing is twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from mirrorspark.control.flow_runtime import SHARING_LANES
from mirrorspark.control.lane_shares import LaneShare
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import end_offsets, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.lab.workload import Workload
from mirrorspark.settings import FlowSettings

PARTITIONS = 4
PATIENCE_S = 90.0


@pytest.mark.slow
def test_the_number_of_lanes_changes_inside_an_epoch(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    workload = Workload(source, topic_name, PARTITIONS)
    workload.create_topic()
    flow = lanes_without_spark(flow_settings(topic_name, tasks_max=3))
    remote = f"{flow.settings.flow.source}.{topic_name}"
    workload.start(200)

    def everything_flows() -> None:
        before = end_offsets(target, remote)
        wait_for(
            lambda: all(end > before[number][1] for number, (_, end) in end_offsets(target, remote).items()),
            f"records on every partition; {flow.log_text()}",
            PATIENCE_S,
        )

    everything_flows()
    for lanes in (1, 3, 2):
        why = "" if lanes == 3 else f"there are {lanes} slots"
        flow.runtime.lane_share = partial(LaneShare, lanes, why)

        def has_as_many(lanes: int = lanes, why: str = why) -> bool:
            told = flow.status.failures.get(SHARING_LANES, "")
            states = [lane.state for lane in flow.status.lanes.values()]
            return states == ["carrying"] * lanes and (flow.runtime.lane_count, told) == (lanes, why)

        wait_for(has_as_many, f"{lanes} lanes; {flow.status.lanes}", PATIENCE_S)
        assert flow.status.lanes_expected == lanes
        everything_flows()
    workload.stop()
    wait_until_caught_up(source, target, topic_name, remote)
    flow.stop()
    for isolation in ("read_committed", "read_uncommitted"):
        verdict = check_copy(target, remote, workload.ledger, isolation=isolation)
        assert verdict.is_clean, f"{verdict.report()}\n{flow.log_text()}"
    logs = raw_batches(target, remote, controls=True)
    assert not any(batch.is_control for batches in logs.values() for batch in batches)  # each lane left cleanly
