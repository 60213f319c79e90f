"""Plugins, validation and log levels."""

from __future__ import annotations

import logging

import pytest
from tests.rest.client import TestClient

PACKAGE = "org.apache.kafka.connect.mirror"
GOOD = {
    "name": "x",
    "connector.class": f"{PACKAGE}.MirrorSourceConnector",
    "source.cluster.alias": "east",
    "target.cluster.alias": "west",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
}
VALIDATE = "/connector-plugins/MirrorSourceConnector/config/validate"


def test_the_three_connectors(client: TestClient) -> None:
    found = client.get("/connector-plugins").json()
    assert [one["class"].rpartition(".")[2] for one in found] == [
        "MirrorCheckpointConnector",
        "MirrorHeartbeatConnector",
        "MirrorSourceConnector",
    ]
    assert all(one["class"].startswith(PACKAGE) and one["type"] == "source" and one["version"] for one in found)


@pytest.mark.parametrize("name", ["MirrorSourceConnector", "MirrorSource", f"{PACKAGE}.MirrorSourceConnector"])
def test_keys_of_a_plugin(client: TestClient, name: str) -> None:
    keys = client.get(f"/connector-plugins/{name}/config").json()
    assert {"name", "connector.class", "topics", "tasks.max"} <= {key["name"] for key in keys}
    assert client.put(f"/connector-plugins/{name}/config/validate", json=GOOD).json()["error_count"] == 0


def test_a_plugin_that_is_not_there(client: TestClient) -> None:
    assert client.get("/connector-plugins/Nobody/config").status_code == 404
    assert client.put("/connector-plugins/Nobody/config/validate", json=GOOD).status_code == 400
    assert client.put(VALIDATE, json={"tasks.max": "1"}).status_code == 400
    assert client.put(VALIDATE, json={**GOOD, "connector.class": "MirrorHeartbeat"}).status_code == 400


@pytest.mark.parametrize(
    ("key", "value"),
    [("tasks.max", "many"), ("sync.topic.acls.enabled", "perhaps"), ("name", ""), ("source.cluster.alias", None)],
)
def test_one_error_stands_at_its_key(client: TestClient, key: str, value: str | None) -> None:
    config = {**GOOD, key: value} if value is not None else {name: text for name, text in GOOD.items() if name != key}
    body = client.put(VALIDATE, json=config).json()
    assert body["error_count"] == 1
    assert [one["value"]["name"] for one in body["configs"] if one["value"]["errors"]] == [key]


def test_what_could_not_run_here_is_an_error(client: TestClient) -> None:
    config = {name: text for name, text in GOOD.items() if name != "source.cluster.bootstrap.servers"}
    body = client.put(VALIDATE, json=config).json()
    assert body["error_count"] == 1


def test_keys_that_nobody_knows_are_let_through(client: TestClient) -> None:
    assert client.put(VALIDATE, json={**GOOD, "my.note": "x"}).json()["error_count"] == 0


def test_levels_are_seen_and_set(client: TestClient) -> None:
    logging.getLogger("mirrorspark.rest.sample.below").setLevel(logging.INFO)
    answer = client.put("/admin/loggers/mirrorspark.rest.sample", json={"level": "error"})
    assert (answer.status_code, answer.json()) == (
        200,
        ["mirrorspark.rest.sample", "mirrorspark.rest.sample.below"],
    )
    assert logging.getLogger("mirrorspark.rest.sample.below").level == logging.ERROR
    shown = client.get("/admin/loggers/mirrorspark.rest.sample").json()
    assert shown["level"] == "ERROR"
    assert isinstance(shown["last_modified"], int)
    assert "mirrorspark.rest.sample" in client.get("/admin/loggers").json()
    answer = client.put("/admin/loggers/mirrorspark.rest.sample?scope=cluster", json={"level": "WARN"})
    assert answer.status_code == 204


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [("root", {}, 400), ("root", {"level": "LOUD"}, 404), ("root", [], 400), ("x" * 300, {"level": "INFO"}, 400)],
)
def test_levels_that_are_none(client: TestClient, path: str, body: object, code: int) -> None:
    assert client.put(f"/admin/loggers/{path}", json=body).status_code == code


def test_a_logger_that_is_not_there(client: TestClient) -> None:
    assert client.get("/admin/loggers/no.such").status_code == 404
