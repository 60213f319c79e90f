"""Connections: to what is no Kafka broker, to a broker that goes and comes back, and to one that is frozen."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from mirrorspark.cluster.buffer_pool import BufferPool
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.connection import Connection
from mirrorspark.cluster.pipes import PipePool
from mirrorspark.cluster.security import Security
from mirrorspark.errors import ClusterError, RequestTimedOut, Unreachable
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.raw_log import cluster_client
from mirrorspark.wire.messages.fetch import FETCH_API_KEY, FETCH_VERSION_MAX, FETCH_VERSION_MIN
from mirrorspark.wire.messages.produce import PRODUCE_API_KEY, PRODUCE_VERSION_MAX, PRODUCE_VERSION_MIN

IN_SECONDS = 10.0
"""A person waits for the answer: with timeouts of 1 s below, a busy machine stays far under this."""


@contextmanager
def _server(answer: bytes | None) -> Iterator[int]:
    """A listener that reads a little and answers with these bytes; None says nothing at all."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ending = threading.Event()

        def serve() -> None:
            held = []
            listener.settimeout(0.1)
            while not ending.is_set():
                try:
                    peer, _ = listener.accept()
                except TimeoutError:
                    continue
                held.append(peer)
                if answer is not None:
                    peer.settimeout(5)
                    peer.recv(4096)
                    peer.sendall(answer)
                    if not answer:
                        peer.close()
            for peer in held:
                peer.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ending.set()
            thread.join()


def _error_of(in_loop: Callable[..., Any], port: int, timeout_s: float = 1.0) -> ClusterError:
    client = cluster_client(f"127.0.0.1:{port}")
    began = time.monotonic()
    with pytest.raises(ClusterError) as caught:
        in_loop(client.start(timeout_s))
    assert time.monotonic() - began < IN_SECONDS
    assert f"127.0.0.1:{port}" in str(caught.value)
    return caught.value


def test_http_server_is_told_from_a_broker(in_loop: Callable[..., Any]) -> None:
    with _server(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as port:
        error = _error_of(in_loop, port)
    assert isinstance(error, Unreachable)
    assert "not a Kafka broker" in str(error)


def test_silent_server_is_told_within_the_timeout(in_loop: Callable[..., Any]) -> None:
    with _server(None) as port:
        error = _error_of(in_loop, port)
    assert "does not speak Kafka" in str(error)


def test_server_that_hangs_up_is_told(in_loop: Callable[..., Any]) -> None:
    with _server(b"") as port:
        error = _error_of(in_loop, port)
    assert "is this a Kafka listener" in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        b"\x00\x00\x00\x04\x00\x00\x00\x63",  # an answer to a request that nobody made
        b"\x00\x00\x00\x08\x00\x00\x00\x01\xff\xff\xff\xff",  # cut off inside
        b"\x00\x00\x00\x01\x00",  # shorter than any header
    ],
)
def test_answers_that_are_no_kafka_answers_are_told(in_loop: Callable[..., Any], answer: bytes) -> None:
    with _server(answer) as port:
        assert isinstance(_error_of(in_loop, port), Unreachable)


