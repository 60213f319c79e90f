"""A broker's throttle_time_ms is honoured: nothing more is asked of it, or sent to it, before that time is over.

And a slow line is borne with, as long as answers come."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.cluster.single_batches import single_batch

from mirrorspark.cluster import batch_appender
from mirrorspark.cluster.batch_appender import AppendQueue, BatchAppender, Outgoing
from mirrorspark.cluster.buffer_pool import BufferPool
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.connection import Connection
from mirrorspark.cluster.fetch_session import FetchSession
from mirrorspark.lab.clients import create_topic, producer
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers, free_port
from mirrorspark.lab.quotas import set_quotas
from mirrorspark.lab.tcp_proxy import TcpProxy
from mirrorspark.names import TopicPartition
from mirrorspark.settings import ClusterSettings, parse_bootstrap
from mirrorspark.wire.messages.fetch import FetchLimits
from mirrorspark.wire.messages.produce import Appended
from mirrorspark.wire.record_batch import split_batches

RATE_BYTES_PER_S = 100_000.0
RECORD_BYTES = 150_000
"""With the broker's window of ten seconds, some of these use the quota up for a second or so."""
RECORDS = 8
LIMITS = FetchLimits(wait_ms_max=200, bytes_min=1, bytes_max=1 << 18, partition_bytes_max=1 << 18, read_committed=False)
SLOW_RECORD_BYTES = 40_000
SLOW_REQUEST_S = 0.4
PATIENCE_S = 60.0


@pytest.fixture
def throttled(source_cluster: ClusterOfBrokers, topic_name: str, in_loop: Callable[..., Any]) -> ClusterClient:
    """A client whose id has quotas for both ways, and a topic that is there."""
    client_id = f"throttled-{os.getpid()}-{topic_name[-20:]}"
    rates = {"consumer_byte_rate": RATE_BYTES_PER_S, "producer_byte_rate": RATE_BYTES_PER_S}
    set_quotas(source_cluster.bootstrap, client_id, rates)
    create_topic(source_cluster.bootstrap, topic_name)
    client = ClusterClient(ClusterSettings("throttled", parse_bootstrap(source_cluster.bootstrap, "b")), client_id)
    in_loop(client.start(PATIENCE_S))
    in_loop(client.refresh([topic_name]))
    return client


def test_a_throttled_fetch_session_asks_again_only_when_it_may(
    source_cluster: ClusterOfBrokers, topic_name: str, throttled: ClusterClient, in_loop: Callable[..., Any]
) -> None:
    writer = producer(source_cluster.bootstrap)
    for _ in range(RECORDS):
        writer.produce(topic_name, os.urandom(RECORD_BYTES), partition=0)
        writer.flush(PATIENCE_S)
    at = TopicPartition(topic_name, 0)
    session = FetchSession(throttled, 1, BufferPool(1 << 20, 2))

    async def fetch_on() -> tuple[float, float]:
        """How long the broker said to wait, and how long it was until the next request went out."""
        offset = 0
        for _ in range(RECORDS * 3):
            session.want(at, throttled.topics[topic_name].topic_id, offset, -1, -1)
            answer, buffer = await session.answer(await session.ask(LIMITS))
            for part in answer.partitions:
                offset = max((batch.next_offset for batch in split_batches(part.records, *at)), default=offset)
            buffer.release()
            if answer.throttle_ms:
                answered_at = time.monotonic()
                (await session.ask(LIMITS)).raw.cancel()
                return answer.throttle_ms / 1000, time.monotonic() - answered_at
        raise AssertionError("the broker never throttled")

    told_s, waited_s = in_loop(fetch_on())
    throttled.close()
    assert waited_s >= told_s * 0.9, f"asked again after {waited_s:.2f} s of {told_s:.2f} s"


def test_a_throttled_appender_sends_again_only_when_it_may(
    topic_name: str, throttled: ClusterClient, in_loop: Callable[..., Any]
) -> None:
    in_flight_while_throttled: list[int] = []

    def look(appender: BatchAppender, link: Connection) -> None:
        # A broker does not read from a throttled connection: when answers come tells nothing of us.
        if link.throttled_until > time.monotonic():
            in_flight_while_throttled.append(link.in_flight)

    in_loop(_append(throttled, TopicPartition(topic_name, 0), RECORD_BYTES, look, in_flight_max=1))
    throttled.close()
    assert in_flight_while_throttled, "the broker never throttled"
    assert not any(in_flight_while_throttled), in_flight_while_throttled


def test_a_slow_line_that_brings_answers_is_not_given_up_as_frozen(
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Five requests in line take longer than one is allowed to, and each of them less."""
    create_topic(target_cluster.bootstrap, topic_name)
    client = connect(target_cluster)
    in_loop(client.refresh([topic_name]))
    proxy = TcpProxy(free_port(), target_cluster.broker(1).spec.port)
    proxy.start()
    monkeypatch.setattr(batch_appender, "ANSWER_GRACE_S", SLOW_REQUEST_S * 2.5)
    monkeypatch.setitem(client._brokers, 1, ("127.0.0.1", proxy.port))
    proxy.limit(SLOW_RECORD_BYTES / SLOW_REQUEST_S)

    def look(appender: BatchAppender, link: Connection) -> None:
        appender.drop_frozen()
        assert link.closed is None, "the line was given up though answers came"

    try:
        in_loop(_append(client, TopicPartition(topic_name, 0), SLOW_RECORD_BYTES, look, timeout_ms=0))
    finally:
        proxy.stop()


async def _append(
    client: ClusterClient,
    at: TopicPartition,
    record_bytes: int,
    look: Callable[[BatchAppender, Connection], None],
    *,
    timeout_ms: int = 30_000,
    in_flight_max: int = 5,
) -> None:
    """RECORDS batches of one record, a request each; ``look`` is called all the while."""
    link = await client.connection(1, "produce-0")
    offsets: list[int] = []

    def appended(queue: AppendQueue, batch: Outgoing, offset: int) -> None:
        offsets.append(offset)

    def failed(queue: AppendQueue, why: Appended | str) -> None:
        raise AssertionError(why)

    appender = BatchAppender(
        client,
        request_bytes_max=record_bytes,
        requests_in_flight_max=in_flight_max,
        timeout_ms=timeout_ms,
        on_appended=appended,
        on_refused=failed,
        on_doubt=failed,
    )
    queue = AppendQueue(at)
    queue.waiting.extend(single_batch(at, record_bytes - 500) for _ in range(RECORDS))
    appender.offer(queue)
    appender.pump()
    async with asyncio.timeout(PATIENCE_S):
        while len(offsets) < RECORDS:
            appender.awake_at = time.monotonic()
            look(appender, link)
            await asyncio.sleep(0.02)
    appender.close()
    assert offsets == list(range(RECORDS))
