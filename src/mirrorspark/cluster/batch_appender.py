"""Appending carried batches: through each partition's leader, in order, bounded in flight, sent again when in doubt.

A partition's batches wait in its ``AppendQueue``. Requests take one batch from each ready queue of a broker; a lost
connection or a moved leader puts what was unanswered back to the front with its sequence unchanged, and the broker
tells repeats by producer id, epoch and sequence. What cannot be helped by trying again goes to ``on_refused``.

A broker forgets a producer by the *record* time of its last batch (producer.id.expiration.ms, a day): of an old backlog it
may remember nothing a moment later, and then takes any sequence and any repeat (docs/decisions/0006). So while it may have
no memory of us, one batch is in flight at a time, and an unanswered one goes to ``on_doubt``: only the log can tell.
Called by the carrying loop, on its event loop; cost per request and per batch, never per record.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import Protocol

from mirrorspark.cluster.broker_errors import ErrorCode, error_name, is_retriable
from mirrorspark.cluster.buffer_pool import PooledBuffer
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.connection import Connection
from mirrorspark.cluster.pipes import PipedBody
from mirrorspark.errors import ClusterError, WireError
from mirrorspark.names import TopicPartition
from mirrorspark.wire.messages.produce import (
    PRODUCE_API_KEY,
    PRODUCE_VERSION_MAX,
    PRODUCE_VERSION_MIN,
    Appended,
    decode_produce,
    encode_produce,
)

__all__ = ["AppendQueue", "BatchAppender", "Outgoing"]

BATCHES_IN_FLIGHT_MAX = 5
"""For each partition: what a broker remembers of a producer, and so what may be sent again safely."""
LINES_PER_BROKER = 2
"""Connections to one broker: it takes the next request of a connection only when the last one is answered."""
LARGE_BATCH_BYTES = 256 * 1024
RELOCATE_PAUSE_S = 0.1
MAYBE_APPENDED = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
ANSWER_GRACE_S = 5.0
"""A request that is not answered for longer than the broker may take to replicate, and so much more, finds it frozen."""
STALL_S_MAX = 30.0
"""A process that was frozen for longer (SIGSTOP, a suspended machine) must prove anew that its partitions are its own."""


class Outgoing(Protocol):
    """A batch that is ready to go: stamped bytes. ``request`` belongs to the appender."""

    size: int
    aged: bool
    """Its records are so old that the broker may forget the producer as soon as it has appended them."""
    request: object

    def parts(self) -> list[memoryview | PipedBody]:
        """Its bytes, in order, wherever they lie."""


class AppendQueue:
    """One target partition's batches: ``waiting`` to be sent, ``in_flight`` sent and unanswered."""

    __slots__ = (
        "admitted",
        "at",
        "blocked",
        "forgotten",
        "in_flight",
        "line",
        "listed",
        "locating",
        "outstanding",
        "waiting",
    )

    def __init__(self, at: TopicPartition) -> None:
        self.at = at
        self.waiting: deque[Outgoing] = deque()
        self.in_flight: deque[Outgoing] = deque()
        self.line: _Line | None = None
        """Where it was sent last; another one only when everything that went there is answered, so that order is kept."""
        self.listed = False
        self.locating = False
        self.blocked = False  # refused by the target; somebody must decide
        self.forgotten = True  # the broker may have no memory of this producer here
        self.admitted = True  # False: not (yet) part of the open transaction
        self.outstanding = 0
        """Requests with a batch of this queue that are unanswered: their bytes may still be on the way out."""

    def rewind(self) -> None:
        """Everything unanswered goes back to the front, in order."""
        while self.in_flight:
            batch = self.in_flight.pop()
            batch.request = None
            self.waiting.appendleft(batch)

    def sendable(self) -> bool:
        if not self.waiting or self.blocked or not self.admitted:
            return False
        if not self.in_flight:
            return True
        alone = self.forgotten or self.waiting[0].aged or self.in_flight[-1].aged
        return not alone and len(self.in_flight) < BATCHES_IN_FLIGHT_MAX

    @property
    def in_doubt(self) -> bool:
        """Whether sending the unanswered batches again could append them twice."""
        return bool(self.in_flight) and (self.forgotten or self.in_flight[0].aged)


class _Request:
    """What went out together; the connection brings its answer here."""

    __slots__ = ("batches", "line", "link", "on_answer", "on_failure", "sent_at", "version")

    def __init__(
        self,
        line: _Line,
        link: Connection,
        on_answer: Callable[[_Request, PooledBuffer], None],
        on_failure: Callable[[_Request, str], None],
    ) -> None:
        self.line = line
        self.link = link
        self.version = link.version(PRODUCE_API_KEY, PRODUCE_VERSION_MIN, PRODUCE_VERSION_MAX, "Produce")
        self.on_answer = on_answer
        self.on_failure = on_failure
        self.sent_at = time.monotonic()
        self.batches: dict[TopicPartition, tuple[AppendQueue, Outgoing]] = {}

    def done(self) -> bool:
        return False

    def set_result(self, answer: PooledBuffer, /) -> None:
        self.on_answer(self, answer)

    def set_exception(self, error: BaseException, /) -> None:
        # Later: a connection may end while a request is being put together.
        self.link.loop.call_soon(self.on_failure, self, str(error))


