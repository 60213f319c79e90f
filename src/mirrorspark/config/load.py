"""The front door of the room: from a file, or from a document, to the flows that a process runs.

Everything that is wrong is told together, in one SettingsError with a line for each; no cluster is asked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mirrorspark.config.catalogue import PLAIN
from mirrorspark.config.connect_names import with_connect_names
from mirrorspark.config.connector_switches import check_connector_switches
from mirrorspark.config.document import Document, Entry
from mirrorspark.config.findings import GIVEN, Findings, Remark
from mirrorspark.config.flow_faults import take_flow_faults
from mirrorspark.config.flow_rules import check_loops, check_shared_topics
from mirrorspark.config.flow_settings import BuiltFlow, build_flow, check_clusters, check_logins
from mirrorspark.config.forms.front_door import read_form_entries
from mirrorspark.config.forms.strimzi_fields import STRIMZI_WORKER
from mirrorspark.config.key_check import check_keys
from mirrorspark.config.key_path import flow_pairs
from mirrorspark.config.key_rules import check_rules
from mirrorspark.config.levels import Effective, Levels
from mirrorspark.config.metrics_settings import metrics_settings
from mirrorspark.config.properties_syntax import repeats
from mirrorspark.config.providers import resolve
from mirrorspark.config.rest_settings import rest_settings
from mirrorspark.config.start_topics import check_start, with_start_topics
from mirrorspark.config.target_aliases import check_target_aliases
from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow
from mirrorspark.settings import FlowSettings, MetricsSettings, RestSettings

__all__ = ["Deployment", "deployment_of", "load_deployment", "parse_deployment", "working_flows"]

SECRETS_VARIABLE = "MIRRORSPARK_SECRETS"
_ALIAS = re.compile(r"[A-Za-z0-9._-]+")


@dataclass
class Deployment:
    """The flows of one configuration, and what it says that deserves a word."""

    flows: list[FlowSettings] = field(default_factory=list)
    """Those that carry records."""
    heartbeats_only: list[FlowSettings] = field(default_factory=list)
    """Pairs of clusters for which only heartbeats are written (``enabled`` is False)."""
    remarks: list[Remark] = field(default_factory=list)
    effective: dict[Flow, tuple[Effective, ...]] = field(default_factory=dict, repr=False)
    """For every flow: each value that counts, with its place and level."""
    refused: dict[Flow, SettingsError] = field(default_factory=dict)
    """Flows left out since something at their own level is wrong; only where that was asked for (``apart``)."""

    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    rest: RestSettings = field(default_factory=RestSettings)
    document: Document = field(default_factory=Document)
    """All of it as it stands in the file, before config providers were asked."""

    @property
    def warnings(self) -> list[str]:
        return [str(remark) for remark in self.remarks]


def load_deployment(
    path: Path,
    clusters: Iterable[str] = (),
    *,
    secrets: Path | None = None,
    lenient: bool = False,
    apart: bool = False,
) -> Deployment:
    """Raises SettingsError for whatever is wrong with the file and what it points to. ``apart``: not for what concerns
    some flows alone (``flow_faults``). The file may have any form (``forms``), or be a folder of such files; ``secrets``
    is a folder of Kubernetes secrets; without it MIRRORSPARK_SECRETS may name one."""
    folder = secrets or (Path(named) if (named := os.environ.get(SECRETS_VARIABLE)) else None)
    entries = read_form_entries([path], folder)
    return deployment_of(entries, clusters, file=str(path), lenient=lenient, check_stores=True, apart=apart)


def parse_deployment(
    properties: Mapping[str, str], clusters: Iterable[str] = (), *, lenient: bool = False
) -> Deployment:
    """The same from keys and values; files that they point to (certificates) are not opened."""
    return deployment_of(Document.of(properties, GIVEN).entries, clusters, lenient=lenient)


def deployment_of(
    entries: Sequence[Entry],
    clusters: Iterable[str] = (),
    *,
    file: str = "",
    lenient: bool = False,
    check_stores: bool = False,
    check_jaas: bool = False,
    apart: bool = False,
) -> Deployment:
    """Any form's entries. ``file`` names the whole in errors about what is missing. ``check_stores``: what clusters need
    is looked at, files with it; ``check_jaas``: protocols and logins alone."""
    raw = Document(entries)
    findings = Findings(raw, file=file, lenient=lenient)
    findings.repeated(repeats(entries))
    document = resolve(raw, findings)
    aliases = _aliases(document, findings)
    findings.raise_if_any()
    targets = _targets(clusters, aliases, findings)
    chosen = working_flows(document, aliases)
    built = {
        flow: with_start_topics(
            with_connect_names(_knowing(build_flow(flow, document, raw, findings), aliases), document), document
        )
        for flow in chosen
    }
    enabled = [one for one in built.values() if one.settings.enabled]
    check_keys(document, aliases, [one.settings.flow for one in enabled], findings)
    check_connector_switches(document, aliases, findings)
    for one in enabled:
        check_rules(one, document, findings)
        check_start(one, findings)
        _check_instance(one, findings)
        if check_stores:
            check_clusters(one, findings)
        elif check_jaas:
            check_logins(one, findings)
    # All flows: another process may run what this one leaves out.
    check_loops(enabled, findings)
    check_shared_topics(enabled, findings)
    check_target_aliases([_as_instance(one) for one in enabled], findings)
    here = [one for one in built.values() if not targets or one.settings.flow.target in targets]
    if check_stores and not any(one.settings.enabled for one in here):
        for one in here:
            check_clusters(one, findings)
    _check_any(here, aliases, findings)
    metrics = metrics_settings(document, findings)
    rest = rest_settings(document, findings)
    refused = take_flow_faults(list(built.values()), here, findings) if apart else {}
    findings.raise_if_any()
    deployment = _deployment([one for one in here if one.settings.flow not in refused], findings)
    deployment.refused = refused
    deployment.metrics = metrics
    deployment.rest = rest
    deployment.document = raw
    return deployment


def working_flows(document: Mapping[str, str], aliases: Sequence[str]) -> list[Flow]:
    """MirrorMaker 2's rule: every pair that is enabled, or for which heartbeats are not switched off."""
    whole = document if isinstance(document, Document) else Document.of(document)

    def is_on(flow: Flow, name: str) -> bool:
        found = Levels(whole, whole, flow).plain(PLAIN[name])
        return (found.value or "").strip().lower() == "true"

    return [flow for flow in flow_pairs(aliases) if is_on(flow, "enabled") or is_on(flow, "emit.heartbeats.enabled")]


