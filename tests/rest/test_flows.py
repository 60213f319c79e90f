"""``/mirrorspark/v1`` as it is written down: shapes, pages, refusals, roles."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.rest.client import TestClient
from tests.rest.memory_flows import FLOW, MemoryFlows
from tests.rest.memory_host import MemoryHost

from mirrorspark.rest.access import read_access
from mirrorspark.rest.app import make_app
from mirrorspark.rest.flow_views import Page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rest_flows.md"
BASE = "/mirrorspark/v1"
HERE = f"{BASE}/flows/east-%3Ewest%2Fteam"


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[MemoryFlows, TestClient]]:
    """One application for all: to build it is what takes time."""
    flows = MemoryFlows()

    async def metrics() -> bytes:
        return b"mirrorspark_build_info 1\n"

    with TestClient(make_app(MemoryHost(), flows=flows, metrics=metrics), raise_server_exceptions=False) as client:
        yield flows, client


@pytest.fixture
def flows(shared: tuple[MemoryFlows, TestClient]) -> MemoryFlows:
    shared[0].reset()
    return shared[0]


@pytest.fixture
def client(shared: tuple[MemoryFlows, TestClient], flows: MemoryFlows) -> TestClient:
    return shared[1]


# -- shapes ------------------------------------------------------------------------------------------------------------


def _examples() -> dict[str, Any]:
    """The page's JSON, by the heading above it; a second one below the same heading has a 2 at its end."""
    found: dict[str, Any] = {}
    heading = ""
    for title, text in re.findall(r"^## ([^\n]+)$|```json\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        if title:
            heading = title
        else:
            found[f"{heading} 2" if heading in found else heading] = json.loads(text)
    return found


EXAMPLES = _examples()


def _keys(value: Any) -> Any:
    """Of an object, and of the first item of each of its lists."""
    inside = {
        key: one[0].keys() for key, one in value.items() if isinstance(one, list) and one and isinstance(one[0], dict)
    }
    return value.keys(), inside


GETS = {
    "/about": "`GET /mirrorspark/v1/about`",
    "/topology": "`GET /mirrorspark/v1/topology`",
    "/flows/F": "`GET /mirrorspark/v1/flows`",
    "/flows/F/partitions": "`GET …/{flow}/partitions?search=&sort=lag|name&limit=&offset=`",
    "/flows/F/lanes": "`GET …/{flow}/lanes`",
    "/flows/F/lag": "`GET …/{flow}/lag?search=&sort=lag|rate|name&limit=&offset=`",
    "/flows/F/groups": "`GET …/{flow}/groups?search=&limit=&offset=`",
    "/flows/F/groups/bill%2Fing": "`GET …/{flow}/groups?search=&limit=&offset=` 2",
    "/flows/F/events": "`GET …/{flow}/events`, `GET /mirrorspark/v1/events`",
    "/events": "`GET …/{flow}/events`, `GET /mirrorspark/v1/events`",
    "/flows/F/config": "`GET …/{flow}/config`",
    "/flows/F/ledger?topic=orders&partition=3&offset=997": "`GET …/{flow}/ledger?topic=&partition=&offset=`",
}


@pytest.mark.parametrize("path", GETS)
def test_answers_have_the_pages_shape(client: TestClient, path: str) -> None:
    answer = client.get(BASE + path.replace("/F", "/east-%3Ewest%2Fteam"))
    assert answer.status_code == 200, answer.text
    assert _keys(answer.json()) == _keys(EXAMPLES[GETS[path]])


def test_readiness_has_the_pages_shape(client: TestClient) -> None:
    found = client.get(f"{HERE}/readiness", params={"mode": "drain"}).json()
    assert _keys(found | {"steps": []}) == _keys(EXAMPLES["`GET …/{flow}/readiness?mode=cut|drain`"] | {"steps": []})
    assert found["mode"] == "drain"


def test_the_list_is_of_flows(client: TestClient) -> None:
    body = client.get(f"{BASE}/flows").json()
    assert body["flows"] == [client.get(HERE).json()]
    assert body["flows"][0]["flow"] == FLOW


def test_metrics_are_on_the_same_port(client: TestClient) -> None:
    answer = client.get("/metrics")
    assert answer.text == "mirrorspark_build_info 1\n"
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


# -- pages and refusals ------------------------------------------------------------------------------------------------


def test_what_is_asked_of_a_list(client: TestClient, flows: MemoryFlows) -> None:
    client.get(f"{HERE}/partitions")
    client.get(f"{HERE}/partitions", params={"search": "Orders-3", "sort": "name", "limit": 7, "offset": 14})
    client.get(f"{HERE}/lag", params={"search": "Orders", "sort": "rate", "limit": 7, "offset": 14})
    assert flows.asked == [(Page(100, 0, ""), False), (Page(7, 14, "Orders-3"), True), (Page(7, 14, "Orders"), "rate")]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "offset=-1",
        "sort=size",
        f"search={'x' * 300}",
        "offset=99999999999999999999",
    ],
)
def test_a_page_that_is_none(client: TestClient, query: str) -> None:
    answer = client.get(f"{HERE}/partitions?{query}")
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)
    assert answer.json()["message"].startswith(query.partition("=")[0])


