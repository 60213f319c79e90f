"""What a SASL mechanism says to a broker, built from ``sasl.*`` and the login module's options.

PLAIN, SCRAM and GSSAPI are kafka-python's; OAUTHBEARER is ours, since it must keep a token fresh and tell why a broker
refused it. Called by ``security`` for each login. No secret appears in an error.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
from collections.abc import Callable, Mapping
from typing import Protocol

from kafka.net.sasl import get_sasl_mechanism

from mirrorspark.cluster.jaas import Login, parse_jaas
from mirrorspark.cluster.oauth_token import Token, TokenKeeper, token_source
from mirrorspark.cluster.tls import tls_context
from mirrorspark.errors import SettingsError

__all__ = ["MECHANISMS", "Mechanism", "SaslLogin"]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
log = logging.getLogger("mirrorspark.sasl")

_JAAS = "sasl.jaas.config"
_SERVICE = "sasl.kerberos.service.name"
KEYTAB_VARIABLE = "KRB5_CLIENT_KTNAME"
"""Where Kerberos' own library looks for a client's keytab."""
_told_in_clear: set[str] = set()
# kafka-python says so at every login; ``_tell_in_clear`` does once.
logging.getLogger("kafka.net.sasl.plain").setLevel(logging.ERROR)


class Mechanism(Protocol):
    """One login's conversation."""

    def auth_bytes(self) -> bytes: ...
    def receive(self, answer: bytes, /) -> object: ...
    def is_done(self) -> bool: ...


class SaslLogin:
    def __init__(self, properties: Mapping[str, str], protocol: str, key: Callable[[str], str]) -> None:
        """Raises SettingsError for what is missing. ``key`` names a setting for people, with the cluster's alias."""
        self.mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
        self.username = ""
        if self.mechanism not in MECHANISMS:
            raise _wrong("sasl.mechanism", f"must be one of {', '.join(MECHANISMS)}")
        self._protocol = protocol
        login = _login(properties, self.mechanism)
        self._tokens: TokenKeeper | None = None
        self._arguments: dict[str, str] = {}
        if self.mechanism == "OAUTHBEARER":
            self._tokens = TokenKeeper(token_source(properties, login.options, tls_context, key), properties)
        elif self.mechanism == "GSSAPI":
            self._arguments = _kerberos(properties, login)
        else:
            self._arguments = self._password(login)
        if self.mechanism == "PLAIN" and protocol == "SASL_PLAINTEXT":
            _tell_in_clear(key("sasl.mechanism"))

    def _password(self, login: Login) -> dict[str, str]:
        for name in ("username", "password"):
            if not login.options.get(name):
                raise _wrong(_JAAS, f'no {name}="…" found in it (its text is not shown)')
        self.username = login.options["username"]
        name = self.username
        if self.mechanism.startswith("SCRAM"):
            name = name.replace("=", "=3D").replace(",", "=2C")  # RFC 5802, 5.1
        return {"sasl_plain_username": name, "sasl_plain_password": login.options["password"]}

    async def begin(self, host: str, *, again: bool = False) -> Mechanism:
        """Ready to speak: a token is there, a ticket was got. ``again``: to renew a session."""
        if self._tokens is not None:
            return _OAuthBearer(await asyncio.to_thread(self._tokens.token, lasting=again))
        arguments = {"security_protocol": self._protocol, "sasl_mechanism": self.mechanism, **self._arguments}
        make = get_sasl_mechanism(self.mechanism)
        if self.mechanism == "GSSAPI":
            made: Mechanism = await asyncio.to_thread(make, host=host, **arguments)
            return made
        plain: Mechanism = make(**arguments)
        return plain


class _OAuthBearer:
    """RFC 7628. A broker that refuses a token says why, and is answered with one byte before it says so again."""

    def __init__(self, token: Token) -> None:
        self._token = token
        self._is_done = False
        self.refusal = ""

    def auth_bytes(self) -> bytes:
        if self.refusal:
            return b"\x01"
        extensions = "".join(f"\x01{name}={text}" for name, text in self._token.extensions.items())
        return f"n,,\x01auth=Bearer {self._token.value}{extensions}\x01\x01".encode()

    def receive(self, answer: bytes, /) -> None:
        if not answer:
            self._is_done = True
            return
        try:
            self.refusal = str(json.loads(answer).get("status", "refused"))
        except (ValueError, AttributeError):
            self.refusal = "refused"

    def is_done(self) -> bool:
        return self._is_done


def _tell_in_clear(key: str) -> None:
    if key not in _told_in_clear:
        _told_in_clear.add(key)
        log.warning(
            "%s=PLAIN with security.protocol=SASL_PLAINTEXT: the password goes over the network for everybody on the way "
            "to read; use SASL_SSL, or SCRAM-SHA-512",
            key,
        )


def _wrong(key: str, why: str) -> SettingsError:
    return SettingsError(f"{key}: {why}", key=key, why=why)


def _login(properties: Mapping[str, str], mechanism: str) -> Login:
    text = properties.get(_JAAS)
    if text is None and mechanism in ("GSSAPI", "OAUTHBEARER"):
        return Login("", {})  # all that they need may stand in keys of its own
    if text is None:
        raise _wrong(_JAAS, f"missing; sasl.mechanism={mechanism} needs a username and a password")
    try:
        login = parse_jaas(text)
    except ValueError as error:
        raise _wrong(_JAAS, f"{error} (its text is not shown)") from None
    if login.mechanisms and mechanism not in login.mechanisms:
        module, fitting = login.module.rsplit(".", 1)[-1], " or ".join(login.mechanisms)
        raise _wrong(_JAAS, f"{module} is for {fitting}, but sasl.mechanism is {mechanism}")
    return login


def _kerberos(properties: Mapping[str, str], login: Login) -> dict[str, str]:
    """Tickets come from Kerberos' own library: out of its cache, or by the keytab that its environment names."""
    if importlib.util.find_spec("gssapi") is None:
        given = "" if "sasl.mechanism" in properties else "not given, so it is Kafka's default GSSAPI; "
        raise _wrong(
            "sasl.mechanism",
            f"{given}GSSAPI needs the Python library gssapi (and Kerberos' libkrb5), and it is not installed here; install "
            f"it, or choose one of {', '.join(MECHANISMS[:-1])}",
        )
    service = properties.get(_SERVICE) or login.options.get("serviceName")
    if not service:
        raise _wrong(_SERVICE, "missing; GSSAPI needs the name under which the brokers are known to Kerberos")
    keytab = login.options.get("keyTab")
    if keytab and os.environ.get(KEYTAB_VARIABLE, "").removeprefix("FILE:") != keytab:
        raise _wrong(
            _JAAS, f"keyTab is read by Kerberos' own library; set {KEYTAB_VARIABLE}={keytab} in the environment"
        )
    return {"sasl_kerberos_service_name": service}
