"""What Kafka's own Java code wrote, in every format and codec, read by ours. ``java_vectors.txt`` holds the bytes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from mirrorspark.wire.record_batch import Batch, split_batches, stamp, verify_crc
from mirrorspark.wire.records import Record, decode_records
from mirrorspark.wire.reencoding import decode, reencode

from .batches import only_batch


class Vector(NamedTuple):
    title: str
    data: bytes
    last_offset: int
    records: list[Record]


def _unhex(text: str) -> bytes | None:
    return None if text == "null" else bytes.fromhex(text)


def _record(line: str) -> Record:
    offset, timestamp, key, value, *headers = line.split(" ")
    pairs = (header.split("=") for header in headers)
    decoded = tuple((bytes.fromhex(name), _unhex(content)) for name, content in pairs)
    return Record(int(offset), int(timestamp), _unhex(key), _unhex(value), decoded)


def _vectors() -> list[Vector]:
    text = Path(__file__).with_name("java_vectors.txt").read_text()
    vectors = []
    for section in text.split("== ")[1:]:
        title, data, *lines = section.removesuffix("\n").split("\n")
        last_offset = max((int(line.split(" ")[3]) for line in lines if line.startswith("batch")), default=-1)
        records = [_record(line) for line in lines if not line.startswith("batch")]
        vectors.append(Vector(title, bytes.fromhex(data), last_offset, records))
    return vectors


VECTORS = _vectors()
DATA_VECTORS = [vector for vector in VECTORS if not vector.title.startswith("marker")]


def _split(vector: Vector) -> list[Batch]:
    batches = split_batches(memoryview(bytearray(vector.data)), "topic", 0)
    assert sum(batch.size for batch in batches) == len(vector.data)
    for batch in batches:
        verify_crc(batch, "topic", 0)
    return batches


@pytest.mark.parametrize("vector", DATA_VECTORS, ids=[vector.title for vector in DATA_VECTORS])
def test_java_batch_is_read_as_java_reads_it(vector: Vector) -> None:
    batches = _split(vector)
    found = [record for batch in batches for record in decode(batch, "topic", 0)]
    assert found == vector.records
    if vector.title != "emptied":
        assert batches[-1].last_offset == vector.last_offset


@pytest.mark.parametrize("vector", DATA_VECTORS, ids=[vector.title for vector in DATA_VECTORS])
def test_java_batch_is_reencoded_without_loss(vector: Vector) -> None:
    for batch in _split(vector):
        expected = [record._replace(offset=0) for record in decode(batch, "topic", 0)]
        encoded = reencode(batch, "topic", 0)
        if not expected:
            assert encoded == b""
            continue
        dense = only_batch(encoded)
        verify_crc(dense, "topic", 0)
        assert (dense.magic, dense.attributes, dense.has_holes) == (2, batch.codec, False)
        found = decode_records(dense, "topic", 0)
        assert [record.offset for record in found] == list(range(len(expected)))
        assert [record._replace(offset=0) for record in found] == expected


def test_vectors_cover_every_format_codec_and_case() -> None:
    titles = {vector.title for vector in VECTORS}
    assert {f"v{magic} codec{codec} create" for magic in (0, 1) for codec in range(4)} <= titles
    assert {f"v2 codec{codec} {kind}" for codec in range(5) for kind in ("create", "append")} <= titles
    assert {f"compacted codec{codec}" for codec in range(5)} <= titles
    assert {"marker ABORT", "marker COMMIT", "transactional", "emptied", "v2 codec4 horizon"} <= titles


def test_stamped_batch_with_a_delete_horizon_keeps_its_timestamps() -> None:
    [vector] = [vector for vector in VECTORS if vector.title == "v2 codec4 horizon"]
    [batch] = _split(vector)
    assert batch.has_delete_horizon
    stamp(batch, producer_id=5, producer_epoch=0, base_sequence=0)
    carried = only_batch(batch.buffer)
    verify_crc(carried, "topic", 0)
    assert not carried.has_delete_horizon
    timestamps = [record.timestamp for record in decode_records(carried, "topic", 0)]
    assert timestamps == [record.timestamp for record in vector.records]
