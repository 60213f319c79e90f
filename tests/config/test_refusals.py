"""What a file may not say, found before anything is touched: each refusal names the key as it stands in the file."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from mirrorspark.cluster import oauth_token, sasl_login, security, stores, tls
from mirrorspark.config.catalogue.security import SECURITY
from mirrorspark.config.load import Deployment, load_deployment, parse_deployment
from mirrorspark.errors import SettingsError

BASE = {
    "clusters": "east, west",
    "east.bootstrap.servers": "e1:9092",
    "west.bootstrap.servers": "w1:9092",
    "east->west.enabled": "true",
}
BOTH_WAYS = {**BASE, "west->east.enabled": "true"}
SECRET = "hunter2-do-not-tell"
LOGIN = f'x required username="u" password="{SECRET}";'
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
DEFAULT = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"


def _load(tmp_path: Path, properties: dict[str, str]) -> Deployment:
    path = tmp_path / "mm2.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
    return load_deployment(path)


def _refused(tmp_path: Path, properties: dict[str, str]) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        _load(tmp_path, properties)
    assert SECRET not in str(caught.value)
    return caught.value


def _text(error: SettingsError, tmp_path: Path) -> str:
    """What it says after the place, which must be there: file and line, or the file alone for what is missing."""
    place = str(error.facts["file"]) + (f":{error.facts['line']}" if "line" in error.facts else "")
    assert place.startswith(str(tmp_path / "mm2.properties"))
    assert str(error).startswith(f"{place}: ")
    return str(error).removeprefix(f"{place}: ")


@pytest.fixture(scope="module")
def key_pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with cert.pem, key.pem (plain) and locked.pem (encrypted with SECRET)."""
    folder = tmp_path_factory.mktemp("pem")
    common = ["-subj", "/CN=lab", "-days", "2"]
    for name, extra in (("key", ["-nodes"]), ("locked", ["-passout", f"pass:{SECRET}"])):
        files = ["-keyout", folder / f"{name}.pem", "-out", folder / "cert.pem"]
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", *common, *extra, *files], capture_output=True
        )
        if made.returncode != 0:
            pytest.skip("no openssl to make a certificate with")
        with (folder / f"{name}.pem").open("ab") as both:
            both.write((folder / "cert.pem").read_bytes())
    return folder


# -- topic lists and hosts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude"])
@pytest.mark.parametrize("prefix", ["", "east->west."])
@pytest.mark.parametrize("pattern", ["orders(", "*", "a{99999999999999999999}"])
def test_a_bad_regex_names_its_key(tmp_path: Path, prefix: str, key: str, pattern: str) -> None:
    error = _refused(tmp_path, {**BASE, f"{prefix}{key}": pattern})
    assert error.facts["key"] == f"{prefix}{key}"
    assert _text(error, tmp_path).startswith(f"{prefix}{key}={pattern}: not a regular expression: ")


def test_topics_and_exclude_are_told_apart_at_different_levels(tmp_path: Path) -> None:
    properties = {**BASE, "east->west.topics": "fine", "topics.exclude": "("}
    assert _refused(tmp_path, properties).facts["key"] == "topics.exclude"


@pytest.mark.parametrize("host", ["a..b", "x" * 70])
def test_a_host_that_is_no_name(tmp_path: Path, host: str) -> None:
    error = _refused(tmp_path, {**BASE, "west.bootstrap.servers": f"{host}:9092"})
    assert error.facts["key"] == "west.bootstrap.servers"


@pytest.mark.parametrize("alias", ["ea st", "east/1", "öst"])
def test_an_alias_that_cannot_be_in_a_topics_name(tmp_path: Path, alias: str) -> None:
    properties = {**BASE, "clusters": f"{alias}, west", f"{alias}.bootstrap.servers": "e:1"}
    assert (
        _refused(tmp_path, {key.replace(" ", "\\ "): value for key, value in properties.items()}).facts["key"]
        == "clusters"
    )


