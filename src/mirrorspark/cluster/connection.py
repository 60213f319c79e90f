"""One connection to one broker: requests go out pipelined, answers come back in order.

Runs on asyncio's loop with plain non-blocking sockets, so that a bulk answer is received straight into its buffer and a
bulk request is sent from the fetched bytes without a copy. TLS and SASL are behind ``security.Security``.
Called by ``cluster_client``; nobody else opens sockets.
"""

from __future__ import annotations

import asyncio
import math
import random
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any, Protocol

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from mirrorspark.cluster.buffer_pool import BufferPool, PooledBuffer
from mirrorspark.cluster.passing_answer import PassingAnswer
from mirrorspark.cluster.pipes import Outlet, PipedBody
from mirrorspark.cluster.security import Security
from mirrorspark.cluster.traffic import Traffic
from mirrorspark.errors import ClusterError, RequestTimedOut, Unreachable

__all__ = ["Connection"]

ANSWER_BYTES_MAX = 512 * 1024 * 1024
"""A length beyond this is not a Kafka answer (an HTTP server's first bytes read as 1.2 GB)."""
LOGIN_AGAIN_AFTER = (0.7, 0.8)
"""Of a session's life. What was sent before must be read by the broker before the session ends, too: requests stand in line
behind a long poll."""
LOGIN_PERIOD_S_MIN = 1.1
"""Brokers hear a login again once a second at most."""
LOGIN_TIMEOUT_S = 10.0
SEND_BUFFERS_MAX = 64
"""Buffers given to one sendmsg call (the kernel allows 1024)."""

_FRAME = struct.Struct(">i")
_CORRELATION = struct.Struct(">i")
_HEADER = struct.Struct(">ihhih")

Bytes = bytes | bytearray | memoryview
HEAD_BYTES_MAX = 1024
"""Read at once where an answer begins: short answers come whole, several together, with one call."""


class Asker(Protocol):
    """Who gets an answer: a future, or somebody who is told at once, without a turn of the loop between."""

    def done(self) -> bool: ...

    def set_result(self, answer: PooledBuffer, /) -> None: ...

    def set_exception(self, error: BaseException, /) -> None: ...


