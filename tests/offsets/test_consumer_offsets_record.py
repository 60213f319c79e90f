"""Committed offsets as brokers write them: every version of the value, tombstones, other kinds of keys, damage."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import WireError
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.consumer_offsets_record import Commit, CommitRecord, log_partition_of, parse_commit

AT = TopicPartition("orders", 3)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


def string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def key(group: str = "billing", at: TopicPartition = AT, version: int = 1) -> bytes:
    return struct.pack(">h", version) + string(group) + string(at.topic) + struct.pack(">i", at.partition)


def value(version: int, offset: int, metadata: str, committed_ms: int) -> bytes:
    head = struct.pack(">hq", version, offset)
    if version == 4:
        raw = metadata.encode()
        length = len(raw) + 1
        size = bytes([length]) if length < 0x80 else bytes([length & 0x7F | 0x80, length >> 7])
        tagged = b"\x01\x00\x10" + bytes(range(16))  # the topic's id, as Kafka 4.1 tags it
        return head + struct.pack(">i", 7) + size + raw + struct.pack(">q", committed_ms) + tagged
    epoch = struct.pack(">i", 7) if version == 3 else b""
    expires = struct.pack(">q", committed_ms + 1) if version == 1 else b""
    return head + epoch + string(metadata) + struct.pack(">q", committed_ms) + expires


@pytest.mark.parametrize("version", range(5))
@given(st.integers(0, 2**62), texts, st.integers(-1, 2**62))
def test_every_version_of_a_commit_is_read(version: int, offset: int, metadata: str, committed_ms: int) -> None:
    for key_version in (0, 1):
        record = parse_commit(key(version=key_version), value(version, offset, metadata, committed_ms))
        assert record == CommitRecord("billing", AT, Commit(offset, metadata, committed_ms))


def test_a_tombstone_ends_a_commit() -> None:
    assert parse_commit(key(), None) == CommitRecord("billing", AT, None)


@pytest.mark.parametrize("version", [2, 3, 5, 8, 15])
def test_other_records_are_nobodys_commit(version: int) -> None:
    assert parse_commit(struct.pack(">h", version) + string("billing"), b"\x00\x00") is None
    assert parse_commit(None, None) is None
    assert parse_commit(b"", None) is None


@pytest.mark.parametrize(
    ("raw_key", "raw_value"),
    [
        (key()[:-1], None),
        (key()[:5], None),
        (key(), b""),
        (key(), struct.pack(">hq", 3, 5)),
        (key(), struct.pack(">hq", 9, 5)),
        (key(), value(3, 5, "abc", 1)[:-9]),
        (struct.pack(">hh", 1, -1), None),
        (struct.pack(">hh", 1, 2) + b"\xff\xfe", None),
    ],
)
def test_damage_has_a_name(raw_key: bytes, raw_value: bytes | None) -> None:
    with pytest.raises(WireError, match="cannot be read"):
        parse_commit(raw_key, raw_value)


@given(st.binary(max_size=60), st.one_of(st.none(), st.binary(max_size=60)))
def test_no_bytes_break_it(raw_key: bytes, raw_value: bytes | None) -> None:
    try:
        parse_commit(b"\x00\x01" + raw_key, raw_value)
    except WireError:
        pass


@pytest.mark.parametrize(
    ("group", "java_hash"), [("", 0), ("a", 97), ("billing", -109829509), ("polygenelubricants", -(2**31))]
)
def test_a_group_lies_where_javas_hash_says(group: str, java_hash: int) -> None:
    expected = 0 if java_hash == -(2**31) else abs(java_hash) % 50
    assert log_partition_of(group, 50) == expected
