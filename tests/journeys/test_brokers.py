"""Clusters of three brokers: what happens to brokers leaves an exact copy, and a flow says what it waits for."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirrorspark.lab.broker_faults import Side, broker_faults
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.chaos import BROKER_SETTINGS, ChaosResult, run_broker_chaos
from mirrorspark.lab.clients import create_topic, wait_for
from mirrorspark.lab.cluster_of_brokers import started_together
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import one_batch, read_records, write_values
from mirrorspark.lab.proxied_cluster import ProxiedCluster
from mirrorspark.lab.replicas import lead_from
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.settings import ClusterSettings, FlowSettings, Heartbeats, TopicSync, parse_bootstrap

SEED = 20261116
ARRIVES_S = 120.0
ALIAS = f"three-{os.getpid()}"
NEAR = 2
"""The broker in whose rack the mirror is."""
MEGABYTE = 1_000_000

Pair = tuple[ProxiedCluster, ProxiedCluster]


@pytest.fixture(scope="module")
def three_and_three() -> Iterator[Pair]:
    """The source takes larger messages than the target, and lets clients read from the replica in their rack."""
    source = {
        **BROKER_SETTINGS,
        "message.max.bytes": str(3 * MEGABYTE),
        "replica.fetch.max.bytes": str(3 * MEGABYTE),
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    }
    east, west = ProxiedCluster("east", settings=source, racks=True), ProxiedCluster("west", settings=BROKER_SETTINGS)
    with started_together(east, west):
        yield east, west


def _settings(
    pair: Pair, topic: str, *, alias: str = ALIAS, transactions: bool = False, rack: str = ""
) -> FlowSettings:
    east, west = pair
    return FlowSettings(
        Flow(alias, "west"),
        ClusterSettings(alias, parse_bootstrap(east.mirror_bootstrap, "source")),
        ClusterSettings("west", parse_bootstrap(west.mirror_bootstrap, "target")),
        topics=topic,
        tasks_max=2,
        replication_factor=3,
        transactions=transactions,
        client_rack=rack,
        topic_sync=TopicSync(refresh_interval_s=1.0),
        heartbeats=Heartbeats(emitted=False, replicated=False),
    )


class Lanes:
    """A ``Carrier`` without Spark."""

    def __init__(self, settings: FlowSettings, folder: Path) -> None:
        self.flow = FlowWithoutSpark(settings, folder=folder)
        self.start, self.stop, self.kill_everything = self.flow.start, self.flow.stop, self.flow.kill

    @property
    def is_alive(self) -> bool:
        return self.flow.failure is None

    def wait_carrying(self) -> None:
        """``start`` returned when it did."""

    def log_tail(self, lines: int = 30) -> str:
        return "\n".join(self.flow.log_text().splitlines()[-lines:])


def _assert_clean(result: ChaosResult, faults: int) -> None:
    told = f"{result.stalls()}\n{result.report()}"
    print(told)
    assert len(result.struck) == faults, told
    assert result.is_clean, told
    assert result.committed.read >= result.records > 0, told


@pytest.mark.slow  # six brokers are more than two cores can bear beside another journey
def test_faults_of_brokers_leave_an_exact_copy(three_and_three: Pair, tmp_path: Path) -> None:
    topic = "faults-of-brokers"
    order = ("target-leader-kill", "source-leader-move", "source-cut", "target-reassign")
    result = run_broker_chaos(
        *three_and_three,
        seed=SEED,
        faults=len(order),
        order=order,
        topic=topic,
        partitions=3,
        rate=30.0,
        lasting_s=(1.0, 2.0),
        alias=ALIAS,
        carrier=lambda: Lanes(_settings(three_and_three, topic), tmp_path / "lanes"),
        tell=print,
    )
    _assert_clean(result, len(order))


@pytest.mark.slow
def test_reads_in_its_rack_cuts_what_is_too_large_and_names_what_it_waits_for(
    three_and_three: Pair, tmp_path: Path
) -> None:
    east, west = three_and_three
    topic, alias = "in-its-rack", f"rack-{ALIAS}"
    create_topic(east.bootstrap, topic, 2, 3)
    lead_from(east.bootstrap, {TopicPartition(topic, 0): 1, TopicPartition(topic, 1): 3})
    before = {node: east.proxy(node).bytes_back for node in (1, 2, 3)}
    with FlowWithoutSpark(_settings(three_and_three, topic, alias=alias, rack=f"rack-{NEAR}"), folder=tmp_path) as flow:
        values = [os.urandom(MEGABYTE // 2) for _ in range(8)]
        for number in range(2):
            write_values(east.bootstrap, topic, values, partition=number)
        # More than the target's message.max.bytes in one batch, none of its records.
        write_values(east.bootstrap, topic, values[:5], partition=0, settings=one_batch(3 * MEGABYTE))
        remote = f"{alias}.{topic}"
        wait_until_caught_up(east.bootstrap, west.bootstrap, topic, remote)
        copied = read_records(west.bootstrap, remote)
        assert [record.value for record in copied[0]] == [*values, *values[:5]]
        assert [record.value for record in copied[1]] == values
        came = {node: east.proxy(node).bytes_back - before[node] for node in (1, 2, 3)}
        assert came[NEAR] > sum(map(len, values)) * 2, came
        assert came[1] + came[3] < MEGABYTE, came

        _waits_for_replicas(three_and_three, flow, remote)


@pytest.mark.slow
def test_partitions_of_a_frozen_broker_go_on_elsewhere_while_it_stands_still(
    three_and_three: Pair, tmp_path: Path
) -> None:
    """A request to it would fail after half a minute only; the cluster gives its partitions away sooner."""
    east, west = three_and_three
    topic, alias = "frozen-broker", f"frozen-{ALIAS}"
    create_topic(east.bootstrap, topic, 3, 3)
    with FlowWithoutSpark(_settings(three_and_three, topic, alias=alias), folder=tmp_path) as flow:
        remote = f"{alias}.{topic}"
        for number in range(3):
            write_values(east.bootstrap, topic, [b"before"], partition=number)
        wait_until_caught_up(east.bootstrap, west.bootstrap, topic, remote)
        lead_from(west.bootstrap, {TopicPartition(remote, number): 1 for number in range(3)})
        frozen = west.broker(1)
        frozen.pause()
        try:
            for number in range(3):
                write_values(east.bootstrap, topic, [b"meanwhile"], partition=number)
            wait_until_caught_up(east.bootstrap, west.bootstrap, topic, remote)
            wait_for(lambda: "broker 1 does not answer" in flow.log_text(), "the frozen broker to be told", ARRIVES_S)
        finally:
            frozen.resume()
        copied = read_records(west.bootstrap, remote)
        assert {number: [one.value for one in copied[number]] for number in range(3)} == {
            number: [b"before", b"meanwhile"] for number in range(3)
        }


def _waits_for_replicas(pair: Pair, flow: FlowWithoutSpark, remote: str) -> None:
    east, west = pair
    topic = remote.split(".")[1]
    fault = broker_faults(Side("source", east, topic, ""), Side("target", west, remote, ""))["target-min-isr"]

    def is_named() -> bool:
        return any(
            place.startswith(f"{remote}-") and "NOT_ENOUGH_REPLICAS" in why
            for place, why in flow.status.waiting.items()
        )

    with fault.strike(random.Random(SEED)):
        wait_for(
            lambda: _writes(east, topic) and is_named(), "the replicas that are missing to be told", ARRIVES_S, 0.5
        )
    wait_until_caught_up(east.bootstrap, west.bootstrap, topic, remote)
    wait_for(lambda: not flow.status.waiting, "the flow to say that it goes on", ARRIVES_S)


def _writes(east: ProxiedCluster, topic: str) -> bool:
    """One more record, so that there is something to append."""
    write_values(east.bootstrap, topic, [b"one more"], partition=0)
    return True


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("transactions", [False, True], ids=["default mode", "with transactions"])
def test_twenty_faults_of_brokers_leave_an_exact_copy(transactions: bool) -> None:
    east, west = (ProxiedCluster(name, settings=BROKER_SETTINGS) for name in ("east", "west"))
    with started_together(east, west):
        result = run_broker_chaos(
            east, west, seed=SEED, faults=20, topic="twenty-faults", transactions=transactions, tell=print
        )
    _assert_clean(result, 20)
