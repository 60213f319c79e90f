"""A real Chromium, and a real server for it that can be stopped and started again on its port."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect, sync_playwright
from tests.rest.memory_host import MemoryHost

from mirrorspark.rest.access import Access
from mirrorspark.rest.app import make_app
from mirrorspark.rest.flows_host import FlowsHost
from mirrorspark.rest.server import Listener, RestServer

__all__ = ["WAIT_S", "Complaints", "PageServer", "chromium"]

WAIT_S = 60
UNREACHED = "net::ERR_"
"""In the browser's own word about a server that is away."""
REFUSED = "the server responded with a status of 401"


expect.set_options(timeout=WAIT_S * 1_000)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Skips where there is none, but not in CI."""
    found = shutil.which("chromium")
    if found is None and not os.environ.get("CI"):
        pytest.skip("chromium is not installed (Debian: chromium); the page was not looked at")
    assert found is not None, "CI needs chromium (Debian: chromium)"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


class PageServer:
    """In a thread with a loop of its own: the browser's driver has the test's."""

    def __init__(self, flows: FlowsHost, access: Access | None = None) -> None:
        self._flows = flows
        self._access = access
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="page-server", daemon=True)
        self._server: RestServer | None = None
        self.port = 0
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/ui/"

    def start(self) -> None:
        """Where it was before, if it was."""
        self._run(self._start())

    def stop(self) -> None:
        if self._server is not None:
            self._run(self._server.stop())
            self._server = None

    def end(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()

    async def _start(self) -> None:
        self._server = RestServer(make_app(MemoryHost(), self._access, flows=self._flows), Listener(port=self.port))
        await self._server.start()
        self.port = int(self._server.address.rpartition(":")[2])

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)


class Complaints:
    """What a page says on its console, throws, or is refused by its policy. Must be nothing."""

    def __init__(self, page: Page) -> None:
        self.found: list[str] = []
        self.away_is_expected = False
        self.refusals_are_expected = False
        page.on("console", self._hear)
        page.on("pageerror", self._throw)

    def _hear(self, message: ConsoleMessage) -> None:
        is_away = self.away_is_expected and UNREACHED in message.text
        is_refusal = self.refusals_are_expected and REFUSED in message.text
        if message.type in ("error", "warning") and not is_away and not is_refusal:
            self.found.append(f"{message.type}: {message.text} at {message.location}")

    def _throw(self, error: Error) -> None:
        self.found.append(f"thrown: {error}")
