"""Certificates to trust and our own key, out of what ``ssl.truststore.*`` and ``ssl.keystore.*`` name.

PKCS12, Java's JKS and PEM, each known by its content and not by its name: keytool writes PKCS12 under ``.jks`` too. Called
by ``tls`` and ``certificate_expiry``; blocks, reads files. Raises SettingsError with the key; no secret appears in it.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, load_der_private_key, load_pem_private_key, pkcs12

from mirrorspark.cluster.java_key_store import JKS_MAGIC, StoreUnreadable, read_java_key_store
from mirrorspark.errors import SettingsError

__all__ = ["OwnKey", "own_key", "store_files", "trusted_certificates"]

STORE_BYTES_MAX = 64 * 1024 * 1024
_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.+?)-----END \1-----", re.DOTALL)
_JCEKS_MAGIC = b"\xce\xce\xce\xce"
_TRUST, _TRUST_TEXT, _TRUST_PASSWORD = (
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
)
_KEY, _KEY_TEXT, _CHAIN_TEXT = "ssl.keystore.location", "ssl.keystore.key", "ssl.keystore.certificate.chain"
_STORE_PASSWORD, _KEY_PASSWORD = "ssl.keystore.password", "ssl.key.password"
_TEXT_OF = {"ssl.truststore.type": _TRUST_TEXT, "ssl.keystore.type": _KEY_TEXT}
_KNOWN_TYPES = ("JKS", "PKCS12", "PEM")


@dataclass(frozen=True, slots=True)
class OwnKey:
    """Who we are, where brokers ask for a client certificate. ``chain`` is DER, our own certificate first."""

    key: Any = field(repr=False)
    chain: tuple[bytes, ...]


def store_files(properties: Mapping[str, str]) -> tuple[Path, ...]:
    """The files that are read: what changes in them is for the next connection."""
    return tuple(Path(found) for key in (_TRUST, _KEY) if (found := properties.get(key)))


def trusted_certificates(properties: Mapping[str, str]) -> tuple[bytes, ...] | None:
    """What is trusted (DER); None where nothing is named, and the system's certificates count."""
    _check_type(properties, "ssl.truststore.type")
    text, location = properties.get(_TRUST_TEXT), properties.get(_TRUST)
    if text and location:
        raise _wrong(_TRUST_TEXT, f"{_TRUST} is given, too; give one of them")
    if text:
        found = _pem_certificates(text, _TRUST_TEXT)
    elif location:
        found = _certificates_in(_read(location, _TRUST), properties.get(_TRUST_PASSWORD), location)
    else:
        return None
    if not found:
        raise _wrong(_TRUST if location else _TRUST_TEXT, "there is no certificate in it")
    return found


def own_key(properties: Mapping[str, str]) -> OwnKey | None:
    """None where no key is given."""
    _check_type(properties, "ssl.keystore.type")
    location, text, chain = (properties.get(key) for key in (_KEY, _KEY_TEXT, _CHAIN_TEXT))
    if location and (text or chain):
        raise _wrong(_KEY_TEXT if text else _CHAIN_TEXT, f"{_KEY} is given, too; give one of them")
    if location:
        return _key_in(_read(location, _KEY), properties, location)
    if not text and not chain:
        return None
    if not text or not chain:
        raise _wrong(_CHAIN_TEXT if text else _KEY_TEXT, "missing; key and certificate chain belong together")
    key = _pem_key(text, properties.get(_KEY_PASSWORD), _KEY_TEXT)
    return _belonging(key, _pem_certificates(chain, _CHAIN_TEXT), _CHAIN_TEXT)


def _wrong(key: str, why: str, location: str = "") -> SettingsError:
    """``location`` is the key's own value, which whoever shows the file's line shows anyway."""
    return SettingsError(f"{key}: {location}{': ' if location else ''}{why}", key=key, why=why)


def _check_type(properties: Mapping[str, str], key: str) -> None:
    kind = properties.get(key, "JKS").strip().upper()
    if kind not in _KNOWN_TYPES:
        raise _wrong(key, f"must be one of {', '.join(_KNOWN_TYPES)}")
    text = _TEXT_OF[key]
    if properties.get(text) and key in properties and kind != "PEM":
        raise _wrong(key, f"must be PEM where {text} is given")


def _read(location: str, key: str) -> bytes:
    path = Path(location)
    try:
        if path.stat().st_size > STORE_BYTES_MAX:
            raise _wrong(key, f"larger than {STORE_BYTES_MAX} bytes: that is no key store", location)
        return path.read_bytes()
    except OSError as error:
        raise _wrong(key, f"cannot be read: {error.strerror or error}", location) from error


# -- a store's certificates ------------------------------------------------------------------------------------------


def _certificates_in(data: bytes, password: str | None, location: str) -> tuple[bytes, ...]:
    if data.startswith(JKS_MAGIC):
        try:
            store = read_java_key_store(data, password)
            return (*store.trusted, *(entry.chain[0] for entry in store.keys if entry.chain))  # as Java does
        except StoreUnreadable as error:
            raise _unreadable(error, _TRUST, _TRUST_PASSWORD, location) from None
    if _is_der(data):
        found = _pkcs12(data, password, _TRUST, _TRUST_PASSWORD, location)
        return tuple(one.certificate.public_bytes(Encoding.DER) for one in _trusted_entries(found))
    return _pem_certificates(_text(data, _TRUST, location), _TRUST)


