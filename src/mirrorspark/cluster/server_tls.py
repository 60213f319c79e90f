"""TLS of a port that we serve: the context out of the listener's ``ssl.*``, with the stores that a Kafka operator has.

``control`` makes one for each REST interface at its start; blocks, reads files. Only the stores are read here; the port is
``rest``'s.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

from mirrorspark.cluster.stores import own_key, trusted_certificates
from mirrorspark.cluster.tls import choose_suites, choose_versions, load_key
from mirrorspark.errors import SettingsError

__all__ = ["server_context", "with_certificate"]

_CLIENT_AUTH = "ssl.client.auth"
_WANTED = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def server_context(properties: Mapping[str, str], prefix: str = "") -> ssl.SSLContext:
    """``ssl.keystore.*`` is who we are, ``ssl.truststore.*`` and ``ssl.client.auth`` who may come. ``prefix``: what the keys
    begin with in the user's file. Raises SettingsError with the key; no secret appears in it."""
    try:
        return _context(properties)
    except SettingsError as error:
        raise _named(prefix, error) from None


def _named(prefix: str, error: SettingsError) -> SettingsError:
    """With the key as the user's file has it."""
    key = str(error.facts.get("key", ""))
    text = error.message
    return SettingsError(f"{prefix}{text}" if text.startswith(key) else text, key=f"{prefix}{key}")


def _context(properties: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    choose_versions(context, properties)
    choose_suites(context, properties)
    own = own_key(properties)
    if own is None:
        key = "ssl.keystore.location"
        raise SettingsError(f"{key}: missing; https needs a certificate and its key", key=key)
    load_key(context, own)
    wanted = properties.get(_CLIENT_AUTH, "none").strip().lower()
    if wanted not in _WANTED:
        raise SettingsError(f"{_CLIENT_AUTH}: must be one of {', '.join(_WANTED)}", key=_CLIENT_AUTH)
    if _WANTED[wanted] is not ssl.CERT_NONE:
        trusted = trusted_certificates(properties)
        if trusted is None:
            key = "ssl.truststore.location"
            raise SettingsError(f"{key}: missing; {_CLIENT_AUTH}={wanted} needs to know whom to trust", key=key)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=b"".join(trusted))
        context.verify_mode = _WANTED[wanted]
    return context


def with_certificate(properties: Mapping[str, str], certificate: str, private_key: str) -> dict[str, str]:
    """The command line's files before the file's: a store with both in it, or two PEM files. Raises SettingsError."""
    if not certificate:
        return dict(properties)
    kept = {key: value for key, value in properties.items() if not key.startswith("ssl.keystore.")}
    if not private_key or private_key == certificate:
        passwords = {key: properties[key] for key in ("ssl.keystore.password",) if key in properties}
        return kept | passwords | {"ssl.keystore.location": certificate}
    return kept | {
        "ssl.keystore.certificate.chain": _text(certificate, "--tls-certificate"),
        "ssl.keystore.key": _text(private_key, "--tls-key"),
    }


def _text(file: str, option: str) -> str:
    try:
        return Path(file).read_text(encoding="latin-1")
    except OSError as error:
        raise SettingsError(f"{option} {file}: cannot be read: {error.strerror or error}", key=option) from error
