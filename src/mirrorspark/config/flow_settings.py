"""From a document to the settings of one flow: each value that counts goes to the field that the catalogue names.

Called by ``load`` once for each flow. Values have been checked by ``key_check``; one that is wrong is left at its default
here and stops the start later, with all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mirrorspark.config.catalogue import CLIENTS, PLAIN, SECURITY_NAMES
from mirrorspark.config.connector_secrets import sealed
from mirrorspark.config.definition import CHECKPOINT, Definition
from mirrorspark.config.document import Document
from mirrorspark.config.findings import Findings
from mirrorspark.config.levels import Effective, Levels
from mirrorspark.config.security_check import check_security
from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow
from mirrorspark.plan.replication_policy import policy_choice
from mirrorspark.settings import ClusterSettings, FlowSettings, parse_bootstrap

__all__ = ["BuiltFlow", "build_flow", "check_clusters", "check_logins"]


@dataclass(frozen=True)
class BuiltFlow:
    """``effective`` says of every value that counts where it came from."""

    settings: FlowSettings
    effective: tuple[Effective, ...]
    levels: Levels
    security: Mapping[str, Mapping[str, Effective]]
    """By side (source, target): the client keys of that cluster."""


def build_flow(flow: Flow, document: Document, raw: Document, findings: Findings) -> BuiltFlow:
    levels = Levels(document, raw, flow)
    effective: list[Effective] = []
    source = _cluster(flow.source, "source", levels, effective, findings)
    target = _cluster(flow.target, "target", levels, effective, findings)
    settings = FlowSettings(flow, source.settings, target.settings, enabled=False)
    for definition in PLAIN.values():
        if definition.fills_a_setting:
            found = levels.plain(definition)
            effective.append(found)
            settings = _applied(settings, definition, found, findings)
    for role, ask in (("consumer", levels.consumer), ("producer", levels.producer)):
        for name, definition in CLIENTS[role].items():
            if definition.fills_a_setting:
                found = ask(name)
                effective.append(found)
                settings = _applied(settings, definition, found, findings)
    settings = _without_checkpoints_if_off(settings, levels, effective)
    security = {"source": source.origins, "target": target.origins}
    return BuiltFlow(settings, tuple(effective), levels, security)


def _without_checkpoints_if_off(settings: FlowSettings, levels: Levels, effective: list[Effective]) -> FlowSettings:
    """Checkpoints and the groups' offsets are the checkpoint connector's, which can be off by itself."""
    found = levels.plain(PLAIN["enabled"], CHECKPOINT)
    if not settings.enabled or (found.value or "").strip().lower() != "false":
        return settings
    effective.append(replace(found, name=f"{CHECKPOINT}.enabled"))
    return replace(settings, group_sync=replace(settings.group_sync, checkpoints_enabled=False, offsets_enabled=False))


def check_clusters(flow: BuiltFlow, findings: Findings) -> None:
    """What the flow's clusters need to be reached, the network aside. Heartbeats need the target alone."""
    sides = (("source", flow.settings.source), ("target", flow.settings.target))
    for side, cluster in sides if flow.settings.enabled else sides[1:]:
        check_security(cluster, flow.security[side], findings)
        _check_one_login(flow, side, findings)


def check_logins(flow: BuiltFlow, findings: Findings) -> None:
    """The same without opening any file: what somebody else's machine is told about a configuration."""
    sides = (("source", flow.settings.source), ("target", flow.settings.target))
    for side, cluster in sides if flow.settings.enabled else sides[1:]:
        check_security(cluster, flow.security[side], findings, opens_stores=False)


# -- fields ------------------------------------------------------------------------------------------------------------


