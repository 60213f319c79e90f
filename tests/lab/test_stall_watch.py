"""Stalls from log files: batches arrive when a replica has them, markers are no records, a cut log counts nothing twice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mirrorspark.lab.ledger import Ledger
from mirrorspark.lab.records import DIGEST_BYTES
from mirrorspark.lab.stall_watch import StallWatch
from mirrorspark.wire.record_batch import split_batches
from mirrorspark.wire.records import Record, encode_batch

REMOTE = "east.orders"
STALL_S = 0.3


class World:
    """Two replicas of two partitions on the disk of a cluster that is none, and a ledger."""

    def __init__(self, folder: Path) -> None:
        self.folders = [folder / "data-1", folder / "data-2"]
        self.ledger = Ledger("orders", 2)
        self.watch = StallWatch(self.ledger, lambda: self.folders, REMOTE)
        for data in self.folders:
            for number in range(2):
                (data / f"{REMOTE}-{number}").mkdir(parents=True)

    def log(self, replica: int, partition: int, segment: int = 0) -> Path:
        return self.folders[replica] / f"{REMOTE}-{partition}" / f"{segment:020d}.log"

    def acknowledge(self, partition: int, count: int = 1) -> None:
        for _ in range(count):
            self.ledger.acknowledge(partition, 0, 0, bytes(DIGEST_BYTES))
        self.watch.sample()

    def append(
        self, replica: int, partition: int, offset: int, count: int = 1, *, marker: bool = False, segment: int = 0
    ) -> None:
        raw = encode_batch([Record(number, 0, b"k", b"v", ()) for number in range(count)], codec=0)
        (batch,) = split_batches(memoryview(raw), REMOTE, partition)
        batch.buffer[:8] = offset.to_bytes(8, "big")
        if marker:
            batch.buffer[22] |= 0x20
        with self.log(replica, partition, segment).open("ab") as log:
            log.write(raw)
        self.watch.sample()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_partition_waits_from_its_acknowledgement_to_its_arrival(world: World) -> None:
    began = time.monotonic()
    world.acknowledge(0)
    world.acknowledge(1)
    time.sleep(STALL_S)
    world.append(0, 1, 0)
    time.sleep(STALL_S)
    world.append(0, 0, 0)
    anywhere, partition = world.watch.longest(began, time.monotonic())
    assert STALL_S <= anywhere < partition
    assert partition >= 2 * STALL_S
    assert world.watch.behind == {0: 0, 1: 0}


def test_a_source_without_news_is_no_stall(world: World) -> None:
    began = time.monotonic()
    world.acknowledge(0)
    world.append(0, 0, 0)
    time.sleep(STALL_S)
    world.acknowledge(0)
    world.append(0, 0, 1)
    assert world.watch.longest(began, time.monotonic())[1] < STALL_S


def test_a_wait_that_lasts_is_told_as_it_stands_and_only_of_its_time(world: World) -> None:
    before = time.monotonic()
    time.sleep(0.01)
    world.acknowledge(1)
    time.sleep(STALL_S)
    assert world.watch.longest(before, time.monotonic())[1] >= STALL_S
    assert world.watch.longest(before - 2, before) == (0.0, 0.0)
    assert world.watch.behind == {0: 0, 1: 1}


def test_markers_are_no_records_and_replicas_are_counted_once(world: World) -> None:
    world.acknowledge(0, 5)
    world.append(0, 0, 0, marker=True)
    assert world.watch.behind[0] == 5
    world.append(0, 0, 1, 3)
    world.append(1, 0, 0, marker=True)
    world.append(1, 0, 1, 3)
    assert world.watch.behind[0] == 2


def test_a_log_that_is_cut_or_replaced_counts_nothing_twice(world: World) -> None:
    world.acknowledge(0, 6)
    world.append(0, 0, 0, 2)
    whole = world.log(0, 0).stat().st_size
    world.append(0, 0, 2, 2)
    with world.log(0, 0).open("r+b") as log:
        log.truncate(whole)
    world.watch.sample()
    world.append(0, 0, 2, 2)
    assert world.watch.behind[0] == 2
    world.log(0, 0).unlink()
    world.watch.sample()
    world.append(0, 0, 0, 5)
    assert world.watch.behind[0] <= 2
    world.append(0, 0, 5, 1)
    assert world.watch.behind[0] == 0


def test_segments_are_read_one_after_the_other(world: World) -> None:
    world.acknowledge(0, 6)
    world.append(0, 0, 0, 2)
    world.append(0, 0, 2, 1, segment=2)
    world.append(0, 0, 3, 2, segment=3)
    assert world.watch.behind[0] == 1
    world.log(0, 0, 2).unlink()  # retention, or a replica that is truncated as a whole
    world.append(0, 0, 5, 1, segment=3)
    assert world.watch.behind[0] == 0


def test_half_a_batch_has_not_arrived(world: World) -> None:
    world.acknowledge(0)
    world.append(1, 0, 0)
    whole = world.log(1, 0).read_bytes()
    world.acknowledge(1)
    world.log(0, 1).write_bytes(whole[:-1])
    world.watch.sample()
    assert world.watch.behind[1] == 1
    world.log(0, 1).write_bytes(whole)
    world.watch.sample()
    assert world.watch.behind[1] == 0
