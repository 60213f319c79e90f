"""``/mirrorspark/v1`` over live flows, as the page and an operator use it: of ``run`` and of ``serve``.

Real brokers, lanes in plain processes. Requests made up from the server's own description break neither.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from tests.journeys.connect_cases import JSON
from tests.journeys.flow_page import see_page
from tests.journeys.seed_files import CLUSTER, command, seed_files
from tests.journeys.test_connect_conformance import (
    Answer,
    LanesForFlows,
    call,
    is_in_state,
    serving,
    with_records,
)

from mirrorspark.config.load import Deployment, parse_deployment
from mirrorspark.control.flow_set import FlowSet
from mirrorspark.control.metrics_endpoint import MetricsEndpoint
from mirrorspark.control.reload import all_pairs
from mirrorspark.control.rest_endpoint import RestEndpoint
from mirrorspark.lab.clients import wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.plain_records import read_records
from mirrorspark.settings import MetricsSettings, RestSettings

DEADLINE_S = 180.0
BASE = "/mirrorspark/v1"
EXAMPLES_MAX = 1
"""For each of about 50 operations, some of which ask the clusters; more of them in ``tests/rest/test_openapi``."""


class Client:
    """Of one server and one of its flows."""

    def __init__(self, base: str, flow: str) -> None:
        self.base = base
        self.flow = flow
        self.here = f"{BASE}/flows/{quote(flow, safe='')}"

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        return call(self.base, method, path, None if body is None else json.dumps(body).encode(), JSON)

    def get(self, path: str = "") -> Any:
        answer = self.ask("GET", f"{self.here}{path}")
        assert answer.code == 200, answer.body
        return answer.body

    def runs(self) -> bool:
        answer = self.ask("GET", self.here)
        return (
            answer.code == 200 and answer.body["verdict"] == "running" and answer.body["lag_looked_age_s"] is not None
        )


# -- what is looked at -------------------------------------------------------------------------------------------------


def _see(client: Client, topic: str, remote: str, target: ClusterOfBrokers) -> None:
    """Ten records have been copied: every resource tells of them, and the ledger to the record."""
    wait_for(client.runs, "a flow that runs", DEADLINE_S, 0.2)
    wait_for(lambda: client.get()["lag_records"] == 0 and client.get()["records"] >= 10, "ten records", DEADLINE_S, 0.2)
    found = client.get()
    assert (found["events_count"], found["carries"], found["lanes"]["reporting"]) == (0, True, 1), found["notices"]
    assert client.flow in [one["flow"] for one in client.ask("GET", f"{BASE}/topology").body["flows"]]
    page = client.get(f"/partitions?search={topic}&sort=name")
    assert [(one["topic"], one["remote_topic"], one["source_next"]) for one in page["partitions"]] == [
        (topic, remote, 10)
    ]
    assert [(one["lane"], one["reports"]) for one in client.get("/lanes")["lanes"]] == [(0, True)]
    assert topic in [one["topic"] for one in client.get("/lag")["topics"]]
    values = {one["name"]: one for one in client.get("/config")["settings"]}
    assert (values["topics"]["value"], values["topics"]["is_default"]) == (topic, False)
    _translate(client, topic, remote, target)
    groups = client.get("/groups")
    assert groups["matched"] == groups["total"]
    assert client.ask("GET", f"{client.here}/groups/nobody").code == 404
    ready = client.get("/readiness")
    assert {"source", "mirror", "groups"} <= {one["subject"] for one in ready["checks"]}, ready
    assert ready["ready"] is (ready["state"] == "ready")


def _translate(client: Client, topic: str, remote: str, target: ClusterOfBrokers) -> None:
    def place(offset: int) -> str:
        return f"/ledger?topic={topic}&partition=0&offset={offset}"

    copies = {one.offset: one.value for one in read_records(target.bootstrap, remote)[0]}
    wait_for(lambda: client.get(place(9))["exact"], "the last record in the ledger", DEADLINE_S, 0.2)
    for offset in (0, 9):
        assert copies[client.get(place(offset))["target_offset"]] == f"record {offset}".encode()
    assert client.ask("GET", f"{client.here}{place(99)}").code == 400
    assert client.ask("GET", f"{client.here}/ledger?topic=nobody&partition=0&offset=0").code == 400


def _steer(client: Client, topic: str, remote: str, connector: str) -> None:
    """Pause and resume, one topic and all, and by Connect's own resource too."""

    def stands(state: str) -> None:
        wait_for(lambda: is_in_state(client.base, quote(connector), state), f"{connector} {state}", DEADLINE_S, 0.2)

    here = client.here
    assert client.ask("POST", f"{here}/pause", {"topics": ["nobody"]}).code == 400
    paused = client.ask("POST", f"{here}/pause", {"topics": [topic]}).body
    assert paused == {"flow": client.flow, "paused": [remote], "is_taken": True}
    assert client.get(f"/partitions?search={topic}")["partitions"][0]["is_paused"]
    assert client.ask("POST", f"{here}/pause").body["paused"] == ["*"]
    stands("PAUSED")
    assert client.get()["is_paused"]
    assert client.ask("POST", f"{here}/resume").body["paused"] == []
    stands("RUNNING")
    assert not client.get()["is_paused"]
    assert call(client.base, "PUT", f"/connectors/{quote(connector)}/pause").code == 202
    wait_for(lambda: client.get()["is_paused"], "a pause by Connect's resource", DEADLINE_S, 0.2)
    assert call(client.base, "PUT", f"/connectors/{quote(connector)}/resume").code == 202
    wait_for(lambda: not client.get()["is_paused"], "a resume by Connect's resource", DEADLINE_S, 0.2)