# -- security ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "east.", "west."])
@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ({"security.protocol": "FOO"}, "security.protocol"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI", "sasl.jaas.config": LOGIN}, "sasl.mechanism"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": LOGIN}, "sasl.mechanism"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "sasl.oauthbearer.token.endpoint.url"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "trust.jks"}, "ssl.truststore.location"),
        ({"security.protocol": "SSL", "ssl.keystore.type": "BKS"}, "ssl.keystore.type"),
        ({"security.protocol": "SSL", "ssl.protocol": "SSLv3"}, "ssl.protocol"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "ssl.enabled.protocols"),
        ({"security.protocol": "SSL", "ssl.cipher.suites": "TLS_OF_MY_OWN"}, "ssl.cipher.suites"),
    ],
)
def test_bad_security_values_name_their_key(tmp_path: Path, prefix: str, properties: dict[str, str], key: str) -> None:
    error = _refused(tmp_path, {**BASE, **{f"{prefix}{name}": value for name, value in properties.items()}})
    assert error.facts["key"] == (f"{prefix}{key}" if key in properties else f"{prefix or 'east.'}{key}")
    assert _text(error, tmp_path).startswith(str(error.facts["key"]))


@pytest.mark.parametrize("content", [None, "", "no certificate"])
@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_a_pem_file_that_cannot_be_read(tmp_path: Path, store: str, content: str | None) -> None:
    pem = tmp_path / "some.pem"
    if content is not None:
        pem.write_text(content)
    key = f"west.ssl.{store}.location"
    properties = {"west.security.protocol": "SSL", key: str(pem), f"west.ssl.{store}.type": "PEM"}
    error = _refused(tmp_path, {**BASE, **properties})
    assert error.facts["key"] == key
    assert _text(error, tmp_path).startswith(f"{key}={pem}: ")


def test_pem_text_that_cannot_be_read_is_not_shown(tmp_path: Path) -> None:
    properties = {"security.protocol": "SSL", "ssl.truststore.certificates": f"-----BEGIN {SECRET}"}
    error = _refused(tmp_path, {**BASE, **properties})
    assert error.facts["key"] == "ssl.truststore.certificates"


