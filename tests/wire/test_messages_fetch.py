"""Fetch against kafka-python's schemas: what we write they read, what they write we read, in every version."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest

from mirrorspark.errors import WireError
from mirrorspark.wire.messages.fetch import (
    FETCH_API_KEY,
    FETCH_VERSION_BY_NAME_MAX,
    FETCH_VERSION_MAX,
    FETCH_VERSION_MIN,
    FETCH_VERSION_TOPIC_IDS,
    FetchAnswer,
    FetchedPartition,
    FetchLimits,
    FetchPartition,
    decode_fetch,
    encode_fetch,
    uses_topic_ids,
)

from .batches import brief, thorough
from .fetch_answers import answer_bytes, fetched_part

BY_NAME = tuple(range(FETCH_VERSION_MIN, FETCH_VERSION_BY_NAME_MAX + 1))
VERSIONS = (*BY_NAME, FETCH_VERSION_TOPIC_IDS)
every_version = pytest.mark.parametrize("version", VERSIONS)

LIMITS = FetchLimits(500, 1, 8_000_000, 1_000_000, read_committed=True, rack="rack-é")
int8s, int16s, int32s, int64s = (st.integers(-(2**bits), 2**bits - 1) for bits in (7, 15, 31, 63))
names = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
ids = st.binary(min_size=16, max_size=16)


def test_versions() -> None:
    assert VERSIONS == (4, 5, 6, 7, 8, 9, 10, 11, 13)
    assert [version for version in VERSIONS if uses_topic_ids(version)] == [13]
    assert (FETCH_API_KEY, FETCH_VERSION_MAX) == (FetchRequest.API_KEY, 13)


# -- requests ----------------------------------------------------------------------------------------------------------


def _topic_of(entry: Any, version: int) -> str | bytes:
    if not uses_topic_ids(version):
        return str(entry.topic)
    return bytes(16) if entry.topic_id is None else bytes(entry.topic_id.bytes)


def _assert_request(
    version: int,
    limits: FetchLimits,
    wanted: dict[str | bytes, list[FetchPartition]],
    forgotten: dict[str | bytes, list[int]],
    session: tuple[int, int],
) -> None:
    body = encode_fetch(version, limits, wanted, forgotten=forgotten, session_id=session[0], session_epoch=session[1])
    found = FetchRequest.decode(body, version=version)
    assert len(found.encode()) == len(body), "not all of the body was read"
    assert found.replica_id == -1
    assert (found.max_wait_ms, found.min_bytes, found.max_bytes) == limits[:3]
    assert found.isolation_level == int(limits.read_committed)
    assert [_topic_of(topic, version) for topic in found.topics] == list(wanted)
    for topic, partitions in zip(found.topics, wanted.values(), strict=True):
        assert [(part.partition, part.fetch_offset) for part in topic.partitions] == [part[:2] for part in partitions]
        assert {part.partition_max_bytes for part in topic.partitions} <= {limits.partition_bytes_max}
        assert {part.log_start_offset for part in topic.partitions} <= {-1}
        if version >= 9:
            assert [part.current_leader_epoch for part in topic.partitions] == [part[2] for part in partitions]
        if version >= 12:
            assert [part.last_fetched_epoch for part in topic.partitions] == [part[3] for part in partitions]
    if version >= 7:
        assert (found.session_id, found.session_epoch) == session
        listed = {_topic_of(topic, version): list(topic.partitions) for topic in found.forgotten_topics_data}
        assert listed == forgotten
    if version >= 11:
        assert found.rack_id == limits.rack


@every_version
def test_request_reads_back(version: int) -> None:
    topics: list[str | bytes] = [bytes(range(16)), bytes(15) + b"\1"] if uses_topic_ids(version) else ["orders", "é"]
    wanted = {
        topics[0]: [FetchPartition(0, 17, 3, 2), FetchPartition(9, 2**40, 0, 0)],
        topics[1]: [FetchPartition(2**31 - 1, 0)],
    }
    _assert_request(version, LIMITS, wanted, {topics[1]: [4, 5], topics[0]: [1]}, (77, 5))


@every_version
def test_empty_request_of_a_new_session(version: int) -> None:
    """The defaults ask for no session: id 0, epoch -1."""
    _assert_request(version, LIMITS._replace(rack="", read_committed=False), {}, {}, (0, -1))
    assert encode_fetch(version, LIMITS, {}) == encode_fetch(version, LIMITS, {}, session_id=0, session_epoch=-1)


@every_version
@brief
@given(data=st.data())
def test_any_request_reads_back(version: int, data: st.DataObject) -> None:
    topics = ids if uses_topic_ids(version) else names
    partitions = st.lists(st.builds(FetchPartition, int32s, int64s, int32s, int32s), max_size=4)
    limits = data.draw(st.builds(FetchLimits, int32s, int32s, int32s, int32s, st.booleans(), names))
    wanted = data.draw(st.dictionaries(topics, partitions, max_size=4))
    forgotten = data.draw(st.dictionaries(topics, st.lists(int32s, max_size=4), max_size=4))
    _assert_request(version, limits, wanted, forgotten, (data.draw(int32s), data.draw(int32s)))


def test_many_topics_need_a_longer_count() -> None:
    """Counts from 127 on take two bytes where lengths are varints."""
    wanted: dict[str | bytes, list[FetchPartition]] = {
        number.to_bytes(16, "big"): [FetchPartition(at, at) for at in range(number)] for number in range(1, 200)
    }
    _assert_request(13, LIMITS._replace(rack="r" * 300), wanted, {bytes(16): list(range(500))}, (1, 2))


# -- answers -----------------------------------------------------------------------------------------------------------


def _decoded(version: int, raw: bytes | bytearray | memoryview) -> FetchAnswer:
    """What is read, after it was compared where each partition's records are said to be."""
    answer = decode_fetch(version, memoryview(raw))
    for part in answer.partitions:
        assert raw[part.at : part.at + len(part.records)] == part.records
    return answer._replace(partitions=[part._replace(at=-1) for part in answer.partitions])


