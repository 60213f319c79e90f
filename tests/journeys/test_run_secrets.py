"""``mirrorspark run FILE`` with a marked secret in every place that takes one: none of them is seen by anybody else.

One start of Spark serves two promises: the other one is that ``/metrics`` of a flow that runs has every series that people's
dashboards and rules name, with Spark's JVM and heartbeats among them.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from confluent_kafka import TopicPartition as Place
from tests.journeys import marked_secrets
from tests.journeys.marked_secrets import JAAS, MARK, VARIABLE, marked_lines
from tests.observe.named_series import missing_series

from mirrorspark.lab.certificates import Authority
from mirrorspark.lab.child import Child
from mirrorspark.lab.clients import consumer, create_topic, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.plain_records import write_values
from mirrorspark.lab.process_tree import kill_tree
from mirrorspark.lab.scrape import names_in

DEADLINE_S = 180.0
KEPT, REFUSED, WRONG = (f"{word}-{os.getpid()}" for word in ("kept", "refused", "wrong"))
FLOW, BROKEN = f"{KEPT}->west", f"{REFUSED}->west"
TOKEN, STORE = f"{MARK}-token", f"{MARK}-rest-store"
PEM = f"-----BEGIN PRIVATE KEY----- {MARK}-pem -----END PRIVATE KEY-----"
LISTENING = re.compile(r"listening on ([\w.:]+)")
RUNS = """
import json, sys
from typer.testing import CliRunner
from mirrorspark.__main__ import app
for word, *arguments in json.load(sys.stdin):
    done = CliRunner().invoke(app, arguments)
    print(json.dumps([word, done.exit_code, done.output]), flush=True)
