"""A lane's memory: who gets room, who waits, who is woken."""

from __future__ import annotations

import asyncio

from mirrorspark.cluster.buffer_pool import PooledBuffer
from mirrorspark.pipeline.memory import LaneMemory

ANSWER = 1_000_000
SLACK = 256 * 1024
"""What the pool's buffers have on top of an answer's records."""


def _memory(answers: int) -> LaneMemory:
    """Room for so many answers in memory."""
    return LaneMemory(answers * (ANSWER + SLACK), ANSWER)


def _answer(memory: LaneMemory) -> PooledBuffer:
    memory.promise()
    buffer = memory.pool.take(ANSWER)
    memory.arrived()
    return buffer


def test_an_empty_lane_has_room() -> None:
    assert _memory(2).has_room


def test_one_answer_always_has_room() -> None:
    """Even if it is larger than all memory: otherwise nothing would ever move."""
    memory = LaneMemory(bytes_max=10, answer_bytes_max=ANSWER)
    assert memory.has_room
    memory.promise()
    assert not memory.has_room
    buffer = memory.pool.take(ANSWER)
    memory.arrived()
    assert not memory.has_room
    buffer.release()
    assert memory.has_room


def test_promised_answers_count() -> None:
    memory = _memory(2)
    memory.promise()
    assert memory.has_room
    memory.promise()
    assert not memory.has_room
    memory.arrived()
    assert memory.has_room


def test_buffers_in_use_count_until_released() -> None:
    memory = _memory(2)
    first, second = _answer(memory), _answer(memory)
    assert memory.pool.live_bytes == 2 * (ANSWER + SLACK)
    assert not memory.has_room
    first.release()
    assert memory.has_room
    second.release()
    assert memory.pool.live_bytes == 0


def test_small_answers_take_little_room() -> None:
    memory = _memory(2)
    for _ in range(8):
        memory.promise()
        memory.pool.take(1_000)
        memory.arrived()
    assert memory.has_room


def test_who_finds_room_does_not_wait() -> None:
    async def scenario() -> None:
        waiting = asyncio.ensure_future(_memory(1).room())
        await asyncio.sleep(0)
        assert waiting.done()

    asyncio.run(scenario())


def test_who_finds_none_waits_until_a_buffer_is_released() -> None:
    async def scenario() -> None:
        memory = _memory(2)
        first, second = _answer(memory), _answer(memory)
        first.hold()
        waiting = asyncio.ensure_future(memory.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        first.release()
        await asyncio.sleep(0)
        assert not waiting.done(), "somebody still needs that buffer"
        first.release()
        await waiting
        second.release()

    asyncio.run(scenario())


def test_who_finds_none_waits_until_an_answer_turns_out_small() -> None:
    async def scenario() -> None:
        memory = _memory(1)
        memory.promise()
        waiting = asyncio.ensure_future(memory.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        memory.arrived()
        await waiting

    asyncio.run(scenario())


def test_all_who_wait_are_served_one_after_the_other() -> None:
    async def scenario() -> None:
        memory = _memory(1)
        served: list[int] = []

        async def stream(number: int) -> None:
            await memory.room()
            buffer = _answer(memory)
            served.append(number)
            await asyncio.sleep(0)
            assert memory.pool.live_bytes == ANSWER + SLACK, "more than one answer in memory"
            buffer.release()

        await asyncio.gather(*(stream(number) for number in range(5)))
        assert sorted(served) == [0, 1, 2, 3, 4]
        assert memory.pool.live_bytes == 0

    asyncio.run(scenario())


def test_who_stopped_waiting_is_passed_over() -> None:
    async def scenario() -> None:
        memory = _memory(1)
        buffer = _answer(memory)
        gone = asyncio.ensure_future(memory.room())
        waiting = asyncio.ensure_future(memory.room())
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        buffer.release()
        await waiting
        assert gone.cancelled()

    asyncio.run(scenario())
