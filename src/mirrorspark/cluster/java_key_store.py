"""Java's own key store format (JKS), read: trusted certificates, and private keys under Sun's key protector.

Called by ``stores``, which has looked at the first bytes: most files named ``.jks`` are PKCS12 today. Reads bytes, no files.
Raises StoreUnreadable; no password appears in its text.
"""

from __future__ import annotations

import hmac
import struct
from dataclasses import dataclass
from hashlib import sha1

__all__ = ["JKS_MAGIC", "JavaKeyStore", "KeyEntry", "StoreUnreadable", "read_java_key_store"]

JKS_MAGIC = b"\xfe\xed\xfe\xed"
ENTRIES_MAX = 100_000
"""More is no key store; Java's own bundle has some 150."""
_DIGEST_BYTES = 20
_WHITENER = b"Mighty Aphrodite"
"""Goes into the digest between the password and the content (sun.security.provider.JavaKeyStore)."""
_PROTECTOR = bytes.fromhex("2b060104012a02110101")
"""1.3.6.1.4.1.42.2.17.1.1, Sun's key protector, as DER writes it."""
_SEQUENCE, _OCTETS = 0x30, 0x04


class StoreUnreadable(Exception):
    """``wrong_password`` tells a wrong or missing password from a damaged file."""

    def __init__(self, why: str, *, wrong_password: bool = False) -> None:
        super().__init__(why)
        self.wrong_password = wrong_password


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key as it is stored, protected by a password of its own, and its certificates, the own one first."""

    alias: str
    protected: bytes
    chain: tuple[bytes, ...]

    def key(self, password: str) -> bytes:
        """The key in clear (PKCS#8, DER)."""
        return _unprotect(_protected_octets(self.protected), _two_bytes_each(password))

    def __repr__(self) -> str:
        return f"KeyEntry({self.alias})"


@dataclass(frozen=True, slots=True)
class JavaKeyStore:
    trusted: tuple[bytes, ...]
    keys: tuple[KeyEntry, ...]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self._data):
            raise StoreUnreadable("it is cut off")
        taken, self.at = self._data[self.at : end], end
        return taken

    def number(self, form: str) -> int:
        (value,) = struct.unpack(f">{form}", self.take(struct.calcsize(form)))
        return int(value)

    def text(self) -> str:
        return self.take(self.number("H")).decode("utf-8", "replace")

    def block(self) -> bytes:
        return self.take(self.number("I"))


def read_java_key_store(data: bytes, password: str | None) -> JavaKeyStore:
    """Without a password nothing proves that the file is whole, as in Java; its certificates can be read all the same."""
    if password is not None:
        _check_digest(data, password)
    reader = _Reader(data[:-_DIGEST_BYTES])
    if reader.take(4) != JKS_MAGIC:
        raise StoreUnreadable("it is no Java key store")
    version, count = reader.number("I"), reader.number("I")
    if version not in (1, 2) or count > ENTRIES_MAX:
        raise StoreUnreadable(f"version {version} with {count} entries is not known")
    trusted: list[bytes] = []
    keys: list[KeyEntry] = []
    for _ in range(count):
        tag, alias = reader.number("I"), reader.text()
        reader.take(8)  # when the entry was made
        if tag == 1:
            protected = reader.block()
            keys.append(KeyEntry(alias, protected, _certificates(reader, version, reader.number("I"))))
        elif tag == 2:
            trusted += _certificates(reader, version, 1)
        else:
            raise StoreUnreadable(f"an entry of kind {tag} is not known")
    return JavaKeyStore(tuple(trusted), tuple(keys))


def _certificates(reader: _Reader, version: int, count: int) -> tuple[bytes, ...]:
    found = []
    for _ in range(count):
        kind = reader.text() if version == 2 else "X.509"
        content = reader.block()
        if kind not in ("X.509", "X509"):
            raise StoreUnreadable(f"a certificate of the kind {kind!r} is not known")
        found.append(content)
    return tuple(found)


def _two_bytes_each(password: str) -> bytes:
    return password.encode("utf-16-be")


def _check_digest(data: bytes, password: str) -> None:
    found = sha1(_two_bytes_each(password) + _WHITENER + data[:-_DIGEST_BYTES]).digest()
    if not hmac.compare_digest(found, data[-_DIGEST_BYTES:]):
        raise StoreUnreadable("the password is wrong, or the file is damaged", wrong_password=True)


def _protected_octets(der: bytes) -> bytes:
    """The octets of an EncryptedPrivateKeyInfo whose algorithm is Sun's protector."""
    outer = _content(der, _SEQUENCE)
    algorithm = _content(outer, _SEQUENCE)
    if _PROTECTOR not in algorithm:
        raise StoreUnreadable("its key is protected in a way that is not known; convert the store to PKCS12")
    return _content(outer[_size(outer) :], _OCTETS)


def _size(der: bytes) -> int:
    """Of the first item, header and all."""
    start, length = _header(der)
    return start + length


def _content(der: bytes, tag: int) -> bytes:
    start, length = _header(der)
    if der[0] != tag or start + length > len(der):
        raise StoreUnreadable("its key is damaged")
    return der[start : start + length]


def _header(der: bytes) -> tuple[int, int]:
    if len(der) < 2:
        raise StoreUnreadable("its key is damaged")
    length, start = der[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[2:start], "big")
    return start, length


def _unprotect(octets: bytes, password: bytes) -> bytes:
    """A salt, the key xored with a chain of digests, and a digest of password and key that proves it right."""
    if len(octets) < 2 * _DIGEST_BYTES:
        raise StoreUnreadable("its key is damaged")
    word, hidden, proof = octets[:_DIGEST_BYTES], octets[_DIGEST_BYTES:-_DIGEST_BYTES], octets[-_DIGEST_BYTES:]
    stream = bytearray()
    while len(stream) < len(hidden):
        word = sha1(password + word).digest()
        stream += word
    key = bytes(one ^ other for one, other in zip(hidden, stream, strict=False))
    if not hmac.compare_digest(sha1(password + key).digest(), proof):
        raise StoreUnreadable("the key's password is wrong", wrong_password=True)
    return key
