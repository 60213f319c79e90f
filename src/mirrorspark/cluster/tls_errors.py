"""What a failed TLS handshake means, in words: whose certificate, what is wrong with it, and what to do.

Called by ``security`` with the ssl module's error, in a thread: to say more than OpenSSL does, it looks at the certificate
that the broker shows (nothing is sent to it) and asks whether the listener speaks without TLS.
"""

from __future__ import annotations

import socket
import ssl
import struct
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509

from mirrorspark.errors import ClusterError, TlsFailed, Unreachable

__all__ = ["Place", "explain_alert", "explain_handshake", "explain_plain_answer", "speaks_tls"]

LOOK_TIMEOUT_S = 2.0
_EXPIRED, _NOT_YET, _HOST, _ADDRESS = 10, 9, 62, 64
"""OpenSSL's verify codes."""
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, 0)
"""The smallest request of Kafka's protocol, version 0, that every broker answers."""
_OUR_CERTIFICATE = (
    *("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "UNKNOWN_CA", "CERTIFICATE_EXPIRED", "CERTIFICATE_REVOKED"),
    *("CERTIFICATE_UNKNOWN", "UNSUPPORTED_CERTIFICATE", "ACCESS_DENIED"),
)
_VERSION = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE")


@dataclass(frozen=True, slots=True)
class Place:
    """Of which cluster, and where."""

    alias: str
    host: str
    port: int
    trusts: str
    """The key that says what is trusted."""
    has_key: bool

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def key(self, name: str) -> str:
        return f"{self.alias}.{name}" if self.alias else name

    def failure(self, reason: str, name: str, text: str) -> TlsFailed:
        key = self.key(name)
        return TlsFailed(
            f"{key}: {self.address}: {text}", alias=self.alias, address=self.address, key=key, reason=reason
        )


def explain_handshake(error: OSError, place: Place) -> ClusterError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _untrusted(error, place)
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return explain_alert(error, place)
    if speaks_kafka_in_clear(place):
        return explain_plain_answer(place)
    return Unreachable(
        f"{place.address}: it closed the connection during the TLS handshake ({error.strerror or error}); it is going down, "
        f"or that is no listener of Kafka's; check {place.key('bootstrap.servers')} and {place.key('security.protocol')}",
        address=place.address,
    )


def explain_plain_answer(place: Place) -> TlsFailed:
    return place.failure(
        "no-tls",
        "security.protocol",
        "that listener speaks no TLS; say PLAINTEXT in place of SSL, or give the address of a listener that speaks it",
    )


def explain_alert(error: ssl.SSLError, place: Place) -> ClusterError:
    """What the broker told us, or OpenSSL."""
    reason = error.reason or ""
    if any(word in reason for word in _OUR_CERTIFICATE):
        return _not_trusted_there(reason, place)
    if "WRONG_VERSION_NUMBER" in reason or "HTTP_REQUEST" in reason:
        return explain_plain_answer(place)
    if any(word in reason for word in _VERSION):
        text = "both sides have no version of TLS in common; see ssl.protocol and the broker's ssl.enabled.protocols"
        return place.failure("no-common-version", "ssl.enabled.protocols", text)
    if "HANDSHAKE_FAILURE" in reason or "NO_SHARED_CIPHER" in reason or "NO_CIPHERS" in reason:
        text = (
            "the broker broke off the handshake: both sides have no cipher suite in common, or it wants a client "
            "certificate (ssl.keystore.*)"
        )
        return place.failure("no-common-cipher", "ssl.cipher.suites", text)
    return place.failure("handshake", "security.protocol", f"the TLS handshake failed ({reason or error})")


def _not_trusted_there(reason: str, place: Place) -> TlsFailed:
    if place.has_key:
        said = reason.rpartition("ALERT_")[2].lower().replace("_", " ")
        text = f"the broker does not accept our certificate ({said}): is it expired, and does the broker trust its CA?"
    else:
        text = "the broker wants a client certificate, and none is given"
    return place.failure("client-certificate", "ssl.keystore.location", text)


def _untrusted(error: ssl.SSLCertVerificationError, place: Place) -> TlsFailed:
    shown = _shown_certificate(place)
    by_itself = "it goes on by itself then"
    if error.verify_code == _EXPIRED:
        when = f" on {shown.not_valid_after_utc:%Y-%m-%d %H:%M} UTC" if shown and _is_past(shown) else ""
        text = f"the broker's certificate, or one above it, expired{when}; renew it on the broker, {by_itself}"
        return place.failure("certificate-expired", place.trusts, text)
    if error.verify_code == _NOT_YET:
        text = "the broker's certificate is not valid yet; look at the clocks of both machines"
        return place.failure("certificate-not-yet-valid", place.trusts, text)
    if error.verify_code in (_HOST, _ADDRESS):
        names = f" (it is for {_names(shown)})" if shown else ""
        text = (
            f"the broker's certificate is not for {place.host}{names}; give the brokers' names in bootstrap.servers and "
            "advertised.listeners as the certificate has them, or leave this key empty for no check"
        )
        return place.failure("wrong-host", "ssl.endpoint.identification.algorithm", text)
    issuer = f" (issued by {shown.issuer.rfc4514_string()})" if shown else ""
    text = (
        f"the broker's certificate{issuer} is not trusted: {error.verify_message}; put the CA that issued it "
        f"into this store, {by_itself}"
    )
    return place.failure("unknown-ca", place.trusts, text)


def _is_past(shown: x509.Certificate) -> bool:
    return shown.not_valid_after_utc < datetime.now(UTC)


def _names(shown: x509.Certificate) -> str:
    try:
        found = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return shown.subject.rfc4514_string()
    return ", ".join(str(name.value) for name in found)


def _shown_certificate(place: Place) -> x509.Certificate | None:
    """None where it cannot be had: it is only for the words of an error."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((place.host, place.port), LOOK_TIMEOUT_S) as sock,
            context.wrap_socket(sock, server_hostname=place.host) as wrapped,
        ):
            der = wrapped.getpeercert(True)
        return x509.load_der_x509_certificate(der) if der else None
    except (OSError, ValueError):
        return None


def speaks_tls(host: str, port: int) -> bool:
    """Whether a listener answers a TLS greeting with TLS, be it a refusal."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), LOOK_TIMEOUT_S) as sock,
            context.wrap_socket(sock, server_hostname=host),
        ):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False


def speaks_kafka_in_clear(place: Place) -> bool:
    try:
        with socket.create_connection((place.host, place.port), LOOK_TIMEOUT_S) as sock:
            sock.sendall(_API_VERSIONS)
            return sock.recv(8)[4:8] == struct.pack(">i", 1)
    except OSError:
        return False
