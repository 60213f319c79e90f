"""Secrets with a mark in them, planted wherever a user may write one, and the places where somebody else could read it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import httpx
import psutil

from mirrorspark.lab.clients import admin, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.plain_records import read_records
from mirrorspark.lab.process_tree import descendants

__all__ = [
    "CONNECTOR",
    "JAAS",
    "MARK",
    "MISTAKES",
    "VARIABLE",
    "WORKER",
    "environment_lines",
    "marked_lines",
    "process_lines",
    "spark_pages",
    "topic_texts",
]

MARK = f"marked-{os.getpid()}"
"""In every secret of this run, and in nothing else on the machine."""
VARIABLE = "SECRET_OF_A_TEST"
"""Holds a secret for the worker's config provider."""
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="bob" password="{MARK}-{{}}";'

WORKER = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "ssl.key.password": f"${{env:{VARIABLE}}}",
    "ssl.keystore.password": f"{MARK}-worker-store",
    "sasl.jaas.config": JAAS.format("worker"),
}
CONNECTOR = {
    "source.cluster.sasl.jaas.config": JAAS.format("source"),
    "source.cluster.ssl.key.password": f"{MARK}-key",
    "source.consumer.ssl.keystore.password": f"{MARK}-keystore",
    "target.cluster.ssl.truststore.password": f"{MARK}-truststore",
    "target.admin.sasl.jaas.config": JAAS.format("admin"),
    "producer.override.sasl.jaas.config": JAAS.format("override"),
    "source.cluster.sasl.oauthbearer.client.credentials.client.secret": f"{MARK}-oauth",
    "key.converter.basic.auth.user.info": f"somebody:{MARK}-basic",
    "vendor.secret": f"{MARK}-vendor",
}
_MISTAKES = (
    '{"source.cluster.sasl.jaas.config": "MARK-half',
    '{"source.cluster.sasl.jaas.config": ["MARK-list-word"]}',
    '{"connector.class": "MirrorSourceConnector", "ssl.key.password": "MARK-alone-word"}',
    '{"connector.class": "MirrorSourceConnector", "source.cluster.alias": "a", "target.cluster.alias": "b", '
    '"source.cluster.bootstrap.servers": "h:1", "target.cluster.bootstrap.servers": "h:2", '
    '"source.cluster.security.protocol": "SASL_SSL", "source.cluster.sasl.mechanism": "PLAIN", '
    '"source.cluster.sasl.jaas.config": "MARK-no-jaas-word", "ssl.keystore.key": "MARK-pem-word"}',
)
MISTAKES = tuple(text.replace("MARK", MARK).encode() for text in _MISTAKES)
"""Bodies of requests that are refused, each with a secret in it."""
_PAGES = ("jobs", "stages", "storage", "environment", "executors", "SQL", "StreamingQuery")
_RESOURCES = ("environment", "jobs", "stages", "sql", "allexecutors", "storage/rdd")
PAGE_TIMEOUT_S = 60.0
UI_DEADLINE_S = 180.0


def process_lines() -> Iterator[str]:
    """What everybody on the machine sees of every process."""
    for process in psutil.process_iter(["cmdline"]):
        yield " ".join(process.info["cmdline"] or ())


def environment_lines(root: int) -> list[str]:
    """What processes below this one, and it itself, have in their environment besides what their user put there."""
    found = set()
    for process in (psutil.Process(root), *descendants(root)):
        try:
            found.update(f"{name}={value}" for name, value in process.environ().items() if name != VARIABLE)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return marked_lines(sorted(found))


def spark_pages(driver: int) -> dict[str, str]:
    """Every page and resource of Spark's UI below a driver: address -> text. A link to details is followed."""
    found_at: list[str] = []

    def is_up() -> bool:
        found_at[:] = [one for port in _ports(driver) if (one := _ui(port))]
        return bool(found_at)

    wait_for(is_up, "Spark's UI, which comes up while other lanes carry already", UI_DEADLINE_S, 0.5)
    base = found_at[0]
    found: dict[str, str] = {}
    with httpx.Client(base_url=base, timeout=PAGE_TIMEOUT_S, follow_redirects=True, trust_env=False) as client:
        for page in _PAGES:
            text = found[page] = client.get(f"/{page}/").text
            for link in sorted(
                set(re.findall(r"(?:/SQL/execution/|/StreamingQuery/statistics|/stages/stage/)\?[^\"']+", text))
            )[:5]:
                found[link] = client.get(link.replace("&amp;", "&")).text
        (application,) = client.get("/api/v1/applications").json()
        for resource in _RESOURCES:
            path = f"/api/v1/applications/{application['id']}/{resource}"
            found[path] = client.get(path).text
    return found


def _ports(driver: int) -> list[int]:
    """Where the JVMs below a driver listen, the usual place first. One that ends meanwhile listens nowhere."""
    listening: list[int] = []
    for process in descendants(driver):
        try:
            if "java" in process.name():
                connections = process.net_connections("tcp")
                listening += [one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN]
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return sorted(listening, key=lambda port: (not 4040 <= port < 4100, port))


def _ui(port: int) -> str:
    """Once a query runs there; before, Spark has no page for it."""
    address = f"http://127.0.0.1:{port}"
    try:
        page = httpx.get(f"{address}/StreamingQuery/", timeout=PAGE_TIMEOUT_S, trust_env=False)
    except httpx.HTTPError:
        return ""
    return address if page.status_code == 200 and "mirrorspark" in page.text else ""


def topic_texts(cluster: ClusterOfBrokers, words: Sequence[str], but: str) -> dict[str, str]:
    """All that lies in topics with one of these words in their names, as text; not in the one that holds secrets by its
    nature. The cluster is shared: topics of other tests are left alone."""
    names = [name for name in admin(cluster.bootstrap).list_topics(timeout=60).topics if name != but]
    return {
        name: "\n".join(
            f"{one.key!r} {one.value!r}"
            for records in read_records(cluster.bootstrap, name).values()
            for one in records
        )
        for name in names
        if any(word in name for word in words)
    }


def marked_lines(texts: Iterator[str] | Sequence[str]) -> list[str]:
    return [line[:300] for text in texts for line in text.splitlines() if MARK in line]
