"""From an mm2.properties file to flows: the keys that the engine knows so far; every other key is named in a warning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mirrorspark.control.properties_file import read_properties
from mirrorspark.control.settings_check import SECURITY_KEYS, check_flow, check_loops
from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow
from mirrorspark.settings import ClusterSettings, FlowSettings, Limits, Naming, Policies, TopicSync, parse_bootstrap

__all__ = ["Deployment", "load_deployment", "parse_deployment"]

_SECURITY = re.compile(r"(security\.protocol|ssl\..+|sasl\..+)")
_ALIAS = re.compile(r"[A-Za-z0-9._-]+")
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
DEFAULT = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"


@dataclass
class Deployment:
    """The flows of one file, and what it said that has no effect."""

    flows: list[FlowSettings] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def load_deployment(path: Path, clusters: Iterable[str] = ()) -> Deployment:
    """Raises SettingsError for whatever is wrong with the file and what it points to; no cluster is asked."""
    properties = read_properties(path)
    deployment = parse_deployment(properties, clusters)
    for flow in deployment.flows:
        check_flow(flow, properties)
    return deployment


def _number(low: int, high: int) -> Callable[[str, str], int]:
    def convert(key: str, text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise SettingsError(f"{key}={text}: not a whole number", key=key) from None
        if not low <= value <= high:
            raise SettingsError(f"{key}={text}: must be between {low} and {high}", key=key)
        return value

    return convert


def _boolean(key: str, text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise SettingsError(f"{key}={text}: must be true or false", key=key)
    return text.strip().lower() == "true"


def _choice(*allowed: str) -> Callable[[str, str], str]:
    def convert(key: str, text: str) -> str:
        if text.strip().lower() not in allowed:
            raise SettingsError(f"{key}={text}: must be one of {', '.join(allowed)}", key=key)
        return text.strip().lower()

    return convert


def _text(key: str, text: str) -> str:
    return text


# name in the file -> (where it goes, how it is read). "limits." and "policies." go into those parts.
_FLOW_KEYS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "topics": ("topics", _text),
    "topics.exclude": ("topics_exclude", _text),
    "tasks.max": ("tasks_max", _number(1, 1024)),
    "replication.factor": ("replication_factor", _number(-1, 32767)),
    "refresh.topics.interval.seconds": ("topic_sync.refresh_interval_s", _number(1, 2**31 - 1)),
    "replication.policy.separator": ("naming.separator", _text),
    "exactly.once.source.support": ("transactions", _choice("disabled", "preparing", "enabled")),
    "offset.storage.replication.factor": ("internal_replication_factor", _number(-1, 32767)),
    "start.before.spark": ("start_before_spark", _boolean),
    "epoch.seconds": ("epoch_s", _number(2, 86400)),
    "on.data.gap": ("policies.on_data_gap", _choice("continue", "fail")),
    "on.topic.recreated": ("policies.on_topic_recreated", _choice("restart", "fail")),
    "on.record.too.large": ("policies.on_record_too_large", _choice("stop", "skip", "dead-letter")),
    "lane.memory.max.bytes": ("limits.lane_memory_bytes_max", _number(1 << 20, 1 << 40)),
    "transaction.interval.ms": ("limits.transaction_interval_ms", _number(1, 60_000)),
}


def parse_deployment(properties: Mapping[str, str], only_targets: Iterable[str] = ()) -> Deployment:
    """Raises SettingsError that names the key; collects warnings for keys without effect."""
    used: set[str] = {"clusters"}
    only_targets = list(only_targets)
    aliases = [alias.strip() for alias in properties.get("clusters", "").split(",") if alias.strip()]
    if not aliases:
        raise SettingsError(
            "clusters: missing; give the cluster aliases, e.g. clusters = primary, backup", key="clusters"
        )
    for alias in aliases:
        if aliases.count(alias) > 1:
            raise SettingsError(f"clusters: {alias} is given twice", key="clusters")
        if not _ALIAS.fullmatch(alias):
            raise SettingsError(
                f"clusters: {alias} cannot be part of a topic's name; use letters, digits, '.', '_' and '-'",
                key="clusters",
            )
    for target in only_targets:
        if target not in aliases:
            raise SettingsError(f"--clusters {target}: not among clusters = {', '.join(aliases)}", key="clusters")
    clusters = {alias: _cluster(alias, properties, used) for alias in aliases}
    pairs = [Flow(source, target) for source in aliases for target in aliases if source != target]
    enabled = [flow for pair in pairs if (flow := _flow(pair, clusters, properties, used)) is not None]
    check_loops(enabled)  # all of them: another process may run what this one leaves out
    result = Deployment([flow for flow in enabled if not only_targets or flow.flow.target in only_targets])
    result.warnings = [_warning(key, aliases) for key in properties if key not in used]
    if not result.flows:
        raise SettingsError(
            f"no flow is enabled; set e.g. {aliases[0]}->{aliases[-1]}.enabled = true",
            key=f"{aliases[0]}->{aliases[-1]}.enabled",
        )
    return result


def _warning(key: str, aliases: Iterable[str]) -> str:
    for alias in aliases:
        if key == f"{alias}.client.rack":
            return f"{key}: has no effect at this level; the rack to fetch from is {alias}.consumer.client.rack"
    return f"{key}: has no effect in this version of mirrorspark"


def _cluster(alias: str, properties: Mapping[str, str], used: set[str]) -> ClusterSettings:
    key = f"{alias}.bootstrap.servers"
    if key not in properties:
        raise SettingsError(f"{key}: missing; cluster {alias} cannot be reached without it", key=key)
    used.add(key)
    client: dict[str, str] = {}
    for prefix in ("", f"{alias}."):  # the cluster's own value wins
        for key_there, value in properties.items():
            name = key_there.removeprefix(prefix)
            is_own_id = bool(prefix) and name == "client.id"
            if key_there.startswith(prefix) and (_SECURITY.fullmatch(name) or is_own_id):
                client[name] = value
                if name in SECURITY_KEYS or is_own_id:
                    used.add(key_there)
    return ClusterSettings(alias, parse_bootstrap(properties[key], key), client)


def _flow(
    flow: Flow, clusters: Mapping[str, ClusterSettings], properties: Mapping[str, str], used: set[str]
) -> FlowSettings | None:
    prefix = f"{flow}."
    enabled_key = f"{prefix}enabled"
    used.add(enabled_key)
    if not _boolean(enabled_key, properties.get(enabled_key, "false")):
        used.update(key for key in properties if key.startswith(prefix))
        return None
    settings = FlowSettings(flow, clusters[flow.source], clusters[flow.target])
    for name, (place, convert) in _FLOW_KEYS.items():
        for key in (f"{prefix}{name}", f"{flow.target}.{name}", name):
            if key in properties:
                used.update({key, name} & set(properties))
                settings = _put(settings, place, convert(key, properties[key].strip()))
                break
    isolation = f"{flow.source}.consumer.isolation.level"
    reset = f"{flow.source}.consumer.auto.offset.reset"
    rack = f"{flow.source}.consumer.client.rack"
    if isolation in properties:
        used.add(isolation)
        chosen = _choice("read_committed", "read_uncommitted")(isolation, properties[isolation])
        settings = replace(settings, read_committed=chosen == "read_committed")
    if reset in properties:
        used.add(reset)
        settings = replace(
            settings, start_at_latest=_choice("earliest", "latest")(reset, properties[reset]) == "latest"
        )
    if rack in properties:
        used.add(rack)
        settings = replace(settings, client_rack=properties[rack])
    for policy in (f"{prefix}replication.policy.class", "replication.policy.class"):
        if policy not in properties:
            continue
        used.update({policy, "replication.policy.class"} & set(properties))
        name = properties[policy].strip()
        if name.rsplit(".", 1)[-1] not in ("IdentityReplicationPolicy", "DefaultReplicationPolicy"):
            raise SettingsError(f"{policy}={name}: only {DEFAULT} and {IDENTITY} are known", key=policy)
        settings = _put(
            settings, "naming.policy", "identity" if name.endswith("IdentityReplicationPolicy") else "default"
        )
        break
    if not settings.naming.separator:
        raise SettingsError("replication.policy.separator: must not be empty", key="replication.policy.separator")
    return settings


def _put(settings: FlowSettings, place: str, value: Any) -> FlowSettings:
    part, dot, name = place.partition(".")
    if not dot:
        if place == "transactions":
            value = value == "enabled"
        return replace(settings, **{place: value})
    inner: Limits | Policies | Naming | TopicSync = getattr(settings, part)
    changes: dict[str, Any] = {part: replace(inner, **{name: value})}
    return replace(settings, **changes)
