"""Roles, users and tokens; secrets that never come out."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.rest.client import TestClient
from tests.rest.memory_host import MemoryHost

from mirrorspark.errors import SettingsError
from mirrorspark.rest.access import Access, read_access
from mirrorspark.rest.app import make_app

CONFIG = {"connector.class": "MirrorSourceConnector"}


@pytest.fixture
def guarded(tmp_path: Path, host: MemoryHost) -> TestClient:
    hashed = hashlib.sha256(b"third").hexdigest()
    file = tmp_path / "users"
    file.write_text(
        "# who\n\noperator user alice first\nread-only user bob second\n"
        f"operator token sha256:{hashed}\nread-only token fourth\n"
    )
    return TestClient(make_app(host, read_access(file)))


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_nobody_is_let_in_without_a_name(guarded: TestClient, host: MemoryHost) -> None:
    answer = guarded.post("/connectors", json={"name": "x", "config": CONFIG})
    assert (answer.status_code, answer.json()["error_code"]) == (401, 401)
    assert "Basic" in answer.headers["www-authenticate"]
    assert host.configs == {}


@pytest.mark.parametrize(
    "header",
    ["", "Basic", "Basic !!!", "Basic YWxpY2U=", "Bearer", "Bearer wrong", "Digest x", "Basic YWxpY2U6d3Jvbmc="],
)
def test_a_wrong_name_or_token(guarded: TestClient, header: str) -> None:
    assert guarded.get("/connectors", headers={"Authorization": header}).status_code == 401


def test_an_operator_may_everything(guarded: TestClient) -> None:
    assert guarded.post("/connectors", json={"name": "x", "config": CONFIG}, auth=("alice", "first")).status_code == 201
    assert guarded.delete("/connectors/x", headers=_bearer("third")).status_code == 204


def test_who_only_reads(guarded: TestClient, host: MemoryHost) -> None:
    validate = "/connector-plugins/MirrorSourceConnector/config/validate"
    for kind in ({"auth": ("bob", "second")}, {"headers": _bearer("fourth")}):
        assert guarded.get("/connectors", **kind).status_code == 200  # type: ignore[arg-type]
        assert guarded.put(validate, json=CONFIG, **kind).status_code == 200  # type: ignore[arg-type]
        answer = guarded.post("/connectors", json={"name": "x", "config": CONFIG}, **kind)  # type: ignore[arg-type]
        assert (answer.status_code, answer.json()["error_code"]) == (403, 403)
    assert host.configs == {}


def test_probes_need_no_name(guarded: TestClient) -> None:
    assert guarded.get("/health").status_code == 200


def test_a_page_elsewhere_may_not_change_anything(client: TestClient, host: MemoryHost) -> None:
    body = {"name": "x", "config": CONFIG}
    assert client.post("/connectors", json=body, headers={"Origin": "https://evil.example"}).status_code == 403
    assert host.configs == {}
    assert client.post("/connectors", json=body, headers={"Origin": "http://testserver"}).status_code == 201


@pytest.mark.parametrize(
    "text", ["", "boss user a marked", "operator user a", "operator token", "operator token sha256:marked"]
)
def test_a_file_that_is_wrong(tmp_path: Path, text: str) -> None:
    file = tmp_path / "users"
    file.write_text(text)
    with pytest.raises(SettingsError, match="users") as caught:
        read_access(file)
    assert "marked" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_access(tmp_path / "nobody")


def test_a_repr_shows_nothing(tmp_path: Path) -> None:
    assert repr(Access()) == "Access()"


SECRETS = {
    "sasl.jaas.config": 'x required username="u" password="marked";',
    "source.cluster.ssl.keystore.password": "marked",
    "target.cluster.ssl.key.password": "marked",
    "source.cluster.ssl.keystore.key": "marked",
    "some.other.secret": "marked",
    "vendor.api.key": "marked",
}


def test_secrets_are_hidden_and_come_back_unharmed(client: TestClient, host: MemoryHost) -> None:
    config = {**CONFIG, **SECRETS, "source.cluster.ssl.truststore.password": "${env:PASSWORD}"}
    answers = [client.post("/connectors", json={"name": "x", "config": config})]
    answers += [client.get(f"/connectors{path}") for path in ("/x", "/x/config", "/x/tasks", "?expand=info")]
    validate = "/connector-plugins/MirrorSourceConnector/config/validate"
    answers.append(client.put(validate, json=config))
    for answer in answers:
        assert "marked" not in answer.text
    shown = client.get("/connectors/x/config").json()
    assert shown["source.cluster.ssl.truststore.password"] == "${env:PASSWORD}"
    assert client.put("/connectors/x/config", json={**shown, "tasks.max": "3"}).status_code == 200
    assert host.configs["x"] == {**config, "name": "x", "tasks.max": "3"}
