"""The programs in examples/ move to another cluster as docs/operating/failover.md says: consumers first, producers later."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.config.load import load_deployment
from mirrorspark.control.failover import holding
from mirrorspark.lab.clients import create_topic, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.settings import FlowSettings

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE_S = 120.0
NUMBER = re.compile(r'"number": (\d+)')


def run_example(name: str, *words: str) -> str:
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def read_by_example(client_file: Path, group: str, topic: str, alias: str, count: int) -> list[int]:
    said = run_example("consumer.py", str(client_file), group, topic, "--alias", alias, "--count", str(count))
    return [int(number) for number in NUMBER.findall(said)]


def command(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.fixture
def files(
    source_cluster: ClusterOfBrokers, target_cluster: ClusterOfBrokers, tmp_path: Path, topic_name: str
) -> dict[str, Path]:
    """The examples' own files, with this run's servers and names in them."""
    text = (EXAMPLES / "two_clusters.properties").read_text()
    text = text.replace("broker-1.east.example:9092", source_cluster.bootstrap)
    text = text.replace("broker-1.west.example:9092", target_cluster.bootstrap)
    text = re.sub(r"\borders\b", topic_name, text)
    text = re.sub(r"\beast\b", f"east-{topic_name}", re.sub(r"\bwest\b", f"west-{topic_name}", text))
    text += f"replication.factor = 1\nemit.heartbeats.enabled = false\ngroups = {topic_name}.*\n"
    text += "heartbeats.replication.enabled = false\n"
    made = {"mirror": tmp_path / "two_clusters.properties"}
    made["mirror"].write_text(text)
    for side, cluster in (("east", source_cluster), ("west", target_cluster)):
        made[side] = tmp_path / f"{side}.properties"
        made[side].write_text(f"# plain\nbootstrap.servers = {cluster.bootstrap}\n")
    return made


def test_consumers_move_first_and_producers_later(
    files: dict[str, Path],
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    lanes_without_spark: Callable[[FlowSettings], FlowWithoutSpark],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(holding, "QUIET_S", 0.5)
    monkeypatch.setattr(holding, "STILL_S", 1.2)
    mirror, group = files["mirror"], f"{topic_name}-billing"
    settings = next(one for one in load_deployment(mirror).flows if one.flow.source.startswith("east"))
    flow, alias = str(settings.flow), settings.flow.source
    create_topic(source_cluster.bootstrap, topic_name, 2)
    run_example("producer.py", str(files["east"]), topic_name, "20")
    lanes_without_spark(settings)
    read = read_by_example(files["east"], group, topic_name, alias, 8)

    wait_for(
        lambda: command("groups", "sync", mirror, group, "--flow", flow).exit_code == 0, "the position", PATIENCE_S
    )
    read += read_by_example(files["west"], group, topic_name, alias, 12)  # the consumer has moved
    run_example("producer.py", str(files["east"]), topic_name, "5", "--first", "20")  # the producer has not
    moved = command("failover", mirror, "--flow", flow, "--leave-group", group, "--yes", "--json")
    assert moved.exit_code == 0, moved.output
    assert json.loads(moved.stdout)["stranded"]["records"] == 0
    create_topic(target_cluster.bootstrap, topic_name, 2)
    run_example("producer.py", str(files["west"]), topic_name, "5", "--first", "25")
    read += read_by_example(files["west"], group, topic_name, alias, 10)
    assert sorted(read) == list(range(30))


def test_a_java_clients_file_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from client_settings import read_client_file  # type: ignore[import-not-found]

    assert read_client_file(str(EXAMPLES / "client_scram.properties")) == {
        "bootstrap.servers": "broker-1.east.example:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "orders-app",
        "sasl.password": "change-me",
        "ssl.ca.location": "east-ca.pem",
    }
    (tmp_path / "jks").write_text("bootstrap.servers=x:1\nssl.truststore.type = JKS\nssl.truststore.location=a.jks\n")
    with pytest.raises(SystemExit, match="PEM files only"):
        read_client_file(str(tmp_path / "jks"))
    (tmp_path / "empty").write_text("# nothing\n")
    with pytest.raises(SystemExit, match=r"bootstrap\.servers is missing"):
        read_client_file(str(tmp_path / "empty"))
