"""The fast filler: as many records as asked for, evenly spread, of the asked size and codec."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import TopicPartition

from mirrorspark.lab.clients import consumer, create_topic, end_offsets
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.preload import Shape, preload


@pytest.mark.parametrize(("shape", "codec"), [("random", "none"), ("json", "lz4")])
def test_all_records_arrive(source_cluster: ClusterOfBrokers, topic_name: str, shape: Shape, codec: str) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 4)
    done = preload(source_cluster.bootstrap, topic_name, 4, 23_456, 200, codec, shape)
    assert done.records == 23_456
    assert done.records_per_second > 0
    ends = end_offsets(source_cluster.bootstrap, topic_name)
    assert sum(end for _, end in ends.values()) == 23_456
    assert all(end > 0 for _, end in ends.values())

    reader = consumer(source_cluster.bootstrap)
    reader.assign([TopicPartition(topic_name, 0, 0)])
    messages = reader.consume(50, timeout=30)
    reader.close()
    assert {len(message.value()) for message in messages} == {200}
    if shape == "json":
        assert all("event" in json.loads(message.value()) for message in messages)