def test_good_certificates_are_fine(tmp_path: Path, key_pair: Path) -> None:
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(key_pair / "cert.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.keystore.location": str(key_pair / "locked.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.key.password": SECRET,
    }
    assert _load(tmp_path, {**BASE, **properties}).warnings == []


@pytest.mark.parametrize("password", [None, "wrong"])
def test_an_encrypted_key_asks_nobody(tmp_path: Path, key_pair: Path, password: str | None) -> None:
    properties = {
        "east.security.protocol": "SSL",
        "east.ssl.keystore.location": str(key_pair / "locked.pem"),
        "east.ssl.keystore.type": "PEM",
        **({"east.ssl.key.password": password} if password else {}),
    }
    assert _refused(tmp_path, {**BASE, **properties}).facts["key"] == "east.ssl.key.password"


def test_a_cluster_without_a_flow_is_not_looked_at(tmp_path: Path) -> None:
    properties = {
        **BASE,
        "clusters": "east, west, north",
        "north.bootstrap.servers": "n:1",
        "north.security.protocol": "FOO",
    }
    assert len(_load(tmp_path, properties).flows) == 1


def test_what_security_reads_is_what_is_known() -> None:
    """A key that it does not read must be named in a warning, one that it reads must not."""
    modules = (security, stores, tls, sasl_login, oauth_token)
    text = "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in modules)
    read = set(re.findall(r'"((?:security|ssl|sasl)\.[a-z.]+[a-z])"', text))
    read |= {f"sasl.login.{phase}.timeout.ms" for phase in ("connect", "read")}
    assert read == {one.name for one in SECURITY if one.applied}


@pytest.mark.parametrize("key", ["ssl.provider", "sasl.login.retry.backoff.ms", "east.security.providers"])
def test_security_keys_without_effect_are_named(key: str) -> None:
    value = "200" if key.endswith(".ms") else SECRET
    [warning] = parse_deployment({**BASE, key: value}).warnings
    assert warning.startswith(f"{key}: has no meaning here, because ")
    assert SECRET not in warning


@pytest.mark.parametrize(
    "key", ["west.sasl.login.class", "sasl.login.callback.handler.class", "east.consumer.ssl.engine.factory.class"]
)
def test_security_keys_that_cannot_be_honoured_are_refused(tmp_path: Path, key: str) -> None:
    error = _refused(tmp_path, {**BASE, key: SECRET})
    assert _text(error, tmp_path).startswith(f"{key}: cannot be honoured, because ")


# -- loops -------------------------------------------------------------------------------------------------------------


def _ring(*aliases: str) -> dict[str, str]:
    return {
        "clusters": ", ".join(aliases),
        **{f"{alias}.bootstrap.servers": "h:1" for alias in aliases},
        **{f"{one}->{next_}.enabled": "true" for one, next_ in zip(aliases, (*aliases[1:], aliases[0]), strict=True)},
    }


@pytest.mark.parametrize(
    "properties",
    [
        {**BOTH_WAYS, "replication.policy.class": IDENTITY},
        {**BOTH_WAYS, "east->west.replication.policy.class": IDENTITY},
        {**BOTH_WAYS, "replication.policy.class": IDENTITY, "east->west.topics": "a.*", "west->east.topics": "b.*"},
        {**BOTH_WAYS, "replication.policy.class": IDENTITY, "east->west.topics": "a, b", "west->east.topics": "c, b"},
        {**BOTH_WAYS, "replication.policy.class": IDENTITY, "east->west.topics": "a.b", "west->east.topics": "a-b"},
        {**_ring("a", "b", "c"), "replication.policy.class": IDENTITY},
        {**_ring("a", "b", "c"), "replication.policy.class": IDENTITY, "b->c.replication.policy.class": DEFAULT},
    ],
)
def test_endless_loops_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="loop") as caught:
        parse_deployment(properties)
    assert str(caught.value.facts["key"]).endswith("replication.policy.class")
    assert "SameNameReplicationPolicy" in str(caught.value)


def test_a_loop_is_refused_even_if_this_process_runs_one_direction() -> None:
    with pytest.raises(SettingsError, match="loop"):
        parse_deployment({**BOTH_WAYS, "replication.policy.class": IDENTITY}, ["west"])


def test_one_identity_flow_in_a_circle_would_write_records_a_second_time() -> None:
    mixed = {"east->west.replication.policy.class": IDENTITY, "west->east.replication.policy.class": "same-name"}
    with pytest.raises(SettingsError, match="east->west, west->east"):
        parse_deployment({**BOTH_WAYS, **mixed})


@pytest.mark.parametrize(
    "properties",
    [
        {**BASE, "replication.policy.class": IDENTITY},
        BOTH_WAYS,
        _ring("a", "b", "c"),
        {**BOTH_WAYS, "replication.policy.class": IDENTITY, "east->west.topics": "a, b", "west->east.topics": "c"},
        {**BOTH_WAYS, "west->east.enabled": "false", "replication.policy.class": IDENTITY},
        {**_ring("a", "b", "c"), "a->b.replication.policy.class": IDENTITY},
        {**BOTH_WAYS, "replication.policy.class": "mirrorspark.SameNameReplicationPolicy"},
        {**BOTH_WAYS, "replication.policy.class": "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"},
        {**_ring("a", "b", "c"), "replication.policy.class": IDENTITY, "c->a.enabled": "false"},
    ],
)
def test_what_ends_is_no_loop(properties: dict[str, str]) -> None:
    assert parse_deployment(properties).flows
