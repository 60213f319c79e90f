"""Batches that stay in the kernel on their way (decision 0013): killed lanes and brokers cost none of them."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from fcntl import F_GETPIPE_SZ, fcntl
from pathlib import Path

from mirrorspark.cluster.passing_answer import PASSING_BATCH_BYTES_MIN
from mirrorspark.cluster.pipes import PIPE_BYTES
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.clients import create_topic, total_records, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.plain_records import one_batch, read_records, write_values
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.settings import Bandwidth, FlowSettings

TOPIC = "passing"
PARTITIONS = 3
BATCH_RECORDS = 700
BATCHES = 20
"""Of each partition: 40 MB in all, some seconds at the limit below, so that kills come in the middle."""
BYTES_PER_S = 8_000_000
SEED = 13
DEADLINE_S = 180


def _numbered(dice: random.Random, partition: int) -> list[bytes]:
    return [b"%d %d " % (partition, i) + dice.randbytes(950) for i in range(BATCHES * BATCH_RECORDS)]


def _large_pipes(pid: int) -> int:
    """How many of a process's descriptors are pipes of our size."""
    found = 0
    for place in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(place).startswith("pipe:"):
                ours = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
                found += fcntl(ours, F_GETPIPE_SZ) == PIPE_BYTES
                os.close(ours)
        except OSError:
            continue  # closed meanwhile
    return found


def test_large_batches_pass_and_survive_kills_of_lane_and_brokers(
    clusters_to_kill: tuple[ClusterOfBrokers, ClusterOfBrokers],
    flow_settings: Callable[..., FlowSettings],
    lanes_without_spark: Callable[..., FlowWithoutSpark],
) -> None:
    east, west = clusters_to_kill
    dice = random.Random(SEED)
    create_topic(east.bootstrap, TOPIC, PARTITIONS)
    in_batches = {**one_batch(1_000_000), "batch.num.messages": BATCH_RECORDS}
    for partition in range(PARTITIONS):
        values = _numbered(dice, partition)
        write_values(east.bootstrap, TOPIC, values, partition=partition, settings=in_batches)
    wanted = {number: [one.size for one in found] for number, found in raw_batches(east.bootstrap, TOPIC).items()}
    assert all(sum(sizes) / len(sizes) > 2 * PASSING_BATCH_BYTES_MIN for sizes in wanted.values()), "they are large"

    limit = Bandwidth(bytes_per_s_max=BYTES_PER_S)
    flow = lanes_without_spark(flow_settings(TOPIC, source=east, target=west, tasks_max=1, bandwidth=limit))
    assert flow.lanes is not None
    remote = f"{flow.settings.flow.source}.{TOPIC}"
    total = PARTITIONS * BATCHES * BATCH_RECORDS

    def arrived(part: float) -> None:
        wait_for(
            lambda: total_records(west.bootstrap, remote) >= total * part, f"{part:.0%} of the records", DEADLINE_S
        )

    arrived(0.1)
    assert _large_pipes(flow.lanes.pids[0]) > 0, "batches pass through pipes"
    west.broker(1).kill()
    west.broker(1).start()
    arrived(0.4)
    os.kill(flow.lanes.pids[0], signal.SIGKILL)
    arrived(0.6)
    east.broker(1).kill()
    east.broker(1).start()
    wait_until_caught_up(east.bootstrap, west.bootstrap, TOPIC, remote)
    for isolation in ("read_committed", "read_uncommitted"):
        copy, original = (
            {number: [one[1:] for one in records] for number, records in read_records(*at, isolation=isolation).items()}
            for at in ((west.bootstrap, remote), (east.bootstrap, TOPIC))
        )
        assert sum(map(len, original.values())) == total
        assert copy == original, f"seed {SEED}, {isolation}\n{flow.log_text()}"
    sizes = {number: [one.size for one in found] for number, found in raw_batches(west.bootstrap, remote).items()}
    assert sizes == wanted, "no batch was opened"
    flow.stop()
