"""What a file's values must be good for before anything is touched: topic lists, host names, certificates, logins, loops.

``mm2_settings.load_deployment`` calls it. Each refusal is a SettingsError that names the key as it stands in the file
and shows no secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mirrorspark.cluster.security import Security
from mirrorspark.errors import SettingsError
from mirrorspark.plan.topic_filter import TopicFilter
from mirrorspark.plan.topic_naming import TopicNaming
from mirrorspark.settings import ClusterSettings, FlowSettings

__all__ = ["SECURITY_KEYS", "check_flow", "check_loops", "key_in_file"]

SECURITY_KEYS = frozenset(
    {
        "security.protocol",
        "ssl.truststore.location",
        "ssl.truststore.certificates",
        "ssl.truststore.type",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        "sasl.mechanism",
        "sasl.jaas.config",
    }
)
"""The client properties that ``cluster.security`` reads; every other one is named in a warning."""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_OF_THE_KEYSTORE = ("ssl.keystore.location", "ssl.keystore.type", "ssl.key.password")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")


def key_in_file(properties: Mapping[str, str], name: str, *prefixes: str) -> str:
    """The first of ``prefix.name`` that the file has; the bare name if it has none of them."""
    return next((f"{prefix}.{name}" for prefix in prefixes if f"{prefix}.{name}" in properties), name)


def check_flow(settings: FlowSettings, properties: Mapping[str, str]) -> None:
    """Raises SettingsError for what would end the flow's start otherwise."""
    _check_topics(settings, properties)
    for cluster in (settings.source, settings.target):
        _check_hosts(cluster)
        _check_security(cluster, properties)


def _check_topics(settings: FlowSettings, properties: Mapping[str, str]) -> None:
    naming = TopicNaming(settings.flow.source, settings.naming.separator, settings.keeps_names)
    levels = (str(settings.flow), settings.flow.target)
    topics = key_in_file(properties, "topics", *levels)
    exclude = key_in_file(properties, "topics.exclude", *levels)
    for key, include, left_out in ((topics, settings.topics, ""), (exclude, "", settings.topics_exclude)):
        try:
            TopicFilter(include, left_out, naming, target=settings.flow.target, key=key.removesuffix(".exclude"))
        except (OverflowError, RecursionError) as error:
            text = include or left_out
            raise SettingsError(f"{key}={text}: not a regular expression: {error}", key=key) from error


def _check_hosts(cluster: ClusterSettings) -> None:
    for host, port in cluster.bootstrap:
        try:
            host.encode("idna")
        except UnicodeError as error:
            key = f"{cluster.alias}.bootstrap.servers"
            raise SettingsError(f"{key}: {host}:{port} is no host name", key=key) from error


def _check_security(cluster: ClusterSettings, properties: Mapping[str, str]) -> None:
    """Build it in two steps, so that what fails can be told: first without our own key, then with it."""
    client = cluster.client

    def named(name: str) -> str:
        return key_in_file(properties, name, cluster.alias)

    trust = "ssl.truststore.location" if "ssl.truststore.location" in client else "ssl.truststore.certificates"
    without_key = {name: value for name, value in client.items() if name not in _OF_THE_KEYSTORE}
    _build(without_key, named, trust)
    protocol = client.get("security.protocol", "").strip().upper()
    if protocol.endswith("SSL") and "ssl.keystore.location" in client:
        _check_key_password(client, named)
        _build(client, named, "ssl.keystore.location")
    if protocol.startswith("SASL"):
        mechanism = client.get("sasl.mechanism", "GSSAPI")
        if mechanism not in MECHANISMS:
            key = named("sasl.mechanism")
            raise SettingsError(f"{key}={mechanism}: must be one of {', '.join(MECHANISMS)} in this version", key=key)


def _build(client: Mapping[str, str], named: Callable[[str], str], store: str) -> None:
    try:
        Security(client)
    except SettingsError as error:
        name = str(error.facts.get("key", ""))
        raise SettingsError(named(name) + error.message.removeprefix(name), key=named(name)) from None
    except (OSError, ValueError) as error:  # the ssl module's own errors are OSErrors
        shown = f"={client[store]}" if store.endswith(".location") else ""
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise SettingsError(f"{named(store)}{shown}: cannot be read as PEM: {why}", key=named(store)) from None


def _check_key_password(client: Mapping[str, str], named: Callable[[str], str]) -> None:
    """Without it OpenSSL would ask at the terminal."""
    try:
        text = Path(client["ssl.keystore.location"]).read_bytes()
    except OSError:
        return  # told by what comes next
    if b"ENCRYPTED" in text and "ssl.key.password" not in client:
        key = named("ssl.keystore.location").replace("ssl.keystore.location", "ssl.key.password")
        raise SettingsError(f"{key}: missing; the key in {client['ssl.keystore.location']} is encrypted", key=key)


# -- loops ---------------------------------------------------------------------------------------------------------------


def check_loops(flows: Sequence[FlowSettings]) -> None:
    """Refuse flows over which a record would go round for ever.

    The default policy stops a topic whose name says that it came from there. The identity policy leaves no trace in the
    name, so a circle is endless unless two default flows follow each other somewhere in it.
    """
    by_source: dict[str, list[FlowSettings]] = {}
    for flow in flows:
        by_source.setdefault(flow.flow.source, []).append(flow)
    for first in flows:
        if first.keeps_names and (circle := _circle([first], by_source)):
            keys = ", ".join(str(flow.flow) for flow in circle)
            raise SettingsError(
                f"replication.policy.class: with IdentityReplicationPolicy the flows {keys} would carry each record "
                f"round in a loop for ever. Enable one direction only ({circle[-1].flow}.enabled = false), use "
                "DefaultReplicationPolicy, or give both directions plain topic names that differ",
                key="replication.policy.class",
            )


def _circle(path: list[FlowSettings], by_source: Mapping[str, list[FlowSettings]]) -> list[FlowSettings] | None:
    """A way on from the path's end back to its start on which no topic is stopped."""
    for flow in by_source.get(path[-1].flow.target, []):
        stopped = not (path[-1].keeps_names or flow.keeps_names) or _are_apart(path[-1], flow)
        if stopped or flow.flow.target in [one.flow.target for one in path]:
            continue
        if flow.flow.target == path[0].flow.source:
            return [*path, flow]
        if found := _circle([*path, flow], by_source):
            return found
    return None


def _are_apart(one: FlowSettings, other: FlowSettings) -> bool:
    """Whether both list plain topic names of which none is in both."""
    names, others = ([part.strip() for part in flow.topics.split(",") if part.strip()] for flow in (one, other))
    if not all(_PLAIN_NAME.fullmatch(name) for name in (*names, *others)):
        return False
    return not any(re.fullmatch(a, b) or re.fullmatch(b, a) for a in names for b in others)