@pytest.mark.parametrize(
    "query", ["", "topic=orders", "topic=orders&partition=x&offset=1", "topic=orders&partition=0&offset=-1", "topic="]
)
def test_a_place_in_the_ledger_that_is_none(client: TestClient, query: str) -> None:
    assert client.get(f"{HERE}/ledger?{query}").status_code == 400


def test_who_is_not_there(client: TestClient) -> None:
    for path in ("", "/partitions", "/lanes", "/lag", "/groups", "/readiness", "/events", "/config"):
        answer = client.get(f"{BASE}/flows/nobody-%3Ewest{path}")
        assert (answer.status_code, answer.json()["error_code"]) == (404, 404)
    assert client.get(f"{HERE}/groups/nobody").status_code == 404
    assert client.get(f"{BASE}/nothing").status_code == 404
    assert client.post(f"{BASE}/flows/nobody/pause").status_code == 404


# -- steering ----------------------------------------------------------------------------------------------------------


def test_pause_and_resume(client: TestClient, flows: MemoryFlows) -> None:
    example = EXAMPLES["`POST …/{flow}/pause`, `POST …/{flow}/resume`"]
    assert client.post(f"{HERE}/pause").json() == {**example, "flow": FLOW}
    assert client.post(f"{HERE}/pause", json={"topics": ["orders"]}).json()["paused"] == ["orders"]
    assert client.post(f"{HERE}/resume", json={}).json()["paused"] == []
    assert flows.paused == []


@pytest.mark.parametrize(
    "body", ["[]", "{", '{"topics": "orders"}', '{"topics": []}', '{"topics": [""]}', '{"topic": 1}', "1"]
)
def test_a_pause_that_says_nothing_clear(client: TestClient, flows: MemoryFlows, body: str) -> None:
    answer = client.post(f"{HERE}/pause", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert flows.paused == []


def test_acknowledge(client: TestClient, flows: MemoryFlows) -> None:
    url, key = f"{BASE}/events/acknowledge", flows.keys[0]
    for body in ({}, {"keys": []}, {"keys": [1]}, {"flow": 1, "keys": [key]}, {"keys": [key], "more": 1}, []):
        assert client.post(url, json=body).status_code == 400
    assert client.post(url, json={"keys": [key, "event/unknown"]}).status_code == 404
    assert client.post(url, json={"flow": "nobody", "keys": ["all"]}).status_code == 404
    assert flows.keys == [key]
    assert client.post(url, json={"flow": FLOW, "keys": [key]}).json() == {"acknowledged": [{"flow": FLOW, "key": key}]}
    assert client.get(f"{BASE}/events").json()["events"] == []


# -- roles -------------------------------------------------------------------------------------------------------------


def test_roles(tmp_path: Path, host: MemoryHost, flows: MemoryFlows) -> None:
    users = tmp_path / "users"
    users.write_text("operator token first\nread-only token second\n")
    client = TestClient(make_app(host, read_access(users), flows=flows))
    first, second = ({"Authorization": f"Bearer {token}"} for token in ("first", "second"))
    assert client.get(f"{BASE}/flows").status_code == 401
    assert client.get(f"{BASE}/stream").status_code == 401
    assert client.get("/ui/").status_code != 401, "whoever has no name yet must be able to read the question"
    assert client.get("/uix").status_code == 401
    abouts = [client.get(f"{BASE}/about", headers=headers).json() for headers in (first, second)]
    assert [(one["role"], one["is_open"]) for one in abouts] == [("operator", False), ("read-only", False)]
    for path in (f"{HERE}/pause", f"{HERE}/resume", f"{BASE}/events/acknowledge"):
        assert client.post(path, headers=second).status_code == 403
    assert client.get(HERE, headers=second).status_code == 200
    assert flows.paused == []
    assert client.post(f"{HERE}/pause", headers=first).status_code == 200


def test_everybody_is_an_operator_where_nobody_has_a_name(client: TestClient) -> None:
    about = client.get(f"{BASE}/about").json()
    assert (about["role"], about["is_open"], about["command"]) == ("operator", True, "run")
