"""Records flow before Spark is there, and go on without a gap or a repeat when its lanes take over; these take edits of the
file while they run.

One start of Spark for both: it is what costs time here.
"""

from __future__ import annotations

from collections.abc import Callable

from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import create_topic, topic_partitions, total_records, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.mirror import Mirror, mirror_properties
from mirrorspark.lab.monitoring import free_ports
from mirrorspark.lab.plain_records import write_values
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.lab.scrape import scrape
from mirrorspark.lab.workload import Workload

SEED = 20261116
LANES = 2
DEADLINE_S = 120.0


def carried_records(target: str, remote: str) -> int:
    """Without markers."""
    logs = raw_batches(target, remote).values()
    return sum(batch.record_count for log in logs for batch in log if not batch.is_control)


def check_metrics(port: int, flow: str, remote: str, records: int) -> None:
    """The counts are those of the log, over early lanes and Spark's; and Spark's JVM tells of itself.

    What an early lane did not live to report is found on the target by its successor, and counted there.
    """

    def is_counted() -> bool:
        found = scrape(port)
        places = found["mirrorspark_partition_records_total"].items()
        counted = sum(value for (_, topic, _), value in places if topic == remote)
        return records - sum(found["mirrorspark_lane_duplicates_avoided_total"].values()) <= counted <= records

    wait_for(is_counted, f"{records} records counted", 60)
    wait_for(lambda: scrape(port)["mirrorspark_flow_lag_records"][flow,] == 0, "no lag", 60)
    wait_for(lambda: "jvm_memory_used_bytes" in scrape(port), "the JVM's series", 60)
    found = scrape(port)
    used, most = found["jvm_memory_used_bytes"]["heap",], found["jvm_memory_max_bytes"]["heap",]
    assert 10_000_000 < used <= most <= 600_000_000
    assert found["jvm_memory_bytes_used"].keys() == {("heap",), ("nonheap",)}
    assert 10 < found["jvm_threads_current"][()] <= found["jvm_threads_peak"][()]
    assert found["jvm_gc_collection_seconds_sum"].keys() == found["jvm_gc_collection_seconds_count"].keys() != set()
    assert found["process_cpu_seconds_total"][()] > 0


def edit(mirror: Mirror, properties: dict[str, str]) -> None:
    beside = mirror.file.with_suffix(".new")
    beside.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
    beside.replace(mirror.file)


def take_edits(mirror: Mirror, properties: dict[str, str], flow: str, target: str, late: str) -> None:
    """``--watch`` and SIGHUP: the lanes that run are the ones that carry the new topic."""
    workers = mirror.lane_workers()
    edit(mirror, {**properties, "taks.max": "3"})
    wait_for(lambda: "edit refused: SETTINGS: " in mirror.log_tail(50), "the bad edit to be refused", DEADLINE_S, 0.2)
    wait_for(lambda: "edit.refused" in mirror.log_tail(50), "the bad edit among the notices", DEADLINE_S, 0.2)
    edit(mirror, {**properties, f"{flow}.topics": f"{properties[f'{flow}.topics']}, {late}"})
    remote = f"{flow.partition('->')[0]}.{late}"
    wait_for(
        lambda: topic_partitions(target, remote) > 0 and carried_records(target, remote) == 1,
        "the new topic",
        DEADLINE_S,
        0.2,
    )
    assert mirror.lane_workers() == workers, mirror.log_tail(50)
    mirror.hang_up()
    wait_for(lambda: "edit: nothing has changed" in mirror.log_tail(50), "SIGHUP to be heard", DEADLINE_S, 0.2)


def test_lanes_carry_while_spark_starts_and_are_fenced_by_sparks_own(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    workload = Workload(source, topic_name, 4, SEED)
    workload.create_topic()
    late = f"{topic_name}-late"
    create_topic(source, late)
    write_values(source, late, [b"late"])
    workload.start(500)
    alias = f"early-{topic_name}"
    remote = f"{alias}.{topic_name}"
    flow = f"{alias}->west"
    properties = mirror_properties((alias, source), ("west", target), extra={f"{flow}.topics": topic_name})

    def carried(more_than: int) -> Callable[[], bool]:
        return lambda: total_records(target, remote) > more_than

    mirror = Mirror(properties)
    with mirror:
        wait_for(carried(0), "records before Spark is up", DEADLINE_S)
        assert mirror.lane_workers() == []
        assert mirror.stop() == 0, mirror.log_tail(100)
    assert "carried" in mirror.log_tail(5)
    before, records_before = total_records(target, remote), carried_records(target, remote)

    (port,) = free_ports(1)
    with Mirror(properties, arguments=["--metrics", str(port), "--watch"]) as mirror:
        wait_for(carried(before), "records before Spark is up, the second time", DEADLINE_S)
        assert mirror.lane_workers() == []
        mirror.wait_carrying()
        wait_for(lambda: len(mirror.lane_workers()) == LANES, "Spark's lanes", DEADLINE_S, 0.2)
        now = total_records(target, remote)
        take_edits(mirror, properties, flow, target, late)
        wait_for(carried(now + 1000), "records through Spark's lanes", DEADLINE_S)
        workload.stop()
        wait_until_caught_up(source, target, topic_name, remote)
        check_metrics(port, flow, remote, carried_records(target, remote) - records_before)
        assert mirror.stop() == 0, mirror.log_tail(100)
    for isolation in ("read_committed", "read_uncommitted"):
        verdict = check_copy(target, remote, workload.ledger, isolation=isolation)
        assert verdict.is_clean, f"seed {SEED}, {isolation}: {verdict.report()}\n{mirror.log_tail(100)}"
