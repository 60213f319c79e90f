"""The application on a real port: clients that are slow, silent or wrong leave it unharmed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.rest.memory_host import MemoryHost

from mirrorspark.errors import SettingsError
from mirrorspark.rest import server as server_module
from mirrorspark.rest.app import make_app
from mirrorspark.rest.request_limits import RequestLimits
from mirrorspark.rest.server import Listener, RestServer, parse_listener

Run = Callable[[Coroutine[Any, Any, Any]], Any]
ASK = b"GET /connectors HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


async def _send(address: str, text: bytes) -> bytes:
    """All that comes back until the server closes."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(text)
    try:
        return await reader.read()
    finally:
        writer.close()


async def _is_well(address: str) -> bool:
    return (await _send(address, ASK)).startswith(b"HTTP/1.1 200")


def test_who_connects_and_says_nothing_is_dropped(in_loop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "HEADERS_S_MAX", 0.2)

    async def work() -> None:
        server = RestServer(make_app(MemoryHost()), Listener(port=0))
        await server.start()
        assert await _send(server.address, b"") == b""
        assert await _send(server.address, b"GET /connec") == b""
        assert await _is_well(server.address)
        await server.stop()

    in_loop(work())


def test_a_body_that_does_not_come_is_refused(in_loop: Run) -> None:
    head = b"POST /connectors HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"

    async def work() -> None:
        host = MemoryHost()
        server = RestServer(make_app(host, limits=RequestLimits(body_s_max=0.2)), Listener(port=0))
        await server.start()
        answer = await _send(server.address, head)
        assert answer.startswith(b"HTTP/1.1 408")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error_code"] == 408
        assert await _is_well(server.address)
        assert host.configs == {}
        await server.stop()

    in_loop(work())


def test_what_is_no_http(in_loop: Run) -> None:
    async def work() -> None:
        server = RestServer(make_app(MemoryHost()), Listener(port=0))
        await server.start()
        assert (await _send(server.address, b"\x16\x03\x01 not http\r\n\r\n")).startswith(b"HTTP/1.1 400")
        assert await _is_well(server.address)
        await server.stop()

    in_loop(work())


def test_a_port_that_is_taken(in_loop: Run) -> None:
    async def work() -> None:
        first = RestServer(make_app(MemoryHost()), Listener(port=0))
        await first.start()
        port = int(first.address.rpartition(":")[2])
        with pytest.raises(SettingsError, match="cannot be listened on"):
            await RestServer(make_app(MemoryHost()), Listener(port=port)).start()
        await first.stop()

    in_loop(work())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("127.0.0.1:8083", "http://127.0.0.1:8083"),
        ("http://:8083", "http://0.0.0.0:8083"),
        ("HTTP://host:1", "http://host:1"),
        ("[::1]:9", "http://[::1]:9"),
    ],
)
def test_listeners(text: str, shown: str) -> None:
    assert str(parse_listener(text, "listeners")) == shown


@pytest.mark.parametrize("text", ["", "8083", "host", "host:x", "host:99999", "ftp://a:1", "https://a:1"])
def test_listeners_that_are_none(text: str) -> None:
    with pytest.raises(SettingsError, match="--listen"):
        parse_listener(text, "--listen")


def test_this_machine_alone_unless_told() -> None:
    assert Listener().is_local
    assert not parse_listener("http://:8083", "listeners").is_local
