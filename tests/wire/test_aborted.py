"""Aborted transactions: what a reader of committed data never sees."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import CorruptBatch
from mirrorspark.wire.aborted import AbortedFilter, control_type
from mirrorspark.wire.record_batch import Batch
from mirrorspark.wire.records import Record

from .batches import only_batch, thorough, v2_batch
from .test_java_vectors import VECTORS

TRANSACTIONAL, CONTROL = 0x10, 0x20
ABORT, COMMIT = 0, 1


def _data(offset: int, producer_id: int, *, transactional: bool = True, count: int = 1) -> Batch:
    records = [Record(offset + n, 0, b"k", b"v") for n in range(count)]
    flags = TRANSACTIONAL if transactional else 0
    return only_batch(v2_batch(records, flags=flags, producer=(producer_id, 0, 0)))


def _marker(offset: int, producer_id: int, kind: int) -> Batch:
    record = Record(offset, 0, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0))
    return only_batch(v2_batch([record], flags=TRANSACTIONAL | CONTROL, producer=(producer_id, 0, -1)))


def _dropped(aborted: list[tuple[int, int]], batches: list[Batch]) -> list[int]:
    aborted_filter = AbortedFilter(aborted, "topic", 0)
    return [batch.base_offset for batch in batches if aborted_filter.drops(batch)]


def test_nothing_aborted_drops_nothing() -> None:
    assert _dropped([], [_data(0, 7), _marker(1, 7, COMMIT), _data(2, -1, transactional=False)]) == []


def test_aborted_data_is_dropped_up_to_its_marker() -> None:
    batches = [_data(0, 7), _data(1, 7, count=3), _marker(4, 7, ABORT), _data(5, 7), _marker(6, 7, COMMIT)]
    assert _dropped([(7, 0)], batches) == [0, 1]


def test_committed_data_before_an_aborted_transaction_stays() -> None:
    batches = [_data(0, 7), _marker(1, 7, COMMIT), _data(2, 7), _marker(3, 7, ABORT)]
    assert _dropped([(7, 2)], batches) == [2]


def test_other_producers_in_between_stay() -> None:
    batches = [_data(0, 7), _data(1, 8), _data(2, -1, transactional=False), _data(3, 7), _marker(4, 8, COMMIT)]
    assert _dropped([(7, 0)], [*batches, _marker(5, 7, ABORT)]) == [0, 3]


def test_plain_data_of_the_same_producer_stays() -> None:
    assert _dropped([(7, 0)], [_data(0, 7, transactional=False), _data(1, 7)]) == [1]


def test_several_aborted_transactions_of_one_producer_in_any_listed_order() -> None:
    batches = [_data(0, 7), _marker(1, 7, ABORT), _data(2, 7), _marker(3, 7, COMMIT), _data(4, 7), _marker(5, 7, ABORT)]
    assert _dropped([(7, 4), (7, 0)], batches) == [0, 4]


def test_transaction_that_began_before_the_answer_is_dropped() -> None:
    assert _dropped([(7, 3)], [_data(100, 7), _marker(101, 7, ABORT), _data(102, 7)]) == [100]


def test_transaction_whose_marker_comes_in_a_later_answer_is_dropped_to_the_end() -> None:
    assert _dropped([(7, 0)], [_data(0, 7), _data(1, 7)]) == [0, 1]


@thorough
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(("data", "abort", "commit", "plain"))), max_size=40))
def test_filter_agrees_with_what_the_producers_did(steps: list[tuple[int, str]]) -> None:
    batches: list[Batch] = []
    listed: list[tuple[int, int]] = []
    expected: set[int] = set()
    open_since: dict[int, list[int]] = {}
    for offset, (producer_id, step) in enumerate(steps):
        if step == "plain":
            batches.append(_data(offset, -1, transactional=False))
        elif step == "data":
            batches.append(_data(offset, producer_id))
            open_since.setdefault(producer_id, []).append(offset)
        else:
            batches.append(_marker(offset, producer_id, ABORT if step == "abort" else COMMIT))
            written = open_since.pop(producer_id, [])
            if step == "abort" and written:
                listed.append((producer_id, written[0]))
                expected.update(written)
    assert set(_dropped(listed, batches)) == expected


@pytest.mark.parametrize(("title", "kind"), [("marker ABORT", "abort"), ("marker COMMIT", "commit")])
def test_java_markers_are_understood(title: str, kind: str) -> None:
    [vector] = [vector for vector in VECTORS if vector.title == title]
    assert control_type(only_batch(vector.data)) == kind


def test_other_and_emptied_control_batches_are_other() -> None:
    assert control_type(_marker(0, 7, 2)) == "other"
    assert control_type(only_batch(v2_batch([Record(0, 0, b"", b"")], flags=CONTROL))) == "other"
    assert control_type(only_batch(v2_batch([], base_offset=0, last_offset=0, flags=CONTROL))) == "other"


def test_damaged_marker_says_where() -> None:
    marker = _marker(60, 7, ABORT)
    marker.buffer[61] = 0x7F
    aborted_filter = AbortedFilter([(7, 0)], "orders", 4)
    with pytest.raises(CorruptBatch) as caught:
        aborted_filter.drops(marker)
    assert caught.value.facts["topic"] == "orders"
