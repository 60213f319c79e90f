"""A second mirror on the same flow: the newer one leads, the older one stops and says why, the copy stays exact."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.errors import Fenced, LabError, NewerFormat
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import create_topic, total_records, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.mirror import Mirror, mirror_properties
from mirrorspark.lab.workload import Workload
from mirrorspark.offsets.internal_topics import PLAN_KEY, plan_topic
from mirrorspark.settings import FlowSettings

FENCED = 4
ENDS_S = 120.0


def _assert_exact(target: str, remote: str, workload: Workload) -> None:
    for isolation in ("read_committed", "read_uncommitted"):
        verdict = check_copy(target, remote, workload.ledger, isolation=isolation)
        assert verdict.is_clean, f"{isolation}: {verdict.report()}"


def test_the_first_mirror_ends_with_code_4_and_names_the_second(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path
) -> None:
    alias = f"twice-{os.getpid()}"
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    workload = Workload(source, topic_name, 4)
    workload.create_topic()
    properties = mirror_properties((alias, source), ("west", target), extra={f"{alias}->west.topics": topic_name})
    first, second = Mirror(properties, folder=tmp_path / "first"), Mirror(properties, folder=tmp_path / "second")
    with first:
        first.wait_carrying()
        workload.start(300)
        with second:
            assert first.wait_ended(ENDS_S) == FENCED, first.log_tail()
            told = first.log_tail()
            assert f"flow {alias}->west was taken over by mirrorspark pid {second.pid} on " in told, told
            assert "superseded" in told, told
            second.wait_carrying()
            workload.stop()
            wait_until_caught_up(source, target, topic_name, f"{alias}.{topic_name}")
            assert second.stop() == 0, second.log_tail()
    _assert_exact(target, f"{alias}.{topic_name}", workload)


def test_a_frozen_mirrors_lanes_are_shut_out_when_they_wake(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    workload = Workload(source, topic_name, 4)
    workload.create_topic()
    settings = flow_settings(topic_name, tasks_max=2)
    remote = f"{settings.flow.source}.{topic_name}"
    first = lanes_without_spark(settings)
    workload.start(400)
    wait_for(lambda: total_records(target, remote) > 200, "the first mirror's records", 60)
    frozen = list(first.lanes.pids.values())
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        second = lanes_without_spark(replace(settings, tasks_max=1))
        before = total_records(target, remote)
        wait_for(lambda: total_records(target, remote) > before + 200, "the second mirror's records", 60)
    finally:
        # They wake with fetched batches in hand and an epoch that is no longer theirs.
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
    before = total_records(target, remote)
    wait_for(lambda: total_records(target, remote) > before + 200, "records after the first one woke", 60)
    workload.stop()
    wait_until_caught_up(source, target, topic_name, remote)
    first.wait_ended(ENDS_S)
    assert isinstance(first.failure, Fenced)
    second.stop()
    _assert_exact(target, remote, workload)


def test_an_older_mirrorspark_steps_aside_for_a_newer_one_and_does_not_start_over_it(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
) -> None:
    """The newer one is played by the record that it would write: a plan in a format of which we know only who leads."""
    create_topic(source_cluster.bootstrap, topic_name)
    settings = flow_settings(topic_name)
    older = lanes_without_spark(settings)
    plans = KeyedTopic(connect(target_cluster), plan_topic(settings.flow.books))
    generation = older.runtime.generation + 1
    newer = b'{"v":2,"owner":[%d,"id","elsewhere",7,"more"],"lanes":{"of":"another shape"}}' % generation

    def published() -> bytes | None:
        found: dict[bytes, bytes] = in_loop(plans.read_all(Deadline(60.0)))
        return found.get(PLAN_KEY)

    in_loop(plans.append([(PLAN_KEY, newer)], Deadline(60.0)))
    older.wait_ended(ENDS_S)
    assert isinstance(older.failure, Fenced)
    assert f"was taken over by mirrorspark pid 7 on elsewhere (generation {generation})" in str(older.failure)
    assert "failed" not in older.log_text(), older.log_text()  # its lanes left as superseded
    assert published() == newer  # no last plan of its own over the new one

    with pytest.raises(LabError) as caught:
        lanes_without_spark(settings)
    refusal = caught.value.__cause__
    assert isinstance(refusal, NewerFormat)
    assert "the flow's plan is of format 2, written by a newer mirrorspark" in str(refusal)
    assert published() == newer
