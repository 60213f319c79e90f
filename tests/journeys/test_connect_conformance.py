"""Kafka Connect's REST interface, case by case: a real worker and mirrorspark give the same codes and the same shapes.

Both run MirrorMaker 2's three connectors between the same clusters, under aliases of their own. Where Connect answers a
client's mistake with 500, mirrorspark says 400.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Awaitable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.connect_cases import CASES, Case, configs, request_body, shape
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.control.connect.serving import Serving
from mirrorspark.control.connect.topics import TopicNames
from mirrorspark.control.connect.worker_file import WorkerSettings
from mirrorspark.lab.clients import create_topic, producer, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.connect_worker import ConnectWorker
from mirrorspark.lab.flow_without_spark import LaneProcesses
from mirrorspark.rest.access import Access
from mirrorspark.rest.server import Listener
from mirrorspark.settings import ClusterSettings, FlowSettings, parse_bootstrap

STATE_DEADLINE_S = 120.0
CALL_TIMEOUT_S = 90.0
MISTAKES_THAT_CONNECT_CALLS_ITS_OWN = 500, 400
"""Connect's code for a client's mistake, and ours."""
_COMMAND = threading.Lock()
"""Who runs a command in this process has its standard output and its environment."""
FREE_MAPS = ("config",)
"""Fields whose keys are a user's, or differ by version."""


