"""A connector's login and its placeholders, before anything is opened: the key is named, secrets are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.config.connector_validation import faults_of, validation_body
from mirrorspark.config.document import Document
from mirrorspark.config.forms.layout import ConnectorKind

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
LOGIN = {"source.cluster.security.protocol": "SASL_SSL", "source.cluster.sasl.mechanism": "PLAIN"}
JAAS = "source.cluster.sasl.jaas.config"
CONFIG = {
    "name": "data",
    "connector.class": ConnectorKind.SOURCE.java_class,
    "source.cluster.alias": "east",
    "target.cluster.alias": "west",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
}


def _faults(worker: Document | None = None, **changes: str) -> list[str]:
    config = {**CONFIG, **{key.replace("__", "."): value for key, value in changes.items()}}
    return faults_of(ConnectorKind.SOURCE, config, worker)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({**LOGIN, JAAS: "marked"}, f"{JAAS}: it does not end with ';'"),
        ({**LOGIN, JAAS: f'{PLAIN} username="marked";'}, f"{JAAS}: no password="),
        (LOGIN, "sasl.jaas.config: missing"),
        (
            {**LOGIN, "source.cluster.sasl.mechanism": "NTLM", JAAS: f"{PLAIN};"},
            "source.cluster.sasl.mechanism=NTLM: must be one of",
        ),
        ({**LOGIN, JAAS: "${env:NO_SUCH_VARIABLE}"}, f"{JAAS}: ${{env:NO_SUCH_VARIABLE}}: the environment has no"),
        ({**LOGIN, JAAS: "${file:/nowhere:login}"}, "/nowhere cannot be read"),
    ],
    ids=["no JAAS", "no password", "none at all", "mechanism", "no variable", "no file"],
)
def test_a_login_that_cannot_work_names_its_key(changes: dict[str, str], says: str) -> None:
    (fault,) = _faults(**changes)
    assert says in fault
    assert "marked" not in fault


def test_stores_are_not_opened() -> None:
    """Files are of the machine on which the connector runs, and perhaps not there yet."""
    login = {**LOGIN, JAAS: f'{PLAIN} username="u" password="p";', "source.cluster.ssl.truststore.location": "/nowhere"}
    assert _faults(**login) == []


def test_placeholders_are_resolved_before_a_login_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOD_LOGIN_OF_A_TEST", f'{PLAIN} username="u" password="p";')
    secrets = tmp_path / "secrets"
    secrets.write_text("word = marked\nhalf = no-jaas-marked\n")
    assert _faults(**LOGIN, **{JAAS: "${env:GOOD_LOGIN_OF_A_TEST}"}) == []
    assert _faults(**LOGIN, **{JAAS: f'{PLAIN} username="u" password="${{file:{secrets}:word}}";'}) == []
    (fault,) = _faults(**LOGIN, **{JAAS: f"${{file:{secrets}:half}}"})
    assert JAAS in fault
    assert "marked" not in fault


def test_providers_that_the_workers_file_declares(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text("topics = orders\n")
    given = f"${{vault:{secrets}:topics}}"
    declared = {
        "config.providers": "vault",
        "config.providers.vault.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    assert _faults(Document.of(declared, "worker"), topics=given) == []
    (fault,) = _faults(Document(()), topics=given)
    assert "there is no config provider vault" in fault
    assert _faults(None, topics=given) == [], "whoever does not know the worker says nothing"


def test_the_answer_to_validate_counts_it() -> None:
    body = validation_body(ConnectorKind.SOURCE, {**CONFIG, **LOGIN, JAAS: "marked"})
    assert body["error_count"] == 1
    assert "marked" not in str(body)
