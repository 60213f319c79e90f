"""Whether a cluster can be logged in to with what the file says: protocol, stores, key, JAAS. No cluster is asked.

Called for each cluster of a flow. What ``cluster.security`` cannot do yet is refused by name. No secret is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mirrorspark.cluster.jaas import parse_jaas
from mirrorspark.cluster.security import PROTOCOLS, Security
from mirrorspark.config.findings import Findings
from mirrorspark.config.levels import Effective
from mirrorspark.errors import SettingsError
from mirrorspark.settings import ClusterSettings

__all__ = ["MECHANISMS", "check_security"]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Those that ``cluster.security`` speaks."""
_OF_THE_KEYSTORE = ("ssl.keystore.location", "ssl.keystore.type", "ssl.key.password")


class _Wrong(Exception):
    """(name of a client key, what is wrong with it)"""


def check_security(cluster: ClusterSettings, origins: Mapping[str, Effective], findings: Findings) -> None:
    """``origins`` says where each client key of the cluster came from."""
    client = cluster.client
    try:
        _check_protocol(client)
        _check_login(client)
        _build_without_key(client)
        _build_with_key(client)
    except _Wrong as wrong:
        name, reason = wrong.args
        found = origins.get(name)
        if found is not None and found.entry is not None:
            findings.bad_value(found.entry.key, reason)
        else:
            findings.error(f"{cluster.alias}.{name}", reason)


def _protocol(client: Mapping[str, str]) -> str:
    return client.get("security.protocol", "PLAINTEXT").strip().upper()


def _check_protocol(client: Mapping[str, str]) -> None:
    if _protocol(client) not in PROTOCOLS:
        raise _Wrong("security.protocol", f"must be one of {', '.join(PROTOCOLS)}")


def _check_login(client: Mapping[str, str]) -> None:
    if not _protocol(client).startswith("SASL"):
        return
    mechanism = client.get("sasl.mechanism", "GSSAPI").strip()
    if mechanism not in MECHANISMS:
        given = "" if "sasl.mechanism" in client else f"not given, so it is Kafka's default {mechanism}; "
        raise _Wrong("sasl.mechanism", f"{given}must be one of {', '.join(MECHANISMS)} in this version")
    if "sasl.jaas.config" not in client:
        raise _Wrong("sasl.jaas.config", f"missing; sasl.mechanism={mechanism} needs a username and a password")
    try:
        login = parse_jaas(client["sasl.jaas.config"])
    except ValueError as error:
        raise _Wrong("sasl.jaas.config", f"{error} (its text is not shown)") from None
    if login.mechanisms and mechanism not in login.mechanisms:
        module = login.module.rsplit(".", 1)[-1]
        fitting = " or ".join(login.mechanisms)
        raise _Wrong("sasl.jaas.config", f"{module} is for {fitting}, but sasl.mechanism is {mechanism}")
    for name in ("username", "password"):
        if not login.options.get(name):
            raise _Wrong("sasl.jaas.config", f'no {name}="…" found in it (its text is not shown)')


def _build_without_key(client: Mapping[str, str]) -> None:
    """First without our own key, then with it, so that what fails can be told."""
    store = "ssl.truststore.location" if "ssl.truststore.location" in client else "ssl.truststore.certificates"
    _build({name: value for name, value in client.items() if name not in _OF_THE_KEYSTORE}, store)


def _build_with_key(client: Mapping[str, str]) -> None:
    location = client.get("ssl.keystore.location")
    if not _protocol(client).endswith("SSL") or not location:
        return
    try:
        is_encrypted = b"ENCRYPTED" in Path(location).read_bytes()
    except OSError:
        is_encrypted = False  # told by what comes next
    if is_encrypted and "ssl.key.password" not in client and client.get("ssl.keystore.type", "").upper() == "PEM":
        # Without it OpenSSL would ask at the terminal.
        raise _Wrong("ssl.key.password", f"missing; the key in {location} is encrypted")
    _build(client, "ssl.keystore.location")


def _build(client: Mapping[str, str], store: str) -> None:
    try:
        Security(client)
    except SettingsError as error:
        name = str(error.facts.get("key", store))
        text = error.message.removeprefix(name)
        raise _Wrong(name, text.partition(": ")[2] or text) from None
    except (OSError, ValueError) as error:  # the ssl module's own errors are OSErrors
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise _Wrong(store, f"cannot be read as PEM: {why}") from None