class Connection:
    """See the module. ``request`` for schema messages, ``send_raw`` for the two bulk ones."""

    def __init__(self, sock: socket.socket, address: str, client_id: str) -> None:
        self.address = address
        self._host, self._port = "", 0
        self.versions: dict[int, tuple[int, int]] = {}
        self._answers = False  # whether one has come since the versions are known
        self.throttled_until = 0.0
        self._sock = sock
        self._tls = isinstance(sock, ssl.SSLSocket)
        self._client_id = client_id.encode()
        self._client_name = client_id
        self.loop = asyncio.get_running_loop()
        self._correlation = 0
        self.traffic = Traffic()
        self._waiting: deque[tuple[int, Asker, float]] = deque()
        self._outgoing: deque[memoryview | PipedBody] = deque()
        self._head = memoryview(bytearray(HEAD_BYTES_MAX))
        self._head_bytes = 0
        self._pool = BufferPool(0, 0)
        self._answer: PooledBuffer | None = None
        self._passing: PassingAnswer | None = None
        self._passing_answers: set[int] = set()  # correlations
        self._unread = self._head
        self._outlet = Outlet()
        self._writer_registered = False
        self._security: Security | None = None
        self._login_again_at = self._session_ends_at = math.inf  # by the loop's clock
        self._logging_in: asyncio.Task[None] | None = None
        self._held: list[tuple[list[memoryview | PipedBody], int, Asker]] | None = None
        self.closed: ClusterError | None = None
        self.loop.add_reader(sock.fileno(), self._on_readable)

    @classmethod
    async def open(cls, host: str, port: int, security: Security, client_id: str, timeout_s: float) -> Connection:
        """Connect, shake hands, learn the broker's versions, log in. Raises Unreachable or AuthenticationFailed."""
        address = f"{host}:{port}"
        loop = asyncio.get_running_loop()
        connection = cls(
            await loop.run_in_executor(None, _connect, host, port, security, timeout_s), address, client_id
        )
        connection._security, connection._host, connection._port = security, host, port
        try:
            await connection._negotiate(timeout_s)
            if (login := await security.begin_login(host)) is not None:
                connection._keep_session(await security.log_in(connection, login, timeout_s))
            connection.traffic.logins += login is not None or connection._tls
        except BaseException as error:
            connection.close()
            is_refused = isinstance(error, Unreachable) and not isinstance(error.__cause__, RequestTimedOut)
            if is_refused and not connection.versions:
                # It hung up before its first answer: that has a reason which can be found out.
                reason = await loop.run_in_executor(None, security.explain_silence, host, port)
                if reason is not None:
                    raise reason from error
            raise
        return connection

    # -- the session of a login (KIP-368) -----------------------------------------------------------------------------

    def _keep_session(self, lasts_s: float) -> None:
        """Before its end we log in again, on the same connection, at the next request; not all connections at once."""
        now = self.loop.time()
        self._session_ends_at = now + lasts_s if lasts_s > 0 else math.inf
        self._login_again_at = now + max(lasts_s * random.uniform(*LOGIN_AGAIN_AFTER), LOGIN_PERIOD_S_MIN)

    def _mind_session(self) -> None:
        """Once it has ended, a broker closes the connection at any request but a login's."""
        now = self.loop.time()
        if now >= min(self._login_again_at, self._session_ends_at) and self._logging_in is None:
            assert self._security is not None
            self._logging_in = asyncio.ensure_future(self._log_in_again(self._security))
        if now >= self._session_ends_at and self._held is None:
            self._held = []

    async def _log_in_again(self, security: Security) -> None:
        """Requests that come meanwhile are held back: between its two messages a broker takes no other."""
        try:
            await asyncio.sleep(self._login_again_at - self.loop.time())
            login = await security.begin_login(self._host, again=True)
            assert login is not None
            self._held = self._held if self._held is not None else []
            began_at = time.monotonic()
            self._keep_session(await security.log_in(self, login, LOGIN_TIMEOUT_S, again=True))
            self.traffic.logged_in_again(time.monotonic() - began_at)
        except ClusterError as error:
            self.traffic.logins_again_failed += 1
            self.close(error)
        except Exception as error:  # noqa: BLE001  (a library's; whoever waits for an answer is told)
            text = f"{self.address}: logging in again failed ({error!r})"
            self.close(Unreachable(text, address=self.address))
        held, self._held, self._logging_in = self._held or [], None, None
        for parts, correlation, asker in held:
            self._send(parts, correlation, asker)

    @property
    def peer_certificate(self) -> bytes | None:
        """What the broker showed (DER), where TLS is spoken."""
        return self._sock.getpeercert(True) if isinstance(self._sock, ssl.SSLSocket) else None

    def use_pool(self, pool: BufferPool) -> None:
        self._pool = pool

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    @property
    def owed_since(self) -> float:
        """When the oldest request that is not answered went out (monotonic); infinite where all are."""
        return self._waiting[0][2] if self._waiting else math.inf

    def version(self, api_key: int, ours_min: int, ours_max: int, name: str = "") -> int:
        """The newest version that both sides know; Unreachable's sibling ClusterError if there is none."""
        theirs_min, theirs_max = self.versions.get(api_key, (0, -1))
        best = min(theirs_max, ours_max)
        if theirs_max < 0:
            raise ClusterError(
                f"{self.address}: the broker does not know {name or f'API {api_key}'}; it is too old for it",
                address=self.address,
                api_key=api_key,
            )
        if best < max(theirs_min, ours_min):
            raise ClusterError(
                f"{self.address}: the broker offers {name or 'API'} versions {theirs_min}..{theirs_max}, "
                f"mirrorspark knows {ours_min}..{ours_max}",
                address=self.address,
                api_key=api_key,
            )
        return best

    async def request(
        self, message: Any, response_class: Any, version: int, timeout_s: float, *, ahead: bool = False
    ) -> Any:
        """One schema message and its decoded answer. ``ahead``: a login's, which goes before what is held back."""
        message.API_VERSION = version
        self._correlation += 1
        message.with_header(correlation_id=self._correlation, client_id=self._client_name)
        future: asyncio.Future[PooledBuffer] = self.loop.create_future()
        send = self._send if ahead else self._enqueue
        send([memoryview(message.encode(header=True, framed=True))], self._correlation, future)
        answer = await self._await(future, message.name, timeout_s)
        return response_class.decode(answer.view, version=version, header=True)

    def send_raw(
        self, api_key: int, version: int, flexible: bool, body: Sequence[Bytes | PipedBody], *, passes: bool = False
    ) -> asyncio.Future[PooledBuffer]:
        """A bulk message: header written here, body as given. The answer still begins with its response header.

        ``passes``: it is a Fetch of version 13, and where the pool has pipes large batches of its answer may lie there.
        """
        future: asyncio.Future[PooledBuffer] = self.loop.create_future()
        self.send_raw_for(future, api_key, version, flexible, body)
        if passes and self._pool.pipes is not None and not self._tls:
            self._passing_answers.add(self._correlation)
        return future

    def send_raw_for(
        self, asker: Asker, api_key: int, version: int, flexible: bool, body: Sequence[Bytes | PipedBody]
    ) -> None:
        """``send_raw`` with the answer brought to ``asker``."""
        self._correlation += 1
        tags = b"\0" if flexible else b""
        size = 10 + len(self._client_id) + len(tags) + sum(len(part) for part in body)
        head = _HEADER.pack(size, api_key, version, self._correlation, len(self._client_id)) + self._client_id + tags
        parts = [part if isinstance(part, PipedBody) else memoryview(part) for part in body]
        self._enqueue([memoryview(head), *parts], self._correlation, asker)

    async def _await(self, future: asyncio.Future[PooledBuffer], name: str, timeout_s: float) -> PooledBuffer:
        try:
            async with asyncio.timeout(timeout_s):
                return await future
        except TimeoutError:
            error = RequestTimedOut(
                f"{self.address}: no answer to {name} within {timeout_s:.0f} s", address=self.address
            )
            # Answers come in order: after a missing one the rest cannot be told apart, so the connection ends.
            self.close(error)
            raise error from None

    async def _negotiate(self, timeout_s: float) -> None:
        try:
            answer = await self.request(
                ApiVersionsRequest(client_software_name="mirrorspark", client_software_version="1"),
                ApiVersionsResponse,
                3,
                timeout_s,
            )
            if answer.error_code == 35:  # UNSUPPORTED_VERSION: an old broker; it still answered in version 0
                answer = await self.request(ApiVersionsRequest(), ApiVersionsResponse, 0, timeout_s)
        except RequestTimedOut as error:
            raise Unreachable(
                f"{self.address}: something listens there but does not speak Kafka (no answer in {timeout_s:.0f} s); "
                "check the port and security.protocol",
                address=self.address,
            ) from error
        except (ValueError, struct.error, IndexError, TypeError) as error:
            raise Unreachable(f"{self.address}: that is not a Kafka broker", address=self.address) from error
        self.versions = {entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys}
        self._answers = False

    def _enqueue(self, parts: list[memoryview | PipedBody], correlation: int, asker: Asker) -> None:
        if self._session_ends_at != math.inf:
            self._mind_session()
        if self._held is not None:
            self._held.append((parts, correlation, asker))
        else:
            self._send(parts, correlation, asker)

    def _send(self, parts: list[memoryview | PipedBody], correlation: int, asker: Asker) -> None:
        if self.closed is not None:
            asker.set_exception(self.closed)
            return
        self._waiting.append((correlation, asker, time.monotonic()))
        self.traffic.asked(sum(map(len, parts)))
        idle = not self._outgoing
        self._outgoing.extend(parts)
        if idle:
            self._flush()

    def _flush(self) -> None:
        outgoing = self._outgoing
        try:
            while outgoing:
                first = outgoing[0]
                if isinstance(first, PipedBody):
                    self._pass_on(first)
                    continue
                sent = self._sock.send(first) if self._tls else self._send_views()
                while sent:
                    first = outgoing[0]
                    assert isinstance(first, memoryview)
                    if sent < len(first):
                        outgoing[0] = first[sent:]
                        break
                    sent -= len(first)
                    outgoing.popleft()
                while outgoing and not len(outgoing[0]):
                    outgoing.popleft()
        except (BlockingIOError, InterruptedError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            if not self._writer_registered:
                self._writer_registered = True
                self.loop.add_writer(self._sock.fileno(), self._flush)
            return
        except OSError as error:
            self.close(self._lost(error))
            return
        if self._writer_registered:
            self._writer_registered = False
            self.loop.remove_writer(self._sock.fileno())

    def _send_views(self) -> int:
        """What lies in memory, up to the next part that does not."""
        views: list[memoryview] = []
        for part in islice(self._outgoing, SEND_BUFFERS_MAX):
            if isinstance(part, PipedBody):
                return self._sock.sendmsg(views, [], socket.MSG_MORE)
            views.append(part)
        return self._sock.sendmsg(views)

    def _pass_on(self, body: PipedBody) -> None:
        """The first part lies in a pipe."""
        if self._tls or not self._outlet.can_send(body):
            self._outgoing[0] = body.read()
        else:
            self._outlet.send(self._sock, more=len(self._outgoing) > 1)
            self._outgoing.popleft()

    def _on_readable(self) -> None:
        began_at = time.monotonic()
        self._read_all()
        self.traffic.turns += 1
        self.traffic.turn_s += time.monotonic() - began_at

    def _read_all(self) -> None:
        while self.closed is None:
            try:
                if self._passing is None:
                    received = self._sock.recv_into(self._unread)
                else:
                    received = self._passing.receive(self._sock)
            except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            except OSError as error:
                self.close(self._lost(error))
                break
            if received == 0:
                self.close(self._lost(None))
            elif not self._take_in(received):
                break

    def _take_in(self, received: int) -> bool:
        """Bytes have come; whether to read on at once. What the socket keeps back will be told of again."""
        if self._tls:
            # But TLS may hold decrypted bytes that the selector cannot see.
            is_more = True
        else:
            is_more = received == len(self._unread)
        if self._answer is None:
            self._head_bytes += received
            self._read_heads()
            return is_more or self._answer is not None
        if self._passing is not None:
            if not self._passing.is_complete:
                return self._passing.may_have_more
            self._passing = None
        else:
            self._unread = self._unread[received:]
            if self._unread:
                return is_more
        answer, self._answer, self._unread = self._answer, None, self._head
        self._deliver(answer)
        return self._tls and bool(self._sock.pending())  # type: ignore[attr-defined]

    def _read_heads(self) -> None:
        """Short answers out of what was read at once; of a long one the beginning, and the rest goes to its buffer."""
        head, end, at = self._head, self._head_bytes, 0
        while end - at >= _FRAME.size and self.closed is None:
            (size,) = _FRAME.unpack_from(head, at)
            if not 4 <= size <= ANSWER_BYTES_MAX:
                begin = bytes(head[at : at + _FRAME.size])
                text = f"{self.address}: that is not a Kafka broker (its answer begins with {begin!r})"
                self.close(Unreachable(text, address=self.address))
                return
            at += _FRAME.size
            here = min(size, end - at)
            answer = self._pool.take(size)
            answer.view[:here] = head[at : at + here]
            at += here
            if here < size:
                self._head_bytes = 0
                self._answer, self._unread = answer, answer.view[here:]
                self._begin_passing(answer, here)
                return
            self._deliver(answer)
        left = end - at
        head[:left] = bytes(head[at:end])
        self._head_bytes, self._unread = left, head[left:]

    def _begin_passing(self, answer: PooledBuffer, here: int) -> None:
        """The beginning of a long answer has come: perhaps not all of the rest has to be read."""
        if self._passing_answers and here >= _CORRELATION.size and self._pool.pipes is not None:
            (correlation,) = _CORRELATION.unpack_from(answer.view, 0)
            if correlation in self._passing_answers:
                self._passing = PassingAnswer(answer, here, self._pool.pipes)

    def _deliver(self, answer: PooledBuffer) -> None:
        (correlation,) = _CORRELATION.unpack_from(answer.view, 0)
        if not self._waiting or self._waiting[0][0] != correlation:
            self.close(
                Unreachable(f"{self.address}: an answer to no request (not a Kafka broker?)", address=self.address)
            )
            return
        _, asker, asked_at = self._waiting.popleft()
        self._passing_answers.discard(correlation)
        self.traffic.answered(_FRAME.size + len(answer.view), time.monotonic() - asked_at)
        self._answers = True
        if asker.done():
            answer.release()
        else:
            asker.set_result(answer)

    def _lost(self, error: OSError | None) -> ClusterError:
        if self._security is not None and (found := self._security.explain_loss(error, self._host, self._port)):
            return found
        why = f"connection lost ({error.strerror or error})" if error else "the broker closed the connection"
        if not self.versions and self._tls:
            why += (
                "; if it wants a client certificate: is ours given (ssl.keystore.*), and does the broker trust its CA?"
            )
        elif not self.versions:
            why += "; is this a Kafka listener, and does security.protocol fit it?"
        elif not self._answers:
            why += " after the first request; does that listener want a login (security.protocol=SASL_…)?"
        return Unreachable(f"{self.address}: {why}", address=self.address)

    def close(self, error: ClusterError | None = None) -> None:
        """End it; every request still waiting fails with ``error``. Calling twice is harmless."""
        if self.closed is not None:
            return
        self.closed = error or Unreachable(f"{self.address}: connection closed", address=self.address)
        self.traffic.closed += 1
        if self._logging_in is not None and self._logging_in is not asyncio.current_task(self.loop):
            self._logging_in.cancel()
        self.loop.remove_reader(self._sock.fileno())
        self.loop.remove_writer(self._sock.fileno())
        self._sock.close()
        self._outgoing.clear()
        self._outlet.close()
        if self._answer is not None:
            # What has come of it is of no use, and its place is counted.
            self._answer.release()
            self._answer = self._passing = None
        waiting, self._waiting = [asker for _, asker, _ in self._waiting], deque()
        held, self._held = self._held or [], None
        for asker in [*waiting, *(asker for _, _, asker in held)]:
            if not asker.done():
                asker.set_exception(self.closed)
                if isinstance(asker, asyncio.Future):
                    asker.exception()  # those who gave up waiting shall not be reported as forgotten


def _connect(host: str, port: int, security: Security, timeout_s: float) -> socket.socket:
    """In a thread: looking up the name, the handshake and the search for a failure's reason block."""
    try:
        sock = socket.create_connection((host, port), timeout=timeout_s)
    except OSError as error:
        raise security.explain(error, host, port) from error
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # No sizes of buffers: a size that is set is cut to net.core.rmem_max (208 KB unless raised) and ends the system's
        # own sizing, which goes to several megabytes. On a long link that would be the throughput.
        wrapped = security.wrap(sock, host)
        wrapped.setblocking(False)
        return wrapped
    except BaseException as error:
        sock.close()
        if isinstance(error, OSError):
            raise security.explain(error, host, port) from error
        raise
