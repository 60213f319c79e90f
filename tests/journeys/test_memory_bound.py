"""Memory is bounded: a large backlog raises a lane's resident memory by no more than what the file says it may hold, and a
partition that is at its own bound does not wait for those that have nothing to say."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import psutil
import pytest

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.control.pauses import PAUSE_KEY, format_pauses
from mirrorspark.lab.clients import create_topic, delete_topic, topic_partitions, total_records, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import write_values
from mirrorspark.lab.preload import preload
from mirrorspark.settings import FlowSettings, Limits

MB = 1_000_000
PARTITIONS = 50
RECORD_BYTES = 1_000
LANE_MEMORY_BYTES_MAX = 32 * MB
RISE_ALLOWED_BYTES = 16 * MB
"""Beside what the lane holds: Python's objects for batches on their way, spare buffers, the allocator's slack."""
SAMPLE_EVERY_S = 0.02
CARRIED_S = 540.0


@pytest.mark.parametrize(
    "backlog_bytes",
    [300 * MB, pytest.param(2_000 * MB, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])],
    ids=["300 MB", "2 GB"],
)
def test_a_backlog_raises_a_lanes_memory_by_no_more_than_its_limit(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
    backlog_bytes: int,
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    create_topic(source, topic_name, PARTITIONS)
    settings = flow_settings(topic_name, limits=replace(Limits(), lane_memory_bytes_max=LANE_MEMORY_BYTES_MAX))
    remote = f"{settings.flow.source}.{topic_name}"
    flow = lanes_without_spark(settings)
    wait_for(lambda: topic_partitions(target, remote) == PARTITIONS, "the remote topic", 60)

    def pause(*topics: str) -> None:
        flow.call(flow.runtime.plans.topic.append([(PAUSE_KEY, format_pauses(topics))], Deadline(60)))

    # A lane that is up and has nothing to do: what it has then is not the backlog's.
    pause("*")
    wait_for(lambda: flow.runtime.plans.plan is not None and flow.runtime.plans.plan.paused == {"*"}, "the pause", 60)
    records = backlog_bytes // RECORD_BYTES
    preload(source, topic_name, PARTITIONS, records, RECORD_BYTES)
    assert flow.lanes is not None
    (pid,) = flow.lanes.pids.values()
    lane = psutil.Process(pid)
    idle_bytes = lane.memory_info().rss
    assert total_records(target, remote) == 0

    began = time.monotonic()
    pause()
    peak_bytes = held_bytes = 0
    next_look = 0.0
    while True:
        peak_bytes = max(peak_bytes, lane.memory_info().rss)
        held_bytes = max(held_bytes, *(status.held_bytes for status in flow.status.lanes.values()))
        now = time.monotonic()
        if now >= next_look:
            next_look = now + 0.5
            if total_records(target, remote) >= records:
                break
            assert now - began < CARRIED_S, f"{total_records(target, remote)} of {records} carried\n{flow.log_text()}"
        time.sleep(SAMPLE_EVERY_S)
    rise = peak_bytes - idle_bytes
    print(
        f"{backlog_bytes // MB} MB over {PARTITIONS} partitions in {time.monotonic() - began:.1f} s: "
        f"idle {idle_bytes / MB:.1f} MB, peak {peak_bytes / MB:.1f} MB, rise {rise / MB:.1f} MB "
        f"of {LANE_MEMORY_BYTES_MAX / MB:.0f} + {RISE_ALLOWED_BYTES / MB:.0f} MB; "
        f"the lane reported up to {held_bytes / MB:.1f} MB held"
    )
    assert flow.lanes.starts == 1  # the same process all the time
    assert rise <= LANE_MEMORY_BYTES_MAX + RISE_ALLOWED_BYTES
    flow.stop()
    assert total_records(target, remote) == records
    delete_topic(target, remote)
    delete_topic(source, topic_name)


def test_a_partition_at_its_bound_does_not_wait_for_an_idle_one(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
) -> None:
    """Every batch is larger than the partition's bound, so that it is left out of the fetch after each of them. A fetch for
    the idle partition alone would wait for eight seconds, and there would be a dozen such fetches."""
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    batches, batch_bytes, bound_bytes = 120, 100_000, 64 * 1024
    create_topic(source, topic_name, 2)
    write_values(source, topic_name, [b"%03d" % i + bytes(batch_bytes) for i in range(batches)], partition=0)
    limits = replace(Limits(), partition_memory_bytes_max=bound_bytes, fetch_wait_ms_max=8_000)
    settings = flow_settings(topic_name, limits=replace(limits, fetch_partition_bytes_max=bound_bytes))
    flow = lanes_without_spark(settings)
    remote = f"{settings.flow.source}.{topic_name}"
    wait_for(lambda: topic_partitions(target, remote) == 2, "the remote topic", 60)
    wait_for(lambda: total_records(target, remote) == batches, "all of the backlog", 60)
    flow.stop()
