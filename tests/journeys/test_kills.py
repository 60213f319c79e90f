"""Kill -9 of everything under load, with real Spark: nothing lost, nothing twice, nothing out of order, in both modes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mirrorspark.lab.chaos import ChaosResult, run_chaos
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, started_together

Pair = tuple[ClusterOfBrokers, ClusterOfBrokers]

SEED = 20261115
KILLS_IN_A_LONG_RUN = 40


@pytest.fixture(scope="module")
def clusters_to_kill() -> Iterator[Pair]:
    east, west = ClusterOfBrokers("east"), ClusterOfBrokers("west")
    with started_together(east, west):
        yield east, west


def _assert_clean(result: ChaosResult) -> None:
    print(f"seed {result.seed}, kills {dict(result.kills)}, records {result.records}")
    told = (
        f"seed {result.seed}, kills {dict(result.kills)}\n"
        f"source: {result.source.report()}\n"
        f"read_committed: {result.committed.report()}\n"
        f"read_uncommitted: {result.uncommitted.report()}"
    )
    assert result.records > 0, told
    assert result.is_clean, told
    assert result.committed.read > 0, told


def test_every_process_killed_in_turn_leaves_an_exact_copy(clusters_to_kill: Pair) -> None:
    order = ("lane", "target", "executor", "driver")
    result = run_chaos(*clusters_to_kill, seed=SEED, kills=len(order), order=order, topic="kills", tell=print)
    assert sum(result.kills.values()) == len(order)
    _assert_clean(result)


def test_with_transactions_kills_leave_an_exact_copy(clusters_to_kill: Pair) -> None:
    order = ("lane", "target", "lane")
    result = run_chaos(
        *clusters_to_kill,
        seed=SEED + 1,
        kills=len(order),
        order=order,
        topic="kills-in-transactions",
        transactions=True,
        tell=print,
    )
    assert sum(result.kills.values()) == len(order)
    _assert_clean(result)


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
