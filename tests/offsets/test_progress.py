"""Progress in Connect's offsets topic: the very bytes that MirrorMaker 2 writes and looks up."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.offsets.progress import parse_progress, progress_entry

KEY = b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"foo"}]'
VALUE = b'{"offset":123}'

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


def test_entry_bytes() -> None:
    assert progress_entry("A", "foo", 0, 123) == (KEY, VALUE)


def test_entry_bytes_of_names_beyond_ascii() -> None:
    """Jackson writes UTF-8 as it is, and escapes only what JSON wants escaped."""
    key, _ = progress_entry('süd"', "a\\b", 12, 0)
    assert key == '["MirrorSourceConnector",{"cluster":"süd\\"","partition":12,"topic":"a\\\\b"}]'.encode()


@given(texts, texts, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))
def test_an_entry_reads_back(source: str, topic: str, partition: int, last: int) -> None:
    assert parse_progress(*progress_entry(source, topic, partition, last), source) == (topic, partition, last)


@pytest.mark.parametrize(
    "key",
    [
        b'["MirrorSourceConnector",{"topic":"foo","partition":0,"cluster":"A"}]',
        b' [ "MirrorSourceConnector" , { "partition" : 0 , "topic" : "foo" , "cluster" : "A" } ] ',
    ],
)
def test_reading_goes_by_names_not_by_order_or_blanks(key: bytes) -> None:
    assert parse_progress(key, VALUE, "A") == ("foo", 0, 123)


def test_a_null_value_is_a_reset() -> None:
    assert parse_progress(KEY, None, "A") == ("foo", 0, None)


@pytest.mark.parametrize(
    "key",
    [
        b'["MirrorCheckpointConnector",{"partition":0,"topic":"A.foo","group":"g"}]',
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
        b'["MirrorSourceConnector",{"cluster":"B","partition":0,"topic":"foo"}]',
        b'["MirrorSourceConnector",{"partition":0,"topic":"foo"}]',
        b'["MirrorSourceConnector",{"cluster":"A","topic":"foo"}]',
        b'["MirrorSourceConnector",{"cluster":"A","partition":0}]',
        b'["MirrorSourceConnector",{"cluster":"A","partition":null,"topic":"foo"}]',
        b'["MirrorSourceConnector",{"cluster":"A","partition":1e999,"topic":"foo"}]',
        b'["MirrorSourceConnector",{"cluster":"A","partition":"x","topic":"foo"}]',
        b'["MirrorSourceConnector","A"]',
        b'["MirrorSourceConnector"]',
        b'["MirrorSourceConnector",{},{}]',
        b'{"MirrorSourceConnector":1,"cluster":2}',
        b'"ab"',
        b"null",
        b"7",
        b"",
        b"\xff\xfe\x00",
        b"session-key",
    ],
)
def test_other_keys_are_not_ours(key: bytes) -> None:
    assert parse_progress(key, VALUE, "A") is None


@pytest.mark.parametrize(
    "value", [b"", b"null", b"{}", b"[]", b"7", b'{"offset":null}', b'{"offset":[]}', b'{"offset":1e999}', b"\xff"]
)
def test_garbled_values_are_not_ours(value: bytes) -> None:
    assert parse_progress(KEY, value, "A") is None


@given(st.binary(max_size=60), st.none() | st.binary(max_size=30))
def test_arbitrary_bytes_are_not_ours(key: bytes, value: bytes | None) -> None:
    assert parse_progress(key, value, "A") is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(json_values, json_values)
def test_any_place_and_value_never_raise(place: object, value: object) -> None:
    parse_progress(json.dumps(["MirrorSourceConnector", place]).encode(), json.dumps(value).encode(), "A")
    parse_progress(KEY, json.dumps({"offset": value}).encode(), "A")


def test_a_connector_of_connect_has_its_own_name() -> None:
    key, value = progress_entry("A", "foo", 0, 123, "mm2-msc")
    assert key == KEY.replace(b"MirrorSourceConnector", b"mm2-msc")
    assert parse_progress(key, value, "A", "mm2-msc") == ("foo", 0, 123)
    assert parse_progress(key, value, "A") is None
    assert parse_progress(KEY, VALUE, "A", "mm2-msc") is None
