"""TLS of one cluster's connections: the context out of ``ssl.*``, made anew when a store's file changes.

Called by ``security`` for every new connection, in a thread: it reads files and waits for a handshake. A private key never
touches a disk in clear; OpenSSL wants it as a file, and gets one that is encrypted with a password of that moment.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import ssl
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from mirrorspark.cluster.stores import OwnKey, own_key, store_files, trusted_certificates
from mirrorspark.errors import SettingsError

__all__ = ["CipherRefused", "Tls", "choose_suites", "choose_versions", "load_key", "tls_context"]

log = logging.getLogger("mirrorspark.tls")

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
MEMORY_FOLDER = "/dev/shm"
"""Where the key's file lies for a moment, if there is such a place."""
_TLS_13 = re.compile(r"TLS_(AES|CHACHA20)_[A-Z0-9_]+")
_PROTOCOL, _ENABLED, _SUITES = "ssl.protocol", "ssl.enabled.protocols", "ssl.cipher.suites"
_HOST_CHECK = "ssl.endpoint.identification.algorithm"

Stamp = tuple[tuple[int, int, int, int] | None, ...]


class CipherRefused(OSError):
    """The broker chose a suite that ``ssl.cipher.suites`` does not list."""


class Tls:
    def __init__(self, properties: Mapping[str, str]) -> None:
        """Raises SettingsError for what cannot be read or is not known."""
        self._properties = dict(properties)
        self._files = store_files(properties)
        self._suites = _listed(properties, _SUITES)
        self._turn = threading.Lock()
        self._stamp = self._look()
        self._context = tls_context(self._properties)

    def wrap(self, sock: socket.socket, host: str) -> ssl.SSLSocket:
        """The handshake. Raises the ssl module's errors, which are OSErrors."""
        wrapped = self._newest().wrap_socket(sock, server_hostname=host)
        chosen = wrapped.cipher()
        if self._suites and chosen is not None and not _allows(self._suites, chosen[0]):
            wrapped.close()
            raise CipherRefused(chosen[0])
        return wrapped

    def refused_suite(self, error: OSError) -> str:
        """The suite that ``wrap`` did not take; empty if it failed for another reason."""
        return str(error) if isinstance(error, CipherRefused) else ""

    def _newest(self) -> ssl.SSLContext:
        """Files that cannot be read now (one is being replaced, a password does not fit yet) leave the context as it was."""
        with self._turn:
            seen = self._look()
            if seen != self._stamp:
                try:
                    self._context = tls_context(self._properties)
                    log.info("key stores have changed; new connections use them")
                except SettingsError as error:
                    log.warning("a key store has changed but is of no use, the former one stays: %s", error)
                self._stamp = seen
            return self._context

    def _look(self) -> Stamp:
        return tuple(_stamp(file) for file in self._files)


def _stamp(file: Path) -> tuple[int, int, int, int] | None:
    try:
        seen = file.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size


def tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Trusts what the trust store holds and nothing else, as Kafka's clients do; without one, what the system trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = _checks_host(properties)
    # Every certificate in a trust store is an anchor for Java, also one that another has issued.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    choose_versions(context, properties)
    choose_suites(context, properties)
    trusted = trusted_certificates(properties)
    if trusted is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=b"".join(trusted))
    if (own := own_key(properties)) is not None:
        load_key(context, own)
    return context


def _listed(properties: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in properties.get(key, "").split(",") if item.strip()]


def _wrong(key: str, why: str) -> SettingsError:
    return SettingsError(f"{key}: {why}", key=key, why=why)


def _checks_host(properties: Mapping[str, str]) -> bool:
    wanted = properties.get(_HOST_CHECK, "https").strip().lower()
    if wanted not in ("https", ""):
        raise _wrong(_HOST_CHECK, "must be https, or empty for no check of the host name")
    return wanted == "https"


def choose_versions(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """``ssl.protocol=TLSv1.2`` rules TLS 1.3 out even where that is enabled, as in Kafka's clients."""
    newest = properties.get(_PROTOCOL, "TLSv1.3").strip()
    if newest not in (*VERSIONS, "TLS"):
        raise _wrong(_PROTOCOL, "must be TLSv1.3, TLSv1.2 or TLS; older ones are not safe")
    enabled = _listed(properties, _ENABLED) or list(VERSIONS)
    if unknown := [name for name in enabled if name not in VERSIONS]:
        raise _wrong(_ENABLED, f"{', '.join(unknown)}: only {' and '.join(VERSIONS)} can be used")
    usable = [version for name, version in VERSIONS.items() if name in enabled]
    if newest == "TLSv1.2":
        usable = [version for version in usable if version is ssl.TLSVersion.TLSv1_2]
    if not usable:
        raise _wrong(_PROTOCOL, f"{newest} is not among {_ENABLED}")
    context.minimum_version, context.maximum_version = usable[0], usable[-1]


def choose_suites(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """Suites of TLS 1.2 by OpenSSL's names. Those of TLS 1.3 Python cannot choose: ``Tls.wrap`` looks at what was taken."""
    suites = _listed(properties, _SUITES)
    if not suites:
        return
    older = [_openssl_name(suite) for suite in suites if not _TLS_13.fullmatch(suite)]
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError:
            raise _wrong(_SUITES, "none of them is known here (Java's and OpenSSL's names are understood)") from None
    has_newer = len(older) < len(suites)
    newest, oldest = context.maximum_version, context.minimum_version
    if not older and newest >= ssl.TLSVersion.TLSv1_3:
        oldest = ssl.TLSVersion.TLSv1_3
    if not has_newer and oldest <= ssl.TLSVersion.TLSv1_2:
        newest = ssl.TLSVersion.TLSv1_2
    if (not older and newest < ssl.TLSVersion.TLSv1_3) or (not has_newer and oldest > ssl.TLSVersion.TLSv1_2):
        raise _wrong(_SUITES, f"no suite in it is for the versions of TLS that {_ENABLED} and {_PROTOCOL} allow")
    context.minimum_version, context.maximum_version = oldest, newest


def _openssl_name(suite: str) -> str:
    """``TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384`` is OpenSSL's ``ECDHE-RSA-AES256-GCM-SHA384``."""
    if "_WITH_" not in suite:
        return suite
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    cipher = re.sub(r"AES_(\d+)", r"AES\1", cipher).replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305")
    return "-".join([*([] if exchange == "RSA" else [exchange.replace("_", "-")]), cipher.replace("_", "-")])


def _allows(suites: list[str], chosen: str) -> bool:
    return chosen in suites or chosen in map(_openssl_name, suites)


def load_key(context: ssl.SSLContext, own: OwnKey) -> None:
    password = secrets.token_bytes(24).hex()
    pem = own.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    chain = "".join(ssl.DER_cert_to_PEM_cert(der) for der in own.chain)
    folder = MEMORY_FOLDER if os.path.isdir(MEMORY_FOLDER) and os.access(MEMORY_FOLDER, os.W_OK) else None
    handle, name = tempfile.mkstemp(prefix=".mirrorspark-", dir=folder)  # for us alone (0600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pem + chain.encode())
        context.load_cert_chain(name, password=password)
    finally:
        os.unlink(name)
