"""REST of a process that runs a file: connectors that the file owns, flows, metrics; addresses, users and TLS."""

from __future__ import annotations

import asyncio
import datetime
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.control.flows.told_flows import NoSpark, lane_report, told

from mirrorspark.config.load import Deployment, parse_deployment
from mirrorspark.control import flow_life
from mirrorspark.control.flow_set import FlowSet
from mirrorspark.control.metrics_endpoint import MetricsEndpoint
from mirrorspark.control.reload import all_pairs
from mirrorspark.control.rest_endpoint import RestEndpoint, listeners_of
from mirrorspark.control.runner import EXIT_SETTINGS, run_deployment
from mirrorspark.errors import SettingsError
from mirrorspark.events import Event, EventKind
from mirrorspark.lab.certificates import STORE_PASSWORD, Authority
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.settings import MetricsSettings, RestSettings

from .scripted_flows import FakeRuntime, Script

Run = Callable[[Any], Any]
WAIT_S = 60.0
FILE = {
    "clusters": "a, west",
    "a.bootstrap.servers": "127.0.0.1:1",
    "west.bootstrap.servers": "127.0.0.1:1",
    "a->west.enabled": "true",
    "a->west.topics": "orders.*",
    "a->west.emit.heartbeats.enabled": "false",
    "west->a.emit.heartbeats.enabled": "false",
    "a.sasl.jaas.config": 'x required password="marked";',
}
SOURCE = "a->west.MirrorSourceConnector"
ORDERS = TopicPartition("a.orders", 0)
HERE = "/mirrorspark/v1/flows/a-%3Ewest"


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeRuntime.scripts = {"a": Script()}
    monkeypatch.setattr(flow_life, "FlowRuntime", FakeRuntime)


@asynccontextmanager
async def served(
    deployment: Deployment, restarted: list[Flow] | None = None, **settings: Any
) -> AsyncIterator[tuple[RestEndpoint, FlowSet]]:
    flows = FlowSet(NoSpark())
    flows.refuse(deployment.refused)
    for one in all_pairs(deployment):
        flows.begin(one)
    rest = RestSettings(("127.0.0.1:0",), **settings)
    asked = restarted if restarted is not None else []
    metrics = MetricsEndpoint(MetricsSettings(), lambda: flows.statuses)
    endpoint = RestEndpoint(
        rest, "mm2.properties", flows, lambda: deployment, restart=asked.append, metrics=metrics.text
    )
    await endpoint.open()
    try:
        yield endpoint, flows
    finally:
        await endpoint.close()
        await flows.stop()