class _Line:
    """One connection to a target broker: queues ready for it, and the requests that are out, oldest first."""

    __slots__ = ("connecting", "link", "node", "number", "out", "ready", "wake")

    def __init__(self, node: int, number: int) -> None:
        self.node = node
        self.number = number
        self.ready: deque[AppendQueue] = deque()
        self.out: deque[_Request] = deque()
        self.link: Connection | None = None
        self.connecting = False
        self.wake: asyncio.TimerHandle | None = None


def _why(result: Appended) -> str:
    """In Kafka's words, whatever the broker adds to them: an operator knows the names, not the numbers."""
    return f"{error_name(result.error_code)} ({result.error_code}) {result.error_message}".rstrip()


class BatchAppender:
    def __init__(
        self,
        client: ClusterClient,
        *,
        request_bytes_max: int,
        requests_in_flight_max: int,
        timeout_ms: int,
        on_appended: Callable[[AppendQueue, Outgoing, int], None],
        on_refused: Callable[[AppendQueue, Appended], None],
        on_doubt: Callable[[AppendQueue, str], None],
        transactional_id: str | None = None,
    ) -> None:
        self._client = client
        self._request_bytes_max = request_bytes_max
        self._requests_in_flight_max = min(requests_in_flight_max, BATCHES_IN_FLIGHT_MAX)
        self._timeout_ms = timeout_ms
        self._on_appended = on_appended
        self._on_refused = on_refused
        self._on_doubt = on_doubt
        self._transactional_id = transactional_id
        self._lines: dict[int, list[_Line]] = {}  # by broker
        self._lost: set[AppendQueue] = set()
        self._locator: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self.awake_at = time.monotonic()
        """Set by the lane's clock; when it is old, nothing is sent."""
        self.troubles: dict[TopicPartition, str] = {}
        """Partitions that cannot be appended to right now, and why; they are tried again until it works."""

    def offer(self, queue: AppendQueue) -> None:
        """The queue has something to send (or may have)."""
        if queue.listed or queue.locating or not queue.sendable():
            return
        leader = self._client.leader(queue.at)
        if leader is None:
            self._locate(queue, "no leader")
            return
        line = queue.line
        if line is None or line.node != leader.node or not queue.outstanding:
            line = queue.line = self._line_for(queue.waiting[0], leader.node)
        queue.listed = True
        line.ready.append(queue)

    def _line_for(self, batch: Outgoing, node: int) -> _Line:
        """Small batches all go by the first one, where they share requests; for a large one, whichever is the freest."""
        lines = self._lines.get(node)
        if lines is None:
            lines = self._lines[node] = [_Line(node, number) for number in range(LINES_PER_BROKER)]
        if batch.size < LARGE_BATCH_BYTES:
            return lines[0]
        return min(lines, key=lambda line: len(line.out) + len(line.ready))

    def pump(self) -> None:
        """Send what may be sent now. Called after a round of offers."""
        for line in self._all_lines():
            if line.ready:
                self._pump(line)

    def _all_lines(self) -> Iterator[_Line]:
        return (line for lines in self._lines.values() for line in lines)

    def close(self) -> None:
        self._closed = True
        for task in [*self._tasks, *([self._locator] if self._locator else [])]:
            task.cancel()
        for line in self._all_lines():
            if line.wake:
                line.wake.cancel()

    def _pump(self, line: _Line) -> None:
        link = line.link
        if time.monotonic() - self.awake_at > STALL_S_MAX:
            return
        if link is None or link.closed is not None:
            self._connect(line)
            return
        if link.throttled_until > (now := time.monotonic()):
            if line.wake is None:
                line.wake = asyncio.get_running_loop().call_later(link.throttled_until - now, self._wake, line)
            return
        while line.ready and len(line.out) < self._requests_in_flight_max:
            self._send(line, link)

    def _wake(self, line: _Line) -> None:
        line.wake = None
        self._pump(line)

    def _send(self, line: _Line, link: Connection) -> None:
        request = _Request(line, link, self._answered, self._lost_answer)
        topics: dict[str, list[tuple[int, list[memoryview | PipedBody]]]] = {}
        size = 0
        ready = line.ready
        for _ in range(len(ready)):
            queue = ready[0]
            if not queue.sendable():
                ready.popleft().listed = False
                continue
            batch = queue.waiting[0]
            if size and size + batch.size > self._request_bytes_max:
                break
            ready.popleft()
            queue.waiting.popleft()
            queue.in_flight.append(batch)
            queue.outstanding += 1
            batch.request = request
            at = queue.at
            request.batches[at] = (queue, batch)
            listed = topics.get(at.topic)
            if listed is None:
                topics[at.topic] = [(at.partition, batch.parts())]
            else:
                listed.append((at.partition, batch.parts()))
            size += batch.size
            if queue.sendable():
                ready.append(queue)
            else:
                queue.listed = False
        if size == 0:
            return
        body = encode_produce(topics, timeout_ms=self._timeout_ms, transactional_id=self._transactional_id)
        line.out.append(request)
        link.send_raw_for(request, PRODUCE_API_KEY, request.version, False, body)

    def drop_frozen(self) -> None:
        """A frozen broker answers nothing: give up connections whose oldest request is too old. Called every second."""
        oldest_allowed = time.monotonic() - self._timeout_ms / 1000 - ANSWER_GRACE_S
        for line in self._all_lines():
            if line.link is not None and line.out and line.out[0].sent_at < oldest_allowed:
                line.link.close()

    def _is_over(self, request: _Request) -> bool:
        """The request is no longer out; whether there is anything to be done about it."""
        if request.line.link is request.link:
            request.line.out.remove(request)
        for queue, _ in request.batches.values():
            queue.outstanding -= 1
        return not self._closed

    def _lost_answer(self, request: _Request, why: str) -> None:
        if self._is_over(request):
            for queue, batch in request.batches.values():
                if batch.request is request:
                    self._unanswered(queue, why)

    def _answered(self, request: _Request, buffer: PooledBuffer) -> None:
        line = request.line
        if not self._is_over(request):
            buffer.release()
            return
        try:
            results, throttle_ms = decode_produce(request.version, buffer.view)
            settled = [(*request.batches[TopicPartition(one.topic, one.partition)], one) for one in results]
        except (WireError, KeyError) as error:
            # Nothing can be said of any batch in it: as if the connection had been lost.
            request.link.close()
            for queue, batch in request.batches.values():
                if batch.request is request:
                    self._unanswered(queue, f"an answer that cannot be read: {error!r}")
            return
        finally:
            buffer.release()
        if throttle_ms:
            # A quota is for all that we send there, by whichever line.
            for link in (other.link for other in self._lines[line.node] if other.link is not None):
                link.throttled_until = time.monotonic() + throttle_ms / 1000
        if line.out:
            # Its time begins when the one before it is answered: where much is in line it may not have left before.
            line.out[0].sent_at = time.monotonic()
        for queue, batch, result in settled:
            if batch.request is request:  # else put back since; its repeat will be answered
                self._settle(queue, batch, result)
        self.pump()

    def _settle(self, queue: AppendQueue, batch: Outgoing, result: Appended) -> None:
        code = result.error_code
        if code == ErrorCode.NONE:
            first = queue.in_flight.popleft()
            assert first is batch, f"{queue.at}: answers out of order"
            batch.request = None
            queue.forgotten = batch.aged
            if self.troubles:
                self.troubles.pop(queue.at, None)
            self._on_appended(queue, batch, result.base_offset)
            if queue.waiting:
                self.offer(queue)
        elif code in MAYBE_APPENDED:
            self._unanswered(queue, _why(result))
        elif is_retriable(code) and code != ErrorCode.CORRUPT_MESSAGE:
            queue.rewind()
            self._locate(queue, _why(result))
        else:
            queue.rewind()
            queue.blocked = True
            self._on_refused(queue, result)

    def _unanswered(self, queue: AppendQueue, why: str) -> None:
        in_doubt = queue.in_doubt
        queue.rewind()
        if in_doubt:
            queue.blocked = True
            self._on_doubt(queue, why)
        else:
            self._locate(queue, why)

    def _connect(self, line: _Line) -> None:
        if line.connecting or self._closed:
            return
        line.connecting = True
        self._spawn(self._open(line))

    async def _open(self, line: _Line) -> None:
        try:
            line.link = await self._client.connection(line.node, f"produce-{line.number}")
            line.out.clear()
        except ClusterError as error:
            stranded, line.ready = line.ready, deque()
            for queue in stranded:
                queue.listed = False
                self._locate(queue, str(error))
            return
        finally:
            line.connecting = False
        self._pump(line)

    def _locate(self, queue: AppendQueue, why: str) -> None:
        """Look the leader up anew, then offer again; waits as long as it takes, with ``troubles`` telling."""
        if self._closed or queue.locating:
            return
        queue.locating = True
        self._lost.add(queue)
        self.troubles[queue.at] = why
        if self._locator is None or self._locator.done():
            self._locator = asyncio.ensure_future(self._locate_lost())

    async def _locate_lost(self) -> None:
        while self._lost:
            await asyncio.sleep(RELOCATE_PAUSE_S)
            try:
                await self._client.refresh(sorted({queue.at.topic for queue in self._lost}))
            except ClusterError:
                continue  # told by ``troubles``; there is nobody else to ask
            found = [queue for queue in self._lost if self._client.leader(queue.at) is not None]
            for queue in found:
                self._lost.discard(queue)
                queue.locating = False
                self.offer(queue)
                if not queue.sendable():
                    self.troubles.pop(queue.at, None)
            self.pump()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
