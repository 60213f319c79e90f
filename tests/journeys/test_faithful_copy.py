"""Everything the workload holds arrives byte-equal through real Spark, stays when the mirror is stopped and started again,
and is what ordinary clients see."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import end_offsets
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.mirror import Mirror, mirror_properties
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.lab.workload import Workload
from mirrorspark.wire.record_batch import body

PARTITIONS = 4
RECORDS = 6_000
CODECS = 5


def _carried(cluster: ClusterOfBrokers, topic: str) -> dict[int, list[tuple[int, int, bytes]]]:
    """Codec, record count and body of each batch: what a carry never changes."""
    return {
        number: [(one.codec, one.record_count, blake2b(body(one), digest_size=16).digest()) for one in batches]
        for number, batches in raw_batches(cluster.bootstrap, topic).items()
    }


def test_every_record_and_batch_arrives_as_it_was_and_only_once_over_two_runs(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path
) -> None:
    alias = f"faithful-{os.getpid()}"
    remote = f"{alias}.{topic_name}"
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    workload = Workload(source, topic_name, PARTITIONS)
    workload.create_topic()
    workload.produce(RECORDS, has_ancient=True)
    properties = mirror_properties((alias, source), ("west", target), extra={f"{alias}->west.topics": topic_name})
    mirror = Mirror(properties, folder=tmp_path / "mirror")
    with mirror:
        mirror.wait_carrying()
        workload.produce(RECORDS // 4, has_ancient=True)  # these are carried as they come
        wait_until_caught_up(source, target, topic_name, remote)
        for isolation in ("read_committed", "read_uncommitted"):
            verdict = check_copy(target, remote, workload.ledger, isolation=isolation)
            assert verdict.is_clean, f"{isolation}: {verdict.report()}\n{mirror.log_tail()}"
            assert verdict.read == workload.ledger.acknowledged
        assert mirror.stop() == 0, mirror.log_tail()
    assert f"{alias}->west stopped: " in mirror.log_tail()

    sent, arrived = _carried(source_cluster, topic_name), _carried(target_cluster, remote)
    assert len({codec for batches in sent.values() for codec, _, _ in batches}) == CODECS
    assert arrived == sent

    ends = end_offsets(target, remote)
    with mirror:
        mirror.wait_carrying()
        workload.produce(PARTITIONS, has_ancient=True)  # one more for each partition, so each is known to flow
        wait_until_caught_up(source, target, topic_name, remote)
        assert mirror.stop() == 0, mirror.log_tail()
    assert _carried(target_cluster, remote) == _carried(source_cluster, topic_name)
    again = check_copy(target, remote, workload.ledger, isolation="read_uncommitted")
    assert again.is_clean, again.report()
    # The first run ended cleanly, so there was nobody to fence: not even a marker.
    assert end_offsets(target, remote) == {number: (first, end + 1) for number, (first, end) in ends.items()}
