"""A flow with a limit keeps to it, whichever of its lanes has the work, and a flow without one beside it does not notice.

``pytest -m slow -s tests/journeys/test_bandwidth_limit.py`` does the same on real Spark and prints what it measured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mirrorspark.control.live_change import Changes
from mirrorspark.lab.clients import create_topic, delete_topic, end_offsets, topic_partitions, total_records, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flows_without_spark import FlowsWithoutSpark
from mirrorspark.lab.mirror import Mirror
from mirrorspark.lab.preload import preload
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.settings import Bandwidth, FlowSettings

LIMIT = 5_000_000
RATE_MIN, RATE_MAX = 4.5e6, 5.5e6
"""Bytes a second that issue 7 allows a flow of 5 MB/s."""
WINDOW_S = 8.0
"""Long against the burst that a lane may save up (half a second of its share)."""
LIMITED_RECORDS, FREE_RECORDS = 120_000, 20_000
VALUE_BYTES, RECORD_BYTES = 1_000, 1_008
"""What a record takes in a batch of some hundred of them, uncompressed."""
PATIENCE_S = 120.0


class Watch:
    """How many records of a remote topic were there when."""

    def __init__(self, target: str, topic: str) -> None:
        self._target = target
        self._topic = topic
        self._looks: list[tuple[float, int]] = []

    def look(self) -> int:
        records = sum(end - first for first, end in end_offsets(self._target, self._topic).values())
        self._looks.append((time.monotonic(), records))
        return records

    def restart(self) -> None:
        self._looks.clear()

    def rates(self, window_s: float = WINDOW_S) -> list[float]:
        """Bytes a second in each window of that length: from every look to the first one that is so much later."""
        found = []
        for n, (begin, before) in enumerate(self._looks):
            later = next(((end, after) for end, after in self._looks[n:] if end - begin >= window_s), None)
            if later is not None:
                found.append((later[1] - before) * RECORD_BYTES / (later[0] - begin))
        return found


def _is_divided(status: FlowStatus) -> bool:
    """Both lanes have told what they may read now, which one of them does nearly alone."""
    shares = [limit.bytes_per_s for limit in status.limits]
    return len(shares) == 2 and sum(shares) <= LIMIT and max(shares) >= 0.95 * LIMIT


def _words(status: FlowStatus) -> list[str]:
    return [text for text in status.notices if text.startswith("held by bandwidth limit")]


def test_a_limit_holds_and_the_flow_beside_it_is_not_held(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    new_topic_name: Callable[[], str],
    flow_settings: Callable[..., FlowSettings],
    tmp_path: Path,
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    slow_topic, free_topic = new_topic_name(), new_topic_name()
    for topic in (slow_topic, free_topic):
        create_topic(source, topic, 2)
    # All in one partition: one lane has all the work, and must get what the other one leaves.
    preload(source, slow_topic, 1, LIMITED_RECORDS, VALUE_BYTES, batch_bytes=300_000)
    preload(source, free_topic, 2, FREE_RECORDS, VALUE_BYTES)
    limited = flow_settings(slow_topic, tasks_max=2, bandwidth=Bandwidth(LIMIT))
    free = flow_settings(free_topic)
    remotes = [f"{one.flow.source}.{topic}" for one, topic in ((limited, slow_topic), (free, free_topic))]
    watch = Watch(target, remotes[0])
    with FlowsWithoutSpark(folder=tmp_path) as flows:
        flows.begin(limited, free)
        status = flows.status(limited.flow)
        wait_for(lambda: total_records(target, remotes[1]) >= FREE_RECORDS, "the flow without a limit", PATIENCE_S)
        assert watch.look() < LIMITED_RECORDS, "the one with a limit is still behind"
        assert flows.status(free.flow).limits == []
        wait_for(lambda: bool(_words(status)), "the status to say that the limit holds it", PATIENCE_S)
        wait_for(lambda: _is_divided(status), "the busy lane to get what the idle one leaves", PATIENCE_S)
        watch.restart()

        def measured() -> bool:
            is_over = watch.look() >= LIMITED_RECORDS
            return is_over or any(RATE_MIN <= rate <= RATE_MAX for rate in watch.rates())

        wait_for(measured, "a window of the limited flow", PATIENCE_S, every_s=0.2)
        rates = watch.rates()
        assert rates, "its records ran out"
        assert max(rates) <= RATE_MAX, rates
        assert max(rates) >= RATE_MIN, rates
        print(f"\nlimit {LIMIT / 1e6} MB/s: {rates[-1] / 1e6:.3f} MB/s over {WINDOW_S:.0f} s")

        # Lifted while it runs: no lane ends for it.
        pids = flows.lane_pids(limited.flow)
        lifted = replace(limited, bandwidth=Bandwidth())
        flows.call(flows._set.apply(Changes(told=(lifted,))))
        wait_for(lambda: total_records(target, remotes[0]) >= LIMITED_RECORDS, "the rest", PATIENCE_S)
        assert total_records(target, remotes[0]) == LIMITED_RECORDS
        assert flows.lane_pids(limited.flow) == pids
        wait_for(lambda: not status.limits and not _words(status), "the status to forget the limit", PATIENCE_S)
    for cluster, topics in ((source, (slow_topic, free_topic)), (target, remotes)):
        for topic in topics:
            delete_topic(cluster, topic)


# -- on Spark ----------------------------------------------------------------------------------------------------------

SPARK_FREE_RECORDS = 400_000
SPARK_LIMITED_RECORDS = 250_000


def _properties(source: str, target: str, flows: dict[str, tuple[str, int]]) -> dict[str, str]:
    """Flows into west, by alias: the topic, and the limit (0: none)."""
    found = {
        "clusters": ", ".join([*flows, "west"]),
        "west.bootstrap.servers": target,
        "replication.factor": "1",
        "emit.heartbeats.enabled": "false",
        "start.before.spark": "false",
    }
    for alias, (topic, limit) in flows.items():
        found |= {
            f"{alias}.bootstrap.servers": source,
            f"{alias}->west.enabled": "true",
            f"{alias}->west.topics": topic,
            f"{alias}->west.bandwidth.max.bytes.per.second": str(limit),
        }
    return found


def _throughput(target: str, remote: str, records: int) -> float:
    """Bytes a second between the first tenth and the last."""
    looks: list[tuple[float, int]] = []

    def done() -> bool:
        if topic_partitions(target, remote):
            looks.append((time.monotonic(), total_records(target, remote)))
        return bool(looks) and looks[-1][1] >= records

    wait_for(done, f"{remote} to be complete", 300.0, every_s=0.1)
    middle = [(at, count) for at, count in looks if 0.1 * records <= count <= 0.95 * records]
    assert len(middle) >= 2, f"too fast to be measured: {looks}"
    return (middle[-1][1] - middle[0][1]) * RECORD_BYTES / (middle[-1][0] - middle[0][0])


@pytest.mark.slow
def test_on_spark(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    new_topic_name: Callable[[], str],
    tmp_path: Path,
) -> None:
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    slow_topic, free_topic = new_topic_name(), new_topic_name()
    for topic in (slow_topic, free_topic):
        create_topic(source, topic, 2)
    preload(source, slow_topic, 2, SPARK_LIMITED_RECORDS, VALUE_BYTES)
    preload(source, free_topic, 2, SPARK_FREE_RECORDS, VALUE_BYTES)
    mark = os.getpid()
    figures: dict[str, float] = {}
    for number, name in enumerate(("alone", "beside", "alone-again")):
        alias, limited = f"paced{number}-{mark}", f"pacedslow{number}-{mark}"
        flows = {alias: (free_topic, 0)} | ({limited: (slow_topic, LIMIT)} if name == "beside" else {})
        with Mirror(
            _properties(source, target, flows), folder=tmp_path / name, arguments=["--master", "local[4]"]
        ) as it:
            it.wait_carrying()
            figures[name] = _throughput(target, f"{alias}.{free_topic}", SPARK_FREE_RECORDS)
            if name == "beside":
                watch = Watch(target, f"{limited}.{slow_topic}")
                assert watch.look() < SPARK_LIMITED_RECORDS

                def measured(watch: Watch = watch) -> bool:
                    watch.look()
                    return bool(watch.rates(10.0))

                wait_for(measured, "10 s of the limited flow", PATIENCE_S, every_s=0.25)
                figures["limited"] = watch.rates(10.0)[-1]
    told = ", ".join(f"{name} {rate / 1e6:.2f} MB/s" for name, rate in figures.items())
    print(f"\non Spark: {told}; limit {LIMIT / 1e6:.1f} MB/s")
    assert RATE_MIN <= figures["limited"] <= RATE_MAX, told
