"""A client of the application over connectors in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.rest.client import TestClient
from tests.rest.memory_host import MemoryHost

from mirrorspark.rest.app import make_app


@pytest.fixture
def host() -> MemoryHost:
    return MemoryHost()


@pytest.fixture
def client(host: MemoryHost) -> Iterator[TestClient]:
    with TestClient(make_app(host), raise_server_exceptions=False) as one:
        yield one
