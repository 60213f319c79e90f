"""Key and trust stores in every format, known by content; each refusal names its key and shows no secret."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from mirrorspark.cluster.stores import own_key, store_files, trusted_certificates
from mirrorspark.errors import LabError, SettingsError
from mirrorspark.lab.certificates import STORE_PASSWORD, Authority, Identity, java_key_store
from mirrorspark.lab.trust_store import PASSWORD, encode_store

SECRET = "hunter2-do-not-tell"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("ca")


@pytest.fixture(scope="module")
def identity(authority: Authority) -> Identity:
    return authority.issue("client")


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes | str], str]:
    def write(content: bytes | str) -> str:
        path = tmp_path / "store.jks"  # whatever is in it
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def _der(authority: Authority) -> bytes:
    return authority.certificate.public_bytes(Encoding.DER)


def _read(properties: dict[str, str]) -> None:
    trusted_certificates(properties)
    own_key(properties)


def _refused(properties: dict[str, str], key: str) -> str:
    with pytest.raises(SettingsError) as caught:
        _read(properties)
    assert caught.value.facts["key"] == key
    assert SECRET not in f"{caught.value} {caught.value.facts}"
    return str(caught.value)


# -- what is trusted ---------------------------------------------------------------------------------------------------


def test_a_trust_store_is_known_by_its_content(authority: Authority, file: Callable[..., str]) -> None:
    stores = {
        STORE_PASSWORD: authority.trust_store(),
        PASSWORD: encode_store([_der(authority)]),
        "": f"# a comment\n{authority.pem()}".encode(),
    }
    for password, content in stores.items():
        for kind in ("JKS", "PKCS12", "PEM"):
            location = file(content)
            properties = {"ssl.truststore.location": location, "ssl.truststore.type": kind}
            if password:
                properties["ssl.truststore.password"] = password
            assert trusted_certificates(properties) == (_der(authority),), (kind, password)
            assert store_files(properties) == (Path(location),)


def test_certificates_as_text_may_have_lost_their_lines(authority: Authority) -> None:
    for text in (authority.pem(), authority.pem().replace("\n", " "), authority.pem() * 2):
        assert set(trusted_certificates({"ssl.truststore.certificates": text}) or ()) == {_der(authority)}
    assert trusted_certificates({}) is None


def test_a_trust_store_that_does_not_open(authority: Authority, file: Callable[..., str]) -> None:
    at, password = "ssl.truststore.location", "ssl.truststore.password"
    for content in (authority.trust_store(), encode_store([_der(authority)])):
        assert "wrong" in _refused({at: file(content), password: SECRET}, password)
    assert "missing" in _refused({at: file(authority.trust_store())}, password)
    assert "neither PKCS12 nor JKS nor PEM" in _refused({at: file("nothing")}, at)
    assert "JCEKS" in _refused({at: file(b"\xce\xce\xce\xce1234")}, at)
    assert "No such file" in _refused({at: "/nowhere/trust.p12"}, at)
    assert "no certificate" in _refused({at: file("-----BEGIN NOTHING-----\n-----END NOTHING-----")}, at)
    _refused({at: file(authority.pem()), "ssl.truststore.certificates": authority.pem()}, "ssl.truststore.certificates")
    _refused({"ssl.truststore.type": "BKS"}, "ssl.truststore.type")
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
    _refused({"ssl.truststore.certificates": broken}, "ssl.truststore.certificates")


# -- our own key -------------------------------------------------------------------------------------------------------


def _assert_own(properties: dict[str, str], identity: Identity) -> None:
    found = own_key(properties)
    assert found is not None
    assert found.key.private_numbers() == identity.key.private_numbers()
    assert found.chain[0] == identity.certificate.public_bytes(Encoding.DER)
    assert len(found.chain) == 2
    assert "private" not in repr(found).lower()


def test_a_key_store_is_known_by_its_content(identity: Identity, file: Callable[..., str]) -> None:
    at = "ssl.keystore.location"
    _assert_own({at: file(identity.pkcs12()), "ssl.keystore.password": STORE_PASSWORD}, identity)
    _assert_own({at: file(identity.pkcs12()), "ssl.key.password": STORE_PASSWORD}, identity)
    _assert_own({at: file(identity.chain_pem() + identity.key_pem())}, identity)
    _assert_own({at: file(identity.key_pem() + identity.chain_pem()), "ssl.key.password": SECRET}, identity)
    _assert_own({at: file(identity.key_pem(SECRET) + identity.chain_pem()), "ssl.key.password": SECRET}, identity)


@pytest.mark.parametrize(
    ("kind", "key_password"), [("JKS", STORE_PASSWORD), ("JKS", SECRET), ("PKCS12", STORE_PASSWORD)]
)
def test_a_key_store_of_keytool(identity: Identity, tmp_path: Path, kind: str, key_password: str) -> None:
    try:
        store = java_key_store(tmp_path, identity.pkcs12(), kind=kind, key_password=key_password)
    except LabError as error:
        pytest.skip(str(error))
    properties = {"ssl.keystore.location": str(store), "ssl.keystore.password": STORE_PASSWORD}
    if key_password == STORE_PASSWORD:
        _assert_own(properties, identity)
    else:
        _refused(properties, "ssl.key.password")
    _assert_own({**properties, "ssl.key.password": key_password}, identity)
    _refused({**properties, "ssl.keystore.password": f"{SECRET}?"}, "ssl.keystore.password")
    _refused({"ssl.keystore.location": str(store)}, "ssl.keystore.password")


def test_a_key_as_text(identity: Identity) -> None:
    chain = {"ssl.keystore.certificate.chain": identity.chain_pem().replace("\n", " "), "ssl.keystore.type": "PEM"}
    _assert_own({**chain, "ssl.keystore.key": identity.key_pem()}, identity)
    _assert_own({**chain, "ssl.keystore.key": identity.key_pem().replace("\n", " ")}, identity)
    locked = identity.key_pem(SECRET).replace("\n", " ")
    _assert_own({**chain, "ssl.keystore.key": locked, "ssl.key.password": SECRET}, identity)
    assert own_key({}) is None


def test_a_key_that_does_not_fit(identity: Identity, authority: Authority, file: Callable[..., str]) -> None:
    at, text, chain, password = (
        *("ssl.keystore.location", "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password"),
    )
    other = authority.issue("other")
    assert "belongs" in _refused({at: file(identity.key_pem() + other.chain_pem())}, at)
    assert "no certificate" in _refused({at: file(identity.key_pem())}, at)
    assert "no private key" in _refused({at: file(identity.chain_pem())}, at)
    locked = file(identity.key_pem(SECRET) + identity.chain_pem())
    assert "missing" in _refused({at: locked}, password)
    assert "does not open" in _refused({at: locked, password: f"{SECRET}?"}, password)
    _refused({at: file(authority.trust_store()), "ssl.keystore.password": STORE_PASSWORD}, at)
    _refused({at: locked, text: identity.key_pem()}, text)
    assert "missing" in _refused({text: identity.key_pem()}, chain)
    assert "missing" in _refused({chain: identity.chain_pem()}, text)
    _refused({text: identity.key_pem(), chain: identity.chain_pem(), "ssl.keystore.type": "JKS"}, "ssl.keystore.type")