def _as_version_tells(version: int, answer: FetchAnswer) -> FetchAnswer:
    """What of the answer a version can carry at all."""
    if version < 7:
        answer = answer._replace(error_code=0, session_id=0)
    partitions = answer.partitions
    if version < 5:
        partitions = [part._replace(log_start_offset=-1) for part in partitions]
    if version < 11:
        partitions = [part._replace(preferred_replica=-1) for part in partitions]
    if not uses_topic_ids(version):
        partitions = [part._replace(diverging_epoch=-1, diverging_end=-1) for part in partitions]
    return answer._replace(partitions=partitions)


def _several_topics(version: int) -> FetchAnswer:
    first, second = (bytes(range(16)), bytes(15) + b"\1") if uses_topic_ids(version) else ("orders", "größen")
    partitions = [
        fetched_part(0, topic=first, aborted=((5, 10), (6, 2**40), (5, 99)), preferred_replica=3),
        fetched_part(7, topic=first, records=memoryview(b"")),
        fetched_part(1, topic=first, error_code=6, high_watermark=-1, last_stable_offset=-1, log_start_offset=-1),
        fetched_part(2**31 - 1, topic=second, records=memoryview(bytes(70_000)), diverging_epoch=4, diverging_end=33),
        fetched_part(3, topic=second, records=memoryview(b"after the tag")),
    ]
    return FetchAnswer(250, 71, 123_456, partitions)


@every_version
@pytest.mark.parametrize("null_lists", [False, True])
def test_answer_of_several_topics(version: int, null_lists: bool) -> None:
    answer = _several_topics(version)
    found = _decoded(version, answer_bytes(version, answer, null_lists=null_lists))
    assert found == _as_version_tells(version, answer)


@every_version
def test_answer_without_topics(version: int) -> None:
    answer = FetchAnswer(0, 0, 0, [])
    assert _decoded(version, answer_bytes(version, answer)) == answer


@every_version
def test_records_are_a_view_into_the_answer(version: int) -> None:
    topic = bytes(16) if uses_topic_ids(version) else "orders"
    raw = bytearray(answer_bytes(version, FetchAnswer(0, 0, 0, [fetched_part(topic=topic)])))
    [part] = decode_fetch(version, memoryview(raw)).partitions
    at = raw.index(b"the batches")
    raw[at : at + 3] = b"THE"
    assert bytes(part.records) == b"THE batches"
    assert not part.records.readonly


@every_version
@brief
@given(data=st.data())
def test_any_answer_reads_back(version: int, data: st.DataObject) -> None:
    records = st.binary(max_size=300).map(memoryview)
    aborted = st.lists(st.tuples(int64s, int64s), max_size=5).map(tuple)
    diverging = st.one_of(st.just((-1, -1)), st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)))
    topics = data.draw(st.lists(ids if uses_topic_ids(version) else names, unique=True, max_size=3))
    partitions = [
        FetchedPartition(
            topic, *data.draw(st.tuples(int32s, int16s, int64s, int64s, int64s, aborted, int32s, records)), *place
        )
        for topic in topics
        for place in data.draw(st.lists(diverging, min_size=1, max_size=3))
    ]
    answer = FetchAnswer(data.draw(int32s), data.draw(int16s), data.draw(int32s), partitions)
    raw = answer_bytes(version, answer, null_lists=data.draw(st.booleans()))
    assert _decoded(version, raw) == _as_version_tells(version, answer)


# -- tags that we do not know ------------------------------------------------------------------------------------------

TOPIC_ID = bytes(range(16))
NO_TAGS = b"\0"
DIVERGING = struct.pack(">iqb", 8, 450, 0)


def _tags(*tags: tuple[int, bytes]) -> bytes:
    assert all(tag < 128 for tag, _ in tags)
    return bytes((len(tags),)) + b"".join(bytes((tag,)) + _uvarint(len(text)) + text for tag, text in tags)


