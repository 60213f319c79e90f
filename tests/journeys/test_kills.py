"""Kill -9 of everything under load: nothing lost, nothing twice, nothing out of order, in both modes."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable

import pytest

from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.chaos import ChaosResult, run_chaos
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import total_records, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.ledger_check import check_ledger
from mirrorspark.lab.workload import Workload
from mirrorspark.settings import FlowSettings

Pair = tuple[ClusterOfBrokers, ClusterOfBrokers]

SEED = 20261115
KILLS_IN_A_LONG_RUN = 40
LANE_KILLS = 5


def _assert_clean(result: ChaosResult) -> None:
    told = result.report()
    print(told)
    assert result.records > 0, told
    assert result.is_clean, told
    assert result.committed.read > 0, told


def test_every_process_killed_in_turn_leaves_an_exact_copy(clusters_to_kill: Pair) -> None:
    order = ("lane", "target", "executor", "driver")
    result = run_chaos(
        *clusters_to_kill, seed=SEED, kills=len(order), order=order, recovers=0.0, topic="kills", tell=print
    )
    assert sum(result.kills.values()) == len(order)
    _assert_clean(result)


@pytest.mark.parametrize("transactions", [False, True], ids=["default mode", "with transactions"])
def test_lanes_killed_again_and_again_leave_an_exact_copy(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
    transactions: bool,
) -> None:
    """Without Spark, so many more kills fit into the time; half of them hit both lanes at once."""
    dice = random.Random(SEED)
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    workload = Workload(source, topic_name, 4, SEED)
    workload.create_topic()
    settings = flow_settings(topic_name, tasks_max=2, transactions=transactions)
    remote = f"{settings.flow.source}.{topic_name}"
    flow = lanes_without_spark(settings)
    assert flow.lanes is not None
    workload.start(600)
    for number in range(LANE_KILLS):
        carried = total_records(target, remote)
        wait_for(lambda: total_records(target, remote) > carried, f"records after kill {number}", 120)  # noqa: B023
        time.sleep(dice.uniform(0.0, 0.7))
        pids = sorted(flow.lanes.pids.values())
        for pid in pids if dice.random() < 0.5 else dice.sample(pids, min(1, len(pids))):
            os.kill(pid, signal.SIGKILL)
    workload.stop()
    wait_until_caught_up(source, target, topic_name, remote)
    for isolation in ("read_committed", "read_uncommitted"):
        verdict = check_copy(target, remote, workload.ledger, isolation=isolation)
        assert verdict.is_clean, f"seed {SEED}, {isolation}: {verdict.report()}\n{flow.log_text()}"
    print(f"{flow.lanes.starts} starts of lanes, {workload.ledger.acknowledged} records")
    assert flow.lanes.starts > LANE_KILLS
    flow.stop()
    told = check_ledger(source, target, topic_name, remote, settings.flow.books)
    print(told)
    assert told.faults == 0, f"seed {SEED}: {told}\n{flow.log_text()}"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("transactions", [False, True])
def test_forty_seeded_kills_leave_an_exact_copy(clusters_to_kill: Pair, transactions: bool) -> None:
    result = run_chaos(
        *clusters_to_kill,
        seed=SEED + 2,
        kills=KILLS_IN_A_LONG_RUN,
        topic=f"forty-kills-{transactions}".lower(),
        transactions=transactions,
        tell=print,
    )
    assert sum(result.kills.values()) == KILLS_IN_A_LONG_RUN
    _assert_clean(result)
