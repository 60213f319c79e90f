"""Records flow before Spark is there, and go on without a gap or a repeat when its lanes take over."""

from __future__ import annotations

from collections.abc import Callable

from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import total_records, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.mirror import Mirror, mirror_properties
from mirrorspark.lab.workload import Workload

SEED = 20261116


def test_lanes_carry_while_spark_starts_and_are_fenced_by_sparks_own(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    workload = Workload(source, topic_name, 4, SEED)
    workload.create_topic()
    workload.start(500)
    alias = f"early-{topic_name}"
    remote = f"{alias}.{topic_name}"
    properties = mirror_properties((alias, source), ("west", target), extra={f"{alias}->west.topics": topic_name})

    def carried(more_than: int) -> Callable[[], bool]:
        return lambda: total_records(target, remote) > more_than

    mirror = Mirror(properties)
    with mirror:
        wait_for(carried(0), "records before Spark is up", 120)
        assert mirror.lane_workers() == []
        assert mirror.stop() == 0, mirror.log_tail(100)
    assert "carried" in mirror.log_tail(5)
    before = total_records(target, remote)

    with Mirror(properties) as mirror:
        wait_for(carried(before), "records before Spark is up, the second time", 120)
        assert mirror.lane_workers() == []
        mirror.wait_carrying()
        wait_for(lambda: bool(mirror.lane_workers()), "Spark's lanes", 120)
        now = total_records(target, remote)
        wait_for(carried(now + 1000), "records through Spark's lanes", 120)
        workload.stop()
        wait_until_caught_up(source, target, topic_name, remote)
        assert mirror.stop() == 0, mirror.log_tail(100)
    for isolation in ("read_committed", "read_uncommitted"):
        verdict = check_copy(target, remote, workload.ledger, isolation=isolation)
        assert verdict.is_clean, f"seed {SEED}, {isolation}: {verdict.report()}\n{mirror.log_tail(100)}"