def _aliases(document: Document, findings: Findings) -> list[str]:
    aliases = [alias.strip() for alias in document.get("clusters", "").split(",") if alias.strip()]
    if not aliases:
        findings.error("clusters", "missing; give the cluster aliases, e.g. clusters = primary, backup")
    for alias in dict.fromkeys(aliases):
        if aliases.count(alias) > 1:
            findings.error("clusters", f"{alias} is given twice")
        if not _ALIAS.fullmatch(alias):
            findings.error(
                "clusters", f"{alias} cannot be part of a topic's name; use letters, digits, '.', '_' and '-'"
            )
    return aliases


def _targets(clusters: Iterable[str], aliases: Sequence[str], findings: Findings) -> list[str]:
    targets = list(clusters)
    for target in targets:
        if target not in aliases:
            findings.error("clusters", f"--clusters {target}: not among clusters = {', '.join(aliases)}")
    return targets


def _check_any(here: Sequence[BuiltFlow], aliases: Sequence[str], findings: Findings) -> None:
    """MirrorMaker 2 starts where there are heartbeats to write, and only there. Who forgot to enable a flow is told."""
    if any(one.settings.enabled for one in here) or findings.errors:
        return
    key = f"{aliases[0]}->{aliases[-1]}.enabled"
    if not here:
        findings.error(key, f"no flow is enabled; set e.g. {key} = true")
        return
    key = f"{here[0].settings.flow}.enabled"
    pairs = ", ".join(str(one.settings.flow) for one in here)
    findings.warn(
        key, f"no flow is enabled: only heartbeats are written ({pairs}); to carry records set e.g. {key} = true"
    )


def _knowing(built: BuiltFlow, aliases: Sequence[str]) -> BuiltFlow:
    """Aliases with the separator in them can be told from a topic's name only by who knows them."""
    settings = built.settings
    unusual = tuple(sorted(alias for alias in aliases if settings.naming.separator in alias))
    return replace(built, settings=replace(settings, aliases=unusual))


def _as_instance(built: BuiltFlow) -> FlowSettings:
    """A ``group.id`` that is neither MirrorMaker 2's nor Strimzi's own names one of several mirrors of the flow."""
    flow = built.settings.flow
    group = (built.levels.plain(PLAIN["group.id"]).value or "").strip()
    defaults = (f"{flow.source}-mm2", STRIMZI_WORKER["group.id"])
    is_own = built.levels.plain(PLAIN["group.id"]).entry is not None and group not in defaults
    return replace(built.settings, flow=replace(flow, instance=group)) if is_own else built.settings


def _check_instance(built: BuiltFlow, findings: Findings) -> None:
    found = built.levels.plain(PLAIN["group.id"])
    if found.entry is not None and not _ALIAS.fullmatch((found.value or "").strip()):
        findings.bad_value(found.entry.key, "becomes part of topics' names; use letters, digits, '.', '_' and '-'")


def _deployment(here: Sequence[BuiltFlow], findings: Findings) -> Deployment:
    return Deployment(
        flows=[_as_instance(one) for one in here if one.settings.enabled],
        heartbeats_only=[one.settings for one in here if not one.settings.enabled],
        remarks=findings.remarks,
        effective={(_as_instance(one) if one.settings.enabled else one.settings).flow: one.effective for one in here},
    )
