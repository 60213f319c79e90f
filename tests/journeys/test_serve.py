"""``mirrorspark serve`` as an operator has it: the seeds' connector files by curl, a kill in the middle, all back; and no
secret anywhere where somebody else could read it. By command they are deployed in ``test_flow_resources``."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.journeys import marked_secrets
from tests.journeys.marked_secrets import MARK, marked_lines
from tests.journeys.seed_files import CLUSTER, command, seed_files
from tests.journeys.test_connect_conformance import more_records, with_records

from mirrorspark.lab.child import Child
from mirrorspark.lab.clients import topic_partitions, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.plain_records import read_records
from mirrorspark.lab.process_tree import kill_tree

DEADLINE_S = 180.0
TOKEN = f"{MARK}-token"
USERS = f"operator token {TOKEN}\nread-only user bob {MARK}-user\n"
LISTENING = re.compile(r"listening on ([\w.:]+)")
BROKEN = "mm2-msc-broken"
"""A connector that logs in where nobody asks for it."""


class Server:
    """The command in a process of its own."""

    def __init__(self, arguments: list[str], folder: Path) -> None:
        folder.mkdir()
        self.log = folder / "serve.log"
        environment = {marked_secrets.VARIABLE: f"{MARK}-variable"}
        self.child = Child([sys.executable, "-m", "mirrorspark", "serve", *arguments], self.log, environment)

    def address(self) -> str:
        wait_for(self._is_listening, "the server's port", DEADLINE_S, 0.1)
        found = LISTENING.search(self.log.read_text())
        assert found is not None
        return f"http://{found[1]}"

    def _is_listening(self) -> bool:
        assert self.child.is_alive, self.log.read_text()
        return LISTENING.search(self.log.read_text()) is not None


@pytest.fixture
def begin(target_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts the server, each time with the same worker's file."""
    worker = tmp_path / "connect-distributed.properties"
    keys = {"bootstrap.servers": target_cluster.bootstrap, "group.id": topic_name, **marked_secrets.WORKER}
    keys |= {f"{name}.storage.topic": f"{topic_name}-{name}" for name in ("config", "offset", "status")}
    worker.write_text(
        "".join(f"{key}={value}\n" for key, value in keys.items()) + "config.storage.replication.factor=1\n"
    )
    users = tmp_path / "users"
    users.write_text(USERS)
    begun: list[Server] = []

    def start(*more: str) -> Server:
        arguments = [str(worker), "--listen", "127.0.0.1:0", "--users", str(users), *more]
        begun.append(Server(arguments, tmp_path / f"server-{len(begun)}"))
        return begun[-1]

    yield start
    for one in begun:
        kill_tree(one.child.pid)


class Operator:
    """Asks a server by HTTP and by command; keeps all that is said."""

    def __init__(self, folder: Path) -> None:
        self.base = ""
        self.told: list[str] = []
        self._folder = folder

    def ask(self, method: str, path: str, body: object = None, *, token: str = TOKEN) -> httpx.Response:
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        answer = httpx.request(
            method, f"{self.base}{path}", content=content, headers=headers, timeout=90, trust_env=False
        )
        self.told.append(f"{method} {path} {answer.headers} {answer.text}")
        return answer

    def command(self, *words: str) -> Any:
        """The exit code and the answer's JSON."""
        code, answer, said = command(self.base, self._folder, *words, token=TOKEN)
        self.told.append(said)
        return code, answer

    def is_running(self, name: str) -> bool:
        answer = self.ask("GET", f"/connectors/{name}/status")
        states = [one["state"] for one in (answer.json()["connector"], *answer.json()["tasks"])]
        return len(states) > 1 and set(states) == {"RUNNING"}


def _broken(seed: dict[str, Any]) -> dict[str, Any]:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    login |= {"sasl.jaas.config": marked_secrets.JAAS.format("refused")}
    config = {**seed["mm2-msc-source-0"], **{f"source.cluster.{key}": value for key, value in login.items()}}
    return {**config, "name": BROKEN, "source.cluster.alias": f"broken-{os.getpid()}"}


def copies(cluster: ClusterOfBrokers, topic: str) -> int:
    """Records that a consumer of the copy is given; the fence of a restart is none."""
    if topic_partitions(cluster.bootstrap, topic) == 0:
        return 0
    return sum(len(records) for records in read_records(cluster.bootstrap, topic).values())


