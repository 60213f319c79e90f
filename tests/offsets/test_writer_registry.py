"""The registry's records: what is written is read, and what cannot be read still names a mirror."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.names import Flow
from mirrorspark.offsets.writer_registry import (
    UNKNOWN_FLOW,
    MirrorWriter,
    flow_of_transactional_id,
    parse_writer,
    told_key,
    writer_entry,
)
from mirrorspark.pipeline.recovery import transactional_id
from mirrorspark.settings import ClusterSettings, FlowSettings

aliases = st.text(min_size=1, max_size=20)
numbers = st.integers(-1, 2**63 - 1)
writers = st.builds(
    MirrorWriter,
    st.integers(0, 2**63 - 1),
    st.builds(Flow, aliases, aliases, st.text(max_size=10)),
    st.integers(-1, 10_000),
    numbers,
    numbers,
    numbers,
)


@given(writers)
def test_a_written_entry_is_read_back(writer: MirrorWriter) -> None:
    assert parse_writer(*writer_entry(writer)) == writer


def test_an_entry_can_be_read_by_a_person() -> None:
    key, value = writer_entry(MirrorWriter(4711, Flow("east", "west"), 2, 7, 3, 1_700_000_000_000))
    assert key == b"4711"
    assert json.loads(value) == {
        "v": 1,
        "source": "east",
        "target": "west",
        "lane": 2,
        "epoch": 7,
        "generation": 3,
        "since_ms": 1_700_000_000_000,
    }


@pytest.mark.parametrize("value", [b"", b"{}", b"[]", b"null", b"\xff", b'{"v":9}', b'{"source":"a","target":"b"}'])
def test_a_value_that_cannot_be_read_still_names_a_mirror(value: bytes) -> None:
    """Taken for a local producer's, its batches would go round."""
    assert parse_writer(b"12", value) == MirrorWriter(12, UNKNOWN_FLOW)


@pytest.mark.parametrize(
    "key", [b"", b"-1", b"x", b"12 ", b"1e3", "٣".encode(), told_key(Flow("a", "b"), Flow("c", "a"))]
)
def test_other_keys_are_no_entries(key: bytes) -> None:
    assert parse_writer(key, b"{}") is None


def test_a_tombstone_is_no_entry() -> None:
    assert parse_writer(b"12", None) is None


@given(st.binary(max_size=40), st.one_of(st.none(), st.binary(max_size=40)))
def test_any_bytes_are_taken(key: bytes, value: bytes | None) -> None:
    found = parse_writer(key, value)
    assert found is None or found.producer_id == int(key)


@pytest.mark.parametrize("flow", [Flow("east", "west"), Flow("a-b", "c-3"), Flow("a", "b", "team-1")], ids=str)
def test_a_lanes_transactional_id_tells_its_flow(flow: Flow) -> None:
    cluster = ClusterSettings("", (("localhost", 1),))
    name = transactional_id(FlowSettings(flow, cluster, cluster), 12)
    assert flow_of_transactional_id(name) == flow


@pytest.mark.parametrize("name", ["", "orders", "__mirrorspark-a->b", "__mirrorspark-a-3", "my__mirrorspark-a->b-3"])
def test_others_have_transactional_ids_too(name: str) -> None:
    assert flow_of_transactional_id(name) is None