def _applied(settings: FlowSettings, definition: Definition, found: Effective, findings: Findings) -> FlowSettings:
    """Defaults need no reading: the dataclasses hold them (a test compares)."""
    if found.entry is None or found.value is None:
        return settings
    try:
        value = definition.read(found.value)
        if definition.applied == "naming.policy":
            value = _policy(found.entry.key, found.value.strip(), findings)
        elif definition.applied == "limits.produce_requests_in_flight_max":
            value = min(value, 5)
    except ValueError as error:
        findings.bad_value(found.entry.key, str(error))
        return settings
    except SettingsError as error:
        findings.bad_value(found.entry.key, error.message.partition(": ")[2])
        return settings
    return _put(settings, definition.applied, value == definition.true_when if definition.true_when else value)


def _policy(key: str, value: str, findings: Findings) -> str:
    choice = policy_choice(value, key=key)
    if choice.note:
        findings.warn(key, choice.note)
    return choice.name


def _put(settings: FlowSettings, place: str, value: Any) -> FlowSettings:
    part, dot, name = place.partition(".")
    if not dot:
        return replace(settings, **{place: type(getattr(settings, place))(value)})
    inner = getattr(settings, part)
    changes: dict[str, Any] = {part: replace(inner, **{name: type(getattr(inner, name))(value)})}
    return replace(settings, **changes)


# -- clusters ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cluster:
    settings: ClusterSettings
    origins: Mapping[str, Effective]


def _cluster(alias: str, side: str, levels: Levels, effective: list[Effective], findings: Findings) -> _Cluster:
    ask = levels.consumer if side == "source" else levels.producer
    origins: dict[str, Effective] = {}
    for name in sorted(SECURITY_NAMES):
        found = ask(name)
        if found.entry is not None:
            origins[name] = found
            effective.append(found)
    client_id = ask("client.id")
    if client_id.entry is None:
        client_id = levels.of_cluster(alias, PLAIN["client.id"])
    if client_id.entry is not None:
        origins["client.id"] = client_id
        effective.append(client_id)
    client = {name: found.value for name, found in origins.items() if found.value and name != "bootstrap.servers"}
    if "ssl.endpoint.identification.algorithm" in origins:  # empty means something
        client["ssl.endpoint.identification.algorithm"] = origins["ssl.endpoint.identification.algorithm"].value or ""
    servers = _bootstrap(alias, origins.get("bootstrap.servers"), findings)
    settings = ClusterSettings(alias, servers, sealed(client))
    timeout = levels.consumer("request.timeout.ms") if side == "source" else levels.plain(PLAIN["request.timeout.ms"])
    effective.append(timeout)
    if timeout.entry is not None and (timeout.value or "").strip().isdigit():
        settings = replace(settings, request_timeout_s=int(str(timeout.value)) / 1000)
    return _Cluster(settings, origins)


def _bootstrap(alias: str, found: Effective | None, findings: Findings) -> tuple[tuple[str, int], ...]:
    key = f"{alias}.bootstrap.servers"
    if found is None or found.entry is None:
        findings.error(key, f"missing; cluster {alias} cannot be reached without it")
        return ()
    if "${" in (found.value or ""):
        return ()  # told already
    is_given = "${" not in found.entry.value
    try:
        servers = parse_bootstrap(found.value or "", "")
    except SettingsError as error:
        reason = error.message.removeprefix(": ") if is_given else "what it stands for is not host:port"
        findings.error(found.entry.key, reason)
        return ()
    for host, port in servers:
        try:
            host.encode("idna")
        except UnicodeError:
            shown = f"{host}:{port}" if is_given else "what it stands for"
            findings.error(found.entry.key, f"{shown} is no host name")
    return servers


def _check_one_login(flow: BuiltFlow, side: str, findings: Findings) -> None:
    """MirrorMaker 2 has a login for each client; here a cluster of a flow has one."""
    used = "consumer" if side == "source" else "producer"
    for name, found in flow.security[side].items():
        if name not in SECURITY_NAMES:
            continue
        admin = flow.levels.admin(side, name)
        if admin.entry is not None and admin.value != found.value:
            findings.warn(
                admin.entry.key, f"not used: a cluster has one login for all clients, and that is the {used}'s"
            )
