"""The proxy before a port: carries both ways, is cut in silence, goes on where it was, and is slow when told to."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from mirrorspark.errors import LabError
from mirrorspark.lab.cluster_of_brokers import free_port
from mirrorspark.lab.tcp_proxy import TcpProxy

PATIENCE_S = 60.0
SILENCE_S = 0.3


@pytest.fixture
def echo_port() -> Iterator[int]:
    """A server that sends back whatever it is sent."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                line, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=echo, args=(line,), daemon=True).start()

    def echo(line: socket.socket) -> None:
        with line:
            while some := line.recv(65_536):
                line.sendall(some)

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()


@pytest.fixture
def proxy(echo_port: int) -> Iterator[TcpProxy]:
    proxy = TcpProxy(free_port(), echo_port)
    proxy.start()
    yield proxy
    proxy.stop()


def _connect(proxy: TcpProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE_S)


def _echoed(line: socket.socket, text: bytes) -> bytes:
    line.sendall(text)
    found = b""
    while len(found) < len(text):
        found += line.recv(65_536)
    return found


def test_carries_both_ways_and_counts_what_came_back(proxy: TcpProxy) -> None:
    with _connect(proxy) as one, _connect(proxy) as other:
        assert _echoed(one, b"a" * 300_000) == b"a" * 300_000
        assert _echoed(other, b"hello") == b"hello"
    assert proxy.bytes_back == 300_005


def test_a_cut_is_silent_and_what_was_on_its_way_arrives_once_mended(proxy: TcpProxy) -> None:
    with _connect(proxy) as line:
        assert _echoed(line, b"before") == b"before"
        proxy.cut()
        line.sendall(b"meanwhile")
        with _connect(proxy) as late:  # accepted, as a machine whose packets are lost would not refuse either
            late.sendall(b"late")
            for one in (line, late):
                one.settimeout(SILENCE_S)
                with pytest.raises(TimeoutError):
                    one.recv(1)
                one.settimeout(PATIENCE_S)
            proxy.mend()
            assert line.recv(9, socket.MSG_WAITALL) == b"meanwhile"
            assert late.recv(4, socket.MSG_WAITALL) == b"late"


def test_a_limited_line_takes_its_time(proxy: TcpProxy) -> None:
    with _connect(proxy) as line:
        proxy.limit(50_000)
        began = time.monotonic()
        assert _echoed(line, b"x" * 20_000) == b"x" * 20_000
        assert time.monotonic() - began >= 0.35  # 0.4 s at that rate; never less
        proxy.limit(None)
        assert _echoed(line, b"y" * 500_000) == b"y" * 500_000


def test_nobody_behind_it_ends_the_connection_and_so_does_stopping(proxy: TcpProxy) -> None:
    nowhere = TcpProxy(free_port(), free_port())
    nowhere.start()
    try:
        with _connect(nowhere) as line:
            assert line.recv(1) == b""
    finally:
        nowhere.stop()
    with _connect(proxy) as line:
        assert _echoed(line, b"x") == b"x"
        proxy.stop()
        assert line.recv(1) == b""


def test_a_port_that_is_taken_is_told(proxy: TcpProxy) -> None:
    with pytest.raises(LabError, match=str(proxy.port)):
        TcpProxy(proxy.port, proxy.target_port).start()
