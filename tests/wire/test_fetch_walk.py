"""The walk through a Fetch answer that is still coming in: it must ask for every byte but those of batches that pass."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.wire.messages.fetch import FetchAnswer, decode_fetch
from mirrorspark.wire.messages.fetch_walk import walk_fetch
from mirrorspark.wire.record_batch import HEADER, Batch, split_batches
from mirrorspark.wire.records import Record

from .batches import brief, legacy_message, thorough, v2_batch
from .fetch_answers import answer_bytes, fetched_part

CONTROL, LOG_APPEND_TIME = 0x20, 0x08
TOPICS = (bytes(16), bytes(range(16)))
MIN_BYTES = 200


def _records(size: int, count: int = 1) -> list[Record]:
    return [Record(40 + i, 1_700_000_000_000, b"k", bytes(size), ()) for i in range(count)]


@st.composite
def _record_sets(draw: st.DrawFn) -> bytes:
    """Batches that pass and such that must be read, in any order; the last one may be cut off."""
    kinds = {
        "passes": lambda: v2_batch(_records(300)),
        "small": lambda: v2_batch(_records(20)),
        "control": lambda: v2_batch(_records(300), flags=CONTROL),
        "append time": lambda: v2_batch(_records(300), flags=LOG_APPEND_TIME),
        "holes": lambda: v2_batch(_records(300), last_offset=45),
        "empty": lambda: v2_batch([], base_offset=3, last_offset=5),
        "old": lambda: legacy_message(_records(300)[0], magic=1),
    }
    listed = draw(st.lists(st.sampled_from(sorted(kinds)), max_size=6))
    whole = b"".join(bytes(kinds[kind]()) for kind in listed)
    return whole[: len(whole) - draw(st.integers(0, 100))] if whole and draw(st.booleans()) else whole


@st.composite
def _answers(draw: st.DrawFn) -> bytes:
    partitions = [
        fetched_part(
            number,
            topic=topic,
            records=memoryview(draw(_record_sets())),
            aborted=tuple(draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=3))),
            diverging_end=draw(st.sampled_from([-1, 17])),
        )
        for topic in TOPICS[: draw(st.integers(0, 2))]
        for number in range(draw(st.integers(1, 3)))
    ]
    return answer_bytes(13, FetchAnswer(0, 0, 5, partitions), null_lists=draw(st.booleans()))


def _walked(raw: bytes) -> tuple[bytearray, list[tuple[int, int]]]:
    """What was asked for (the rest stays 0xEE), and the batches that need not be read."""
    answer, passed, at = bytearray(b"\xee" * len(raw)), [], 0
    for begin, end in walk_fetch(memoryview(answer), MIN_BYTES):
        if begin >= 0:
            assert begin + HEADER.size <= at <= end, "a batch passes once its header is there"
            passed.append((begin, end))
        elif end > at:
            answer[at:end] = raw[at:end]
        at = max(at, min(end, len(raw)))
    answer[at:] = raw[at:]
    return answer, passed


@thorough
@given(raw=_answers())
def test_all_is_asked_for_but_large_batches_that_go_as_they_are(raw: bytes) -> None:
    wanted = []
    for part in decode_fetch(13, memoryview(raw)).partitions:
        at = part.at
        for batch in split_batches(part.records, "orders", 0):
            is_odd = batch.is_legacy or batch.is_control or batch.is_log_append_time or batch.has_holes
            if batch.size >= MIN_BYTES and not is_odd and batch.record_count:
                wanted.append((at, at + batch.size))
            at += batch.size
    answer, passed = _walked(raw)
    # Behind an old message nothing is looked at any more: all of it is read.
    assert set(passed) <= set(wanted)
    if not any(batch.is_legacy for batch in _batches(raw)):
        assert passed == wanted
    for begin, end in passed:
        answer[begin:end] = raw[begin:end]
    assert answer == raw


def _batches(raw: bytes) -> list[Batch]:
    parts = decode_fetch(13, memoryview(raw)).partitions
    return [batch for part in parts for batch in split_batches(part.records, "orders", 0)]


@brief
@given(raw=_answers(), data=st.data())
def test_damaged_answers_end_the_walk_and_nothing_else(raw: bytes, data: st.DataObject) -> None:
    damaged = bytearray(raw)
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=6)):
        damaged[at] = data.draw(st.integers(0, 255))
    _, passed = _walked(bytes(damaged))
    assert all(0 < begin < end <= len(raw) for begin, end in passed)


@brief
@given(raw=st.binary(min_size=5, max_size=300))
def test_arbitrary_bytes_end_the_walk(raw: bytes) -> None:
    _walked(raw)
