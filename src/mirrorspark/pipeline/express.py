"""The carrying loop: batches from the source's leaders to the target's, unopened.

One fetch stream per source broker; its next fetch is asked for before a large answer is handled. What was fetched is
prepared, stamped and put in line for the target; receipts move the tracks. Nothing here touches a single record, and
everything has a bound: answers in memory, bytes per partition, requests in flight.
Troubles of a single partition go to ``on_trouble``; the others flow on. Runs on the lane's event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from mirrorspark.cluster.batch_appender import AppendQueue, BatchAppender, Outgoing
from mirrorspark.cluster.broker_errors import ErrorCode, is_retriable, is_stale_metadata
from mirrorspark.cluster.buffer_pool import PooledBuffer
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.fetch_session import FetchSession, PendingFetch
from mirrorspark.cluster.pipes import PipePool
from mirrorspark.errors import ClusterError, CorruptBatch, MirrorError, WireError
from mirrorspark.names import TopicPartition
from mirrorspark.pipeline.bandwidth import FetchPace
from mirrorspark.pipeline.hole_filling import HoleFilling
from mirrorspark.pipeline.holes import align
from mirrorspark.pipeline.leader_search import LeaderSearch
from mirrorspark.pipeline.memory import LaneMemory
from mirrorspark.pipeline.origin import OriginCheck
from mirrorspark.pipeline.preparation import prepare
from mirrorspark.pipeline.sleepers import Sleepers
from mirrorspark.pipeline.source_refusals import STREAM_PAUSE_S, SourceRefusals
from mirrorspark.pipeline.track import CarriedBatch, Track, TrackState
from mirrorspark.pipeline.trouble import Trouble
from mirrorspark.settings import FlowSettings
from mirrorspark.wire.messages.fetch import FetchAnswer, FetchedPartition, FetchLimits
from mirrorspark.wire.messages.produce import Appended
from mirrorspark.wire.record_batch import Batch, split_batches

__all__ = ["Express"]

Fetched = tuple[Track, FetchedPartition, list[Batch], int]
"""A track, its part of an answer, the whole batches in it, and the track's position when the answer came."""

ORIGIN_UNKNOWN = "it cannot be told which records a mirror wrote"
NEWS_WAIT_S = 1.0
LARGE_ANSWER_BYTES = 64 * 1024
"""From here on the next fetch goes out before an answer is handled, so that both sides have work. A smaller one goes on to
the target first, which is sooner by what a fetch costs."""
CUT_ANSWERS_MAX = 200
"""Answers in a row that hold bytes of a partition but no whole batch, before its length is taken for damaged."""


