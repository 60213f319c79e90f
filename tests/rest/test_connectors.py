"""Connect's routes for connectors: codes, bodies, and what reaches the host."""

from __future__ import annotations

import pytest
from tests.rest.client import TestClient
from tests.rest.memory_host import MemoryHost

from mirrorspark import __version__
from mirrorspark.rest.connector_host import TargetState

CONFIG = {"connector.class": "MirrorSourceConnector", "tasks.max": "2"}
STEERING = [
    ("pause", 202, TargetState.PAUSED),
    ("stop", 204, TargetState.STOPPED),
    ("resume", 202, TargetState.RUNNING),
]


@pytest.fixture
def made(client: TestClient) -> TestClient:
    assert client.post("/connectors", json={"name": "one", "config": CONFIG}).status_code == 201
    return client


def test_one_is_made_seen_and_deleted(client: TestClient) -> None:
    answer = client.post("/connectors", json={"name": "one", "config": CONFIG})
    assert answer.status_code == 201
    assert answer.headers["location"] == "http://testserver/connectors/one"
    tasks = [{"connector": "one", "task": 0}, {"connector": "one", "task": 1}]
    assert answer.json() == {"name": "one", "config": {**CONFIG, "name": "one"}, "tasks": tasks, "type": "source"}
    assert client.get("/connectors").json() == ["one"]
    assert client.get("/connectors/one").json() == answer.json()
    assert client.delete("/connectors/one").status_code == 204
    assert client.get("/connectors").json() == []


def test_a_second_one_of_the_same_name_is_refused_and_changes_nothing(made: TestClient, host: MemoryHost) -> None:
    before = dict(host.configs)
    answer = made.post("/connectors", json={"name": "one", "config": {"connector.class": "X"}})
    assert (answer.status_code, answer.json()) == (
        409,
        {"error_code": 409, "message": "Connector one already exists"},
    )
    assert host.configs == before


def test_lists_can_be_expanded(made: TestClient) -> None:
    both = made.get("/connectors?expand=status&expand=info").json()
    assert set(both["one"]) == {"status", "info"}
    assert set(made.get("/connectors?expand=info").json()["one"]) == {"info"}
    assert made.get("/connectors?expand=nonsense").json() == {"one": {}}


def test_put_makes_or_changes(client: TestClient) -> None:
    assert client.put("/connectors/one/config", json=CONFIG).status_code == 201
    answer = client.put("/connectors/one/config", json={**CONFIG, "tasks.max": 3})
    assert (answer.status_code, answer.json()["config"]["tasks.max"]) == (200, "3")
    answer = client.put("/connectors/one/config", json={**CONFIG, "name": "two"})
    assert answer.status_code == 400
    assert "doesn't match" in answer.json()["message"]


def test_a_patch_changes_some_keys_and_null_removes_one(made: TestClient) -> None:
    answer = made.patch("/connectors/one/config", json={"topics": "a", "tasks.max": None})
    assert answer.json()["config"] == {"connector.class": "MirrorSourceConnector", "name": "one", "topics": "a"}


@pytest.mark.parametrize(("verb", "code", "state"), STEERING)
def test_steering(made: TestClient, host: MemoryHost, verb: str, code: int, state: TargetState) -> None:
    for _ in range(2):
        answer = made.put(f"/connectors/one/{verb}")
        assert (answer.status_code, answer.content) == (code, b"")
    assert host.states["one"] is state


@pytest.mark.parametrize(
    ("query", "code", "asked"),
    [
        ("", 204, (False, False)),
        ("?includeTasks=true", 202, (True, False)),
        ("?onlyFailed=TRUE", 202, (False, True)),
        ("?includeTasks=perhaps", 204, (False, False)),
    ],
)
def test_restart_and_its_flags(
    made: TestClient, host: MemoryHost, query: str, code: int, asked: tuple[bool, bool]
) -> None:
    answer = made.post(f"/connectors/one/restart{query}")
    assert answer.status_code == code
    assert bool(answer.content) == (code == 202)
    assert host.restarts == [("one", *asked)]


def test_tasks(made: TestClient) -> None:
    assert [task["id"] for task in made.get("/connectors/one/tasks").json()] == [
        {"connector": "one", "task": 0},
        {"connector": "one", "task": 1},
    ]
    task = {"id": 1, "state": "RUNNING", "worker_id": "here", "version": __version__}
    assert made.get("/connectors/one/tasks/1/status").json() == task
    assert made.get("/connectors/one/tasks/7/status").status_code == 404
    assert made.get("/connectors/one/tasks/abc/status").status_code == 404
    assert made.get("/connectors/one/tasks/99999999999999999999/status").status_code == 404
    assert made.post("/connectors/one/tasks/0/restart").status_code == 204


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/config"),
        ("GET", "/status"),
        ("GET", "/tasks"),
        ("GET", "/offsets"),
        ("PUT", "/pause"),
        ("PUT", "/resume"),
        ("PUT", "/stop"),
        ("POST", "/restart"),
        ("DELETE", ""),
        ("DELETE", "/offsets"),
    ],
)
def test_nobody_is_not_found(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, f"/connectors/nobody{path}")
    assert (answer.status_code, set(answer.json())) == (404, {"error_code", "message"})
    assert "nobody" in answer.json()["message"]


@pytest.mark.parametrize("name", ["a/b", "a b", "ä->ö.x", "100%", "a%2Fb", "?x=#"])
def test_a_name_may_hold_anything(client: TestClient, name: str) -> None:
    made = client.post("/connectors", json={"name": name, "config": CONFIG})
    assert made.status_code == 201
    there = made.headers["location"]
    assert client.get(there).json()["name"] == name
    assert client.get(f"{there}/status").json()["name"] == name
    assert client.delete(there).status_code == 204


def test_topics(made: TestClient) -> None:
    assert made.get("/connectors/one/topics").json() == {"one": {"topics": ["orders"]}}
    assert made.put("/connectors/one/topics/reset").status_code == 202
    assert made.get("/connectors/nobody/topics").json() == {"nobody": {"topics": []}}
    assert made.put("/connectors/nobody/topics/reset").status_code == 202


def test_offsets(made: TestClient, host: MemoryHost) -> None:
    entries = [{"partition": {"topic": "a"}, "offset": {"offset": 1}}]
    assert made.patch("/connectors/one/offsets", json={"offsets": entries}).json() == {"message": "done"}
    assert made.get("/connectors/one/offsets").json() == {"offsets": entries}
    assert made.delete("/connectors/one/offsets").json() == {"message": "done"}
    assert made.patch("/connectors/one/offsets", json={"offsets": []}).status_code == 400


def test_facts_and_health(client: TestClient, host: MemoryHost) -> None:
    assert client.get("/").json() == {"version": "1", "commit": "abc", "kafka_cluster_id": "id"}
    assert client.get("/health").status_code == 200
    host.state = type(host.state)("starting", "not yet")
    answer = client.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "starting", "message": "not yet"})