def _client(endpoint: RestEndpoint, **more: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://{endpoint.addresses[0]}", timeout=WAIT_S, **more)


def _tell(flows: FlowSet) -> None:
    status = flows.status_of(Flow("a", "west"))
    assert status is not None
    told(status, status.clock, [[ORDERS]], Event(EventKind.DATA_GAP, "gone", "a.orders", 0, 1, 2))  # type: ignore[arg-type]
    status.fold(*lane_report(0, [("a.orders", 0, 10, 12, 14, 10, 100, 5, "carrying")]))


def test_a_files_connectors_and_flows(in_loop: Run) -> None:
    restarted: list[Flow] = []

    async def look() -> None:
        async with (
            served(parse_deployment(FILE, lenient=True), restarted) as (endpoint, flows),
            _client(endpoint) as client,
        ):
            _tell(flows)
            names = (await client.get("/connectors")).json()
            assert names == [SOURCE, "a->west.MirrorCheckpointConnector"]
            info = (await client.get(f"/connectors/{SOURCE}")).json()
            assert info["config"]["topics"] == "orders.*"
            assert info["config"]["source.cluster.sasl.jaas.config"] == "[hidden]"
            state = (await client.get(f"/connectors/{SOURCE}/status")).json()
            assert (state["connector"]["state"], state["tasks"][0]["state"]) == ("RUNNING", "RUNNING")
            assert (await client.get(f"/connectors/{SOURCE}/topics")).json() == {SOURCE: {"topics": ["a.orders"]}}
            tasks = (await client.get(f"/connectors/{SOURCE}/tasks")).json()
            assert tasks[0]["config"]["task.class"].endswith("MirrorSourceTask")
            flow = (await client.get(HERE)).json()
            assert (flow["verdict"], flow["lag_records"], flow["events_count"]) == ("degraded", 4, 1)
            assert flow["records"] == 10
            metrics = (await client.get("/metrics")).text
            assert 'mirrorspark_flow_state{flow="a->west",state="degraded"} 1.0' in metrics
            await _refusals(client)
            await client.post(f"/connectors/{SOURCE}/restart", params={"includeTasks": "true"})
            texts = [
                (await client.get(path)).text for path in ("/connectors?expand=info", f"{HERE}/config", "/metrics")
            ]
            assert "marked" not in "".join(texts)

    in_loop(look())
    assert restarted == [Flow("a", "west")]


async def _refusals(client: httpx.AsyncClient) -> None:
    """What a file owns is not changed, and the answer says what to do instead."""
    config = {"connector.class": "MirrorSourceConnector"}
    asked = [
        ("POST", "/connectors", {"name": "new", "config": config}),
        ("PUT", f"/connectors/{SOURCE}/config", config),
        ("PATCH", f"/connectors/{SOURCE}/config", {"tasks.max": "3"}),
        ("DELETE", f"/connectors/{SOURCE}", None),
        ("PUT", f"/connectors/{SOURCE}/stop", None),
        ("PUT", "/connectors/a->west.MirrorCheckpointConnector/pause", None),
        ("DELETE", f"/connectors/{SOURCE}/offsets", None),
    ]
    for method, path, body in asked:
        answer = await client.request(method, path, json=body)
        assert (answer.status_code, answer.json()["error_code"]) == (409, 409), (method, path, answer.text)
        assert "mm2.properties" in answer.json()["message"]
    for method, path in (("DELETE", "/connectors/nobody"), ("PUT", "/connectors/nobody/pause")):
        assert (await client.request(method, path)).status_code == 404
    # Nobody answers at these clusters: that is told as such, and soon.
    answer = await client.post(f"{HERE}/pause")
    assert answer.status_code == 503, answer.text
    ready = (await client.get(f"{HERE}/readiness")).json()
    assert (ready["ready"], ready["checks"][0]["level"]) == (False, "stop")


def test_a_flow_that_is_wrong_in_the_file_is_shown(in_loop: Run) -> None:
    deployment = parse_deployment(FILE, lenient=True)
    deployment.refused = {Flow("x", "west"): SettingsError("x->west.topics: cannot be read")}

    async def look() -> None:
        async with served(deployment) as (endpoint, _), _client(endpoint) as client:
            found = (await client.get("/mirrorspark/v1/topology")).json()
            assert [(one["flow"], one["verdict"]) for one in found["flows"]][-1] == ("x->west", "failed")
            assert {"alias": "x", "bootstrap": []} in found["clusters"]
            answer = await client.get("/mirrorspark/v1/flows/x-%3Ewest/groups")
            assert (answer.status_code, "cannot be read" in answer.text) == (409, True)

    in_loop(look())


def test_who_listens_is_told_of_the_end(in_loop: Run) -> None:
    async def listen() -> str:
        texts = []
        async with (
            served(parse_deployment(FILE, lenient=True)) as (endpoint, _),
            _client(endpoint) as client,
            client.stream("GET", "/mirrorspark/v1/stream") as answer,
        ):
            closing = None
            async for text in answer.aiter_text():
                texts.append(text)
                closing = closing or asyncio.ensure_future(endpoint.close())
            assert closing is not None
            await closing
        return "".join(texts)

    text = in_loop(listen())
    first = json.loads(text.split("data: ")[1].partition("\n\n")[0])
    assert first["flows"][0]["flow"] == "a->west"
    assert text.endswith("event: bye\ndata: {}\n\n")


# -- addresses, users, TLS ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://:8083", "http://127.0.0.1:8083"),
        (":8083", "http://127.0.0.1:8083"),
        ("8083", "http://127.0.0.1:8083"),
        ("http://0.0.0.0:8083", "http://0.0.0.0:8083"),
        ("HTTP://mirror:80", "http://mirror:80"),
        ("http://[::1]:8083", "http://[::1]:8083"),
    ],
)
def test_an_address_without_a_host_is_this_machine(text: str, address: str) -> None:
    rest = parse_deployment(FILE | {"listeners": text}, lenient=True).rest
    assert [str(one) for one in listeners_of(rest)] == [address]