class Express:
    def __init__(
        self,
        source: ClusterClient,
        target: ClusterClient,
        settings: FlowSettings,
        *,
        on_trouble: Callable[[Track, Trouble], None],
        on_company: Callable[[Track, int], None],
        on_mismatch: Callable[[Track, int, str], None] | None = None,
        transactional_id: str | None = None,
        origin: OriginCheck | None = None,
    ) -> None:
        limits = settings.limits
        self._source = source
        self._settings = settings
        self._on_trouble = on_trouble
        self._on_company = on_company
        self._on_mismatch = on_mismatch
        self.holes: HoleFilling | None = None
        """With identical offsets: fills what a partition has to leave empty."""
        self._transactional = transactional_id is not None
        self._origin = origin
        self._left_out = origin.skips if origin is not None else None
        answer_bytes = min(limits.fetch_bytes_max, max(1, limits.lane_memory_bytes_max // 4))
        # Where a batch passes unread the target checks it, and where both sides take plain bytes the kernel can keep it.
        passes = not self._transactional and source.is_plain and target.is_plain
        self.memory = LaneMemory(limits.lane_memory_bytes_max, answer_bytes, PipePool() if passes else None)
        self.pace = FetchPace()
        self.appender = BatchAppender(
            target,
            request_bytes_max=limits.produce_request_bytes_max,
            requests_in_flight_max=limits.produce_requests_in_flight_max,
            timeout_ms=limits.produce_timeout_ms,
            on_appended=self._appended,
            on_refused=self._refused,
            on_doubt=self._doubted,
            transactional_id=transactional_id,
        )
        self._tracks: dict[TopicPartition, Track] = {}  # by source partition
        self._by_remote: dict[TopicPartition, Track] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._streams: dict[int, asyncio.Task[None]] = {}
        self._refusals = SourceRefusals()
        self._search = LeaderSearch(source, self._refusals, on_found=self._found, on_gone=self._gone)
        self._sleepers = Sleepers()
        self._news = asyncio.Event()
        self._fetch_until = float("inf")
        self.ended: BaseException | None = None
        self.uncommitted_bytes = 0
        self.unadmitted: set[Track] = set()
        """Tracks with batches in line that the open transaction does not hold yet."""
        self.data_waiting = asyncio.Event()

    # -- which partitions -------------------------------------------------------------------------------------------

    def add(self, track: Track) -> None:
        """Begin to carry a track that recovery has put at its position."""
        assert track.state is TrackState.CARRYING
        self._tracks[track.source] = track
        self._by_remote[track.remote] = track
        self._route(track)

    def hold_back(self, track: Track) -> None:
        """Stop fetching for this track; what is in line still goes out."""
        for session in self._sessions.values():
            session.forget(track.source)
        self._search.give_up(track)

    def resume(self, track: Track) -> None:
        """Fetch again from the track's position."""
        self._route(track)

    def remove(self, track: Track) -> None:
        """Forget the track, unless a newer one has taken its place."""
        if self._tracks.get(track.source) is track:
            self.hold_back(track)
            del self._tracks[track.source]
        if self._by_remote.get(track.remote) is track:
            del self._by_remote[track.remote]

    def stop_fetching_at(self, monotonic: float) -> None:
        """No fetch waits beyond this moment."""
        self._fetch_until = self._search.until = monotonic

    async def close(self) -> None:
        """Stop fetching. Fetches on their way are short by now (stop_fetching_at); their connections are kept."""
        self.stop_fetching_at(min(self._fetch_until, time.monotonic()))
        self._news.set()
        self.pace.end()
        search = self._search.close()
        streams = [*self._streams.values(), *([search] if search else [])]
        if streams:
            await asyncio.wait(streams, timeout=self._settings.limits.fetch_wait_ms_max / 1000 + 1.0)
        for task in streams:
            task.cancel()

    # -- fetching ---------------------------------------------------------------------------------------------------

    def _route(self, track: Track) -> None:
        leader = self._source.leader(track.source)
        if leader is None:
            self._search.begin(track)
            return
        session = self._sessions.get(leader.node)
        if session is None:
            session = self._sessions[leader.node] = FetchSession(self._source, leader.node, self.memory.pool)
        for other in self._sessions.values():
            if other is not session:
                other.forget(track.source)
        session.want(track.source, track.topic_id, track.fetch_next, leader.epoch, track.fetched_epoch)
        stream = self._streams.get(leader.node)
        if stream is None or stream.done():
            self._streams[leader.node] = asyncio.ensure_future(self._stream(session))
        self._news.set()

    async def _stream(self, session: FetchSession) -> None:
        """One source broker, fetch after fetch, until the lane stops fetching."""
        pending: PendingFetch | None = None
        try:
            while time.monotonic() < self._fetch_until:
                if pending is None:
                    pending = await self._ask_when_possible(session)
                    continue
                try:
                    answer, buffer = await session.answer(pending)
                except ClusterError as error:
                    pending = None
                    self.memory.arrived()
                    await self._stream_lost(session, error)
                    continue
                pending = None
                if self._refusals.text:
                    self._refusals.answered(self._tracks.values())
                self.memory.arrived()
                try:
                    fetched = self._look(session, answer, buffer)
                    is_large = len(buffer.view) >= LARGE_ANSWER_BYTES
                    if is_large:
                        pending = await self._ask_if_possible(session)
                    if self._origin is None or await self._learn_origins(self._origin, fetched):
                        self._handle(fetched, buffer)
                    if not is_large:
                        pending = await self._ask_if_possible(session)
                finally:
                    buffer.release()
            if pending is not None:
                _, buffer = await session.answer(pending)
                self.memory.arrived()
                buffer.release()
        except ClusterError as error:
            if time.monotonic() < self._fetch_until:
                await self._stream_lost(session, error)
                self._streams[session.node] = asyncio.ensure_future(self._stream(session))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.ended = error
            raise

    async def _ask_when_possible(self, session: FetchSession) -> PendingFetch | None:
        if not len(session):
            await self._wait_for_news(NEWS_WAIT_S)
            return None
        if patience_s := self._sleepers.patience_s(session.node):
            await self._wait_for_news(patience_s)
            return None
        await self.memory.room()
        if not self.pace.may_ask:
            await self.pace.turn(self._fetch_until)
            return None
        try:
            return await self._ask(session)
        except ClusterError as error:
            await self._stream_lost(session, error)
            return None

    async def _wait_for_news(self, wait_s: float) -> None:
        """Until a partition is wanted anew, but not for longer than this."""
        self._news.clear()
        left = self._fetch_until - time.monotonic()
        try:
            async with asyncio.timeout(min(max(left, 0.0), wait_s)):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _ask_if_possible(self, session: FetchSession) -> PendingFetch | None:
        may_ask = self.memory.has_room and self.pace.may_ask and not self._sleepers.patience_s(session.node)
        if len(session) and may_ask and time.monotonic() < self._fetch_until:
            return await self._ask(session)
        return None

    async def _ask(self, session: FetchSession) -> PendingFetch:
        limits = self._settings.limits
        left_ms = (
            int(max(0.0, self._fetch_until - time.monotonic()) * 1000) if self._fetch_until != float("inf") else 1 << 30
        )
        self.memory.promise()
        answer_bytes = self.pace.answer_bytes(self.memory.answer_bytes_max)
        wanted = FetchLimits(
            wait_ms_max=min(limits.fetch_wait_ms_max, left_ms, self._sleepers.wait_ms(session.node)),
            bytes_min=1,
            bytes_max=answer_bytes,
            partition_bytes_max=min(limits.fetch_partition_bytes_max, answer_bytes),
            read_committed=self._settings.read_committed,
            rack=self._settings.client_rack,
        )
        try:
            return await session.ask(wanted)
        except BaseException:
            self.memory.arrived()
            raise

    def _look(self, session: FetchSession, answer: FetchAnswer, buffer: PooledBuffer) -> list[Fetched]:
        """Find the whole batches and move the fetch positions, so that the next fetch can go out at once."""
        fetched = []
        for part in answer.partitions:
            name = session.topic_name(part.topic)
            track = self._tracks.get(TopicPartition(name, part.partition)) if name is not None else None
            if track is None or not session.is_current(track.source):
                continue  # moved, released or set back since the request went out
            if part.error_code or part.diverging_end >= 0:
                self._fetch_refused(session, track, part)
                continue
            track.high_watermark = part.last_stable_offset if self._settings.read_committed else part.high_watermark
            if part.preferred_replica >= 0 and not len(part.records):
                self._move_to_replica(session, track, part.preferred_replica)
                continue
            try:
                batches = split_batches(part.records, *track.source)
                if buffer.piped:
                    buffer.join(batches, part.at)
            except WireError as error:
                session.forget(track.source)
                self._on_trouble(track, Trouble("source", damaged=error))
                continue
            if not batches and len(part.records):
                self._cut_off(session, track)
                continue
            track.cut_answers = 0
            batches = [batch for batch in batches if batch.last_offset >= track.fetch_next]
            if not batches:
                continue
            fetched.append((track, part, batches, track.fetch_next))
            last = batches[-1]
            track.fetched_epoch = last.leader_epoch
            if track.unacked_bytes + len(part.records) > self._settings.limits.partition_memory_bytes_max:
                # Before the next fetch goes out: what that brings would only be thrown away.
                self._sleepers.put(track, session.node)
                self.hold_back(track)
                continue
            leader = self._source.leader(track.source)
            epoch = leader.epoch if leader is not None and leader.node == session.node else -1
            session.want(track.source, track.topic_id, last.next_offset, epoch, last.leader_epoch)
        if self.pace.bytes_per_s is not None:
            self.pace.took(sum(batch.size for _, _, batches, _ in fetched for batch in batches))
        return fetched

    def _cut_off(self, session: FetchSession, track: Track) -> None:
        """Bytes, but no whole batch: normal when others filled the answer, damage when it never ends."""
        track.cut_answers += 1
        if track.cut_answers > CUT_ANSWERS_MAX:
            session.forget(track.source)
            text = f"{track.source} at offset {track.fetch_next}: no whole batch in {track.cut_answers} answers"
            damage = CorruptBatch(
                text, topic=track.source.topic, partition=track.source.partition, offset=track.fetch_next
            )
            self._on_trouble(track, Trouble("source", damaged=damage))

    async def _learn_origins(self, origin: OriginCheck, fetched: list[Fetched]) -> bool:
        """Wait until it is known of every batch whether a mirror wrote it; False when there is no more time for that."""
        batches = [batch for _, _, some, _ in fetched for batch in some]
        if origin.knows(batches):
            return True
        while time.monotonic() < self._fetch_until:
            why = ""
            try:
                await origin.learn(batches)
            except ClusterError as error:
                if not error.retriable:
                    raise MirrorError(f"{ORIGIN_UNKNOWN} on cluster {self._source.alias}: {error}") from error
                why = f"{ORIGIN_UNKNOWN}: {error}"
            for track, *_ in fetched:
                if not track.why or track.why.startswith(ORIGIN_UNKNOWN):
                    track.why = why
            if not why:
                return True
            await asyncio.sleep(STREAM_PAUSE_S)
        return False

    def _handle(self, fetched: list[Fetched], buffer: PooledBuffer) -> None:
        left_out = self._left_out
        for track, part, batches, position in fetched:
            if track.state is not TrackState.CARRYING or track.fetch_next != position:
                self.wake(track)
                continue  # stopped or set back since the answer came: it is fetched again from its place
            items = prepare(
                batches,
                position,
                track.source,
                aborted=part.aborted,
                held=buffer,
                left_out=left_out,
                with_aborted=track.identical,
                target_checks=not self._transactional,
            )
            if track.identical:
                items = align(items, track.queued_end, track.source)
            try:
                for item in items:
                    if isinstance(item, int):
                        track.skip_to(item)
                        track.fetch_next = item
                    else:
                        track.accept(item, transactional=self._transactional)
                        track.fetch_next = item.upstream_next
            except WireError as error:
                self.hold_back(track)
                self._on_trouble(track, Trouble("source", damaged=error))
            else:
                self.wake(track)
            if track.identical:
                self._look_for_hole(track)
            if track.queue.admitted:
                self.appender.offer(track.queue)
            else:
                self.unadmitted.add(track)
        self.appender.pump()
        if self.unadmitted:
            self.data_waiting.set()

    def _fetch_refused(self, session: FetchSession, track: Track, part: FetchedPartition) -> None:
        session.forget(track.source)
        code = part.error_code
        moved = code in (
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.UNKNOWN_LEADER_EPOCH,
        )
        if moved or (is_retriable(code) and not is_stale_metadata(code) and code != ErrorCode.CORRUPT_MESSAGE):
            self._search.begin(track)
            return
        trouble = Trouble("source", code, log_start=part.log_start_offset, diverging_end=part.diverging_end)
        self._on_trouble(track, trouble)

    def _move_to_replica(self, session: FetchSession, track: Track, node: int) -> None:
        """The broker says that a replica in our rack has the data: fetch there until it refuses."""
        if node not in self._source.nodes:
            return
        session.forget(track.source)
        near = self._sessions.get(node)
        if near is None:
            near = self._sessions[node] = FetchSession(self._source, node, self.memory.pool)
        near.want(track.source, track.topic_id, track.fetch_next, -1, track.fetched_epoch)
        stream = self._streams.get(node)
        if stream is None or stream.done():
            self._streams[node] = asyncio.ensure_future(self._stream(near))
        self._news.set()

    async def _stream_lost(self, session: FetchSession, error: ClusterError) -> None:
        session.reset()
        for at in list(session.partitions()):
            track = self._tracks.get(at)
            session.forget(at)
            if track is not None and track.state is TrackState.CARRYING:
                self._search.begin(track)
        await asyncio.sleep(self._refusals.pause_after(error, STREAM_PAUSE_S))

    def _found(self, track: Track) -> None:
        if track.state is TrackState.CARRYING and not track.asleep:
            self._route(track)

    def _gone(self, track: Track) -> None:
        self._on_trouble(track, Trouble("source", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

    # -- appended ---------------------------------------------------------------------------------------------------

    def _appended(self, queue: AppendQueue, sent: Outgoing, base_offset: int) -> None:
        track = self._by_remote.get(queue.at)
        assert isinstance(sent, CarriedBatch)
        if track is None or track.queue is not queue:
            return  # let go undrained: its next owner proves from the log what is there
        if base_offset < track.downstream_end:
            # The target gave out an offset that it had given before: it lost what it had acknowledged.
            queue.in_flight.appendleft(sent)
            queue.rewind()
            queue.blocked = True
            text = f"appended at {base_offset}, but offsets up to {track.downstream_end - 1} were acknowledged before"
            self._on_trouble(track, Trouble("target", text=text, log_start=base_offset))
            return
        if base_offset > track.downstream_end and not self._transactional and not track.has_company:
            track.has_company = True
            self._on_company(track, base_offset)
        track.book(sent, base_offset)
        if track.identical:
            self._check_parity(track, sent, base_offset)
        if track.why and track.state is TrackState.CARRYING:
            track.why = ""  # it flows again
        self.uncommitted_bytes += sent.size
        track.latency_ms = max(0, int(time.time() * 1000) - sent.batch.max_timestamp)
        self.wake(track)

    def _check_parity(self, track: Track, sent: CarriedBatch, base_offset: int) -> None:
        """The proof of identical offsets, on every receipt."""
        if base_offset == sent.upstream_first:
            self._look_for_hole(track)
        elif self._on_mismatch is not None:
            text = f"the record of offset {sent.upstream_first} came to {base_offset}"
            self._on_mismatch(track, sent.upstream_first, text)

    def _look_for_hole(self, track: Track) -> None:
        assert self.holes is not None
        self.holes.look(track)

    def go_on(self, track: Track) -> None:
        """A hole was filled, or given up: what waits behind it may be sent."""
        self.wake(track)
        self.appender.offer(track.queue)
        self.appender.pump()

    def wake(self, track: Track) -> None:
        """Fetch again for a partition that was left out for its long queue, once that is shorter."""
        if track.asleep and track.unacked_bytes < self._settings.limits.partition_memory_bytes_max // 2:
            self._sleepers.wake(track)
            if track.state is TrackState.CARRYING:
                self._route(track)

    def _doubted(self, queue: AppendQueue, why: str) -> None:
        track = self._by_remote.get(queue.at)
        if track is not None and track.queue is queue:
            self._on_trouble(track, Trouble("target", text=why, doubtful=True))

    def _refused(self, queue: AppendQueue, result: Appended) -> None:
        track = self._by_remote.get(queue.at)
        if track is not None and track.queue is queue:
            self._on_trouble(track, Trouble("target", result.error_code, text=result.error_message))
