"""Batches that pass: over real sockets and pipes, in pieces of any size, sent twice, read after all, and given up."""

from __future__ import annotations

import os
import random
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mirrorspark.cluster import pipes as pipes_module
from mirrorspark.cluster.buffer_pool import BufferPool, PooledBuffer
from mirrorspark.cluster.passing_answer import PASSING_BATCH_BYTES_MIN, PassingAnswer
from mirrorspark.cluster.pipes import Outlet, Pipe, PipedBody, PipePool
from mirrorspark.wire.messages.fetch import FetchAnswer, decode_fetch
from mirrorspark.wire.record_batch import Batch, split_batches, stamp, verify_crc
from mirrorspark.wire.records import Record
from wire.batches import v2_batch
from wire.fetch_answers import answer_bytes, fetched_part

LARGE = PASSING_BATCH_BYTES_MIN
HEAD_BYTES = 64
SEEDS = range(5)
WAIT_S = 30.0


def _batch(dice: random.Random, size: int) -> bytes:
    return bytes(v2_batch([Record(40, 1_700_000_000_000, b"k", dice.randbytes(size), ())]))


def _raw(dice: random.Random) -> bytes:
    """Two partitions with batches that pass, a small one between them, and one that is cut off."""
    first = _batch(dice, LARGE) + _batch(dice, 500) + _batch(dice, 3 * LARGE)
    second = _batch(dice, 900_000) + _batch(dice, LARGE)[: LARGE // 2]
    parts = [fetched_part(i, topic=bytes(16), records=memoryview(raw)) for i, raw in enumerate((first, second))]
    return answer_bytes(13, FetchAnswer(0, 0, 5, parts))


@contextmanager
def _sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A pair over TCP: who sends (blocking), who receives (not)."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = socket.create_connection(listener.getsockname())
        receiver, _ = listener.accept()
        receiver.setblocking(False)
        with sender, receiver:
            yield sender, receiver


def _received(raw: bytes, pool: BufferPool, dice: random.Random) -> PooledBuffer:
    answer = pool.take(len(raw))
    answer.view[:] = b"\xee" * len(raw)
    answer.view[:HEAD_BYTES] = raw[:HEAD_BYTES]
    assert pool.pipes is not None
    with _sockets() as (sender, receiver):
        passing = PassingAnswer(answer, HEAD_BYTES, pool.pipes)
        at = HEAD_BYTES
        while not passing.is_complete:
            at += sender.send(raw[at : at + dice.choice([1, 100, 5_000, 60_000])]) if at < len(raw) else 0
            while select.select([receiver], [], [], 0)[0] and not passing.is_complete:
                passing.receive(receiver)
        assert at == len(raw), "nothing was read beyond the answer"
    return answer


def _batches(answer: PooledBuffer) -> list[Batch]:
    found = []
    for part in decode_fetch(13, answer.view).partitions:
        batches = split_batches(part.records, "orders", part.partition)
        answer.join(batches, part.at)
        found += batches
    return found


def _sent(batch: Batch, outlet: Outlet) -> bytes:
    """What comes out at the other end of a connection."""
    assert isinstance(batch.rest, PipedBody)
    out = bytearray()
    with _sockets() as (receiver, sender):
        for part in batch.rest.parts():
            if isinstance(part, memoryview):
                out += part
                continue
            assert outlet.can_send(part)
            end = len(out) + len(part)
            while len(out) < end:
                try:
                    outlet.send(sender, more=False)
                except BlockingIOError:
                    pass
                assert select.select([receiver], [], [], WAIT_S)[0]
                out += receiver.recv(end - len(out))
    return bytes(out)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_passes_goes_out_as_it_came_and_may_go_again(seed: int) -> None:
    dice = random.Random(seed)
    raw = _raw(dice)
    pool = BufferPool(8 * 1024 * 1024, 2, PipePool())
    answer, outlet = _received(raw, pool, dice), Outlet()
    wanted = _batches_of(raw)
    found = _batches(answer)
    assert [batch.size for batch in found] == [batch.size for batch in wanted]
    assert [batch.rest is not None for batch in found] == [True, False, True, True]
    for batch, original in zip(found, wanted, strict=True):
        for one in (batch, original):
            stamp(one, producer_id=7, producer_epoch=1, base_sequence=3)
        if batch.rest is not None:
            assert _sent(batch, outlet) == original.buffer
            assert _sent(batch, outlet) == original.buffer
        assert batch.whole() == original.buffer
        verify_crc(batch, "orders", 0)
    answer.release()
    assert pool.live_bytes == 0


def _batches_of(raw: bytes) -> list[Batch]:
    parts = decode_fetch(13, memoryview(bytearray(raw))).partitions
    return [batch for part in parts for batch in split_batches(part.records, "orders", part.partition)]


def test_with_one_pipe_only_one_batch_passes() -> None:
    dice = random.Random(1)
    raw = _raw(dice)
    answer = _received(raw, BufferPool(8 * 1024 * 1024, 2, PipePool(1)), dice)
    found = _batches(answer)
    assert sum(batch.rest is not None for batch in found) == 1
    assert [batch.whole() for batch in found] == [batch.buffer for batch in _batches_of(raw)]


def test_what_has_no_room_in_a_pipe_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots of a pipe take a piece of a page each: it may be full with less than its nominal size."""
    monkeypatch.setattr(pipes_module, "PIPE_BYTES", 4096)  # one slot
    dice = random.Random(2)
    raw = _raw(dice)
    answer, outlet = _received(raw, BufferPool(8 * 1024 * 1024, 2, PipePool()), dice), Outlet()
    found = _batches(answer)
    for batch, original in zip(found, _batches_of(raw), strict=True):
        if batch.rest is not None:
            assert isinstance(batch.rest, PipedBody)
            assert 0 < len(batch.rest) < batch.size // 2
            assert _sent(batch, outlet) == original.buffer
        assert batch.whole() == original.buffer


def test_pipes_are_used_again_and_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = PipePool(1)
    pipe = pool.take()
    assert pipe is not None
    assert pool.take() is None
    os.write(pipe.writer, b"left over")
    pool.give_back(pipe, 9)
    assert pool.take() is pipe
    with pytest.raises(BlockingIOError):
        os.read(pipe.reader, 1)


def test_where_the_system_gives_no_pipe_that_is_told_and_bytes_are_copied(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused() -> Pipe:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(pipes_module, "Pipe", refused)
    dice = random.Random(3)
    raw = _raw(dice)
    with caplog.at_level("WARNING"):
        answer = _received(raw, BufferPool(8 * 1024 * 1024, 2, PipePool()), dice)
    assert bytes(answer.view) == raw
    assert not answer.piped
    assert [record.getMessage() for record in caplog.records if "fs.pipe-user-pages-soft" in record.getMessage()] != []
    assert len(caplog.records) == 1, "once, not for each batch"


def test_a_body_that_cannot_be_doubled_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(4)
    raw = _raw(dice)
    answer = _received(raw, BufferPool(8 * 1024 * 1024, 2, PipePool()), dice)
    monkeypatch.setattr(pipes_module, "PIPE_BYTES", 4096)  # of the outlet's
    (batch, *_), (original, *_) = _batches(answer), _batches_of(raw)
    body = batch.rest
    assert isinstance(body, PipedBody)
    assert not Outlet().can_send(body)
    assert b"".join([*body.parts()[:1], body.read()]) == original.buffer[: body.end]
    assert not Outlet().can_send(body), "it is no longer in a pipe"


def test_closing_gives_every_descriptor_back_also_of_what_is_on_its_way() -> None:
    before = len(os.listdir("/proc/self/fd"))
    dice = random.Random(5)
    pipes = PipePool()
    pool = BufferPool(8 * 1024 * 1024, 2, pipes)
    answer, outlet = _received(_raw(dice), pool, dice), Outlet()
    body = next(iter(answer.piped.values()))
    assert outlet.can_send(body)
    assert len(os.listdir("/proc/self/fd")) > before
    pipes.close()
    outlet.close()
    assert len(os.listdir("/proc/self/fd")) <= before + 1, "/dev/null stays open, once for the process"
    with pytest.raises(OSError, match="Bad file descriptor"):
        Outlet().can_send(body)
    with pytest.raises(OSError, match="Bad file descriptor"):
        body.read()
    answer.release()
    assert pipes.take() is None