"""
FACTORS = ("offset.storage", "status.storage", "config.storage", "checkpoints.topic", "offset-syncs.topic")


# -- the file ----------------------------------------------------------------------------------------------------------


def secrets_of_a_cluster(folder: Path) -> dict[str, str]:
    """All kinds that a client takes; two of them by way of a config provider."""
    elsewhere = folder / "elsewhere.properties"
    elsewhere.write_text(f"store={MARK}-file\n")
    return {
        "sasl.jaas.config": JAAS.format("source"),
        "ssl.key.password": f"${{env:{VARIABLE}}}",
        "ssl.keystore.password": f"${{file:{elsewhere}:store}}",
        "ssl.truststore.password": f"{MARK}-truststore",
        "ssl.keystore.key": PEM,
        "ssl.truststore.certificates": f"-----BEGIN CERTIFICATE----- {MARK}-trusted -----END CERTIFICATE-----",
        "sasl.oauthbearer.client.credentials.client.secret": f"{MARK}-oauth",
        "consumer.ssl.keystore.password": f"{MARK}-consumer",
        "consumer.sasl.jaas.config": JAAS.format("consumer"),
    }


def keys_of_a_file(
    folder: Path, source: ClusterOfBrokers, target: ClusterOfBrokers, topic: str, authority: Authority
) -> dict[str, str]:
    """A flow that works, one whose login nobody wants, and REST by https for those who have a token."""
    (folder / "rest.p12").write_bytes(authority.issue("rest", "localhost").pkcs12(STORE))
    (folder / "users").write_text(f"operator token {TOKEN}\nread-only user bob {MARK}-user\n")
    providers = "org.apache.kafka.common.config.provider."
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS.format("no")}
    return {
        "clusters": f"{KEPT}, {REFUSED}, west",
        "config.providers": "env, file",
        "config.providers.env.class": f"{providers}EnvVarConfigProvider",
        "config.providers.file.class": f"{providers}FileConfigProvider",
        f"{KEPT}.bootstrap.servers": source.bootstrap,
        f"{REFUSED}.bootstrap.servers": source.bootstrap,
        "west.bootstrap.servers": target.bootstrap,
        **{f"{KEPT}.{key}": value for key, value in secrets_of_a_cluster(folder).items()},
        **{f"{REFUSED}.{key}": value for key, value in login.items()},
        "west.admin.sasl.jaas.config": JAAS.format("admin"),
        "west.producer.ssl.key.password": f"{MARK}-producer",
        **{
            f"{flow}.{key}": value for flow in (FLOW, BROKEN) for key, value in (("enabled", "true"), ("topics", topic))
        },
        f"{FLOW}.groups": topic,
        f"{FLOW}.sync.group.offsets.enabled": "true",
        "heartbeats.replication.enabled": "false",  # the clusters are shared
        "sync.topic.acls.enabled": "false",
        "replication.factor": "1",
        **{f"{name}.replication.factor": "1" for name in (*FACTORS, "heartbeats.topic")},
        "listeners": "https://127.0.0.1:0",
        "listeners.https.ssl.keystore.location": str(folder / "rest.p12"),
        "listeners.https.ssl.keystore.password": STORE,
        "rest.users.file": str(folder / "users"),
    }


def written(file: Path, keys: dict[str, str]) -> Path:
    file.write_text("".join(f"{key} = {value}\n" for key, value in keys.items()))
    return file


def files_that_are_wrong(folder: Path, right: dict[str, str], authority: Authority) -> dict[str, Path]:
    """Each refused before anything is touched, and full of secrets; by a word of the reason. Under another alias: none must
    meet the flow."""
    ours = {key.replace(KEPT, WRONG): value.replace(KEPT, WRONG) for key, value in right.items() if REFUSED not in key}
    ours["clusters"] = f"{WRONG}, west"
    (folder / "no-users").write_text(f"operator tokn {MARK}-role\n")
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    tls = {"security.protocol": "SSL", "ssl.truststore.certificates": authority.pem().replace("\n", " ")}
    tls |= {"ssl.keystore.certificate.chain": authority.issue("we").chain_pem().replace("\n", " ")}
    changes = {
        "consumer.sasl.jaas.config": login | {"consumer.sasl.jaas.config": f"{MARK}-no-jaas"},
        "ssl.keystore.key": tls,
        "ssl.keystore.certificate.chain": tls | {"ssl.keystore.location": "/nowhere", "ssl.keystore.key": ""},
    }
    wrong = {name: {f"{WRONG}.{key}": value for key, value in one.items()} for name, one in changes.items()}
    wrong["listeners.https.ssl.keystore.password"] = {"listeners.https.ssl.keystore.password": f"{MARK}-not-this"}
    wrong["no-users"] = {"rest.users.file": str(folder / "no-users")}
    wrong["west.ssl.keystore.pasword"] = {"west.ssl.keystore.pasword": f"{MARK}-misspelt"}
    return {word: written(folder / f"wrong-{word}.properties", ours | one) for word, one in wrong.items()}


# -- the process -------------------------------------------------------------------------------------------------------


@contextmanager
def running(file: Path, log: Path) -> Iterator[Child]:
    command = [sys.executable, "-m", "mirrorspark", "run", str(file), "--ui", "--lenient"]
    child = Child(command, log, {VARIABLE: f"{MARK}-variable"})
    try:
        yield child
    finally:
        kill_tree(child.pid)


def starts_that_are_refused(files: dict[str, Path]) -> tuple[dict[str, tuple[int, str]], str]:
    """Each file's exit code and what was said, in text and JSON by turns; and what was said besides. All in one process of
    their own: an interpreter each would cost more than all else."""
    runs = [
        [word, "run", str(file), *(["--log-format", "json"] if number % 2 else [])]
        for number, (word, file) in enumerate(files.items())
    ]
    done = subprocess.run(
        [sys.executable, "-c", RUNS],
        input=json.dumps(runs),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env={**os.environ, VARIABLE: f"{MARK}-variable"},
        check=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {word: (code, said) for word, code, said in found}, done.stderr


class Reader:
    """Asks the process's REST interface; keeps all that is said."""

    def __init__(self, log: Path, child: Child, authority: Authority) -> None:
        def is_listening() -> bool:
            assert child.is_alive, log.read_text()
            return LISTENING.search(log.read_text()) is not None

        wait_for(is_listening, "the port", DEADLINE_S, 0.1)
        found = LISTENING.search(log.read_text())
        assert found is not None
        self.told: list[str] = []
        self.client = httpx.Client(
            base_url=f"https://localhost:{found[1].rpartition(':')[2]}",
            headers={"Authorization": f"Bearer {TOKEN}"},
            verify=ssl.create_default_context(cadata=authority.pem()),
            timeout=90,
            trust_env=False,
        )

    def get(self, path: str, **more: Any) -> httpx.Response:
        answer = self.client.get(path, **more)
        self.told.append(f"{path} {answer.headers} {answer.text}")
        return answer

    def every_resource(self, values: dict[str, str]) -> list[str]:
        """All that the server's own description has; ``values`` of its parameters. What was asked for."""
        asked = []
        for path, methods in self.get("/openapi.json").json()["paths"].items():
            if "get" not in methods:
                continue
            filled = re.sub(r"{(\w+)}", lambda found: quote(values[found[1]], safe=""), path)
            parameters = methods["get"].get("parameters", [])
            query = {one["name"]: values[one["name"]] for one in parameters if one["in"] == "query" and one["required"]}
            assert self.get(filled, params=query).status_code == 200, self.told[-1]
            asked.append(path)
        return asked

    def first_of_stream(self) -> str:
        with self.client.stream("GET", "/mirrorspark/v1/stream") as answer:
            lines = answer.iter_lines()
            return next(lines) + next(lines)


# -- journeys ----------------------------------------------------------------------------------------------------------


