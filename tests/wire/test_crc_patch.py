"""A changed head changes the CRC exactly as reading everything again would say."""

from __future__ import annotations

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.wire.crc_patch import patched_crc

heads = st.integers(0, 64).flatmap(
    lambda size: st.tuples(st.binary(min_size=size, max_size=size), st.binary(min_size=size, max_size=size))
)


@given(heads, st.binary(max_size=2_000))
def test_any_head_before_any_rest(pair: tuple[bytes, bytes], rest: bytes) -> None:
    before, after = pair
    assert patched_crc(crc32c(before + rest), before, after, len(rest)) == crc32c(after + rest)


@given(heads, st.integers(0, 8_000_000), st.integers(0, 255))
def test_long_rests(pair: tuple[bytes, bytes], size: int, fill: int) -> None:
    before, after = pair
    rest = bytes([fill]) * size
    assert patched_crc(crc32c(before + rest), before, after, size) == crc32c(after + rest)


def test_nothing_changed() -> None:
    assert patched_crc(0x12345678, b"same", b"same", 10**9) == 0x12345678
