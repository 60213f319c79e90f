"""The one answer of ConsumerGroupDescribe that is read: its beginning, whatever follows; and no bytes that break it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import WireError
from mirrorspark.wire.messages.consumer_group_describe import (
    DescribedConsumerGroup,
    decode_consumer_group_describe,
    encode_consumer_group_describe,
)


def compact(text: str | None) -> bytes:
    return b"\x00" if text is None else bytes([len(text.encode()) + 1]) + text.encode()


def answer(code: int, state: str, members: int, *, message: str | None = None, groups: int = 1) -> memoryview:
    head = struct.pack(">i", 7) + b"\x00" + struct.pack(">i", 0) + bytes([groups + 1])
    body = struct.pack(">h", code) + compact(message) + compact("billing") + compact(state)
    rest = struct.pack(">ii", 3, 4) + compact("uniform") + bytes([members + 1]) + b"whatever members look like"
    return memoryview(head + body + rest)


def test_a_request_names_one_group() -> None:
    assert encode_consumer_group_describe("g") == b"\x02\x02g\x00\x00"
    assert encode_consumer_group_describe("g" * 200).startswith(b"\x02\xc9\x01ggg")


def test_state_and_members_are_read() -> None:
    assert decode_consumer_group_describe(answer(0, "Stable", 3)) == DescribedConsumerGroup(0, "Stable", 3)
    assert decode_consumer_group_describe(answer(0, "Empty", 0)) == DescribedConsumerGroup(0, "Empty", 0)
    refused = decode_consumer_group_describe(answer(69, "", 0, message="no such group"))
    assert refused == DescribedConsumerGroup(69, "", 0)


def test_another_number_of_groups_is_no_answer() -> None:
    with pytest.raises(WireError, match="2 groups"):
        decode_consumer_group_describe(answer(0, "Stable", 3, groups=2))


@given(st.binary(max_size=80), st.integers(0, 60))
def test_no_bytes_break_it(raw: bytes, cut: int) -> None:
    for view in (memoryview(raw), answer(0, "Stable", 3)[:cut]):
        try:
            decode_consumer_group_describe(view)
        except WireError:
            continue
