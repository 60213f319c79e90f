"""TLS contexts out of ssl.*: versions, suites, trust and key; changed stores; nothing of a key is left on a disk."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirrorspark.cluster import tls
from mirrorspark.cluster.tls import CipherRefused, Tls, tls_context
from mirrorspark.errors import SettingsError
from mirrorspark.lab.certificates import STORE_PASSWORD, Authority

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("ca")


@pytest.fixture(scope="module")
def port(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Something that shakes hands, over and over."""
    identity = authority.issue("server", "localhost", "127.0.0.1")
    pem = tmp_path_factory.mktemp("server") / "server.pem"
    pem.write_text(identity.chain_pem() + identity.key_pem())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    listener = socket.create_server(("127.0.0.1", 0))
    leave = threading.Event()

    def serve() -> None:
        while not leave.is_set():
            sock, _ = listener.accept()
            try:
                context.wrap_socket(sock, server_side=True).close()
            except OSError:
                sock.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    leave.set()
    socket.create_connection(listener.getsockname()).close()
    thread.join()
    listener.close()


def _shake(given: Tls, port: int, host: str = "127.0.0.1") -> str:
    with socket.create_connection(("127.0.0.1", port), 30) as sock, given.wrap(sock, host) as wrapped:
        return str((wrapped.cipher() or ("",))[0])


@pytest.mark.parametrize(
    ("properties", "versions"),
    [
        ({}, (V12, V13)),
        ({"ssl.protocol": "TLS"}, (V12, V13)),
        ({"ssl.protocol": "TLSv1.2"}, (V12, V12)),
        ({"ssl.enabled.protocols": "TLSv1.2"}, (V12, V12)),
        ({"ssl.enabled.protocols": "TLSv1.3, TLSv1.2"}, (V12, V13)),
        ({"ssl.enabled.protocols": "TLSv1.3"}, (V13, V13)),
        ({"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}, (V13, V13)),
        ({"ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}, (V12, V12)),
        ({"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384,TLS_RSA_WITH_AES_128_CBC_SHA256"}, (V12, V13)),
    ],
)
def test_versions(properties: dict[str, str], versions: tuple[ssl.TLSVersion, ssl.TLSVersion]) -> None:
    context = tls_context(properties)
    assert (context.minimum_version, context.maximum_version) == versions
    assert context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ({"ssl.protocol": "TLSv1.1"}, "ssl.protocol"),
        ({"ssl.protocol": "TLSv1.2", "ssl.enabled.protocols": "TLSv1.3"}, "ssl.protocol"),
        ({"ssl.enabled.protocols": "SSLv3,TLSv1.2"}, "ssl.enabled.protocols"),
        ({"ssl.cipher.suites": "TLS_MINE"}, "ssl.cipher.suites"),
        ({"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384", "ssl.protocol": "TLSv1.2"}, "ssl.cipher.suites"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "ssl.endpoint.identification.algorithm"),
    ],
)
def test_what_cannot_be_done_names_its_key(properties: dict[str, str], key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        tls_context(properties)
    assert caught.value.facts["key"] == key


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA256", "AES256-SHA256"),
        ("ECDHE-RSA-AES128-SHA256", "ECDHE-RSA-AES128-SHA256"),
    ],
)
def test_suites_have_two_names(java: str, openssl: str) -> None:
    chosen = {one["name"] for one in tls_context({"ssl.cipher.suites": java}).get_ciphers()}
    assert openssl in chosen
    assert len([name for name in chosen if not name.startswith("TLS_")]) == 1


def test_only_the_trust_store_is_trusted(authority: Authority) -> None:
    context = tls_context({"ssl.truststore.certificates": authority.pem()})
    assert [one["subject"] for one in context.get_ca_certs()] == [((("commonName", "ca"),),)]


def test_a_suite_that_is_not_listed_is_refused(authority: Authority, port: int) -> None:
    trust = {"ssl.truststore.certificates": authority.pem()}
    taken = _shake(Tls(trust), port)
    assert _shake(Tls({**trust, "ssl.cipher.suites": taken}), port) == taken
    others = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"} - {taken}
    with pytest.raises(CipherRefused, match=taken):
        _shake(Tls({**trust, "ssl.cipher.suites": others.pop()}), port)


def test_a_host_name_is_checked_unless_told(authority: Authority, port: int) -> None:
    trust = {"ssl.truststore.certificates": authority.pem()}
    assert _shake(Tls(trust), port, "localhost")
    with pytest.raises(ssl.SSLCertVerificationError):
        _shake(Tls(trust), port, "elsewhere.example")
    assert _shake(Tls({**trust, "ssl.endpoint.identification.algorithm": ""}), port, "elsewhere.example")


def test_a_changed_store_is_for_the_next_connection(authority: Authority, port: int, tmp_path: Path) -> None:
    store = tmp_path / "trust.p12"
    store.write_bytes(Authority("another").trust_store())
    given = Tls({"ssl.truststore.location": str(store), "ssl.truststore.password": STORE_PASSWORD})
    with pytest.raises(ssl.SSLCertVerificationError):
        _shake(given, port)
    store.write_bytes(authority.trust_store())
    assert _shake(given, port)
    store.write_text("half of one")  # the former one stays
    assert _shake(given, port)
    store.unlink()
    assert _shake(given, port)
    store.write_bytes(Authority("a third").trust_store())
    with pytest.raises(ssl.SSLCertVerificationError):
        _shake(given, port)


def test_nothing_of_a_key_is_left(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = authority.issue("client")
    seen: list[tuple[int, bytes]] = []
    load = ssl.SSLContext.load_cert_chain

    def look(context: ssl.SSLContext, file: str, password: str) -> None:
        seen.append((os.stat(file).st_mode & 0o777, Path(file).read_bytes()))
        load(context, file, password=password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", look)
    monkeypatch.setattr(tls, "MEMORY_FOLDER", str(tmp_path))
    store = tmp_path / "own.p12"
    store.write_bytes(identity.pkcs12())
    tls_context({"ssl.keystore.location": str(store), "ssl.keystore.password": STORE_PASSWORD})
    ((mode, content),) = seen
    assert mode == 0o600
    assert b"ENCRYPTED PRIVATE KEY" in content
    assert os.listdir(tmp_path) == ["own.p12"]