class LanesForFlows:
    """Lanes in plain processes, for flows that come and go."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lanes: list[LaneProcesses] = []

    where = "no Spark"
    tasks_at_once: int | None = None

    def begin(self, lanes: int) -> None:
        pass

    async def _up(self) -> object:
        return None

    def up(self) -> Awaitable[object]:
        return self._up()

    def make_query(self, settings: FlowSettings, generation: int) -> LaneProcesses:
        folder = self._folder / f"query-{len(self._lanes)}"
        folder.mkdir(parents=True)
        self._lanes.append(LaneProcesses(settings, generation, folder))
        return self._lanes[-1]

    def carry_early(self, settings: FlowSettings, generation: int) -> bool:
        return False

    def kill(self) -> None:
        for one in self._lanes:
            one.kill()


@contextmanager
def serving(cluster: ClusterOfBrokers, group: str, folder: Path, access: Access | None = None) -> Iterator[str]:
    """A server in a thread of its own; its address."""
    lanes = LanesForFlows(folder)
    settings = WorkerSettings(
        ClusterSettings("connect", parse_bootstrap(cluster.bootstrap, "bootstrap")),
        TopicNames(f"{group}-configs", f"{group}-status", 1),
        Listener(port=0),
        None,
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(180)

    async def make() -> Serving:
        one = Serving(settings, access or Access(), lanes)
        await one.start()
        return one

    server = run(make())
    try:
        yield f"http://{server.address}"
    finally:
        try:
            run(server.stop())
        finally:
            lanes.kill()
            loop.call_soon_threadsafe(loop.stop)
            thread.join(30)
            loop.close()


@dataclass(frozen=True)
class Answer:
    code: int
    body: Any
    location: str


def call(base: str, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = {}) -> Answer:
    request = urllib.request.Request(f"{base}{path}", method=method, data=body, headers=dict(headers))
    try:
        with urllib.request.urlopen(request, timeout=CALL_TIMEOUT_S) as answer:
            return _answer(answer.status, answer.read(), answer.headers)
    except urllib.error.HTTPError as error:
        return _answer(error.code, error.read(), error.headers)


def _answer(code: int, raw: bytes, headers: Any) -> Answer:
    return Answer(code, json.loads(raw) if raw else None, headers.get("Location") or "")


def conversation(base: str, known: Mapping[str, dict[str, Any]]) -> dict[str, Answer]:
    """All cases in their order."""
    names = {short: config["name"] for short, config in known.items()}
    found = {}
    for case in CASES:
        for short, state in case.states.items():
            wait_for(
                lambda short=short, state=state: is_in_state(base, names[short], state),  # type: ignore[misc]
                f"{names[short]} {state} before {case.name!r}",
                STATE_DEADLINE_S,
                0.1,
            )
        answer = call(base, case.method, case.path.format(**names), request_body(case, known), dict(case.headers))
        found[case.name] = _comparable(answer, known["msc"]["source.cluster.alias"], names.get(case.focus))
    return found


def _comparable(answer: Answer, alias: str, focus: str | None) -> Answer:
    """Aliases of the two differ, all else that a user gave is equal."""
    body = json.loads(json.dumps(answer.body).replace(alias, "east"))
    return replace(answer, body=body[focus] if focus is not None else body)


def is_in_state(base: str, name: str, state: str, headers: Mapping[str, str] = {}) -> bool:
    answer = call(base, "GET", f"/connectors/{name}/status", headers=headers)
    if answer.code != 200 or answer.body["connector"]["state"] != state:
        return False
    tasks = [task["state"] for task in answer.body["tasks"]]
    return all(one == state for one in tasks) and (bool(tasks) or state != "RUNNING")


def _shape(body: object) -> object:
    """Shapes that do not depend on whose keys and plugins there are."""
    if isinstance(body, dict):
        return {key: _shape_of(key, one) for key, one in sorted(body.items())}
    if isinstance(body, list):
        return [_shape(body[0])] if body else []
    return shape(body)


def _shape_of(key: str, value: object) -> object:
    if key in FREE_MAPS and isinstance(value, dict):
        return "free"
    if key == "version":  # null for a moment after a restart
        return "str"
    return _shape(value)


def differences(case: Case, connect: Answer, ours: Answer) -> list[str]:
    found = []
    is_mistake = (connect.code, ours.code) == MISTAKES_THAT_CONNECT_CALLS_ITS_OWN
    if connect.code != ours.code and not is_mistake:
        found.append(f"{case.name}: code {connect.code}, ours {ours.code}: {ours.body}")
    if bool(connect.location) != bool(ours.location):
        found.append(f"{case.name}: location {connect.location!r}, ours {ours.location!r}")
    theirs, own = (type(one.body) if case.is_free_map else _shape(one.body) for one in (connect, ours))
    if theirs != own:
        found.append(f"{case.name}: shape {theirs}, ours {own}")
    for field in case.exact:
        if connect.body.get(field) != ours.body.get(field):
            found.append(f"{case.name}: {field} {connect.body.get(field)!r}, ours {ours.body.get(field)!r}")
    return found


def deployed_by_command(base: str, known: Mapping[str, dict[str, Any]], folder: Path) -> None:
    """The same command line for both: deploy, see, undeploy, each twice."""
    folder.mkdir()
    for short, config in known.items():
        (folder / f"mm2-{short}-east.json").write_text(json.dumps({"name": config["name"], "config": config}))

    def told(*words: str) -> list[str]:
        environment = {"MIRRORSPARK_URL": base, "MIRRORSPARK_FOLDER": str(folder)}
        with _COMMAND:
            done = CliRunner().invoke(app, [*words, "east", "--json"], env=environment)
        assert done.exit_code == 0, done.output
        return [one.get("action", one["state"]) for one in json.loads(done.stdout)["connectors"]]

    told("undeploy")  # the conversation's last words may still be on their way
    assert told("undeploy") == ["not there"] * 3
    assert told("deploy", "--dry-run") == told("deploy") == ["created"] * 3
    assert told("status") == ["RUNNING"] * 3
    assert told("deploy") == ["unchanged"] * 3
    assert told("undeploy") == ["deleted"] * 3


@pytest.fixture
def known(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str
) -> dict[str, dict[str, dict[str, Any]]]:
    """For each of the two: its three connectors. Names are equal, so that answers are; aliases are not."""
    names = {"msc": f"msc-{topic_name}", "cpc": f"cpc-{topic_name}", "hbc": f"hbc-{topic_name}"}
    target = ("west", target_cluster.bootstrap)
    with_records(source_cluster, topic_name)
    return {
        who: configs(names, (f"{who}-{os.getpid()}", source_cluster.bootstrap), target, topic_name)
        for who in ("connect", "ours")
    }


def with_records(cluster: ClusterOfBrokers, topic: str) -> None:
    create_topic(cluster.bootstrap, topic, 1)
    more_records(cluster, topic)


def more_records(cluster: ClusterOfBrokers, topic: str, count: int = 10) -> None:
    client = producer(cluster.bootstrap)
    for number in range(count):
        client.produce(topic, f"record {number}".encode())
    assert client.flush(60) == 0


def test_case_by_case(known: Any, target_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path) -> None:
    """Both conversations at the same time: each mostly waits for its own connectors."""
    group = f"connect-{topic_name}"
    worker = ConnectWorker(
        target_cluster.bootstrap,
        tmp_path / "connect",
        group=group,
        offsets_topic=f"{group}-offsets",
        status_topic=f"{group}-status",
    )

    def with_connect() -> dict[str, Answer]:
        with worker:
            found = conversation(worker.address, known["connect"])
            deployed_by_command(worker.address, known["connect"], tmp_path / "connect-files")
            return found

    def with_us() -> dict[str, Answer]:
        with serving(target_cluster, f"ours-{topic_name}", tmp_path / "ours") as address:
            wait_for(lambda: call(address, "GET", "/health").code == 200, "a healthy server", STATE_DEADLINE_S, 0.1)
            found = conversation(address, known["ours"])
            deployed_by_command(address, known["ours"], tmp_path / "our-files")
            return found

    with ThreadPoolExecutor(2) as threads:
        begun = {"connect": threads.submit(with_connect), "ours": threads.submit(with_us)}
        answers = {who: one.result() for who, one in begun.items()}
    found = [
        line for case in CASES for line in differences(case, answers["connect"][case.name], answers["ours"][case.name])
    ]
    assert found == []
