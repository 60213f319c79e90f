"""Java's key store format: what keytool wrote is read, and what is no store is told without a secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, load_der_private_key
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.cluster.java_key_store import JKS_MAGIC, StoreUnreadable, read_java_key_store
from mirrorspark.errors import LabError
from mirrorspark.lab.certificates import STORE_PASSWORD, Authority, Identity, java_key_store
from mirrorspark.lab.trust_store import PASSWORD, encode_store

KEY_PASSWORD = "of the key älone"


@pytest.fixture(scope="module")
def identity() -> Identity:
    return Authority("ca").issue("client")


@pytest.fixture(scope="module")
def store(identity: Identity, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A key under a password of its own, by the JDK's keytool."""
    try:
        made = java_key_store(tmp_path_factory.mktemp("jks"), identity.pkcs12(), key_password=KEY_PASSWORD)
    except LabError as error:
        pytest.skip(str(error))
    return Path(made).read_bytes()


def test_a_key_of_keytool_is_read(store: bytes, identity: Identity) -> None:
    assert store.startswith(JKS_MAGIC)
    (entry,) = read_java_key_store(store, STORE_PASSWORD).keys
    assert entry.alias == "own"
    assert load_der_private_key(entry.key(KEY_PASSWORD), None).private_numbers() == identity.key.private_numbers()  # type: ignore[union-attr]
    assert [*entry.chain] == [one.public_bytes(Encoding.DER) for one in (identity.certificate, identity.issuer)]


@pytest.mark.parametrize("password", ["", "wrong", STORE_PASSWORD])
def test_a_wrong_password_of_the_key_is_told(store: bytes, password: str) -> None:
    (entry,) = read_java_key_store(store, STORE_PASSWORD).keys
    with pytest.raises(StoreUnreadable) as caught:
        entry.key(password)
    assert caught.value.wrong_password


def test_a_wrong_password_of_the_store_is_told(store: bytes) -> None:
    with pytest.raises(StoreUnreadable) as caught:
        read_java_key_store(store, "wrong")
    assert caught.value.wrong_password


def test_certificates_need_no_password() -> None:
    certificates = [Authority(name).certificate.public_bytes(Encoding.DER) for name in ("one", "two")]
    raw = encode_store(certificates)
    for password in (None, PASSWORD):
        assert list(read_java_key_store(raw, password).trusted) == certificates


@given(st.data())
def test_a_damaged_store_is_told(data: st.DataObject) -> None:
    raw = encode_store([b"certificate"])
    cut = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(StoreUnreadable):
        read_java_key_store(raw[:cut], PASSWORD)
    at = data.draw(st.integers(0, len(raw) - 1))
    changed = bytearray(raw)
    changed[at] ^= 1 + data.draw(st.integers(0, 254))
    with pytest.raises(StoreUnreadable):
        read_java_key_store(bytes(changed), PASSWORD)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_told(raw: bytes) -> None:
    """Without a password no digest stands before the reader."""
    try:
        read_java_key_store(JKS_MAGIC + raw, None)
    except StoreUnreadable:
        pass
