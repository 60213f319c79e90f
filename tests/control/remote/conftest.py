"""A real server on a port, over connectors in memory: what the commands are tried against."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.rest.memory_host import MemoryHost
from typer.testing import CliRunner, Result

from mirrorspark.__main__ import app
from mirrorspark.rest.access import Access, read_access
from mirrorspark.rest.app import make_app
from mirrorspark.rest.server import Listener, RestServer

SEED = Path(__file__).parents[2] / "config" / "forms" / "data" / "seed_connect"


@dataclass
class Served:
    host: MemoryHost
    url: str


class _Thread:
    """The server's own event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts a server; ``users`` is the text of a users' file."""
    thread = _Thread()
    begun: list[RestServer] = []

    def start(users: str = "", **parts: Any) -> Served:
        host = MemoryHost()
        access = Access()
        if users:
            file = tmp_path / "users"
            file.write_text(users)
            access = read_access(file)

        async def begin() -> RestServer:
            server = RestServer(make_app(host, access, **parts), Listener(port=0))
            await server.start()
            return server

        begun.append(thread.run(begin()))
        return Served(host, f"http://{begun[-1].address}")

    yield start
    for server in begun:
        thread.run(server.stop())
    thread.end()


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs ``mirrorspark …`` with an environment that has nothing of ours in it but what is given."""
    for name in ("URL", "TOKEN", "TOKEN_FILE", "USER", "PASSWORD", "PASSWORD_FILE", "FOLDER", "LOG_FORMAT"):
        monkeypatch.delenv(f"MIRRORSPARK_{name}", raising=False)

    def run(*arguments: str, url: str = "", **environment: str) -> Result:
        given = {f"MIRRORSPARK_{name.upper()}": value for name, value in environment.items()}
        return CliRunner().invoke(app, [*arguments, *(("--url", url) if url else ())], env=given)

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The seeds' three files."""
    made = tmp_path / "mm2"
    made.mkdir()
    for path in SEED.glob("mm2-*.json"):
        (made / path.name).write_text(path.read_text())
    return made