def test_several_addresses_and_none() -> None:
    rest = parse_deployment(FILE | {"listeners": "http://:1, http://:2"}, lenient=True).rest
    assert [one.port for one in listeners_of(rest)] == [1, 2]
    assert parse_deployment(FILE, lenient=True).rest == RestSettings()


@pytest.mark.parametrize(
    "settings", [RestSettings(("nowhere",)), RestSettings(("https://:8083",)), RestSettings((":0",), users="/no")]
)
def test_what_cannot_be_served_ends_the_start(settings: RestSettings, capsys: pytest.CaptureFixture[str]) -> None:
    deployment = parse_deployment(FILE, lenient=True)
    deployment.rest = settings
    assert run_deployment(deployment) == EXIT_SETTINGS
    assert "SETTINGS: " in capsys.readouterr().err


def _certificate(folder: Path) -> str:
    """One PEM file with a key and its certificate for this machine."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "rest.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, *form) + made.public_bytes(serialization.Encoding.PEM)
    )
    return str(path)


def test_tls_and_users(in_loop: Run, tmp_path: Path) -> None:
    pem = _certificate(tmp_path)
    users = tmp_path / "users"
    users.write_text("operator user alice first\nread-only token second\n")

    async def look() -> None:
        settings = {"certificate": pem, "key": pem, "users": str(users)}
        async with served(parse_deployment(FILE, lenient=True), **settings) as (endpoint, _):
            port = endpoint.addresses[0].rpartition(":")[2]
            trusted = ssl.create_default_context(cafile=pem)
            async with httpx.AsyncClient(
                base_url=f"https://localhost:{port}", verify=trusted, timeout=WAIT_S
            ) as client:
                reader = {"Authorization": "Bearer second"}
                assert (await client.get("/metrics")).status_code == 401
                assert (await client.get("/health")).status_code == 200
                assert (await client.get("/metrics", headers=reader)).status_code == 200
                assert (await client.post(f"{HERE}/pause", headers=reader)).status_code == 403
                assert (await client.put(f"/connectors/{SOURCE}/pause", headers=reader)).status_code == 403
                about = await client.get("/mirrorspark/v1/about", auth=("alice", "first"))
                assert (about.json()["role"], about.json()["command"]) == ("operator", "run")

    in_loop(look())


def test_tls_out_of_a_key_store_that_the_file_names(in_loop: Run, tmp_path: Path) -> None:
    authority = Authority("of the file")
    store = tmp_path / "rest.jks"
    store.write_bytes(authority.issue("rest", "localhost").pkcs12())
    keys = {"listeners": "https://127.0.0.1:0", "listeners.https.ssl.keystore.location": str(store)}
    keys |= {"listeners.https.ssl.keystore.password": STORE_PASSWORD}
    deployment = parse_deployment(FILE | keys, lenient=True)
    assert STORE_PASSWORD not in repr(deployment.rest)

    async def look() -> None:
        async with served(deployment, tls=deployment.rest.tls) as (endpoint, _):
            port = endpoint.addresses[0].rpartition(":")[2]
            trusted = ssl.create_default_context(cadata=authority.pem())
            async with httpx.AsyncClient(verify=trusted, timeout=WAIT_S) as client:
                assert (await client.get(f"https://localhost:{port}/health")).status_code == 200

    in_loop(look())
