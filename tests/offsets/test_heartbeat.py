"""MirrorMaker 2's heartbeat bytes (reference 2.8, 2.12)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC, Heartbeat

BEAT = Heartbeat("A", "B", 1_700_000_000_000)


def test_bytes_of_the_reference() -> None:
    assert BEAT.key.hex() == "000141000142"
    assert BEAT.value.hex() == "0000" + "0000018bcfe56800"
    assert Heartbeat.from_record(BEAT.key, BEAT.value) == BEAT
    assert HEARTBEATS_TOPIC == "heartbeats"


@given(st.text(max_size=50), st.text(max_size=50), st.integers(-(2**63), 2**63 - 1))
def test_there_and_back(source: str, target: str, at_ms: int) -> None:
    beat = Heartbeat(source, target, at_ms)
    assert Heartbeat.from_record(beat.key, beat.value) == beat


@given(st.binary(max_size=40), st.binary(max_size=12))
def test_any_bytes_are_a_heartbeat_or_none(key: bytes, value: bytes) -> None:
    found = Heartbeat.from_record(key, value)
    assert found is None or (found.key, found.value) == (key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, BEAT.value), (BEAT.key, None), (BEAT.key + b"x", BEAT.value), (BEAT.key, b"\0\1" + BEAT.value[2:])],
)
def test_what_is_none(key: bytes | None, value: bytes | None) -> None:
    assert Heartbeat.from_record(key, value) is None
