"""The stream of snapshots: bounded, shared, ended in order."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.rest.memory_flows import FLOW, MemoryFlows
from tests.rest.memory_host import MemoryHost

from mirrorspark.rest import flow_stream
from mirrorspark.rest.app import make_app

WAIT_S = 60.0
SCOPE = {
    "type": "http",
    "asgi": {"version": "3.0"},
    "http_version": "1.1",
    "method": "GET",
    "path": "/mirrorspark/v1/stream",
    "raw_path": b"/mirrorspark/v1/stream",
    "query_string": b"",
    "headers": [],
}


class Listener:
    """One client of the application, by ASGI itself."""

    def __init__(self, app: Any) -> None:
        self.messages: list[dict[str, Any]] = []
        self.leaves = asyncio.Event()
        self.is_stuck = False
        self._asked = False
        self.task = asyncio.ensure_future(app(dict(SCOPE), self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if self.is_stuck:
            await asyncio.Event().wait()
        self.messages.append(message)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(WAIT_S):
            while len(self.messages) < count and not self.task.done():
                await asyncio.sleep(0.005)

    @property
    def text(self) -> str:
        return b"".join(one.get("body", b"") for one in self.messages).decode()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_stream, "LISTENERS_MAX", 2)
    monkeypatch.setattr(flow_stream, "INTERVAL_S", 0.02)


def test_snapshots_until_the_server_ends() -> None:
    async def listen() -> None:
        flows = MemoryFlows()
        app = make_app(MemoryHost(), flows=flows)
        one = Listener(app)
        await one.until(3)
        await flows.pause(FLOW, [])
        (close,) = app.state.on_stop
        await one.until(len(one.messages) + 3)
        close()
        async with asyncio.timeout(WAIT_S):
            await one.task
        start, *bodies = one.messages
        assert dict(start["headers"])[b"content-type"].startswith(b"text/event-stream")
        assert b"content-length" not in dict(start["headers"])
        first, *_, last, bye = [part["body"].decode() for part in bodies]
        assert first.startswith("event: flows\ndata: ")
        assert first.endswith("\n\n")
        assert bye == "event: bye\ndata: {}\n\n"
        pictures = [json.loads(text.partition("data: ")[2])["flows"][0] for text in (first, last)]
        assert [picture["verdict"] for picture in pictures] == ["running", "paused"]

    asyncio.run(listen())


def test_no_more_listeners_than_there_is_room_for() -> None:
    async def listen() -> None:
        app = make_app(MemoryHost(), flows=MemoryFlows())
        some = [Listener(app) for _ in range(2)]
        for one in some:
            await one.until(2)
        third = Listener(app)
        async with asyncio.timeout(WAIT_S):
            await third.task
        assert third.messages[0]["status"] == 503
        some[0].leaves.set()
        async with asyncio.timeout(WAIT_S):
            await some[0].task
        again = Listener(app)
        await again.until(2)
        assert again.messages[0]["status"] == 200
        for one in (some[1], again):
            one.leaves.set()
            async with asyncio.timeout(WAIT_S):
                await one.task

    asyncio.run(listen())


def test_who_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_stream, "SEND_S_MAX", 0.05)

    async def listen() -> None:
        app = make_app(MemoryHost(), flows=MemoryFlows())
        one = Listener(app)
        await one.until(2)
        one.is_stuck = True
        async with asyncio.timeout(WAIT_S):
            await one.task

    asyncio.run(listen())
