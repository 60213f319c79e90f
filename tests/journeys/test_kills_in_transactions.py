"""Kill -9 under load with exactly.once.source.support=enabled: an exact copy for readers of either isolation."""

from __future__ import annotations

from mirrorspark.lab.chaos import run_chaos
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers

SEED = 20261116


def test_with_transactions_kills_leave_an_exact_copy(
    clusters_to_kill: tuple[ClusterOfBrokers, ClusterOfBrokers],
) -> None:
    order = ("lane", "target")
    result = run_chaos(
        *clusters_to_kill,
        seed=SEED,
        kills=len(order),
        order=order,
        recovers=0.0,
        topic="kills-in-transactions",
        transactions=True,
        tell=print,
    )
    assert sum(result.kills.values()) == len(order)
    told = result.report()
    assert result.records > 0, told
    assert result.is_clean, told
    assert result.committed.read > 0, told