def _trusted_entries(found: pkcs12.PKCS12KeyAndCertificates) -> list[pkcs12.PKCS12Certificate]:
    return [*([found.cert] if found.cert is not None else []), *found.additional_certs]


def _pem_certificates(text: str, key: str) -> tuple[bytes, ...]:
    found = []
    for kind, body in _PEM.findall(text):
        if kind not in ("CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"):
            continue
        try:
            der = binascii.a2b_base64("".join(body.split()))
            x509.load_der_x509_certificate(der)
        except ValueError as error:
            raise _wrong(key, f"a certificate in it cannot be read ({error})") from None
        found.append(der)
    return tuple(found)


# -- our own key -----------------------------------------------------------------------------------------------------


def _key_in(data: bytes, properties: Mapping[str, str], location: str) -> OwnKey:
    password = properties.get(_STORE_PASSWORD)
    if data.startswith(JKS_MAGIC):
        return _java_key(data, password, properties.get(_KEY_PASSWORD), location)
    if _is_der(data):
        password = password if password is not None else properties.get(_KEY_PASSWORD)
        found = _pkcs12(data, password, _KEY, _STORE_PASSWORD, location)
        if found.key is None:
            raise _wrong(_KEY, "there is no private key in it", location)
        chain = [one.certificate.public_bytes(Encoding.DER) for one in _trusted_entries(found)]
        return _belonging(found.key, chain, _KEY)
    text = _text(data, _KEY, location)
    key = _pem_key(text, properties.get(_KEY_PASSWORD), _KEY)
    return _belonging(key, _pem_certificates(text, _KEY), _KEY)


def _java_key(data: bytes, password: str | None, key_password: str | None, location: str) -> OwnKey:
    """The first key of the store; its password is the store's own where ``ssl.key.password`` is not given."""
    if password is None:
        raise _wrong(_STORE_PASSWORD, f"missing; {location} is a Java key store")
    try:
        store = read_java_key_store(data, password)
        if not store.keys:
            raise _wrong(_KEY, "there is no private key in it", location)
        entry = store.keys[0]
    except StoreUnreadable as error:
        raise _unreadable(error, _KEY, _STORE_PASSWORD, location) from None
    try:
        key = load_der_private_key(entry.key(key_password if key_password is not None else password), None)
    except StoreUnreadable as error:
        raise _unreadable(error, _KEY, _KEY_PASSWORD, location) from None
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _wrong(_KEY, f"its private key is of a kind that is not known ({error})", location) from None
    return _belonging(key, entry.chain, _KEY)


def _pem_key(text: str, password: str | None, at: str) -> Any:
    """Also from a line of a properties file, in which the line breaks were lost."""
    blocks = [(kind, body) for kind, body in _PEM.findall(text) if kind.endswith("PRIVATE KEY")]
    if not blocks:
        raise _wrong(at, "there is no private key in it (PEM)")
    kind, body = blocks[0]
    is_encrypted = kind.startswith("ENCRYPTED") or "ENCRYPTED" in body
    if is_encrypted and password is None:
        raise _wrong(_KEY_PASSWORD, f"missing; the private key of {at} is encrypted")
    if ":" not in body:  # an old form has headers of its own, and its lines must stay
        body = "\n" + "\n".join(re.findall(".{1,64}", "".join(body.split()))) + "\n"
    pem = f"-----BEGIN {kind}-----{body}-----END {kind}-----\n".encode()
    try:
        return load_pem_private_key(pem, (password or "").encode() if is_encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        if is_encrypted:
            raise _wrong(_KEY_PASSWORD, f"does not open the private key of {at}, or that is damaged") from None
        raise _wrong(at, f"its private key cannot be read ({error})") from None


def _belonging(key: Any, chain: Iterable[bytes], at: str) -> OwnKey:
    """Key and certificates of one owner, the own certificate first whatever the order in the store."""
    given = list(chain)
    own = [der for der in given if x509.load_der_x509_certificate(der).public_key() == key.public_key()]
    if not given:
        raise _wrong(at, "there is no certificate for the private key in it")
    if not own:
        raise _wrong(at, "no certificate in it belongs to the private key")
    return OwnKey(key, (own[0], *(der for der in given if der != own[0])))


# -- what a file is --------------------------------------------------------------------------------------------------


def _is_der(data: bytes) -> bool:
    """PKCS12 begins with a sequence of some length; PEM is text."""
    return data[:1] == b"\x30" and len(data) > 1 and data[1] & 0x80 != 0


def _text(data: bytes, key: str, location: str) -> str:
    if data.startswith(_JCEKS_MAGIC):
        raise _wrong(key, "a JCEKS store is not read; convert it: keytool -importkeystore … PKCS12", location)
    text = data.decode("latin-1")
    if "-----BEGIN" not in text:
        raise _wrong(key, "it is neither PKCS12 nor JKS nor PEM", location)
    return text


def _pkcs12(
    data: bytes, password: str | None, key: str, password_key: str, location: str
) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        why = "wrong" if password is not None else "missing"
        raise _wrong(password_key, f"{why}; {location} (PKCS12) does not open, or it is damaged") from None
    except UnsupportedAlgorithm as error:
        raise _wrong(key, f"it is encrypted in a way that is not known ({error})", location) from None


def _unreadable(error: StoreUnreadable, key: str, password_key: str, location: str) -> SettingsError:
    if error.wrong_password:
        return _wrong(password_key, f"wrong; {location} (JKS): {error}")
    return _wrong(key, f"{error} (JKS)", location)