def test_nobody_listens(in_loop: Callable[..., Any]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert "cannot connect" in str(_error_of(in_loop, port))


def test_one_bootstrap_server_that_answers_is_enough(
    in_loop: Callable[..., Any], source_cluster: ClusterOfBrokers
) -> None:
    async def start(client: ClusterClient) -> None:
        await client.start(30.0)
        client.close()

    with _server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as http:
        servers = f"127.0.0.1:{http},{source_cluster.bootstrap},127.0.0.1:1"
        client = cluster_client(servers)
        in_loop(start(client))
    assert client.nodes == (1,)


def test_versions_are_negotiated_with_the_broker(
    in_loop: Callable[..., Any], connect: Callable[..., ClusterClient], source_cluster: ClusterOfBrokers
) -> None:
    link = in_loop(connect(source_cluster).connection(1))
    for key, ours in (
        (FETCH_API_KEY, (FETCH_VERSION_MIN, FETCH_VERSION_MAX)),
        (PRODUCE_API_KEY, (PRODUCE_VERSION_MIN, PRODUCE_VERSION_MAX)),
    ):
        chosen = link.version(key, *ours)
        assert link.versions[key][0] <= chosen <= link.versions[key][1]
        assert chosen == ours[1]
    theirs_max = link.versions[FETCH_API_KEY][1]
    with pytest.raises(ClusterError, match=rf"Fetch versions .*\.\.{theirs_max}, mirrorspark knows 90\.\.99"):
        link.version(FETCH_API_KEY, 90, 99, "Fetch")
    with pytest.raises(ClusterError):
        link.version(9999, 0, 1)  # an API that this broker does not have


def test_many_requests_on_their_way_are_answered_in_order(
    in_loop: Callable[..., Any], source_cluster: ClusterOfBrokers
) -> None:
    async def ask() -> list[int]:
        port = source_cluster.broker(1).spec.port
        link = await Connection.open("127.0.0.1", port, Security({}), "test", 30.0)
        answers = await asyncio.gather(
            *(link.request(MetadataRequest(topics=[]), MetadataResponse, 5, 30.0) for _ in range(50))
        )
        assert link.in_flight == 0
        link.close()
        return [len(answer.brokers) for answer in answers]

    assert in_loop(ask()) == [1] * 50


def test_after_a_restart_the_client_finds_its_broker_again(
    in_loop: Callable[..., Any], connect: Callable[..., ClusterClient], own_cluster: ClusterOfBrokers
) -> None:
    client = connect(own_cluster)
    before = in_loop(client.connection(1))
    broker = own_cluster.broker(1)
    broker.kill()
    with pytest.raises(Unreachable):
        in_loop(client.refresh(None))
    assert before.closed is not None
    broker.start()
    in_loop(client.refresh(None))
    after = in_loop(client.connection(1))
    assert after is not before
    assert after.closed is None


def test_a_frozen_broker_is_given_up_in_time_and_found_again(
    in_loop: Callable[..., Any], connect: Callable[..., ClusterClient], own_cluster: ClusterOfBrokers
) -> None:
    """It holds its connections and answers nothing: the request ends in time, the connection with it."""
    client = connect(own_cluster)
    link = in_loop(client.connection(1))
    broker = own_cluster.broker(1)
    broker.pause()
    try:
        began = time.monotonic()
        with pytest.raises(RequestTimedOut):
            in_loop(client.request(MetadataRequest(topics=[]), node=1, timeout_s=1.0))
        assert time.monotonic() - began < IN_SECONDS
        assert link.closed is not None
    finally:
        broker.resume()
    in_loop(client.refresh(None))
    assert client.nodes == (1,)


@pytest.mark.parametrize("passes", [False, True])
def test_an_answer_that_breaks_off_gives_its_place_back(passes: bool) -> None:
    """Else a lane would have less and less room for answers, and none at last."""

    async def scenario() -> int:
        pool = BufferPool(1 << 20, 2, PipePool())
        with socket.create_server(("127.0.0.1", 0)) as listener:
            sock = socket.create_connection(listener.getsockname())
            sock.setblocking(False)
            peer, _ = listener.accept()
        connection = Connection(sock, "broker:9092", "test")
        connection.use_pool(pool)
        answer = connection.send_raw(FETCH_API_KEY, FETCH_VERSION_MAX, True, [b""], passes=passes)
        with peer:
            peer.sendall(struct.pack(">ii", 500_000, 1) + bytes(1000))
            while not pool.live_bytes:
                await asyncio.sleep(0.01)
        with pytest.raises(Unreachable):
            await asyncio.wait_for(answer, IN_SECONDS)
        return pool.live_bytes

    assert asyncio.run(scenario()) == 0
