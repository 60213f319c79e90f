"""Invariant C on real brokers: whatever an earlier writer left behind, the walk proves how far the copy came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.writer import add_partitions, end_transaction
from mirrorspark.errors import PartitionStopped
from mirrorspark.events import EventKind
from mirrorspark.lab.clients import delete_records
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.pipeline.tail_walk import Found, Marker, walk_tail
from mirrorspark.wire.record_batch import Batch
from mirrorspark.wire.records import encode_batch
from mirrorspark.wire.reencoding import decode, split_batch

if TYPE_CHECKING:
    from conftest import TwoLogs

InLoop = Callable[..., Any]

ALL_CODECS = range(5)


async def walk(logs: TwoLogs, **changes: Any) -> Found:
    settings: dict[str, Any] = {
        "upstream_next": 0,
        "downstream_end": 0,
        "leader_epoch": -1,
        "marker": None,
        "our_writers": frozenset(),
        "read_committed": False,
    }
    return await walk_tail(logs.source, logs.target, logs.at, logs.remote, **{**settings, **changes})


def spans(found: Found) -> list[tuple[int, int, int]]:
    return [(one.upstream_first, one.upstream_last, one.downstream_first) for one in found.ranges]


def test_invariant_c_what_was_appended_but_not_committed_is_found(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        batches = [await two_logs.write(3 + codec, codec) for codec in ALL_CODECS]
        writer = await two_logs.obtain()
        for batch in batches[:4]:
            await two_logs.carry(batch, writer, batch.base_offset)
        found = await walk(two_logs)
        assert found.upstream_next == found.downstream_end == batches[4].base_offset
        assert found.records == batches[4].base_offset
        assert spans(found) == [(0, batches[3].last_offset, 0)]
        assert found.writers == {writer.producer_id}
        assert (found.foreign_records, found.gap) == (0, None)
        assert found.leader_epoch == batches[3].leader_epoch

        # From a committed position on, only what came after it is walked.
        middle = batches[2].base_offset
        later = await walk(two_logs, upstream_next=middle, downstream_end=middle)
        assert (later.upstream_next, later.records) == (found.upstream_next, found.records - middle)

    in_loop(run())


def test_invariant_c_an_empty_tail_moves_nothing(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        await two_logs.write(5)
        found = await walk(two_logs)
        assert (found.upstream_next, found.downstream_end, found.records, found.writers) == (0, 0, 0, set())

    in_loop(run())


def test_invariant_c_the_walk_ends_at_the_fences_marker_and_waits_for_it(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        one, other = await two_logs.write(3), await two_logs.write(4)
        old = await two_logs.obtain(f"__{two_logs.at.topic}-0")
        await two_logs.carry(one, old, 0)
        new = await two_logs.obtain(f"__{two_logs.at.topic}-0")
        walking = asyncio.ensure_future(walk(two_logs, marker=Marker(new.producer_id, new.epoch)))
        await asyncio.sleep(0.3)
        assert not walking.done()  # without the marker nothing is proved: the old one could still append
        await two_logs.carry(other, old, 3)
        await two_logs.fence(new)
        found = await walking
        assert found.upstream_next == 7
        assert found.downstream_end == 8  # the marker takes an offset

    in_loop(run())


def test_invariant_c_the_first_half_of_a_split_batch_is_found_record_by_record(
    in_loop: InLoop, two_logs: TwoLogs
) -> None:
    async def run() -> None:
        whole, split = await two_logs.write(2), await two_logs.write(9, codec=4)
        writer = await two_logs.obtain()
        first_half, second_half = split_batch(split, *two_logs.at)
        await two_logs.carry(whole, writer, 0)
        await two_logs.carry(first_half, writer, 2)
        found = await walk(two_logs)
        assert found.upstream_next == found.downstream_end == 2 + 5  # inside the source's batch
        assert spans(found) == [(0, 6, 0)]
        await two_logs.carry(second_half, writer, 7)
        assert (await walk(two_logs)).upstream_next == 11
        # And from inside the batch on, where an earlier commit may have left off.
        assert (await walk(two_logs, upstream_next=7, downstream_end=7)).upstream_next == 11

    in_loop(run())


def test_invariant_c_records_of_several_source_batches_in_one_are_found(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        batches = [await two_logs.write(3) for _ in range(3)]
        records = [record for batch in batches for record in decode(batch, *two_logs.at)]
        await two_logs.carry(encode_batch(records[:7], codec=1), await two_logs.obtain(), 0)
        found = await walk(two_logs)
        assert (found.upstream_next, found.downstream_end, found.records) == (7, 7, 7)

    in_loop(run())


def test_invariant_c_markers_on_the_source_leave_a_hole_in_the_ranges(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        one = await two_logs.write(2)
        await _marker_on_source(two_logs)
        other = await two_logs.write(3)
        assert (one.base_offset, other.base_offset) == (0, 3)
        writer = await two_logs.obtain()
        await two_logs.carry(one, writer, 0)
        await two_logs.carry(other, writer, 2)
        found = await walk(two_logs)
        assert (found.upstream_next, found.downstream_end) == (6, 5)
        assert spans(found) == [(0, 1, 0), (3, 5, 2)]

    in_loop(run())


async def _marker_on_source(logs: TwoLogs, *, aborted_records: int = 0) -> None:
    """An aborted transaction on the source, with or without records in it."""
    mirrored = type(logs)(logs.target, logs.source, logs.remote, logs.at)  # the source is the one written to here
    writer = await mirrored.obtain(f"__{logs.at.topic}-source")
    if aborted_records:
        await mirrored.carry(encode_batch(logs.records(aborted_records)), writer, 0, transactional=True)
    else:
        await add_partitions(logs.source, writer, [logs.at], Deadline(60.0))
    await end_transaction(logs.source, writer, commit=False, deadline=Deadline(60.0))
    while not any(batch.is_control for batch in await mirrored.target_batches()):
        await asyncio.sleep(0.02)


def test_invariant_c_aborted_source_records_are_expected_only_by_flows_that_carry_them(
    in_loop: InLoop, two_logs: TwoLogs
) -> None:
    async def run() -> None:
        one = await two_logs.write(2)
        await _marker_on_source(two_logs, aborted_records=3)
        other = await two_logs.write(2)
        writer = await two_logs.obtain()
        await two_logs.carry(one, writer, 0)
        await two_logs.carry(other, writer, 2)
        committed = await walk(two_logs, read_committed=True, our_writers=frozenset({writer.producer_id}))
        assert committed.upstream_next == other.next_offset
        with pytest.raises(PartitionStopped) as stopped:
            await walk(two_logs, our_writers=frozenset({writer.producer_id}))
        assert stopped.value.facts["event"] == EventKind.SOURCE_TRUNCATED

    in_loop(run())


def test_invariant_c_what_was_aborted_on_the_target_does_not_count(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        batch = await two_logs.write(4)
        writer = await two_logs.obtain(f"__{two_logs.at.topic}-0")
        await two_logs.carry(batch, writer, 0, transactional=True)
        await end_transaction(two_logs.target, writer, commit=False, deadline=Deadline(60.0))
        again = await two_logs.obtain(f"__{two_logs.at.topic}-0")
        await two_logs.fence(again)
        found = await walk(two_logs, marker=Marker(again.producer_id, again.epoch))
        assert (found.upstream_next, found.records) == (0, 0)
        assert found.downstream_end == 6  # four records and two markers

    in_loop(run())


def test_invariant_a_foreign_records_are_counted_and_passed_over(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        one, other = await two_logs.write(2), await two_logs.write(3)
        writer = await two_logs.obtain()
        await two_logs.carry(one, writer, 0)
        await two_logs.append(two_logs.target, two_logs.remote, encode_batch(two_logs.records(4)))
        await two_logs.carry(other, writer, 2)
        found = await walk(two_logs, our_writers=frozenset({writer.producer_id}))
        assert (found.upstream_next, found.downstream_end) == (5, 9)
        assert (found.records, found.foreign_records) == (5, 4)
        assert spans(found) == [(0, 1, 0), (2, 4, 6)]

    in_loop(run())


def test_invariant_a_a_batch_of_ours_that_the_source_does_not_have_stops_the_partition(
    in_loop: InLoop, two_logs: TwoLogs
) -> None:
    async def run() -> None:
        batch = await two_logs.write(2)
        writer = await two_logs.obtain()
        await two_logs.carry(batch, writer, 0)
        await two_logs.carry(encode_batch(two_logs.records(3)), writer, 2)
        await two_logs.write(3)
        with pytest.raises(PartitionStopped) as stopped:
            await walk(two_logs, our_writers=frozenset({writer.producer_id}))
        facts = stopped.value.facts
        assert facts["event"] == EventKind.SOURCE_TRUNCATED
        assert (facts["offset_first"], facts["partition"]) == (2, 0)

    in_loop(run())


def test_what_the_source_no_longer_has_is_named_as_a_gap(
    in_loop: InLoop, two_logs: TwoLogs, source_cluster: ClusterOfBrokers
) -> None:
    async def fill() -> tuple[list[Batch], int]:
        batches = [await two_logs.write(3) for _ in range(4)]
        writer = await two_logs.obtain()
        for batch in batches[:3]:
            await two_logs.carry(batch, writer, batch.base_offset)
        return batches, writer.producer_id

    async def run(producer_id: int) -> None:
        found = await walk(two_logs, upstream_next=3, downstream_end=3, our_writers=frozenset({producer_id}))
        assert found.gap == (3, 5)
        assert found.upstream_next == 9  # the batch that is still on both sides was ticked off
        assert found.downstream_end == 9

    _, producer_id = in_loop(fill())
    delete_records(source_cluster.bootstrap, two_logs.at.topic, {0: 6})
    in_loop(run(producer_id))


def test_a_target_that_ends_before_the_acknowledged_end_is_named(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        batch = await two_logs.write(3)
        await two_logs.carry(batch, await two_logs.obtain(), 0)
        marker = Marker(4711, 0)
        with pytest.raises(PartitionStopped) as stopped:
            await walk(two_logs, upstream_next=10, downstream_end=10, marker=marker)
        facts = stopped.value.facts
        assert facts["event"] == EventKind.TARGET_TRUNCATED
        assert (facts["topic"], facts["offset_first"], facts["offset_last"]) == (two_logs.remote.topic, 3, 9)

    in_loop(run())


def test_a_tail_whose_beginning_the_targets_retention_took_is_found_again(
    in_loop: InLoop, two_logs: TwoLogs, target_cluster: ClusterOfBrokers
) -> None:
    async def fill() -> list[Batch]:
        batches = [await two_logs.write(3) for _ in range(4)]
        writer = await two_logs.obtain()
        for batch in batches[:3]:
            await two_logs.carry(batch, writer, batch.base_offset)
        return batches

    batches = in_loop(fill())
    delete_records(target_cluster.bootstrap, two_logs.remote.topic, {0: batches[2].base_offset})
    found = in_loop(walk(two_logs))
    assert (found.upstream_next, found.downstream_end) == (batches[3].base_offset, batches[3].base_offset)


def test_records_left_out_for_their_size_are_passed_over(in_loop: InLoop, two_logs: TwoLogs) -> None:
    async def run() -> None:
        one = await two_logs.write(2)
        await two_logs.write(1, size=5_000)
        other = await two_logs.write(2)
        writer = await two_logs.obtain()
        await two_logs.carry(one, writer, 0)
        await two_logs.carry(other, writer, 2)
        ours = frozenset({writer.producer_id})
        found = await walk(two_logs, skipped_above_bytes=1_000, our_writers=ours)
        assert (found.upstream_next, found.downstream_end) == (5, 4)
        assert spans(found) == [(0, 1, 0), (3, 4, 2)]
        with pytest.raises(PartitionStopped):
            await walk(two_logs, our_writers=ours)

    in_loop(run())
