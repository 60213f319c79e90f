"""``mirrorspark serve`` as an operator has it: the seeds' connector files by curl, a kill in the middle, everything back."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.test_connect_conformance import call, is_in_state, more_records, with_records

from mirrorspark.lab.child import Child
from mirrorspark.lab.clients import topic_partitions, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.plain_records import read_records
from mirrorspark.lab.process_tree import kill_tree

DEADLINE_S = 180.0
SEED = Path(__file__).parents[1] / "config" / "forms" / "data" / "seed_connect"
USERS = "operator token first-marked\nread-only user bob second-marked\n"
OPERATOR = {"Authorization": "Bearer first-marked", "Content-Type": "application/json"}
LISTENING = re.compile(r"listening on (\S+)")


class Server:
    """The command in a process of its own."""

    def __init__(self, arguments: list[str], folder: Path) -> None:
        folder.mkdir()
        self.log = folder / "serve.log"
        self.child = Child([sys.executable, "-m", "mirrorspark", "serve", *arguments], self.log, {})

    def address(self) -> str:
        wait_for(self._is_listening, "the server's port", DEADLINE_S, 0.1)
        found = LISTENING.search(self.log.read_text())
        assert found is not None
        return f"http://{found[1]}"

    def _is_listening(self) -> bool:
        assert self.child.is_alive, self.log.read_text()
        return LISTENING.search(self.log.read_text()) is not None


@pytest.fixture
def begin(target_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path) -> Iterator[Callable[[], Server]]:
    """Starts the server, each time with the same worker's file."""
    worker = tmp_path / "connect-distributed.properties"
    topics = {name: f"{topic_name}-{name}" for name in ("config", "offset", "status")}
    worker.write_text(
        f"bootstrap.servers={target_cluster.bootstrap}\ngroup.id={topic_name}\n"
        + "".join(f"{name}.storage.topic={topic}\n" for name, topic in topics.items())
        + "config.storage.replication.factor=1\n"
    )
    users = tmp_path / "users"
    users.write_text(USERS)
    begun: list[Server] = []

    def start() -> Server:
        arguments = [str(worker), "--listen", "127.0.0.1:0", "--users", str(users)]
        begun.append(Server(arguments, tmp_path / f"server-{len(begun)}"))
        return begun[-1]

    yield start
    for one in begun:
        kill_tree(one.child.pid)


def _seed(source: ClusterOfBrokers, target: ClusterOfBrokers, topic: str) -> dict[str, dict[str, Any]]:
    """The seeds' three files for this run's clusters; one of them with a secret in it."""
    changes = {
        "source.cluster.bootstrap.servers": source.bootstrap,
        "target.cluster.bootstrap.servers": target.bootstrap,
        "source.cluster.alias": f"s-{os.getpid()}",
    }
    found = {}
    for short in ("msc", "cpc", "hbc"):
        config = {**json.loads((SEED / f"mm2-{short}-source-0.json").read_text()), **changes}
        if short == "msc":
            config |= {"topics": topic, "vendor.secret": "third-marked"}
        found[config["name"]] = config
    return found


def copies(cluster: ClusterOfBrokers, topic: str) -> int:
    """Records that a consumer of the copy is given; the fence of a restart is none."""
    if topic_partitions(cluster.bootstrap, topic) == 0:
        return 0
    return sum(len(records) for records in read_records(cluster.bootstrap, topic).values())


def test_the_seeds_connectors_survive_a_kill(
    begin: Callable[[], Server], source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    seed = _seed(source_cluster, target_cluster, topic_name)
    with_records(source_cluster, topic_name)
    server = begin()
    base = server.address()
    texts: list[str] = []

    def ask(method: str, path: str, body: object = None) -> Any:
        answer = call(base, method, path, None if body is None else json.dumps(body).encode(), OPERATOR)
        texts.append(json.dumps(answer.body))
        return answer

    def is_running(name: str) -> bool:
        return is_in_state(base, name, "RUNNING", OPERATOR)

    wait_for(lambda: bool(ask("GET", "/health").code == 200), "a healthy server", DEADLINE_S, 0.1)
    assert call(base, "GET", "/connectors").code == 401
    assert call(base, "GET", "/connectors", headers={"Authorization": "Bearer wrong"}).code == 401
    for name, config in seed.items():
        assert ask("PUT", f"/connectors/{name}/config", config).code == 201
    for name in seed:
        wait_for(lambda name=name: is_running(name), f"{name} running", DEADLINE_S, 0.2)  # type: ignore[misc]
    wait_for(lambda: copies(target_cluster, topic_name) == 10, "the first copies", DEADLINE_S, 0.2)

    server.child.kill()
    more_records(source_cluster, topic_name)
    server = begin()
    base = server.address()
    for name in seed:
        wait_for(lambda name=name: is_running(name), f"{name} running again", DEADLINE_S, 0.2)  # type: ignore[misc]
    assert set(ask("GET", "/connectors").body) == set(seed)
    shown = ask("GET", "/connectors/mm2-msc-source-0/config").body
    assert shown["vendor.secret"] == "[hidden]"
    wait_for(lambda: copies(target_cluster, topic_name) == 20, "each record once", DEADLINE_S, 0.5)

    ask("GET", "/connectors?expand=info&expand=status")
    for name in seed:
        assert ask("DELETE", f"/connectors/{name}").code == 204
    assert ask("GET", "/connectors").body == []
    server.child.stop(90)
    assert server.child.exit_code == 0, server.log.read_text()
    told = "".join(texts) + "".join(one.read_text() for one in server.log.parent.parent.glob("server-*/serve.log"))
    assert "marked" not in told