def _first_of_stream(client: Client) -> list[str]:
    with urllib.request.urlopen(f"{client.base}{BASE}/stream", timeout=DEADLINE_S) as answer:
        assert answer.readline() == b"event: flows\n"
        return [one["flow"] for one in json.loads(answer.readline().partition(b"data: ")[2])["flows"]]


def _no_request_breaks_it(client: Client, connector: str) -> int:
    """The flow's and the connector's names are put in where one is read. How many went."""
    schema = schemathesis.openapi.from_url(f"{client.base}/openapi.json")
    sent = 0
    for found in schema.get_all_operations():

        @settings(
            max_examples=EXAMPLES_MAX,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=found.ok().as_strategy())
        def ask(case: Any) -> None:
            nonlocal sent
            for word, name in (("flow", client.flow), ("connector", connector)):
                if word in (case.path_parameters or {}) and (word == "flow" or case.method == "GET"):
                    case.path_parameters[word] = name
            case.call_and_validate(checks=(not_a_server_error,))
            sent += 1

        ask()
    return sent


# -- run ---------------------------------------------------------------------------------------------------------------


@contextmanager
def _running(deployment: Deployment, folder: Path) -> Iterator[str]:
    """A file's flows and their REST in a thread of its own; its address."""
    lanes = LanesForFlows(folder)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(180)

    async def begin() -> tuple[FlowSet, RestEndpoint]:
        flows = FlowSet(lanes)
        metrics = MetricsEndpoint(MetricsSettings(), lambda: flows.statuses)
        endpoint = RestEndpoint(
            RestSettings((":0",)),
            "mm2.properties",
            flows,
            lambda: deployment,
            restart=lambda flow: None,
            metrics=metrics.text,
        )
        await endpoint.open()
        for one in all_pairs(deployment):
            flows.begin(one)
        return flows, endpoint

    flows, endpoint = run(begin())
    try:
        yield f"http://{endpoint.addresses[0]}"
    finally:
        try:
            run(endpoint.close())
            run(flows.stop())
        finally:
            lanes.kill()
            loop.call_soon_threadsafe(loop.stop)
            thread.join(30)
            loop.close()


def _records_told(address: str, flow: str) -> float | None:
    """By /metrics; None where it does not name the flow."""
    with urllib.request.urlopen(f"{address}/metrics", timeout=DEADLINE_S) as answer:
        lines = answer.read().decode().splitlines()
    found = [line for line in lines if line.startswith(f'mirrorspark_flow_records_total{{flow="{flow}"}}')]
    return float(found[0].rsplit(" ", 1)[1]) if found else None


