"""The seam for TLS and SASL: how a socket is wrapped, how a connection logs in, and what their failures mean.

Reads Kafka's own client property names; ``tls``, ``sasl_login`` and ``oauth_token`` do the work. One for each
``ClusterClient``, so carrying, admin and group work all go through here. No secret appears in an error or a repr. What TLS
and logins need is imported when they do: a lane that needs neither starts sooner.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from mirrorspark.errors import AuthenticationFailed, ClusterError, SettingsError, TlsFailed, Unreachable

if TYPE_CHECKING:
    from mirrorspark.cluster.connection import Connection
    from mirrorspark.cluster.sasl_login import Mechanism, SaslLogin
    from mirrorspark.cluster.tls import Tls
    from mirrorspark.cluster.tls_errors import Place

__all__ = ["PROTOCOLS", "Security"]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ILLEGAL_SASL_STATE = 34
_SASL_AUTHENTICATE = 36


class Security:
    """Built from client properties such as ``security.protocol``, ``ssl.*`` and ``sasl.*`` of the cluster ``alias``."""

    def __init__(self, properties: Mapping[str, str], alias: str = "") -> None:
        self.alias = alias
        self.protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
        if self.protocol not in PROTOCOLS:
            why = f"must be one of {', '.join(PROTOCOLS)}"
            raise SettingsError(f"security.protocol={self.protocol}: {why}", key="security.protocol", why=why)
        self._login = _sasl_login(properties, self.protocol, self.key) if self.protocol.startswith("SASL") else None
        self._tls = _tls(properties) if self.protocol.endswith("SSL") else None
        is_text = "ssl.truststore.certificates" in properties
        self._trusts = "ssl.truststore.certificates" if is_text else "ssl.truststore.location"
        self._has_key = any(name in properties for name in ("ssl.keystore.location", "ssl.keystore.key"))

    def __repr__(self) -> str:
        return f"Security({self.protocol})"

    @property
    def is_encrypted(self) -> bool:
        return self._tls is not None

    def key(self, name: str) -> str:
        """A client property as the file has it."""
        return f"{self.alias}.{name}" if self.alias else name

    # -- TLS ------------------------------------------------------------------------------------------------------------

    def wrap(self, sock: socket.socket, host: str) -> socket.socket:
        """Blocks for the handshake. Raises OSError; ``explain`` says what it means."""
        return sock if self._tls is None else self._tls.wrap(sock, host)

    def explain(self, error: OSError, host: str, port: int) -> ClusterError:
        """Of a connection that could not be opened. Blocks: it may look at what the broker shows."""
        if self._tls is not None and isinstance(error, ssl.SSLError | ConnectionResetError):
            from mirrorspark.cluster.tls_errors import explain_handshake

            return explain_handshake(error, self._place(host, port))
        if self._tls is not None and (refused := self._tls.refused_suite(error)):
            text = f"the broker chose {refused}, which this key does not list; list it, or change the broker's choice"
            return self._place(host, port).failure("cipher-refused", "ssl.cipher.suites", text)
        return Unreachable(
            f"{host}:{port}: cannot connect ({error.strerror or error}); check bootstrap.servers and the broker",
            address=f"{host}:{port}",
        )

    def explain_loss(self, error: OSError | None, host: str, port: int) -> TlsFailed | None:
        """Of an open connection that ended with what only TLS knows; None if the reason is another one.

        With TLS 1.3 a broker refuses a client's certificate after the handshake.
        """
        if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
            from mirrorspark.cluster.tls_errors import explain_alert

            found = explain_alert(error, self._place(host, port))
            return found if isinstance(found, TlsFailed) else None
        return None

    def explain_silence(self, host: str, port: int) -> TlsFailed | None:
        """Of a listener that closed or kept silent before its first answer. Blocks: it asks whether it speaks TLS."""
        from mirrorspark.cluster.tls_errors import speaks_tls

        if self._tls is None and speaks_tls(host, port):
            text = (
                "that listener speaks TLS; say SSL in place of PLAINTEXT, or give the address of a listener without it"
            )
            return self._place(host, port).failure("tls-wanted", "security.protocol", text)
        return None

    def _place(self, host: str, port: int) -> Place:
        from mirrorspark.cluster.tls_errors import Place

        return Place(self.alias, host, port, self._trusts, self._has_key)

    # -- SASL -----------------------------------------------------------------------------------------------------------

    async def begin_login(self, host: str, *, again: bool = False) -> Mechanism | None:
        """What can be got before the broker is asked: a token, a ticket. None where nobody logs in."""
        return None if self._login is None else await self._login.begin(host, again=again)

    async def log_in(
        self, connection: Connection, mechanism: Mechanism, timeout_s: float, *, again: bool = False
    ) -> float:
        """Seconds after which the broker wants to hear it again (KIP-368); 0 if never. ``again``: this is that."""
        assert self._login is not None
        await self._shake_hands(connection, timeout_s, again=again)
        version = connection.version(_SASL_AUTHENTICATE, 0, 2, "SaslAuthenticate")
        lasts_ms = 0
        while not mechanism.is_done():
            message = SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes())
            answer = await connection.request(message, SaslAuthenticateResponse, version, timeout_s, ahead=True)
            if answer.error_code:
                raise self._refused(connection, mechanism, str(answer.error_message or ""))
            try:
                mechanism.receive(answer.auth_bytes)
            except (ValueError, KeyError) as error:
                text = f"what it says to the login by {self._login.mechanism} is not what it should ({error})"
                raise self._failed(connection, text, "not-the-broker") from None
            lasts_ms = getattr(answer, "session_lifetime_ms", 0) or 0
        return lasts_ms / 1000

    async def _shake_hands(self, connection: Connection, timeout_s: float, *, again: bool) -> None:
        assert self._login is not None
        message = SaslHandshakeRequest(mechanism=self._login.mechanism)
        answer = await connection.request(message, SaslHandshakeResponse, 1, timeout_s, ahead=True)
        if answer.error_code == _ILLEGAL_SASL_STATE and again:
            text = f"{connection.address}: the broker does not hear a login again; a new connection is opened"
            raise Unreachable(text, address=connection.address)
        if answer.error_code == _ILLEGAL_SASL_STATE:
            text = "that listener asks for no login; take SASL_ out of this key, or give another listener's address"
            raise self._failed(connection, text, "no-login-wanted", "security.protocol")
        if answer.error_code:
            offered = ", ".join(answer.mechanisms) or "none"
            text = f"{self._login.mechanism} is not enabled there; the broker offers {offered}"
            raise self._failed(connection, text, "mechanism-not-enabled", "sasl.mechanism")

    def _refused(self, connection: Connection, mechanism: Any, said: str) -> AuthenticationFailed:
        assert self._login is not None
        who = f" of user {self._login.username}" if self._login.username else ""
        what = "username and password" if who else "the token's issuer, audience and lifetime"
        refusal = getattr(mechanism, "refusal", "")  # what the broker said about a token
        status = f": {refusal}" if refusal else ""
        text = (
            f"the broker refused the login{who} by {self._login.mechanism}{status} ({said}); check {what} here and on the "
            "broker. It is tried again"
        )
        return self._failed(connection, text, "login-refused")

    def _failed(
        self, connection: Connection, text: str, reason: str, name: str = "sasl.jaas.config"
    ) -> AuthenticationFailed:
        key = self.key(name)
        return AuthenticationFailed(
            f"{key}: {connection.address}: {text}",
            alias=self.alias,
            address=connection.address,
            key=key,
            reason=reason,
        )


def _sasl_login(properties: Mapping[str, str], protocol: str, key: Callable[[str], str]) -> SaslLogin:
    from mirrorspark.cluster.sasl_login import SaslLogin

    return SaslLogin(properties, protocol, key)


def _tls(properties: Mapping[str, str]) -> Tls:
    from mirrorspark.cluster.tls import Tls

    return Tls(properties)
