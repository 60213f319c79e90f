"""An incremental fetch session with one source broker (KIP-227): idle partitions cost nothing.

The broker remembers what is wanted; a request names only partitions whose position changed, an answer only those with
news. One request is out at a time; ``ask`` sends the next, so the caller may ask before it has handled the last answer, and
``answer`` waits for it.
Brokers without sessions, or with their session cache full, get the whole list each time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from mirrorspark.cluster.broker_errors import ErrorCode
from mirrorspark.cluster.buffer_pool import BufferPool, PooledBuffer
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.connection import Connection
from mirrorspark.errors import ClusterError, RequestTimedOut
from mirrorspark.names import TopicPartition
from mirrorspark.wire.messages.fetch import (
    FETCH_API_KEY,
    FETCH_VERSION_BY_NAME_MAX,
    FETCH_VERSION_MAX,
    FETCH_VERSION_MIN,
    FetchAnswer,
    FetchLimits,
    FetchPartition,
    decode_fetch,
    encode_fetch,
    uses_topic_ids,
)

__all__ = ["NO_TOPIC_ID", "FetchSession", "PendingFetch"]

NO_TOPIC_ID = bytes(16)
_SESSION_LOST = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


@dataclass(frozen=True, slots=True)
class PendingFetch:
    """A request that is out."""

    link: Connection
    raw: asyncio.Future[PooledBuffer]
    version: int
    timeout_s: float


class FetchSession:
    def __init__(self, client: ClusterClient, node: int, pool: BufferPool) -> None:
        self.node = node
        self._client = client
        self._pool = pool
        self._wanted: dict[TopicPartition, FetchPartition] = {}
        self._changed: set[TopicPartition] = set()
        self._forgotten: set[TopicPartition] = set()
        self._ids: dict[str, bytes] = {}
        self._names: dict[bytes, str] = {}
        self._session_id = 0
        self._session_epoch = 0
        self._link: Connection | None = None

    def __len__(self) -> int:
        return len(self._wanted)

    def __contains__(self, at: TopicPartition) -> bool:
        return at in self._wanted

    def is_current(self, at: TopicPartition) -> bool:
        """Whether the last request asked for this partition at the offset wanted now; else its answer is out of date."""
        return at in self._wanted and at not in self._changed

    def partitions(self) -> Iterable[TopicPartition]:
        return self._wanted.keys()

    def want(self, at: TopicPartition, topic_id: bytes, offset: int, leader_epoch: int, last_epoch: int) -> None:
        """Fetch this partition from ``offset`` on, in the next request and after."""
        if (known := self._ids.get(at.topic)) != topic_id:
            if known is not None:
                # The topic was made anew: the broker's session still holds the old one, under its id.
                self._names.pop(known, None)
                self.reset()
            self._ids[at.topic] = topic_id
            self._names[topic_id] = at.topic
        # To the end of the list: a broker without a session fills small answers from its beginning.
        self._wanted.pop(at, None)
        self._wanted[at] = FetchPartition(at.partition, offset, leader_epoch, last_epoch)
        self._changed.add(at)
        self._forgotten.discard(at)

    def forget(self, at: TopicPartition) -> None:
        if self._wanted.pop(at, None) is not None:
            self._changed.discard(at)
            self._forgotten.add(at)

    def topic_name(self, topic: str | bytes) -> str | None:
        return topic if isinstance(topic, str) else self._names.get(topic)

    async def ask(self, limits: FetchLimits) -> PendingFetch:
        """Send the next request."""
        link = await self._connected()
        pause = link.throttled_until - time.monotonic()
        if pause > 0:
            await asyncio.sleep(min(pause, 60.0))
        version = self._version(link)
        full = self._session_epoch == 0 or version < 7 or self._session_id == 0
        listed = self._wanted.keys() if full else self._changed
        wanted: dict[str | bytes, list[FetchPartition]] = {}
        for at in listed:
            wanted.setdefault(self._key(at.topic, version), []).append(self._wanted[at])
        forgotten: dict[str | bytes, list[int]] = {}
        if not full:
            for at in self._forgotten:
                forgotten.setdefault(self._key(at.topic, version), []).append(at.partition)
        body = encode_fetch(
            version,
            limits,
            wanted,
            forgotten=forgotten,
            session_id=0 if full else self._session_id,
            session_epoch=0 if full else self._session_epoch,
        )
        self._changed.clear()
        self._forgotten.clear()
        by_id = uses_topic_ids(version)
        raw = link.send_raw(FETCH_API_KEY, version, by_id, [body], passes=by_id)
        return PendingFetch(link, raw, version, self._client.request_timeout_s + limits.wait_ms_max / 1000)

    async def answer(self, pending: PendingFetch) -> tuple[FetchAnswer, PooledBuffer]:
        """The decoded answer, and the buffer it lies in (release it)."""
        link = pending.link
        try:
            async with asyncio.timeout(pending.timeout_s):
                buffer = await pending.raw
        except TimeoutError:
            text = f"{link.address}: no answer to Fetch within {pending.timeout_s:.0f} s"
            error = RequestTimedOut(text, address=link.address)
            link.close(error)
            self.reset()
            raise error from None
        except ClusterError:
            self.reset()
            raise
        answer = decode_fetch(pending.version, buffer.view)
        if answer.throttle_ms:
            link.throttled_until = time.monotonic() + answer.throttle_ms / 1000
        if answer.error_code in _SESSION_LOST:
            self.reset()
        elif answer.error_code == 0:
            self._session_id = answer.session_id
            self._session_epoch = 1 if self._session_epoch == 0x7FFFFFFF else self._session_epoch + 1
        return answer, buffer

    def reset(self) -> None:
        """Forget the broker's memory of us; the next request names everything."""
        self._session_id = 0
        self._session_epoch = 0
        self._forgotten.clear()

    async def _connected(self) -> Connection:
        link = await self._client.connection(self.node, "fetch")
        if link is not self._link:
            link.use_pool(self._pool)
            self._link = link
            self.reset()
        return link

    def _version(self, link: Connection) -> int:
        best = link.version(FETCH_API_KEY, FETCH_VERSION_MIN, FETCH_VERSION_MAX, "Fetch")
        if uses_topic_ids(best) and NO_TOPIC_ID not in self._ids.values():
            return best
        return min(best, FETCH_VERSION_BY_NAME_MAX)

    def _key(self, topic: str, version: int) -> str | bytes:
        return self._ids[topic] if uses_topic_ids(version) else topic