def _uvarint(value: int) -> bytes:
    return bytes((value,)) if value < 128 else bytes((value & 127 | 128, value >> 7))


def _answer_with_tags(
    *, header: bytes = NO_TAGS, aborted: bytes = NO_TAGS, partition: bytes = NO_TAGS, topic: bytes = NO_TAGS
) -> memoryview:
    """Version 13, by hand: one topic, two partitions, each with two aborted transactions."""
    parts = b"".join(
        struct.pack(">ihqqq", index, 0, 100, 90, 0)
        + b"\3"
        + b"".join(struct.pack(">qq", producer, index) + aborted for producer in (5, 6))
        + struct.pack(">i", -1)
        + b"\4abc"
        + partition
        for index in (0, 1)
    )
    return memoryview(
        struct.pack(">i", 99)
        + header
        + struct.pack(">ihi", 0, 0, 7)
        + b"\2"
        + TOPIC_ID
        + b"\3"
        + parts
        + topic
        + NO_TAGS
    )


@pytest.mark.parametrize("place", ["header", "aborted", "partition", "topic"])
def test_unknown_tags_are_passed_over(place: str) -> None:
    plain = _decoded(13, _answer_with_tags())
    assert [part.aborted for part in plain.partitions] == [((5, 0), (6, 0)), ((5, 1), (6, 1))]
    tags = _tags((9, b"new"), (11, b""), (100, bytes(200)))
    assert _decoded(13, _answer_with_tags(**{place: tags})) == plain


def test_diverging_epoch_among_other_tags() -> None:
    tags = _tags((0, DIVERGING), (1, bytes(9)), (77, b"new"))
    found = decode_fetch(13, _answer_with_tags(partition=tags))
    assert [(part.diverging_epoch, part.diverging_end) for part in found.partitions] == [(8, 450)] * 2
    assert [bytes(part.records) for part in found.partitions] == [b"abc"] * 2


# -- damage ------------------------------------------------------------------------------------------------------------


def _decode_or_refuse(version: int, raw: bytes | bytearray) -> FetchAnswer | None:
    try:
        return decode_fetch(version, memoryview(raw))
    except WireError:
        return None


@every_version
def test_every_truncation_is_refused_or_read(version: int) -> None:
    raw = answer_bytes(version, _several_topics(version))
    whole = decode_fetch(version, memoryview(raw))
    for end in range(len(raw) - 70_100):
        assert _decode_or_refuse(version, raw[:end]) is None
    for end in range(len(raw) - 60, len(raw)):
        found = _decode_or_refuse(version, raw[:end])
        assert found is None or found == whole  # tags at the end are not waited for


@every_version
@thorough
@given(data=st.data())
def test_flipped_bytes_give_a_value_or_a_wire_error(version: int, data: st.DataObject) -> None:
    topic = bytes(16) if uses_topic_ids(version) else "orders"
    parts = [fetched_part(0, topic=topic, aborted=((5, 10), (6, 11))), fetched_part(1, topic=topic)]
    raw = bytearray(answer_bytes(version, FetchAnswer(0, 0, 1, parts)))
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
    """A count is never believed further than the bytes go; nor does a loop turn without eating bytes."""
    head = struct.pack(">i", 1) + (NO_TAGS if uses_topic_ids(version) else b"")
    head += struct.pack(">ihi", 0, 0, 0) if version >= 7 else struct.pack(">i", 0)
    many = b"\xff\xff\xff\xff\x7f" if uses_topic_ids(version) else struct.pack(">i", 2**31 - 1)
    topic = TOPIC_ID if uses_topic_ids(version) else struct.pack(">h", 1) + b"t"
    for raw in (head + many, head + many + topic + many, head + many + topic + many + bytes(34) + many):
        assert _decode_or_refuse(version, raw + bytes(20)) is None


@pytest.mark.parametrize("version", BY_NAME)
def test_negative_name_length_is_refused(version: int) -> None:
    """It leads the walk backwards: these lengths send it from the second name to the third and back, 2^31 times."""
    head = struct.pack(">i", 1) + (struct.pack(">ihi", 0, 0, 0) if version >= 7 else struct.pack(">i", 0))
    raw = head + struct.pack(">ihhhh", 2**31 - 1, 0, -2, 0, -10) + bytes(40)
    with pytest.raises(WireError, match="name"):
        decode_fetch(version, memoryview(raw))


@every_version
def test_records_longer_than_the_answer_are_refused(version: int) -> None:
    topic = bytes(16) if uses_topic_ids(version) else "orders"
    raw = bytearray(answer_bytes(version, FetchAnswer(0, 0, 0, [fetched_part(topic=topic)])))
    at = raw.index(b"the batches") - 1
    assert raw[at] == 11 + uses_topic_ids(version)
    raw[at] += 60
    with pytest.raises(WireError, match="claims"):
        decode_fetch(version, memoryview(raw))