def test_a_files_flow_is_seen_and_steered(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path
) -> None:
    source = f"shown-{os.getpid()}"
    flow = f"{source}->west"
    with_records(source_cluster, topic_name)
    factors = ("offset.storage", "status.storage", "config.storage", "checkpoints.topic", "offset-syncs.topic")
    deployment = parse_deployment(
        {
            "clusters": f"{source}, west",
            f"{source}.bootstrap.servers": source_cluster.bootstrap,
            "west.bootstrap.servers": target_cluster.bootstrap,
            f"{flow}.enabled": "true",
            f"{flow}.topics": topic_name,
            "replication.factor": "1",
            "sync.topic.acls.enabled": "false",
            "emit.heartbeats.enabled": "false",
            # The run's clusters are shared: another test's heartbeats would be one topic more.
            "heartbeats.replication.enabled": "false",
            **{f"{name}.replication.factor": "1" for name in factors},
        },
        lenient=True,
    )
    with _running(deployment, tmp_path / "run") as address:
        client = Client(address, flow)
        remote = f"{source}.{topic_name}"
        _see(client, topic_name, remote, target_cluster)
        _steer(client, topic_name, remote, f"{flow}.MirrorSourceConnector")
        wait_for(client.runs, "a flow that runs again", DEADLINE_S, 0.2)
        see_page(address, flow, topic_name)
        assert _first_of_stream(client) == [flow]
        wait_for(lambda: _records_told(address, flow) == 10, "ten records in /metrics", DEADLINE_S, 0.2)
        offsets = client.ask("GET", f"/connectors/{quote(flow)}.MirrorSourceConnector/offsets").body["offsets"]
        assert [one["offset"] for one in offsets if one["partition"]["topic"] == topic_name] == [{"offset": 9}]
        assert client.ask("DELETE", f"/connectors/{quote(flow)}.MirrorSourceConnector").code == 409
        assert _no_request_breaks_it(client, f"{flow}.MirrorSourceConnector") > 40
        assert client.ask("POST", f"{client.here}/resume").code == 200
        wait_for(client.runs, "a flow that runs after all that", DEADLINE_S, 0.2)


# -- serve -------------------------------------------------------------------------------------------------------------


def test_a_connectors_flow_is_seen_and_steered(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path
) -> None:
    """The seeds' files by ``mirrorspark deploy``: they replicate, are seen, survive any request, are taken away."""
    source, folder = f"made-{os.getpid()}", tmp_path / "mm2"
    seed = seed_files(folder, (source, source_cluster), target_cluster, topic_name)
    (connector,) = (name for name in seed if "msc" in name)
    with_records(source_cluster, topic_name)

    def told(*words: str) -> list[str]:
        code, answer, said = command(address, folder, *words, CLUSTER)
        assert code == 0, said
        return [one.get("action", one["state"]) for one in answer["connectors"]]

    with serving(target_cluster, f"flows-{topic_name}", tmp_path / "serve") as address:
        client = Client(address, f"{source}->{seed[connector]['target.cluster.alias']}")
        wait_for(lambda: call(address, "GET", "/health").code == 200, "a healthy server", DEADLINE_S, 0.1)
        assert told("deploy") == ["created"] * 3
        wait_for(client.runs, "a flow that runs", DEADLINE_S, 0.2)
        wait_for(lambda: client.get()["records"] >= 10, "the records", DEADLINE_S, 0.2)
        wait_for(lambda: told("status") == ["RUNNING"] * 3, "all connectors", DEADLINE_S, 0.2)
        values = {one["name"]: one for one in client.get("/config")["settings"]}
        assert values["topics"]["origin"].startswith(f"connector {connector}"), values["topics"]
        _steer(client, topic_name, topic_name, connector)
        assert _no_request_breaks_it(client, connector) > 40
        assert told("undeploy") == ["deleted"] * 3
        assert call(address, "GET", "/health").code == 200
    copied = [one.value for one in read_records(target_cluster.bootstrap, topic_name)[0]]
    assert copied == [f"record {number}".encode() for number in range(10)]
