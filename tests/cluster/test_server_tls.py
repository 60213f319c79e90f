"""A port's certificate out of whatever store an operator has, shown to a client in a real handshake."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from mirrorspark.cluster.server_tls import server_context, with_certificate
from mirrorspark.cluster.tls import tls_context
from mirrorspark.errors import LabError, SettingsError
from mirrorspark.lab.certificates import STORE_PASSWORD, Authority, Identity, java_key_store

PREFIX = "listeners.https."
LOCATION, PASSWORD = "ssl.keystore.location", "ssl.keystore.password"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("of the port")


@pytest.fixture(scope="module")
def identity(authority: Authority) -> Identity:
    return authority.issue("rest", "localhost")


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str | bytes], str]:
    def write(name: str, data: str | bytes) -> str:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return str(path)

    return write


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """In memory. Raises what either side says; a client's certificate is looked at by the server after its own turn."""
    there, here = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(here, there, server_hostname="localhost"),
        server.wrap_bio(there, here, server_side=True),
    ]
    waiting = list(sides)
    for _ in range(10):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    assert not waiting


def trusting(authority: Authority, **more: str) -> ssl.SSLContext:
    return tls_context({"ssl.truststore.certificates": authority.pem(), **more})


def test_pem_and_pkcs12_are_known_by_their_content(
    authority: Authority, identity: Identity, file: Callable[..., str]
) -> None:
    for properties in (
        {LOCATION: file("rest.pem", identity.key_pem() + identity.chain_pem())},
        {
            LOCATION: file("locked.pem", identity.key_pem("its own") + identity.chain_pem()),
            "ssl.key.password": "its own",
        },
        {LOCATION: file("rest.jks", identity.pkcs12()), PASSWORD: STORE_PASSWORD},
        {"ssl.keystore.key": identity.key_pem(), "ssl.keystore.certificate.chain": identity.chain_pem()},
    ):
        shake_hands(server_context(properties), trusting(authority))


def test_a_java_key_store(authority: Authority, identity: Identity, tmp_path: Path) -> None:
    try:
        store = java_key_store(tmp_path, identity.pkcs12())
    except LabError as error:
        pytest.skip(str(error))
    shake_hands(server_context({LOCATION: str(store), PASSWORD: STORE_PASSWORD}), trusting(authority))


def test_the_command_lines_files_count_more(authority: Authority, identity: Identity, file: Callable[..., str]) -> None:
    given = {LOCATION: "/nowhere", PASSWORD: STORE_PASSWORD, "ssl.protocol": "TLSv1.3"}
    chain, key = file("chain.pem", identity.chain_pem()), file("key.pem", identity.key_pem())
    shake_hands(server_context(with_certificate(given, chain, key)), trusting(authority))
    store = file("rest.p12", identity.pkcs12())
    shake_hands(server_context(with_certificate(given, store, "")), trusting(authority))
    assert with_certificate(given, "", "") == given
    with pytest.raises(SettingsError, match="--tls-key"):
        with_certificate(given, chain, "/nowhere")


def test_clients_may_have_to_show_who_they_are(
    authority: Authority, identity: Identity, file: Callable[..., str]
) -> None:
    own = {LOCATION: file("rest.pem", identity.key_pem() + identity.chain_pem()), "ssl.protocol": "TLSv1.2"}
    wanted = {"ssl.client.auth": "required", "ssl.truststore.certificates": authority.pem()}
    guest = authority.issue("guest")
    papers = {"ssl.keystore.key": guest.key_pem(), "ssl.keystore.certificate.chain": guest.chain_pem()}
    shake_hands(server_context(own | wanted), trusting(authority, **papers))
    with pytest.raises(ssl.SSLError):
        shake_hands(server_context(own | wanted), trusting(authority))
    shake_hands(server_context(own | wanted | {"ssl.client.auth": "requested"}), trusting(authority))


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({LOCATION: "/nowhere"}, LOCATION),
        ({LOCATION: ""}, LOCATION),
        ({PASSWORD: "secret-word"}, PASSWORD),
        ({"ssl.client.auth": "perhaps"}, "ssl.client.auth"),
        ({"ssl.client.auth": "required"}, "ssl.truststore.location"),
        ({"ssl.protocol": "SSLv3"}, "ssl.protocol"),
    ],
)
def test_what_is_wrong_is_named_as_the_file_has_it(
    identity: Identity, file: Callable[..., str], changes: dict[str, str], key: str
) -> None:
    properties = {LOCATION: file("rest.p12", identity.pkcs12()), PASSWORD: STORE_PASSWORD, **changes}
    with pytest.raises(SettingsError) as refused:
        server_context(properties, PREFIX)
    assert refused.value.message.startswith(f"{PREFIX}{key}: ")
    assert refused.value.facts["key"] == f"{PREFIX}{key}"
    assert "secret-word" not in str(refused.value)
