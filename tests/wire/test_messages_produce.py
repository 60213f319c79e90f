"""Produce against kafka-python's schemas: what we write they read, what they write we read, in every version."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from mirrorspark.errors import WireError
from mirrorspark.wire.messages.produce import (
    PRODUCE_API_KEY,
    PRODUCE_VERSION_MAX,
    PRODUCE_VERSION_MIN,
    Appended,
    decode_produce,
    encode_produce,
)

from .batches import brief, thorough

VERSIONS = tuple(range(PRODUCE_VERSION_MIN, PRODUCE_VERSION_MAX + 1))
every_version = pytest.mark.parametrize("version", VERSIONS)

int16s, int32s, int64s = (st.integers(-(2**bits), 2**bits - 1) for bits in (15, 31, 63))
names = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)


def test_versions() -> None:
    assert VERSIONS == (3, 4, 5, 6, 7, 8)
    assert PRODUCE_API_KEY == ProduceRequest.API_KEY


# -- requests ----------------------------------------------------------------------------------------------------------


def _assert_request(
    version: int, batches: dict[str, list[tuple[int, bytes]]], timeout_ms: int, transactional_id: str | None
) -> None:
    pieces = {topic: [(part, [raw[:1], raw[1:]]) for part, raw in listed] for topic, listed in batches.items()}
    parts = encode_produce(pieces, timeout_ms=timeout_ms, transactional_id=transactional_id)
    body = b"".join(parts)
    found = ProduceRequest.decode(body, version=version)
    assert len(found.encode()) == len(body), "not all of the body was read"
    assert (found.acks, found.timeout_ms, found.transactional_id) == (-1, timeout_ms, transactional_id)
    listed = [
        (topic.name, [(part.index, bytes(part.records)) for part in topic.partition_data]) for topic in found.topic_data
    ]
    assert listed == list(batches.items())


@every_version
@pytest.mark.parametrize("transactional_id", [None, "", "__mirrorspark-east->west-0"])
def test_request_reads_back(version: int, transactional_id: str | None) -> None:
    batches = {"orders": [(0, b"first batch"), (2**31 - 1, bytes(70_000))], "größen": [(3, b"x")], "none": []}
    _assert_request(version, batches, 30_000, transactional_id)


@every_version
@brief
@given(
    batches=st.dictionaries(
        names, st.lists(st.tuples(int32s, st.binary(min_size=1, max_size=50)), max_size=3), max_size=4
    ),
    timeout_ms=int32s,
    transactional_id=st.one_of(st.none(), names),
)
def test_any_request_reads_back(
    version: int, batches: dict[str, list[tuple[int, bytes]]], timeout_ms: int, transactional_id: str | None
) -> None:
    _assert_request(version, batches, timeout_ms, transactional_id)


def test_batches_are_not_copied() -> None:
    batches = [bytearray(b"one"), bytearray(b"two"), bytearray(b"three")]
    views = [memoryview(batch) for batch in batches]
    parts = encode_produce({"a": [(0, [views[0]]), (1, [views[1]])], "b": [(0, [views[2]])]}, timeout_ms=1)
    assert [part for part in parts if isinstance(part, memoryview)] == views
    assert all(any(part is view for part in parts) for view in views)


# -- answers -----------------------------------------------------------------------------------------------------------


def _answer_bytes(version: int, partitions: list[Appended], throttle_ms: int, **fields: Any) -> bytes:
    """As kafka-python writes it, header included. ``fields`` go into every partition."""
    topics: dict[str, list[Any]] = {}
    for part in partitions:
        topics.setdefault(part.topic, []).append(
            ProduceResponse.TopicProduceResponse.PartitionProduceResponse(
                index=part.partition,
                error_code=part.error_code,
                base_offset=part.base_offset,
                log_append_time_ms=12,
                log_start_offset=part.log_start_offset,
                **{"record_errors": [], "error_message": part.error_message or None, **fields},
            )
        )
    response = ProduceResponse(
        version=version,
        responses=[
            ProduceResponse.TopicProduceResponse(name=topic, partition_responses=listed)
            for topic, listed in topics.items()
        ],
        throttle_time_ms=throttle_ms,
    )
    response.with_header(correlation_id=99)
    return bytes(response.encode(header=True))


def _as_version_tells(version: int, part: Appended) -> Appended:
    if version < 5:
        part = part._replace(log_start_offset=-1)
    return part if version >= 8 else part._replace(error_message="")


SEVERAL = [
    Appended("orders", 0, 0, 2**40, 17, ""),
    Appended("orders", 2**31 - 1, 10, -1, -1, "the batch is too large"),
    Appended("größen", 4, 0, 0, 0, ""),
    Appended("größen", 5, -1, -1, -1, "größer als erlaubt"),
]


@every_version
def test_answer_of_several_topics(version: int) -> None:
    found, throttle_ms = decode_produce(version, memoryview(_answer_bytes(version, SEVERAL, 250)))
    assert found == [_as_version_tells(version, part) for part in SEVERAL]
    assert throttle_ms == 250


@every_version
def test_answer_without_topics(version: int) -> None:
    assert decode_produce(version, memoryview(_answer_bytes(version, [], 7))) == ([], 7)


def _record_error(index: int, message: str | None) -> Any:
    kind = ProduceResponse.TopicProduceResponse.PartitionProduceResponse.BatchIndexAndErrorMessage
    return kind(batch_index=index, batch_index_error_message=message)


@pytest.mark.parametrize(
    ("message", "reasons", "expected"),
    [
        (None, [], ""),
        ("all of it", [], "all of it"),
        (None, ["first"], "first"),
        ("all of it", ["first", None, "third"], "all of it; first; third"),
        ("", [None, None], ""),
        (None, ["a", "b", "c", "d", "e"], "a; b; c"),
    ],
)
def test_record_errors_are_told_in_one_text(message: str | None, reasons: list[str | None], expected: str) -> None:
    errors = [_record_error(index, reason) for index, reason in enumerate(reasons)]
    raw = _answer_bytes(8, SEVERAL[:2], 3, record_errors=errors, error_message=message)
    found, throttle_ms = decode_produce(8, memoryview(raw))
    assert [part.error_message for part in found] == [expected] * 2
    assert throttle_ms == 3


@every_version
@brief
@given(
    partitions=st.lists(st.builds(Appended, names, int32s, int16s, int64s, int64s, names), max_size=6),
    throttle_ms=int32s,
)
def test_any_answer_reads_back(version: int, partitions: list[Appended], throttle_ms: int) -> None:
    by_topic: dict[str, list[Appended]] = {}
    for part in partitions:
        by_topic.setdefault(part.topic, []).append(part)
    grouped = [part for listed in by_topic.values() for part in listed]
    found = decode_produce(version, memoryview(_answer_bytes(version, grouped, throttle_ms)))
    assert found == ([_as_version_tells(version, part) for part in grouped], throttle_ms)


# -- damage ------------------------------------------------------------------------------------------------------------


def _decode_or_refuse(version: int, raw: bytes | bytearray) -> tuple[list[Appended], int] | None:
    try:
        return decode_produce(version, memoryview(raw))
    except WireError:
        return None


@every_version
def test_every_truncation_is_refused(version: int) -> None:
    raw = _answer_bytes(version, SEVERAL, 250)
    for end in range(len(raw)):
        assert _decode_or_refuse(version, raw[:end]) is None


@every_version
@thorough
@given(data=st.data())
def test_flipped_bytes_give_a_value_or_a_wire_error(version: int, data: st.DataObject) -> None:
    raw = bytearray(_answer_bytes(version, SEVERAL, 250, record_errors=[_record_error(1, "why")]))
    for at, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)), min_size=1, max_size=8)
    ):
        raw[at] = value
    _decode_or_refuse(version, raw)


@every_version
@thorough
@given(raw=st.binary(max_size=200))
def test_arbitrary_bytes_give_a_value_or_a_wire_error(version: int, raw: bytes) -> None:
    _decode_or_refuse(version, raw)


@every_version
def test_huge_counts_are_refused(version: int) -> None:
    many = struct.pack(">i", 2**31 - 1)
    topic = struct.pack(">h", 1) + b"t"
    for raw in (many, many + topic + many, many + topic + many + bytes(30) + many):
        assert _decode_or_refuse(version, struct.pack(">i", 1) + raw + bytes(20)) is None
