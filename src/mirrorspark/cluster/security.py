"""The seam for TLS and SASL: how a socket is wrapped and how a connection logs in.

Reads Kafka's own client property names. The mechanisms are kafka-python's. No secret appears in an error or a repr.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from mirrorspark.cluster.jaas import parse_jaas
from mirrorspark.errors import AuthenticationFailed, SettingsError

if TYPE_CHECKING:
    from mirrorspark.cluster.connection import Connection

__all__ = ["Security"]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Security:
    """Built from client properties such as ``security.protocol``, ``ssl.*`` and ``sasl.*``."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
        if self.protocol not in PROTOCOLS:
            raise SettingsError(
                f"security.protocol={self.protocol}: must be one of {', '.join(PROTOCOLS)}", key="security.protocol"
            )
        self._context = _tls_context(properties) if self.protocol.endswith("SSL") else None
        self._check_host = properties.get("ssl.endpoint.identification.algorithm", "https") != ""
        self._mechanism = properties.get("sasl.mechanism", "GSSAPI")
        self._credentials = _credentials(properties) if self.protocol.startswith("SASL") else {}

    def __repr__(self) -> str:
        return f"Security({self.protocol})"

    def wrap(self, sock: socket.socket, host: str) -> socket.socket:
        if self._context is None:
            return sock
        return self._context.wrap_socket(sock, server_hostname=host)

    async def authenticate(self, connection: Connection, timeout_s: float) -> None:
        if not self.protocol.startswith("SASL"):
            return
        handshake = await connection.request(
            SaslHandshakeRequest(mechanism=self._mechanism), SaslHandshakeResponse, 1, timeout_s
        )
        if handshake.error_code:
            raise AuthenticationFailed(
                f"{connection.address}: sasl.mechanism={self._mechanism} is not enabled there; the broker offers "
                f"{', '.join(handshake.mechanisms) or 'none'}",
                address=connection.address,
            )
        mechanism: Any = get_sasl_mechanism(self._mechanism)(
            security_protocol=self.protocol, sasl_mechanism=self._mechanism, **self._credentials
        )
        while not mechanism.is_done():
            answer = await connection.request(
                SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes()), SaslAuthenticateResponse, 0, timeout_s
            )
            if answer.error_code:
                raise AuthenticationFailed(
                    f"{connection.address}: login by {self._mechanism} refused: {answer.error_message}",
                    address=connection.address,
                )
            mechanism.receive(answer.auth_bytes)


def _tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if properties.get("ssl.endpoint.identification.algorithm", "https") == "":
        context.check_hostname = False
    if location := properties.get("ssl.truststore.location"):
        _only_pem(properties, "ssl.truststore.type", location)
        context.load_verify_locations(cafile=location)
    elif certificates := properties.get("ssl.truststore.certificates"):
        context.load_verify_locations(cadata=certificates)
    if location := properties.get("ssl.keystore.location"):
        _only_pem(properties, "ssl.keystore.type", location)
        context.load_cert_chain(location, password=properties.get("ssl.key.password"))
    return context


def _only_pem(properties: Mapping[str, str], key: str, location: str) -> None:
    kind = properties.get(key, "JKS").upper()
    if kind != "PEM":
        raise SettingsError(
            f"{key}={kind}: {location}: only PEM stores are read so far; convert it and set {key}=PEM",
            key=key,
        )


def _credentials(properties: Mapping[str, str]) -> dict[str, str]:
    try:
        options = parse_jaas(properties.get("sasl.jaas.config", "")).options
    except ValueError as error:
        raise SettingsError(f"sasl.jaas.config: {error} (its text is not shown)", key="sasl.jaas.config") from None
    if "username" not in options or "password" not in options:
        raise SettingsError(
            'sasl.jaas.config: no username="…" and password="…" found in it (its text is not shown)',
            key="sasl.jaas.config",
        )
    return {"sasl_plain_username": options["username"], "sasl_plain_password": options["password"]}
