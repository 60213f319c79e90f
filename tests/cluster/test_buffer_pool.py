"""Receive buffers: which are kept, which are not, and what is counted."""

from __future__ import annotations

import pytest

from mirrorspark.cluster.buffer_pool import SMALL_ANSWER_BYTES, BufferPool

BUFFER_BYTES = 4 * SMALL_ANSWER_BYTES


def _pool(spares_max: int = 2) -> BufferPool:
    return BufferPool(BUFFER_BYTES, spares_max)


@pytest.mark.parametrize("size", [0, 1, SMALL_ANSWER_BYTES, SMALL_ANSWER_BYTES + 1, BUFFER_BYTES, BUFFER_BYTES + 1])
def test_a_view_is_as_long_as_asked_and_can_be_written(size: int) -> None:
    buffer = _pool().take(size)
    assert len(buffer.view) == size
    assert not buffer.view.readonly


@pytest.mark.parametrize(
    ("size", "counted"),
    [
        (1_000, 1_000),  # small answers get memory of their own size
        (SMALL_ANSWER_BYTES, SMALL_ANSWER_BYTES),
        (SMALL_ANSWER_BYTES + 1, BUFFER_BYTES),
        (BUFFER_BYTES, BUFFER_BYTES),
        (BUFFER_BYTES + 1, BUFFER_BYTES + 1),  # so do oversized ones
    ],
)
def test_live_bytes_are_those_of_the_memory_in_use(size: int, counted: int) -> None:
    pool = _pool()
    buffer = pool.take(size)
    assert pool.live_bytes == counted
    buffer.release()
    assert pool.live_bytes == 0


def test_a_released_buffer_is_used_again() -> None:
    pool = _pool()
    first = pool.take(BUFFER_BYTES)
    memory = first.view.obj
    first.release()
    assert pool.take(SMALL_ANSWER_BYTES + 1).view.obj is memory


def test_a_buffer_in_use_is_not_given_out_again() -> None:
    pool = _pool()
    assert pool.take(BUFFER_BYTES).view.obj is not pool.take(BUFFER_BYTES).view.obj


@pytest.mark.parametrize("size", [SMALL_ANSWER_BYTES, BUFFER_BYTES + 1])
def test_other_sizes_are_not_kept(size: int) -> None:
    pool = _pool()
    buffer = pool.take(size)
    memory = buffer.view.obj
    buffer.release()
    assert pool.take(size).view.obj is not memory


def test_only_so_many_spares_are_kept() -> None:
    pool = _pool(spares_max=2)
    buffers = [pool.take(BUFFER_BYTES) for _ in range(4)]
    memories = [buffer.view.obj for buffer in buffers]
    for buffer in buffers:
        buffer.release()
    again = [pool.take(BUFFER_BYTES).view.obj for _ in range(4)]
    assert sum(any(one is other for other in memories) for one in again) == 2


def test_a_buffer_lives_until_its_last_user_lets_go() -> None:
    pool = _pool()
    buffer = pool.take(BUFFER_BYTES)
    buffer.hold()
    buffer.hold()
    for _ in range(2):
        buffer.release()
        assert pool.live_bytes == BUFFER_BYTES
    buffer.release()
    assert pool.live_bytes == 0


def test_letting_go_once_too_often_is_noticed() -> None:
    buffer = _pool().take(1)
    buffer.release()
    with pytest.raises(AssertionError, match="twice"):
        buffer.release()


def test_somebody_is_told_when_memory_is_freed() -> None:
    pool = _pool()
    told: list[int] = []
    pool.on_freed = lambda: told.append(pool.live_bytes)
    first, second = pool.take(10), pool.take(20)
    first.hold()
    first.release()
    assert told == []
    first.release()
    second.release()
    assert told == [20, 0]
