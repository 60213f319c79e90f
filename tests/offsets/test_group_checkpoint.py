"""Checkpoints in MirrorMaker 2's bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.group_checkpoint import GroupCheckpoint

CHECKPOINT = GroupCheckpoint("group9", TopicPartition("source1.topic1", 2), 10, 5)
KEY = bytes.fromhex("000667726f757039000e736f75726365312e746f7069633100000002")
VALUE = bytes.fromhex("0000 000000000000000a 0000000000000005 0000")

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=80)
offsets = st.integers(-1, 2**63 - 1)


def test_bytes_of_a_checkpoint() -> None:
    assert (CHECKPOINT.key, CHECKPOINT.value) == (KEY, VALUE)


@given(
    st.builds(
        GroupCheckpoint, texts, st.builds(TopicPartition, texts, st.integers(0, 2**31 - 1)), offsets, offsets, texts
    )
)
def test_a_checkpoint_reads_back(checkpoint: GroupCheckpoint) -> None:
    assert GroupCheckpoint.from_record(checkpoint.key, checkpoint.value) == checkpoint


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, VALUE),
        (KEY, None),
        (KEY, b""),
        (KEY[:-1], VALUE),
        (KEY + b"\0", VALUE),
        (KEY, VALUE[:-1]),
        (KEY, VALUE + b"\0"),
        (KEY, b"\0\1" + VALUE[2:]),  # another version
        (KEY, VALUE[:-2] + b"\xff\xff"),
        (b"\0\1\xff" + KEY, VALUE),
    ],
)
def test_what_is_no_checkpoint(key: bytes | None, value: bytes | None) -> None:
    assert GroupCheckpoint.from_record(key, value) is None


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_arbitrary_bytes_never_raise(key: bytes, value: bytes) -> None:
    GroupCheckpoint.from_record(key, value)


def test_metadata_that_is_too_long_is_refused() -> None:
    """Brokers hold it to 4 KB; a string of MirrorMaker 2's encoding ends at 32,767 bytes."""
    with pytest.raises(ValueError, match="40000 bytes"):
        _ = GroupCheckpoint("g", TopicPartition("t", 0), 1, 1, "x" * 40_000).value
