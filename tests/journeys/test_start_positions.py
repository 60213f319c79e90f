"""Where topics begin that a flow has no position for: latest, earliest, a time, offsets, and offsets that are not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from mirrorspark.events import EventKind
from mirrorspark.lab.clients import create_topic, delete_records, producer, total_records, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import read_records, write_values
from mirrorspark.settings import FlowSettings

PATIENCE_S = 60.0
NOON_MS = 1_698_840_000_000  # 2023-11-01T12:00:00Z
HOUR_MS = 3_600_000
EARLY = [b"0", b"1", b"2", b"3", b"4"]
"""One an hour, the third one at noon."""
KINDS = {"earliest": 1, "noon": 1, "later": 1, "offsets": 3, "gone": 1}
"""And how many partitions each has."""


def _write(bootstrap: str, places: list[tuple[str, int]], values: list[bytes], first_ms: int = 0) -> None:
    client = producer(bootstrap)
    for topic, partition in places:
        for hour, value in enumerate(values):
            client.produce(topic, value, partition=partition, timestamp=first_ms + hour * HOUR_MS if first_ms else 0)
    assert client.flush(PATIENCE_S) == 0


def _has(bootstrap: str, topic: str, count: int) -> bool:
    return total_records(bootstrap, topic) >= count


def test_topics_begin_where_the_file_says(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    names = {kind: f"{topic_name}.{kind}" for kind in KINDS}
    places = [(names[kind], partition) for kind, count in KINDS.items() for partition in range(count)]
    for kind, count in KINDS.items():
        create_topic(source, names[kind], count, settings={"retention.ms": "-1"})
    _write(source, places, EARLY, NOON_MS - 2 * HOUR_MS)
    delete_records(source, names["gone"], {0: 2})
    words = {
        "earliest": "earliest",
        "noon": str(NOON_MS),
        "later": str(NOON_MS + 24 * HOUR_MS),
        "offsets": "offsets 0:3, 1:77",  # of partition 2 nothing is said: it begins as the flow does
        "gone": "offsets 0:1",
    }
    settings = flow_settings(
        f"{topic_name}.*",
        start_at="latest",
        start_at_topics=tuple((names[kind], word) for kind, word in words.items()),
    )
    flow = lanes_without_spark(settings)
    wait_for(lambda: len(flow.status.partitions) == len(places), "all partitions to have begun", PATIENCE_S)
    _write(source, places, [b"new"])
    wanted = {
        "earliest": [[*EARLY, b"new"]],
        "noon": [[*EARLY[2:], b"new"]],
        "later": [[b"new"]],
        "offsets": [[*EARLY[3:], b"new"], [b"new"], [b"new"]],
        "gone": [[*EARLY[2:], b"new"]],
    }
    for kind, partitions in wanted.items():
        remote, count = f"{settings.flow.source}.{names[kind]}", sum(map(len, partitions))
        wait_for(partial(_has, target, remote, count), f"{count} records of {remote}", PATIENCE_S)
        found = read_records(target, remote)
        assert [[record.value for record in found[number]] for number in sorted(found)] == partitions, kind
    told = {
        (event.topic, event.partition): event for event in flow.events if event.kind == EventKind.START_OUT_OF_RANGE
    }
    assert told.keys() == {(names["offsets"], 1), (names["gone"], 0)}
    beyond, gone = told[names["offsets"], 1], told[names["gone"], 0]
    assert (beyond.offset_first, beyond.offset_last) == (5, 76)
    assert "asks for offset 77 of partition 1, and the source has 0 to 5" in beyond.text
    assert (gone.offset_first, gone.offset_last) == (1, 1)
    assert "begins at 2, the first that is left" in gone.text

    # What has a position goes by that, whatever the file says now.
    flow.stop()
    lanes_without_spark(replace(settings, start_at="earliest", start_at_topics=()))
    write_values(source, names["later"], [b"newer"])
    remote = f"{settings.flow.source}.{names['later']}"
    wait_for(lambda: total_records(target, remote) >= 2, "the record after the restart", PATIENCE_S)
    assert [record.value for record in read_records(target, remote)[0]] == [b"new", b"newer"]