def test_no_secret_of_a_file_is_seen_and_every_series_is_there(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path
) -> None:
    create_topic(source_cluster.bootstrap, topic_name)
    write_values(source_cluster.bootstrap, topic_name, [b"first"] * 10)
    authority, log = Authority("of REST"), tmp_path / "run.log"
    keys = keys_of_a_file(tmp_path, source_cluster, target_cluster, topic_name, authority)
    file = written(tmp_path / "mm2.properties", keys)
    with running(file, log) as child:
        reader = Reader(log, child, authority)
        _wait_for_every_series(reader, source_cluster, topic_name)
        values = {"flow": FLOW, "group": topic_name, "connector": f"{FLOW}.MirrorSourceConnector", "task": "0"}
        values |= {"plugin": "MirrorSourceConnector", "logger": "root"}
        values |= {"topic": topic_name, "partition": "0", "offset": "0"}
        assert len(reader.every_resource(values)) > 25
        for path in (
            "/connectors?expand=info&expand=status",
            f"/mirrorspark/v1/flows/{quote(BROKEN, safe='')}",
            "/ui/",
        ):
            assert reader.get(path).status_code == 200, reader.told[-1]
        assert reader.get("/connectors", headers={"Authorization": f"Bearer {MARK}-wrong"}).status_code == 401
        reader.told.append(reader.first_of_stream())
        assert "asks for no login" in "\n".join(reader.told), "the trouble of the other flow"
        assert marked_lines(reader.told) == []

        assert marked_lines(marked_secrets.process_lines()) == []
        assert marked_secrets.environment_lines(child.pid) == []
        pages = marked_secrets.spark_pages(child.pid)
        assert "mirrorspark" in pages["StreamingQuery"]
        assert [page for page, text in pages.items() if MARK in text] == []
        texts = marked_secrets.topic_texts(target_cluster, (topic_name, KEPT, REFUSED, "mirrorspark-writers."), "")
        assert [name for name in texts if name.startswith("mirrorspark-plan.") and KEPT in name] != []
        assert [name for name, text in texts.items() if MARK in text] == []

        child.stop(90)
    said = log.read_text()
    assert REFUSED in said, "its trouble was told"
    assert marked_lines([said]) == []


def _wait_for_every_series(reader: Reader, source: ClusterOfBrokers, topic: str) -> None:
    """Records and commits come all the while: figures of the last minute are of something."""
    committed = 0
    group = consumer(source.bootstrap, {"group.id": topic})

    def missing() -> list[str]:
        found = reader.client.get("/metrics").text
        return missing_series(names_in(found), f"kept_{os.getpid()}_west")

    def is_told() -> bool:
        nonlocal committed
        write_values(source.bootstrap, topic, [b"more"])
        committed = committed % 10 + 1
        group.commit(offsets=[Place(topic, 0, committed)], asynchronous=False)
        return not missing()

    try:
        wait_for(is_told, "every series that people name", DEADLINE_S, 0.5)
    except Exception as error:
        raise AssertionError(f"missing: {missing()}") from error
    finally:
        group.close()


def test_no_secret_is_in_the_reason_why_a_file_is_refused(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path
) -> None:
    authority = Authority("of REST")
    keys = keys_of_a_file(tmp_path, source_cluster, target_cluster, topic_name, authority)
    refused, besides = starts_that_are_refused(files_that_are_wrong(tmp_path, keys, authority))
    assert len(refused) == 6
    for word, (code, said) in refused.items():
        assert (code, word in said) == (2, True), f"{word}: {code} {said}"
    assert marked_lines([besides, *(said for _, said in refused.values())]) == []


@pytest.mark.parametrize("place", ["command line", "environment", "log", "topic"])
def test_a_leak_is_seen(place: str, target_cluster: ClusterOfBrokers, topic_name: str, tmp_path: Path) -> None:
    """One planted in each place that is looked at."""
    leak = f"{MARK}-planted"
    if place == "topic":
        create_topic(target_cluster.bootstrap, topic_name)
        write_values(target_cluster.bootstrap, topic_name, [leak.encode()])
        texts = marked_secrets.topic_texts(target_cluster, (topic_name,), "")
        assert [name for name, text in texts.items() if MARK in text] == [topic_name]
    elif place == "log":
        assert marked_lines([f"a line\nanother with {leak}\n"]) == [f"another with {leak}"]
    else:
        words = [leak] if place == "command line" else []
        more = {"LEAK": leak} if place == "environment" else {}
        script = "import sys, time; print('up', flush=True); time.sleep(60)"
        log = tmp_path / "log"
        child = Child([sys.executable, "-c", script, *words], log, {VARIABLE: f"{MARK}-variable", **more})
        try:
            wait_for(lambda: "up" in log.read_text(), "the process", DEADLINE_S, 0.05)
            assert bool(marked_lines(marked_secrets.process_lines())) is (place == "command line")
            assert marked_secrets.environment_lines(child.pid) == [f"LEAK={leak}" for _ in more]
        finally:
            child.kill()
