"""A Connect worker's file, or options, as settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.control.connect.worker_file import worker_settings
from mirrorspark.errors import SettingsError

FILE = """
bootstrap.servers=a:9092,b:9092
group.id=connect-cluster
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
listeners=http://:8084
key.converter=org.apache.kafka.connect.json.JsonConverter
security.protocol=SASL_SSL
sasl.jaas.config=x required password="marked";
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "connect-distributed.properties"
    path.write_text(FILE)
    return path


def test_a_whole_file(file: Path) -> None:
    found = worker_settings(file)
    assert found.cluster.bootstrap == (("a", 9092), ("b", 9092))
    assert found.cluster.client["security.protocol"] == "SASL_SSL"
    assert (found.topics.config, found.topics.status, found.topics.replication_factor) == (
        *("connect-configs", "connect-status"),
        1,
    )
    assert str(found.listener) == "http://0.0.0.0:8084"
    assert dict(found.flows or {}) == {
        "offset.storage.topic": "connect-offsets",
        "status.storage.topic": "connect-status",
        "group.id": "connect-cluster",
    }
    assert "marked" not in repr(found)


def test_options_count_more(file: Path) -> None:
    found = worker_settings(file, bootstrap="c:1", listen="127.0.0.1:0")
    assert found.cluster.bootstrap == (("c", 1),)
    assert found.listener.is_local


def test_options_alone() -> None:
    found = worker_settings(None, bootstrap="c:1")
    assert str(found.listener) == "http://127.0.0.1:8083"
    assert (found.topics.config, found.flows) == ("mirrorspark-configs", None)


@pytest.mark.parametrize(
    "line",
    ["bootstrap.servers=nothing", "config.storage.replication.factor=many", "listeners=8083", "listeners=a:1,b:2"],
)
def test_what_is_wrong_is_named(file: Path, line: str) -> None:
    file.write_text(f"{FILE}{line}\n")
    with pytest.raises(SettingsError, match=line.partition("=")[0]):
        worker_settings(file)


def test_without_a_cluster() -> None:
    with pytest.raises(SettingsError, match="--bootstrap"):
        worker_settings(None)


def test_https_as_connect_reads_it(tmp_path: Path) -> None:
    """What is written for the listener, all of it; without that, what the file has for Kafka."""
    path = tmp_path / "worker.properties"
    path.write_text(
        "bootstrap.servers=a:1\nlisteners=https://:8443\nssl.keystore.location=/k.p12\nssl.keystore.password=marked\n"
    )
    found = worker_settings(path)
    assert str(found.listener) == "https://0.0.0.0:8443"
    assert dict(found.tls) == {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "marked"}
    assert "marked" not in repr(found)
    path.write_text(f"{path.read_text()}listeners.https.ssl.keystore.location=/own.pem\n")
    assert dict(worker_settings(path).tls) == {"ssl.keystore.location": "/own.pem"}
    path.write_text("bootstrap.servers=a:1\nlisteners=https://:8443\n")
    with pytest.raises(SettingsError, match="https needs a certificate"):
        worker_settings(path)
