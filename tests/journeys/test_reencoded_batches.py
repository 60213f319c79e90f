"""Batches that cannot go as they are: with holes, with the broker's own time, begun before the wanted offset. Every record
that is left on the source arrives once, in order, and looks to consumers as it did there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from mirrorspark.lab.clients import create_topic, delete_records, producer, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import PlainRecord, one_batch, read_records, write_values
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.lab.records import CODECS
from mirrorspark.settings import FlowSettings

Begin = Callable[..., FlowWithoutSpark]
MakeSettings = Callable[..., FlowSettings]

ARRIVES_S = 90.0
OLD_MS = 1_500_000_000_000


def _shown(records: Sequence[PlainRecord]) -> list[tuple[object, ...]]:
    """All that a consumer sees but the offset."""
    return [record[1:] for record in records]


def _is_subsequence(some: Sequence[object], of: Sequence[object]) -> bool:
    left: Iterator[object] = iter(of)
    return all(one in left for one in some)


def test_holes_that_compaction_left_are_closed_and_nothing_else_changes(
    own_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: MakeSettings,
    lanes_without_spark: Begin,
) -> None:
    compacted = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
    }
    create_topic(own_cluster.bootstrap, topic_name, 1, settings=compacted)
    settings = flow_settings(topic_name, source=own_cluster)
    remote = f"{settings.flow.source}.{topic_name}"
    create_topic(target_cluster.bootstrap, remote, 1)  # not compacted, so that what arrived can be counted
    _update_few_keys_often(own_cluster.bootstrap, topic_name)

    def has_holes() -> bool:
        batches = raw_batches(own_cluster.bootstrap, topic_name)[0]
        holes = [one for one in batches if one.has_holes and one.record_count]
        return len({one.codec for one in holes}) == len(CODECS) and any(one.has_delete_horizon for one in batches)

    def write_and_look() -> bool:
        # A segment is rolled, and with it comes into the cleaner's reach, only when something is appended.
        write_values(own_cluster.bootstrap, topic_name, [b"tick"], key=b"tick")
        return has_holes()

    wait_for(write_and_look, "the cleaner to leave holes in batches of every codec", ARRIVES_S, 0.3)
    before = _shown(read_records(own_cluster.bootstrap, topic_name)[0])
    flow = lanes_without_spark(settings)

    def last_arrived() -> bool:
        arrived = read_records(target_cluster.bootstrap, remote)[0]
        return bool(arrived) and _shown(arrived)[-1] == before[-1]

    wait_for(last_arrived, "the last record", ARRIVES_S, 0.3)
    arrived = _shown(read_records(target_cluster.bootstrap, remote)[0])
    flow.stop()
    after = _shown(read_records(own_cluster.bootstrap, topic_name)[0])
    # The cleaner may have gone on meanwhile: all that is left now arrived, and nothing that was not there before.
    assert len(set(arrived)) == len(arrived)
    assert _is_subsequence(arrived, before)
    assert _is_subsequence(after, arrived)
    print(f"{len(before)} records were there before, {len(arrived)} arrived, {len(after)} are left")
    assert not any(one.has_holes for one in raw_batches(target_cluster.bootstrap, remote)[0])


def _update_few_keys_often(bootstrap: str, topic: str) -> None:
    """Batches in which some keys are replaced later and some never are, in every codec, with tombstones."""
    for codec in CODECS * 2:
        settings = {**one_batch(100_000), "compression.type": codec, "enable.idempotence": True, "linger.ms": 200}
        client = producer(bootstrap, settings)
        for number in range(60):
            kept = number % 3 == 0
            stamp = int(time.time() * 1000) - number
            key = b"%s-%d-%d" % (codec.encode(), number, time.monotonic_ns()) if kept else b"hot-%d" % (number % 5)
            value = None if kept and number % 9 == 0 else b"value of %d in %s " % (number, codec.encode()) * 3
            client.produce(topic, value, key, partition=0, timestamp=stamp, headers=[("n", b"%d" % number)])
        assert client.flush(60) == 0
        time.sleep(0.15)  # the segment's time is over: the next batch begins a new one


def test_append_time_is_kept_as_consumers_saw_it(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: MakeSettings,
    lanes_without_spark: Begin,
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1, settings={"message.timestamp.type": "LogAppendTime"})
    began_ms = int(time.time() * 1000) - 1
    for codec in CODECS:
        client = producer(source_cluster.bootstrap, {**one_batch(10_000), "compression.type": codec})
        for number in range(20):
            client.produce(topic_name, b"%d " % number * 10, partition=0, timestamp=OLD_MS + number)
        assert client.flush(60) == 0
    settings = flow_settings(topic_name)
    remote = f"{settings.flow.source}.{topic_name}"
    flow = lanes_without_spark(settings)
    sent = read_records(source_cluster.bootstrap, topic_name)[0]
    assert all(record.timestamp_ms >= began_ms for record in sent)
    wait_for(
        lambda: _shown(read_records(target_cluster.bootstrap, remote)[0]) == _shown(sent), "all records", ARRIVES_S, 0.3
    )
    flow.stop()
    batches = raw_batches(target_cluster.bootstrap, remote)[0]
    assert not any(one.is_log_append_time for one in batches)
    assert {one.codec for one in batches} == set(range(len(CODECS)))  # each in its own codec


def test_a_log_that_begins_inside_a_batch_is_carried_from_there(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: MakeSettings,
    lanes_without_spark: Begin,
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1)
    values = [b"%d" % number for number in range(30)]
    write_values(source_cluster.bootstrap, topic_name, values, settings=one_batch(10_000))
    (batch,) = raw_batches(source_cluster.bootstrap, topic_name)[0]
    assert batch.record_count == 30
    delete_records(source_cluster.bootstrap, topic_name, {0: 11})
    settings = flow_settings(topic_name)
    remote = f"{settings.flow.source}.{topic_name}"
    flow = lanes_without_spark(settings)
    sent = _shown(read_records(source_cluster.bootstrap, topic_name)[0])
    assert len(sent) == 19
    wait_for(lambda: _shown(read_records(target_cluster.bootstrap, remote)[0]) == sent, "the rest", ARRIVES_S, 0.3)
    assert flow.events == []
    flow.stop()
