"""A Connect worker's own file (connect-distributed.properties), or the command's options, as settings of ``serve``.

Read as Connect reads it: cluster, group, the three topics, listeners. Converters and plugins have no meaning here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mirrorspark.cluster.server_tls import with_certificate
from mirrorspark.config.catalogue import SECURITY_NAMES
from mirrorspark.config.connector_secrets import sealed
from mirrorspark.config.document import Document, Entry
from mirrorspark.config.findings import Findings
from mirrorspark.config.properties_syntax import read_entries
from mirrorspark.config.providers import resolve
from mirrorspark.config.rest_settings import tls_of
from mirrorspark.control.connect.topics import TopicNames
from mirrorspark.errors import SettingsError
from mirrorspark.rest.server import Listener, parse_listener
from mirrorspark.settings import ClusterSettings, parse_bootstrap

__all__ = ["WorkerSettings", "worker_settings"]

GROUP_DEFAULT = "mirrorspark"
_OF_FLOWS = ("offset.storage.topic", "status.storage.topic")
"""What flows are told of the worker: where a Connect worker kept what is taken over. Its group too, if the file has one."""

PROVIDERS = "config.providers"
"""Declared here, they are there for connectors too."""


@dataclass(frozen=True)
class WorkerSettings:
    cluster: ClusterSettings
    topics: TopicNames
    listener: Listener
    flows: Document | None
    """For ``wanted_flows``."""
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)
    """``ssl.*`` of the listener, where it is https."""


def worker_settings(
    file: Path | None, *, bootstrap: str = "", listen: str = "", certificate: str = "", private_key: str = ""
) -> WorkerSettings:
    """Options count more than the file. Raises SettingsError."""
    given = resolved(read_entries(file) if file else [], str(file or ""))
    servers = bootstrap or given.get("bootstrap.servers", "")
    if not servers:
        raise SettingsError("bootstrap.servers: missing; give --bootstrap or a worker's file", key="bootstrap.servers")
    client = {name: given[name] for name in sorted(SECURITY_NAMES) if name in given and name != "bootstrap.servers"}
    cluster = ClusterSettings("connect", parse_bootstrap(servers, "bootstrap.servers"), sealed(client))
    group = given.get("group.id", "").strip() or GROUP_DEFAULT
    topics = TopicNames(
        given.get("config.storage.topic", "").strip() or f"{group}-configs",
        given.get("status.storage.topic", "").strip() or f"{group}-status",
        _factor(given),
    )
    providers = [key for key in given if key == PROVIDERS or key.startswith(f"{PROVIDERS}.")]
    told = [given.entry(key) for key in (*_OF_FLOWS, "group.id", *providers) if key in given] if file else []
    tls = with_certificate(_tls(given), certificate, private_key)
    return WorkerSettings(cluster, topics, _listener(given, listen, bool(tls)), Document(told) if told else None, tls)


def resolved(entries: Sequence[Entry], file: str) -> Document:
    """With config providers asked."""
    raw = Document(entries)
    findings = Findings(raw, file=file)
    document = resolve(raw, findings)
    findings.raise_if_any()
    return document


def _factor(given: Mapping[str, str]) -> int:
    text = given.get("config.storage.replication.factor", "3").strip()
    if not text.lstrip("-").isdigit() or not (0 < int(text) < 32768 or text == "-1"):
        raise SettingsError(
            "config.storage.replication.factor: must be a whole number from 1, or -1",
            key="config.storage.replication.factor",
        )
    return int(text) if text != "-1" else 3


def _tls(given: Mapping[str, str]) -> dict[str, str]:
    """As Connect does: what is written for the listener, all of it; without that, what the worker's file has for Kafka."""
    own = tls_of(given)
    if own or not given.get("listeners", "").strip().lower().startswith("https"):
        return own
    return sealed({key: given[key].strip() for key in given if key.startswith("ssl.") and given[key].strip()})


def _listener(given: Mapping[str, str], listen: str, has_certificate: bool) -> Listener:
    """One address; without a word about it, this machine alone."""
    texts = [listen] if listen else [one.strip() for one in given.get("listeners", "").split(",") if one.strip()]
    if not texts:
        return Listener()
    if len(texts) > 1:
        raise SettingsError(f"listeners: {len(texts)} addresses; one is listened on, give --listen", key="listeners")
    key = "--listen" if listen else "listeners"
    return parse_listener(texts[0], key, has_certificate=has_certificate)
