"""Connectors as somebody wants them, and the flows that they make together.

The three connectors of a pair of clusters are one flow: the source connector is its data, the checkpoint connector its
groups, the heartbeat connector its heartbeats. Pure; ``hosting`` calls it after every change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mirrorspark.config.connector_validation import connector_from
from mirrorspark.config.document import Document
from mirrorspark.config.forms.connect_json import document_of
from mirrorspark.config.forms.connectors import Connector
from mirrorspark.config.forms.layout import ConnectorKind
from mirrorspark.config.levels import Effective
from mirrorspark.config.load import deployment_of
from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow
from mirrorspark.rest.connector_host import TargetState
from mirrorspark.settings import FlowSettings

__all__ = ["Wanted", "WantedFlows", "settings_of", "wanted_flows"]

WAITS_FOR_SOURCE = "checkpoints are made from what a flow carries: waits until its MirrorSourceConnector runs"


@dataclass(frozen=True)
class Wanted:
    """One connector. Secrets are in ``config``."""

    name: str
    config: Mapping[str, str] = field(repr=False)
    state: TargetState = TargetState.RUNNING


@dataclass
class WantedFlows:
    flows: dict[Flow, FlowSettings] = field(default_factory=dict)
    """By the pair of clusters alone; ``settings.flow`` may have an instance."""
    pairs: dict[str, Flow] = field(default_factory=dict)
    """Connector -> its pair."""
    kinds: dict[str, ConnectorKind] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    """Connector -> why it cannot be run."""
    effective: dict[Flow, tuple[Effective, ...]] = field(default_factory=dict, repr=False)
    """By pair: every value that counts, with its place."""
    paused: dict[Flow, str] = field(default_factory=dict)
    """Pairs whose source connector is paused, and its name: the flow is led, its lanes hold."""


def wanted_flows(wanted: Iterable[Wanted], worker: Document | None = None) -> WantedFlows:
    """``worker``: what the Connect worker's own file says about its topics and its group."""
    found = WantedFlows()
    parts: dict[Flow, dict[ConnectorKind, Connector]] = {}
    for one in wanted:
        try:
            connector = connector_from(one.name, one.config, _switch(one))
        except SettingsError as error:
            found.faults[one.name] = error.message
            continue
        pair = parts.setdefault(connector.flow, {})
        found.pairs[one.name], found.kinds[one.name] = connector.flow, connector.kind
        if connector.kind in pair:
            found.faults[one.name] = (
                f"a second {connector.kind} for {connector.flow}, beside {pair[connector.kind].name}: a flow has one. Join "
                "them, or give this one to a mirrorspark of its own"
            )
            continue
        pair[connector.kind] = connector
        if connector.kind is ConnectorKind.SOURCE and one.state is TargetState.PAUSED:
            found.paused[connector.flow] = one.name
    for pair_of, kinds in parts.items():
        _add_flow(found, pair_of, kinds, worker)
    return found


def _switch(one: Wanted) -> str:
    """A paused source connector stays a part of its flow, which holds; all others that are not to run are switched off."""
    is_source = "MirrorSource" in one.config.get("connector.class", "")
    return "RUNNING" if is_source and one.state is TargetState.PAUSED else one.state.value


def _add_flow(
    found: WantedFlows, flow: Flow, kinds: Mapping[ConnectorKind, Connector], worker: Document | None
) -> None:
    carries = ConnectorKind.SOURCE in kinds and not kinds[ConnectorKind.SOURCE].is_off
    beats = ConnectorKind.HEARTBEAT in kinds and not kinds[ConnectorKind.HEARTBEAT].is_off
    if not carries and not beats:
        return
    try:
        found.flows[flow], found.effective[flow] = _built(list(kinds.values()), flow, worker)
    except SettingsError as error:
        found.faults.update({one.name: error.message for one in kinds.values() if not one.is_off})


def _built(
    connectors: Sequence[Connector], flow: Flow, worker: Document | None
) -> tuple[FlowSettings, tuple[Effective, ...]]:
    entries = document_of(connectors, worker).entries
    deployment = deployment_of(entries, file=connectors[0].place, lenient=True, check_stores=True)
    for one in (*deployment.flows, *deployment.heartbeats_only):
        if (one.flow.source, one.flow.target) == (flow.source, flow.target):
            return one, deployment.effective.get(one.flow, ())
    raise SettingsError(f"{flow}: its connectors make no flow")


def settings_of(one: Wanted, worker: Document | None = None) -> FlowSettings:
    """Of a connector by itself, as if it ran: for its offsets. Raises SettingsError."""
    connector = connector_from(one.name, one.config)
    return _built([connector], connector.flow, worker)[0]
