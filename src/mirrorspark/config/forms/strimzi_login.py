"""A cluster's security properties as Strimzi's ``tls`` and ``authentication``. Strimzi's writer calls it.

Secrets become names of Kubernetes secrets: those that a reference already names, or one to be made for the alias.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from mirrorspark.config.forms.jaas_text import JaasText
from mirrorspark.config.forms.secret_values import REFERENCE
from mirrorspark.config.forms.strimzi_security import MECHANISMS

__all__ = ["Login", "kubernetes_name", "secret_named_by"]

ALLOWED_IN_CONFIG = (
    "ssl.endpoint.identification.algorithm",
    "ssl.cipher.suites",
    "ssl.protocol",
    "ssl.enabled.protocols",
)
"""Security keys that Strimzi's operator takes from ``config``."""
_DIRECTORY = re.compile(r"\$\{dir:([^:}]+):([^:}]+)\}")
_ENVIRONMENT = re.compile(r"\$\{env:([^:}]+)\}")
_PEM_STORE = ("ssl.keystore.type", "ssl.keystore.certificate.chain", "ssl.keystore.key")


def kubernetes_name(text: str) -> str:
    """A name that Kubernetes takes."""
    return re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:63] or "x"


def secret_named_by(text: str, variables: dict[str, str]) -> tuple[str, str] | None:
    """The secret and key that a reference stands for, where it names one. ``variables``: as kept by the reader."""
    if match := _DIRECTORY.fullmatch(text):
        return PurePosixPath(match[1]).name, match[2]
    if (match := _ENVIRONMENT.fullmatch(text)) and (known := variables.get(match[1])):
        secret, _, key = known.partition(":")
        return secret, key
    return None


@dataclass
class Login:
    """``fields`` go into the cluster, ``config`` into its config, ``secrets`` have to be made: name -> key -> value, or a
    reference where the value is not at hand. ``rest`` has no place in a resource."""

    alias: str
    variables: dict[str, str]
    fields: dict[str, Any] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    rest: list[str] = field(default_factory=list)

    def write(self, properties: dict[str, str]) -> None:
        left = dict(properties)
        self.config = {name: left.pop(name) for name in ALLOWED_IN_CONFIG if name in left}
        protocol = left.pop("security.protocol", "PLAINTEXT").strip().upper()
        if protocol.endswith("SSL"):
            self._trust(left)
        if protocol.startswith("SASL_") and not self._password(left):
            self._custom(left, uses_sasl=True)
        elif protocol == "SSL" and not self._client_certificate(left):
            self._custom(left, uses_sasl=False)
        self.rest = list(left)

    def _trust(self, left: dict[str, str]) -> None:
        tls: dict[str, Any] = {}
        text = left.get("ssl.truststore.certificates", "")
        if text.strip() and left.get("ssl.truststore.type", "").upper() == "PEM":
            del left["ssl.truststore.certificates"], left["ssl.truststore.type"]
            parts = text.split("\n") if not REFERENCE.sub("", text).strip() else [text]
            trusted = []
            for part in parts:
                secret, key = self._secret(part, "ca.crt")
                trusted.append({"secretName": secret, "pattern" if "*" in key else "certificate": key})
            tls["trustedCertificates"] = trusted
        self.fields["tls"] = tls

    def _password(self, left: dict[str, str]) -> bool:
        """plain and scram, where nothing is said beyond a name and a password."""
        said = {name: value for name, value in left.items() if name.startswith(("sasl.", "ssl.keystore."))}
        jaas = JaasText.read(said.get("sasl.jaas.config", ""))
        kind = next((kind for kind, (one, _) in MECHANISMS.items() if one == said.get("sasl.mechanism")), None)
        if jaas is None or kind is None or set(said) != {"sasl.mechanism", "sasl.jaas.config"}:
            return False
        if (jaas.module, jaas.flag) != (MECHANISMS[kind][1], "required") or set(jaas.options) != {
            "username",
            "password",
        }:
            return False
        secret, key = self._secret(jaas.options["password"], "password")
        self.fields["authentication"] = {
            "type": kind,
            "username": jaas.options["username"],
            "passwordSecret": {"secretName": secret, "password": key},
        }
        for name in said:
            del left[name]
        return True

    def _client_certificate(self, left: dict[str, str]) -> bool:
        said = {name: value for name, value in left.items() if name.startswith(("sasl.", "ssl.keystore."))}
        if set(said) != set(_PEM_STORE) or said["ssl.keystore.type"].upper() != "PEM":
            return False
        chain = self._secret(said["ssl.keystore.certificate.chain"], "user.crt")
        key = self._secret(said["ssl.keystore.key"], "user.key")
        if chain[0] != key[0]:  # the resource has room for one secret
            return False
        pair = {"secretName": chain[0], "certificate": chain[1], "key": key[1]}
        self.fields["authentication"] = {"type": "tls", "certificateAndKey": pair}
        for name in said:
            del left[name]
        return True

    def _custom(self, left: dict[str, str], *, uses_sasl: bool) -> None:
        config = {name: left.pop(name) for name in list(left) if name.startswith(("sasl.", "ssl.keystore."))}
        if config or uses_sasl:
            self.fields["authentication"] = {"type": "custom", "sasl": uses_sasl, "config": config}

    def _secret(self, text: str, key: str) -> tuple[str, str]:
        """The secret that a text refers to, or one to be made that holds it."""
        if known := secret_named_by(text, self.variables):
            return known
        name = f"mirrorspark-{kubernetes_name(self.alias)}"
        self.secrets.setdefault(name, {})[key] = text
        return name, key
