"""Whom brokers take us for, by what a file says about the login: the principal that ACLs are granted to.

Called by ``control.acl_list``; blocks where a key store is read. Brokers may map names as they like
(``ssl.principal.mapping.rules``, ``sasl.kerberos.principal.to.local.rules``, a principal builder), so what is found here is
what they do unless told otherwise. No secret is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509

from mirrorspark.cluster.jaas import parse_jaas
from mirrorspark.cluster.stores import own_key

__all__ = ["ANONYMOUS", "Principal", "principal_of"]

ANONYMOUS = "User:ANONYMOUS"
_SUB = "unsecuredLoginStringClaim_sub"
_CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"


@dataclass(frozen=True, slots=True)
class Principal:
    """``name`` is empty where the file does not tell. ``how`` says where it was found, or why not."""

    name: str
    how: str


def principal_of(properties: Mapping[str, str]) -> Principal:
    """``properties`` are Kafka's client properties. Raises SettingsError for a key store that cannot be read."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol.startswith("SASL"):
        return _of_login(properties)
    if protocol == "SSL" and (own := own_key(properties)) is not None:
        subject = x509.load_der_x509_certificate(own.chain[0]).subject.rfc4514_string()
        return Principal(f"User:{subject}", "the subject of our certificate")
    return Principal(ANONYMOUS, f"{protocol} without a login or a certificate of ours")


def _of_login(properties: Mapping[str, str]) -> Principal:
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
    text = properties.get("sasl.jaas.config")
    options = parse_jaas(text).options if text else {}
    if mechanism == "OAUTHBEARER":
        if options.get(_SUB):
            return Principal(f"User:{options[_SUB]}", f"{_SUB} in sasl.jaas.config")
        client = properties.get(_CLIENT_ID) or options.get("clientId")
        if client:
            return Principal(
                f"User:{client}", "the client id; brokers take the token's sub claim unless told otherwise"
            )
        return Principal("", "a token says who we are, and none was asked for")
    if mechanism == "GSSAPI":
        name = options.get("principal", "").partition("@")[0].partition("/")[0]
        return Principal(
            f"User:{name}" if name else "", "the ticket's principal" if name else "a ticket says who we are"
        )
    name = options.get("username", "")
    return Principal(f"User:{name}" if name else "", "username in sasl.jaas.config")