def test_the_seeds_connectors_survive_a_kill_and_no_secret_is_seen(
    begin: Callable[..., Server],
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "mm2"
    alias = f"seed-{os.getpid()}"
    seed = seed_files(folder, (alias, source_cluster), target_cluster, topic_name, marked_secrets.CONNECTOR)
    with_records(source_cluster, topic_name)
    operator = Operator(folder)
    ask = operator.ask

    def all_run(when: str) -> None:
        for name in seed:
            wait_for(lambda name=name: operator.is_running(name), f"{name} running {when}", DEADLINE_S, 0.2)  # type: ignore[misc]

    server = begin()
    operator.base = server.address()
    wait_for(lambda: ask("GET", "/health").status_code == 200, "a healthy server", DEADLINE_S, 0.1)
    assert ask("GET", "/connectors", token=f"{MARK}-wrong").status_code == 401
    for name, config in seed.items():
        assert ask("PUT", f"/connectors/{name}/config", config).status_code == 201
    assert ask("POST", "/connectors", {"name": BROKEN, "config": _broken(seed)}).status_code == 201
    all_run("after curl")
    wait_for(lambda: copies(target_cluster, topic_name) == 10, "the first copies", DEADLINE_S, 0.2)

    server.child.kill()
    more_records(source_cluster, topic_name)
    server = begin("--ui", "--log-format", "json")
    operator.base = server.address()
    wait_for(lambda: ask("GET", "/health").status_code == 200, "a healthy server again", DEADLINE_S, 0.1)
    all_run("after the kill")
    assert set(ask("GET", "/connectors").json()) == {*seed, BROKEN}
    wait_for(lambda: copies(target_cluster, topic_name) == 20, "each record once", DEADLINE_S, 0.5)

    code, found = operator.command("status", CLUSTER)
    assert (code, [one["state"] for one in found["connectors"]]) == (0, ["RUNNING"] * 3)
    code, found = operator.command("deploy", CLUSTER)
    actions = [one["action"] for one in found["connectors"]]
    assert (code, actions) == (0, ["sent again", "unchanged", "unchanged"]), "what is deployed stays"
    _look_everywhere(operator, server, target_cluster, topic_name)

    code, found = operator.command("undeploy", CLUSTER)
    assert (code, [one["state"] for one in found["connectors"]]) == (0, ["NOT DEPLOYED"] * 3)
    assert ask("GET", "/connectors").json() == [BROKEN]

    server.child.stop(90)
    assert server.child.exit_code == 0, server.log.read_text()
    logs = [path.read_text() for path in sorted(tmp_path.glob("server-*/serve.log"))]
    assert len(logs) == 2
    assert marked_lines([*operator.told, *logs]) == []
    lines = [json.loads(line) for line in logs[1].splitlines() if line.startswith("{")]
    codes = {line["code"] for line in lines}
    assert {"server.listening"} <= codes, logs[1]
    assert any(BROKEN in line["text"] or "broken-" in line["text"] for line in lines), "its trouble was logged"


def _look_everywhere(operator: Operator, server: Server, target: ClusterOfBrokers, topic: str) -> None:
    """Where the secrets of ``marked_secrets`` could be read by somebody else, while everything runs."""
    ask = operator.ask
    trace = wait_for_trace(operator)
    assert MARK not in trace
    shown = ask("GET", "/connectors/mm2-msc-source-0/config").json()
    assert {key: shown[key] for key in marked_secrets.CONNECTOR} == dict.fromkeys(marked_secrets.CONNECTOR, "[hidden]")
    names = [*ask("GET", "/connectors").json()]
    for path in ("", "/config", "/status", "/tasks", "/topics", "/offsets", "/tasks/0/status"):
        for name in names:
            ask("GET", f"/connectors/{name}{path}")
    plugin = "/connector-plugins/MirrorSourceConnector/config"
    own = ("/", "/metrics", "/openapi.json", "/admin/loggers", "/connectors?expand=info&expand=status", plugin)
    for path in (
        *own,
        "/mirrorspark/v1/about",
        "/mirrorspark/v1/topology",
        "/mirrorspark/v1/flows",
        "/mirrorspark/v1/events",
    ):
        assert ask("GET", path).status_code == 200, path
    alias = f"seed-{os.getpid()}"
    flows = [one["flow"] for one in ask("GET", "/mirrorspark/v1/flows").json()["flows"]]
    (flow,) = [one for one in flows if one.startswith(f"{alias}->")]
    for part in ("", "/partitions", "/lanes", "/lag", "/groups", "/readiness", "/events", "/config"):
        path = f"/mirrorspark/v1/flows/{quote(flow, safe='')}{part}"
        assert ask("GET", path).status_code == 200, operator.told[-1]
    broken = {**marked_secrets.CONNECTOR, "connector.class": "MirrorSourceConnector", "tasks.max": "none"}
    assert ask("PUT", f"{plugin}/validate", broken).json()["error_count"] > 0
    for body in marked_secrets.MISTAKES:
        for path in ("/connectors/another/config", f"{plugin}/validate"):
            assert ask("PUT", path, body).status_code in (200, 201, 400)
        assert ask("POST", "/connectors", b'{"name": "more", "config": ' + body + b"}").status_code in (201, 400)
        for name in ("another", "more"):
            for part in ("", "/status"):
                ask("GET", f"/connectors/{name}{part}")
            assert ask("DELETE", f"/connectors/{name}").status_code in (204, 404)
    assert ask("PUT", f"/connectors/{names[0]}/config", {"name": "x", **marked_secrets.CONNECTOR}).status_code == 400
    assert marked_lines(operator.told) == []

    assert marked_lines(marked_secrets.process_lines()) == []
    pages = marked_secrets.spark_pages(server.child.pid)
    assert "mirrorspark" in pages["StreamingQuery"]
    assert [page for page, text in pages.items() if MARK in text] == []
    # Connect's config topic holds connectors as they were given: that is its nature, and docs say who may read it.
    texts = marked_secrets.topic_texts(
        target, (topic, alias, f"broken-{os.getpid()}", "mirrorspark-writers."), f"{topic}-config"
    )
    assert f"{topic}-status" in texts
    assert [name for name in texts if name.startswith("mirrorspark-plan.") and alias in name] != []
    assert [name for name, text in texts.items() if MARK in text] == []


def wait_for_trace(operator: Operator) -> str:
    """Why the connector fails that logs in where nobody asks for it."""

    def trace() -> str:
        body = operator.ask("GET", f"/connectors/{BROKEN}/status").json()
        return str(body["connector"].get("trace", ""))

    wait_for(lambda: bool(trace()), "the broken connector's reason", DEADLINE_S, 0.5)
    return trace()
