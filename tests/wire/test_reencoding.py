"""Batches that cannot go as they are: what comes out is dense, complete and plain v2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import CorruptBatch
from mirrorspark.wire.record_batch import Batch, stamp, verify_crc
from mirrorspark.wire.records import Record, decode_records
from mirrorspark.wire.reencoding import decode, reencode, split_batch

from .batches import CODECS, codecs, legacy_message, legacy_wrapper, only_batch, record_lists, thorough, v2_batch

NOW = 1_700_000_000_000


def _dense(data: bytearray) -> Batch:
    """The batch in ``data``, which must be one that a broker takes from a producer."""
    batch = only_batch(data)
    verify_crc(batch, "topic", 0)
    assert (batch.magic, batch.base_offset, batch.last_offset_delta + 1) == (2, 0, batch.record_count)
    assert batch.attributes == batch.codec
    stamp(batch, producer_id=1, producer_epoch=0, base_sequence=0)
    return batch


def _contents(records: list[Record]) -> list[Record]:
    return [record._replace(offset=0) for record in records]


@thorough
@given(record_lists(with_holes=True), codecs, st.data())
def test_batch_with_holes_becomes_dense_and_complete(records: list[Record], codec: int, data: st.DataObject) -> None:
    batch = only_batch(v2_batch(records, codec=codec, last_offset=records[-1].offset + 2))
    first_wanted = data.draw(st.integers(records[0].offset - 1, records[-1].offset + 1))
    wanted = [record for record in records if record.offset >= first_wanted]
    encoded = reencode(batch, "topic", 0, first_wanted=first_wanted)
    if not wanted:
        assert encoded == b""
        return
    dense = _dense(encoded)
    assert dense.codec == codec
    assert _contents(decode_records(dense, "topic", 0)) == _contents(wanted)


@thorough
@given(record_lists(with_holes=True, with_headers=False), st.sampled_from((0, 1)), st.sampled_from((1, 2, 3)))
def test_legacy_wrapper_becomes_v2_from_the_wanted_offset_on(records: list[Record], magic: int, codec: int) -> None:
    wrapper = only_batch(legacy_wrapper(records, magic=magic, codec=codec))
    wanted = records[len(records) // 2 :]
    dense = _dense(reencode(wrapper, "topic", 0, first_wanted=wanted[0].offset))
    expected = [record._replace(timestamp=-1) for record in wanted] if magic == 0 else wanted
    assert dense.codec == codec
    assert _contents(decode_records(dense, "topic", 0)) == _contents(expected)


def test_v0_message_keeps_having_no_timestamp() -> None:
    dense = _dense(reencode(only_batch(legacy_message(Record(5, -1, b"k", b"v"), magic=0)), "topic", 0))
    assert (dense.base_timestamp, dense.max_timestamp) == (-1, -1)
    assert decode_records(dense, "topic", 0) == [Record(0, -1, b"k", b"v")]


def test_append_time_becomes_create_time() -> None:
    records = [Record(10 + n, NOW + n, b"k", b"v") for n in range(3)]
    dense = _dense(reencode(only_batch(v2_batch(records, flags=0x08, max_timestamp=NOW + 99)), "topic", 0))
    assert not dense.is_log_append_time
    assert [record.timestamp for record in decode_records(dense, "topic", 0)] == [NOW + 99] * 3


@pytest.mark.parametrize("codec", CODECS)
def test_another_codec_on_request(codec: int) -> None:
    batch = only_batch(v2_batch([Record(1, NOW, b"k", b"v" * 100)], codec=3))
    assert _dense(reencode(batch, "topic", 0, codec=codec)).codec == codec


def test_batch_emptied_by_compaction_gives_nothing() -> None:
    emptied = only_batch(v2_batch([], base_offset=4, last_offset=9))
    assert reencode(emptied, "topic", 0) == b""
    assert split_batch(emptied, "topic", 0) == []


@thorough
@given(record_lists(with_holes=True), codecs)
def test_halves_hold_all_records_in_order(records: list[Record], codec: int) -> None:
    batch = only_batch(v2_batch(records, codec=codec))
    halves = [_dense(half) for half in split_batch(batch, "topic", 0)]
    assert len(halves) == min(len(records), 2)
    counts = [half.record_count for half in halves]
    assert max(counts) - min(counts) <= 1
    found = [record for half in halves for record in decode_records(half, "topic", 0)]
    assert _contents(found) == _contents(records)


def test_halves_can_be_halved_again_down_to_one_record() -> None:
    records = [Record(n, NOW, b"k", b"v%d" % n) for n in range(13)]
    waiting, single = [v2_batch(records)], []
    while waiting:
        parts = split_batch(only_batch(waiting.pop(0)), "topic", 0)
        (single if len(parts) == 1 else waiting).extend(parts)
    values = sorted(record.value or b"" for part in single for record in decode(only_batch(part), "topic", 0))
    assert values == sorted(record.value or b"" for record in records)


def test_stamped_batch_can_still_be_split() -> None:
    records = [Record(40 + n, NOW, b"k", b"v%d" % n) for n in range(4)]
    batch = only_batch(v2_batch(records, codec=1))
    stamp(batch, producer_id=6, producer_epoch=1, base_sequence=3)
    assert decode(batch, "topic", 0) == records, "offsets are still the source's"
    assert len(split_batch(batch, "topic", 0)) == 2


def test_damage_is_reported_with_its_place() -> None:
    data = v2_batch([Record(70, NOW, b"k", b"v")])
    data[61] = 0x7F
    with pytest.raises(CorruptBatch) as caught:
        reencode(only_batch(data), "orders", 4)
    assert caught.value.facts["offset"] == 70


def test_control_batch_is_refused() -> None:
    with pytest.raises(AssertionError):
        reencode(only_batch(v2_batch([Record(70, NOW, b"k", b"v")], flags=0x20)), "orders", 4)
