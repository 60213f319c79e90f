"""Transactions on the source: carried as MirrorMaker 2 does by default; only what was committed where a flow asks for it."""

from __future__ import annotations

from collections.abc import Callable

from mirrorspark.config.load import parse_deployment
from mirrorspark.lab.clients import create_topic, producer, topic_partitions, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.mirror import mirror_properties
from mirrorspark.lab.plain_records import read_records, write_values
from mirrorspark.settings import FlowSettings

ARRIVES_S = 60.0
FLUSH_S = 60.0


class Writer:
    """An ordinary transactional producer."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._client = producer(bootstrap, {"transactional.id": f"writer-of-{topic}"})
        self._client.init_transactions(FLUSH_S)

    def begin(self, values: list[bytes]) -> None:
        self._client.begin_transaction()
        for value in values:
            self._client.produce(self._topic, value, partition=0)
        assert self._client.flush(FLUSH_S) == 0  # on the log, whatever becomes of it

    def commit(self) -> None:
        self._client.commit_transaction(FLUSH_S)

    def abort(self) -> None:
        self._client.abort_transaction(FLUSH_S)


def _settings(source: str, target: str, alias: str, topic: str, isolation: str | None) -> FlowSettings:
    """From a file's properties, as a user would set it."""
    extra = {f"{alias}->west.topics": topic, "refresh.topics.interval.seconds": "1"}
    if isolation:
        extra[f"{alias}.consumer.isolation.level"] = isolation
    (settings,) = parse_deployment(mirror_properties((alias, source), ("west", target), tasks_max=1, extra=extra)).flows
    return settings


def _values(target: str, remote: str, partition: int) -> list[bytes | None]:
    if not topic_partitions(target, remote):
        return []
    return [record.value for record in read_records(target, remote, isolation="read_uncommitted")[partition]]


def test_aborted_records_are_carried_by_default_and_left_out_when_the_flow_reads_committed(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    lanes_without_spark: Callable[..., FlowWithoutSpark],
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    create_topic(source, topic_name, 2)
    flows = {
        isolation: lanes_without_spark(_settings(source, target, alias, topic_name, isolation))
        for alias, isolation in ((f"d-{topic_name}", None), (f"c-{topic_name}", "read_committed"))
    }
    remote_all, remote_committed = f"d-{topic_name}.{topic_name}", f"c-{topic_name}.{topic_name}"
    writer = Writer(source, topic_name)

    def arrives(remote: str, wanted: list[bytes], partition: int = 0) -> None:
        wait_for(lambda: _values(target, remote, partition) == wanted, f"{wanted} on {remote}-{partition}", ARRIVES_S)

    writer.begin([b"kept-1", b"kept-2"])
    writer.commit()
    writer.begin([b"aborted-1", b"aborted-2", b"aborted-3"])
    writer.abort()
    write_values(source, topic_name, [b"plain-1"])
    everything = [b"kept-1", b"kept-2", b"aborted-1", b"aborted-2", b"aborted-3", b"plain-1"]
    committed = [b"kept-1", b"kept-2", b"plain-1"]
    arrives(remote_all, everything)
    arrives(remote_committed, committed)

    # While a transaction is open, what lies behind it is not carried either: its fate is not known.
    writer.begin([b"open-1"])
    write_values(source, topic_name, [b"plain-2"])
    write_values(source, topic_name, [b"beat"], partition=1)
    arrives(remote_committed, [b"beat"], 1)
    arrives(remote_all, [*everything, b"open-1", b"plain-2"])
    assert _values(target, remote_committed, 0) == committed
    writer.commit()
    arrives(remote_committed, [*committed, b"open-1", b"plain-2"])

    # An abort as the very last thing; then a restart that has nothing to send.
    writer.begin([b"aborted-4"])
    writer.abort()
    write_values(source, topic_name, [b"beat"], partition=1)
    arrives(remote_all, [*everything, b"open-1", b"plain-2", b"aborted-4"])
    arrives(remote_committed, [b"beat"] * 2, 1)
    for flow in flows.values():
        flow.stop()
    for isolation, remote, wanted in (
        (None, remote_all, [*everything, b"open-1", b"plain-2", b"aborted-4"]),
        ("read_committed", remote_committed, [*committed, b"open-1", b"plain-2"]),
    ):
        again = lanes_without_spark(flows[isolation].settings)
        write_values(source, topic_name, [b"last"])
        arrives(remote, [*wanted, b"last"] if isolation is None else [*wanted, b"last", b"last"])
        # The copy's own consumers see the same at either level: nothing on the target is left undecided.
        assert [one.value for one in read_records(target, remote)[0]] == _values(target, remote, 0)
        again.stop()
