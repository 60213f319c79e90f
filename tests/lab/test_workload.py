"""A workload into a real broker: what it books is what the broker holds, also when the broker is killed on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from confluent_kafka import TopicPartition

from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import consumer, end_offsets, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.ledger import Ledger
from mirrorspark.lab.records import make_record
from mirrorspark.lab.workload import Workload


def test_source_itself_agrees_with_the_ledger(
    source_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path
) -> None:
    workload = Workload(source_cluster.bootstrap, topic_name, 3, seed=5)
    workload.create_topic()
    workload.produce(600)
    assert (workload.ledger.acknowledged, workload.ledger.in_doubt) == (600, 0)
    assert end_offsets(source_cluster.bootstrap, topic_name) == {number: (0, 200) for number in range(3)}
    assert check_copy(source_cluster.bootstrap, topic_name, workload.ledger).is_clean
    workload.ledger.save(tmp_path / "ledger.npz")
    verdict = check_copy(source_cluster.bootstrap, topic_name, Ledger.load(tmp_path / "ledger.npz"))
    assert verdict.is_clean
    assert verdict.read == 600


def test_awkward_shapes_arrive_as_they_were_made(source_cluster: ClusterOfBrokers, topic_name: str) -> None:
    workload = Workload(source_cluster.bootstrap, topic_name, 1, seed=6)
    workload.create_topic()
    workload.produce(150)
    reader = consumer(source_cluster.bootstrap, {"auto.offset.reset": "earliest"})
    reader.assign([TopicPartition(topic_name, 0, 0)])
    seen = {}
    while len(seen) < 150:
        for message in reader.consume(150, timeout=10):
            assert message.error() is None
            seen[dict(message.headers())["n"]] = message
    reader.close()
    for sequence in range(150):
        record = make_record(6, 0, sequence, now_ms=workload.now_ms)
        message = seen[b"0:%d" % sequence]
        assert (message.key(), message.value()) == (record.key, record.value)
        assert tuple(message.headers()) == record.headers
        assert message.timestamp()[1] == record.timestamp_ms


def test_background_form_survives_a_killed_broker(new_topic_name: Callable[[], str]) -> None:
    with ClusterOfBrokers("killed") as cluster:
        workload = Workload(cluster.bootstrap, new_topic_name(), 2, seed=9)
        workload.create_topic()
        workload.start(rate=500)
        wait_for(lambda: workload.ledger.acknowledged > 200, "the first acknowledgements", 60)
        cluster.broker(1).kill()
        cluster.broker(1).start()
        before = workload.ledger.acknowledged
        wait_for(lambda: workload.ledger.acknowledged > before + 500, "acknowledgements after the kill", 120)
        workload.stop()
        assert check_copy(cluster.bootstrap, workload.topic, workload.ledger).is_clean


def test_records_without_an_answer_are_in_doubt(new_topic_name: Callable[[], str]) -> None:
    with ClusterOfBrokers("paused") as cluster:
        workload = Workload(cluster.bootstrap, new_topic_name(), 2, seed=10)
        workload.create_topic()
        workload.produce(20)
        cluster.broker(1).pause()
        workload.produce(10, deadline_s=1)
        cluster.broker(1).resume()
        assert (workload.ledger.acknowledged, workload.ledger.in_doubt) == (20, 10)
        workload.produce(20)
        assert workload.ledger.acknowledged == 40
        assert check_copy(cluster.bootstrap, workload.topic, workload.ledger).is_clean
