"""What the carrying loop does between an answer and its batches, without a broker: out of date, or not yet known by whom."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, cast

import pytest

from mirrorspark.cluster.buffer_pool import BufferPool, PooledBuffer
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.fetch_session import FetchSession
from mirrorspark.cluster.writer import Writer
from mirrorspark.errors import AuthenticationFailed, ClusterError, MirrorError, Unreachable
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.pipeline.express import LARGE_ANSWER_BYTES, ORIGIN_UNKNOWN, Express, Fetched
from mirrorspark.pipeline.origin import OriginCheck
from mirrorspark.pipeline.track import Track
from mirrorspark.plan.lanes import Assignment
from mirrorspark.settings import ClusterSettings, FlowSettings
from mirrorspark.wire.messages.fetch import FetchAnswer, FetchedPartition, FetchLimits
from mirrorspark.wire.record_batch import Batch, split_batches
from mirrorspark.wire.records import Record
from wire.batches import v2_batch

AT = TopicPartition("orders", 0)
NOW = 1_700_000_000_000
MIRROR = 7


class Origins:
    """An origin check whose registry cannot be read a few times."""

    def __init__(self, *errors: ClusterError) -> None:
        self.errors = list(errors)
        self.whys: list[str] = []
        self.track: Track | None = None

    def knows(self, _: Collection[Batch]) -> bool:
        return False

    async def learn(self, _: Collection[Batch]) -> None:
        assert self.track is not None
        self.whys.append(self.track.why)
        if self.errors:
            raise self.errors.pop(0)

    def skips(self, batch: Batch) -> bool:
        return batch.producer_id == MIRROR


def _express(origin: Origins | None = None) -> Express:
    cluster = ClusterSettings("lab", (("localhost", 1),))
    settings = FlowSettings(Flow("east", "west"), cluster, cluster)
    clients = ClusterClient(cluster, "source"), ClusterClient(cluster, "target")
    return Express(
        *clients,
        settings,
        on_trouble=lambda *_: pytest.fail("a trouble"),
        on_company=lambda *_: None,
        origin=cast(OriginCheck, origin) if origin is not None else None,
    )


def _track(position: int) -> Track:
    track = Track(Assignment(AT, "east.orders", ""))
    track.begin(Writer("lane", 1, 0), position, 0, -1)
    track.queue.admitted = False
    return track


def _answer(track: Track, *batches: tuple[int, int]) -> list[Fetched]:
    """(first offset, producer id), three records each."""
    raw = b"".join(
        v2_batch([Record(first + i, NOW, b"k", b"v") for i in range(3)], producer=(producer, 0, 0))
        for first, producer in batches
    )
    part = FetchedPartition("orders", 0, 0, 100, 100, 0, (), -1, memoryview(b""), -1, -1)
    return [(track, part, split_batches(memoryview(bytearray(raw)), *AT), track.fetch_next)]


def test_an_answer_from_before_the_track_was_set_back_is_left_alone(in_loop: Callable[..., Any]) -> None:
    async def run() -> None:
        express, track = _express(), _track(10)
        buffer = BufferPool(1024, 1).take(1)
        stale = _answer(track, (10, -1))
        track.fetch_next = 4  # what was in line before has been dropped: it is fetched again from there
        express._handle(stale, buffer)
        assert track.drained
        track.fetch_next = 10
        express._handle(stale, buffer)
        assert [carried.size for carried in track.queue.waiting] == [len(stale[0][2][0].buffer)]

    in_loop(run())


def test_what_a_mirror_wrote_is_skipped_and_the_position_goes_on(in_loop: Callable[..., Any]) -> None:
    async def run() -> None:
        express, track = _express(Origins()), _track(10)
        express._handle(_answer(track, (10, MIRROR), (13, -1), (16, MIRROR), (19, MIRROR)), BufferPool(1024, 1).take(1))
        assert (track.upstream_next, track.uncommitted) == (13, True)  # nothing was in line: the position moves at once
        assert len(track.queue.waiting) == 1
        assert track.queued_next == track.fetch_next == 22  # the rest goes with the batch in line

    in_loop(run())


def test_nothing_is_handled_before_its_origin_is_known(in_loop: Callable[..., Any]) -> None:
    async def run() -> None:
        origins = Origins(Unreachable("nobody answers"), Unreachable("still nobody"))
        express, track = _express(origins), _track(10)
        origins.track = track
        assert await express._learn_origins(cast(OriginCheck, origins), _answer(track, (10, 3)))
        assert origins.whys == ["", f"{ORIGIN_UNKNOWN}: nobody answers", f"{ORIGIN_UNKNOWN}: still nobody"]
        assert track.why == ""

        express.stop_fetching_at(time.monotonic() - 1)
        assert not await express._learn_origins(cast(OriginCheck, origins), _answer(track, (10, 3)))

    in_loop(run())


def test_a_registry_that_may_not_be_read_ends_the_attempt(in_loop: Callable[..., Any]) -> None:
    async def run() -> None:
        origins = Origins(AuthenticationFailed("no Read on the registry"))
        express, track = _express(origins), _track(10)
        origins.track = track
        with pytest.raises(MirrorError, match="on cluster lab: no Read on the registry") as caught:
            await express._learn_origins(cast(OriginCheck, origins), _answer(track, (10, 3)))
        assert not isinstance(caught.value, ClusterError)  # the stream would take that for a lost connection

    in_loop(run())


class Session:
    """One partition's; its answers have these sizes, and with the last one the time is over."""

    node = 1

    def __init__(self, express: Express, told: list[str], *sizes: int) -> None:
        self._express, self._told, self._sizes = express, told, list(sizes)

    def __len__(self) -> int:
        return 1

    async def ask(self, _: FetchLimits) -> str:
        self._told.append("ask")
        return "out"

    async def answer(self, _: str) -> tuple[FetchAnswer, PooledBuffer]:
        size = self._sizes.pop(0)
        if not self._sizes:
            self._express.stop_fetching_at(time.monotonic() - 1)
        self._told.append(f"answer of {size}")
        return FetchAnswer(0, 0, 0, []), BufferPool(0, 0).take(size)


def test_a_small_answer_goes_on_before_the_next_fetch_and_a_large_one_after(
    in_loop: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = LARGE_ANSWER_BYTES - 1, LARGE_ANSWER_BYTES

    async def run() -> list[str]:
        told: list[str] = []
        express = _express()
        monkeypatch.setattr(express, "_handle", lambda *_: told.append("handle"))
        await express._stream(cast(FetchSession, Session(express, told, small, large, small)))
        return told

    assert in_loop(run()) == [
        *("ask", f"answer of {small}", "handle"),
        *("ask", f"answer of {large}", "ask", "handle"),
        *(f"answer of {small}", "handle"),
    ]
