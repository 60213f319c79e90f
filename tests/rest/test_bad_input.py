"""What is wrong with a request is told in Connect's form, with its code, and nothing has changed."""

from __future__ import annotations

import pytest
from tests.rest.client import TestClient
from tests.rest.memory_host import MemoryHost

from mirrorspark.rest.app import make_app
from mirrorspark.rest.request_limits import RequestLimits

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"NaN",
        b'{"name": "x"}',
        b'{"name": 7, "config": {}}',
        b'{"name": "x", "config": []}',
        b'{"name": "x", "config": {"a": {}}}',
        b'{"name": "x", "config": {"a": null}}',
        b'{"name": "x", "config": {}, "initial_state": "ASLEEP"}',
        b'{"name": "x", "config": {}, "more": 1}',
        b'{"name": "x", "config": {"name": "y"}}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
    ],
)
def test_a_body_that_is_no_connector(client: TestClient, host: MemoryHost, body: bytes) -> None:
    answer = client.post("/connectors", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)
    assert answer.json()["message"]
    assert host.configs == {}


def test_a_body_of_another_type(client: TestClient) -> None:
    answer = client.post("/connectors", content=b"{}", headers={"Content-Type": "text/plain"})
    assert (answer.status_code, answer.json()["error_code"]) == (415, 415)


def test_a_body_of_ten_megabytes(client: TestClient, host: MemoryHost) -> None:
    answer = client.post("/connectors", content=b"x" * 10_000_000, headers=JSON)
    assert (answer.status_code, answer.json()["error_code"]) == (413, 413)
    answer = client.post("/connectors", content=iter([b"x" * 1_000_000] * 10), headers=JSON)
    assert answer.status_code == 413
    assert host.configs == {}
    assert client.get("/connectors").status_code == 200


def test_a_long_list_of_offsets_is_let_through(host: MemoryHost) -> None:
    with TestClient(make_app(host, limits=RequestLimits(body_bytes_max=100))) as client:
        assert client.post("/connectors", content=b" " * 101, headers=JSON).status_code == 413
        assert client.post("/connectors", content=b" " * 100, headers=JSON).status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "/nowhere", 404), ("DELETE", "/connectors", 405), ("GET", "/connectors/a/b/c/d", 404)],
)
def test_addresses_that_are_not_there(client: TestClient, method: str, path: str, code: int) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.json()["error_code"]) == (code, code)


def test_an_error_of_ours_shows_no_inside(
    client: TestClient, host: MemoryHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> None:
        raise RuntimeError("password=secret-marker")

    monkeypatch.setattr(host, "info", broken)
    answer = client.get("/connectors/one")
    assert (answer.status_code, answer.json()["error_code"]) == (500, 500)
    assert "secret-marker" not in answer.text
