"""The system's trusted certificates as a Java key store, for a Java that brings only its own.

Used by ``lab/jar_resolver.py``: a registry behind a company's certificate is trusted by pip through the system's bundle
or its own setting; a bundled Java knows nothing of it. A JKS of certificates alone is a simple format, written here.
"""

from __future__ import annotations

import os
import ssl
import struct
import time
from hashlib import sha1
from pathlib import Path

__all__ = ["PASSWORD", "trust_store"]

PASSWORD = "changeit"  # Java's customary one: a store of public certificates holds no secret
_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2


def trust_store(folder: Path) -> Path | None:
    """A JKS file below ``folder`` with the certificates of the system's bundle; None if there is no bundle."""
    bundle = _bundle()
    if bundle is None:
        return None
    certificates = _certificates(bundle.read_text(errors="replace"))
    if not certificates:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / "system-certificates.jks"
    store.write_bytes(encode_store(certificates))
    return store


def _bundle() -> Path | None:
    named = [os.environ.get(name, "") for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")]
    paths = ssl.get_default_verify_paths()
    for candidate in [*named, paths.cafile or "", paths.openssl_cafile, "/etc/ssl/certs/ca-certificates.crt"]:
        if candidate and Path(candidate).is_file():
            return Path(candidate)
    return None


def _certificates(text: str) -> list[bytes]:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    found = []
    for part in text.split(begin)[1:]:
        try:
            found.append(ssl.PEM_cert_to_DER_cert(f"{begin}{part.split(end)[0]}{end}"))
        except ValueError:
            continue  # one unreadable entry does not make the others untrusted
    return found


def encode_store(certificates: list[bytes]) -> bytes:
    """JKS: entries, then a digest over the password and everything before it."""
    now = int(time.time() * 1000)
    out = bytearray(struct.pack(">III", _MAGIC, _VERSION, len(certificates)))
    for number, certificate in enumerate(certificates):
        out += struct.pack(">I", _TRUSTED) + _text(f"certificate-{number}") + struct.pack(">q", now)
        out += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    return bytes(out) + sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + out).digest()


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">H", len(raw)) + raw
