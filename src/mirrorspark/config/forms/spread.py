"""From a Document to connectors, as MirrorMaker 2 itself derives them from mm2.properties.

The writers of JSON and Strimzi's YAML call ``spread``. What connectors cannot carry is listed with a reason; nothing is
left out without a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mirrorspark.config.catalogue import plain_definition
from mirrorspark.config.definition import Scope
from mirrorspark.config.document import Document, Entry
from mirrorspark.config.forms.connectors import ENABLED, HEARTBEATS, IDENTITY, Connector, readers_of, switch_of
from mirrorspark.config.forms.layout import ConnectorKind, Layout, take_apart
from mirrorspark.names import Flow

__all__ = ["CLIENTS", "Spread", "Uncarried", "full_config", "is_client_security", "meaning", "spread"]

CLIENTS = ("consumer.", "producer.", "admin.")
_SECURITY = re.compile(r"security\.protocol|ssl\..+|sasl\..+")
_PROVIDERS = "config.providers"
_NO_CLIENT = ("consumer.poll.timeout.ms", "admin.timeout.ms")
"""Keys that only look like those of a client."""
_OF_THE_PROCESS = (
    "listeners",
    "metrics.",
    "rest.",
    "dedicated.mode.",
    "bandwidth.total.",
    "access.control.",
    "response.http.headers.config",
)


@dataclass(frozen=True, slots=True)
class Uncarried:
    """A key that a form has no room for."""

    key: str
    why: str

    def __str__(self) -> str:
        return f"{self.key}: {self.why}"


@dataclass
class Spread:
    """``clusters`` has each cluster's keys, those that were given for all clusters included."""

    aliases: tuple[str, ...]
    connectors: list[Connector] = field(default_factory=list)
    clusters: dict[str, dict[str, Entry]] = field(default_factory=dict)
    uncarried: list[Uncarried] = field(default_factory=list)
    kept: dict[str, Entry] = field(default_factory=dict)

    @property
    def flows(self) -> list[Flow]:
        return list(dict.fromkeys(connector.flow for connector in self.connectors))


def is_client_security(name: str) -> bool:
    """Whether the name says how a client reaches a cluster. ``ssl.client.auth`` is of the REST server."""
    return bool(_SECURITY.fullmatch(name)) and name != "ssl.client.auth"


def _is_of_workers(name: str) -> bool:
    """Plain keys that MirrorMaker 2 hands on to the workers of every target, not to connectors: ``offset.storage.…``"""
    definition = plain_definition(name)
    if definition is None or name.startswith(_PROVIDERS):
        return False
    return bool(definition.scope & Scope.CLUSTER) and not definition.scope & Scope.FLOW


def spread(document: Document) -> Spread:
    layout = take_apart(document)
    shared, uncarried = _shared_keys(layout)
    result = Spread(layout.aliases, kept=layout.kept, uncarried=uncarried)
    written = {flow: _written(layout, flow) for flow in layout.pairs}
    _make_room(written, shared, result.uncarried)
    for flow, kinds in written.items():
        for kind in ConnectorKind:
            if kind in kinds:
                result.connectors.append(_connector(layout, flow, kind, shared))
    for keys in [*layout.flows.values(), *layout.connectors.values()]:
        for name in IDENTITY:
            if name in keys:
                result.uncarried.append(Uncarried(keys[name].key, "a flow's own aliases and class cannot be replaced"))
    _fill_clusters(layout, result)
    return result


def _shared_keys(layout: Layout) -> tuple[dict[str, Entry], list[Uncarried]]:
    """Plain keys that every flow's connectors take, and those that nobody takes."""
    shared: dict[str, Entry] = {}
    uncarried: list[Uncarried] = []
    for name, entry in layout.plain.items():
        if why := _why_not_shared(name):
            uncarried.append(Uncarried(name, why))
        elif name != HEARTBEATS and not is_client_security(name) and not _is_of_workers(name):
            shared[name] = entry
    return shared, uncarried


def _why_not_shared(name: str) -> str:
    if "->" in name:
        return "not a flow between two aliases in clusters"
    if name.startswith(CLIENTS) and name not in _NO_CLIENT:
        return f"MirrorMaker 2 ignores it here; write it for a cluster, as <alias>.{name}"
    if name.startswith(_OF_THE_PROCESS) or name == "ssl.client.auth":
        return "a setting of a dedicated MirrorMaker 2 process; connectors have no place for it"
    definition = plain_definition(name)
    if definition is not None and not definition.scope & Scope.TOP:
        place = "flow, as <source>-><target>" if definition.scope & Scope.FLOW else "target, as <alias>"
        return f"MirrorMaker 2 ignores it here; write it for a {place}.{name}"
    if name in IDENTITY or name.startswith(("source.", "target.")):
        return "says something of one flow; write it as <source>-><target>.… or for a cluster as <alias>.…"
    return ""


def _written(layout: Layout, flow: Flow) -> set[ConnectorKind]:
    """The connectors that run for a flow, and those that do not but have keys to carry."""
    at_flow = layout.flows.get(flow, {})
    kinds = {kind for kind in ConnectorKind if _runs(layout, flow, kind)}
    kinds |= {
        kind for kind in ConnectorKind if set(layout.connectors.get((flow, kind), {})) - {switch_of(kind), *IDENTITY}
    }
    for name in at_flow:
        readers = readers_of(name)
        if name not in (ENABLED, HEARTBEATS, *IDENTITY) and not kinds.intersection(readers):
            kinds.add(readers[0])
    return kinds


def _make_room(
    written: dict[Flow, set[ConnectorKind]], shared: Mapping[str, Entry], uncarried: list[Uncarried]
) -> None:
    """A plain key that no written connector reads still needs one to stand in."""
    first = next((flow for flow, kinds in written.items() if kinds), None)
    for name in shared:
        readers = readers_of(name)
        if first is None:
            uncarried.append(Uncarried(name, "no flow is enabled, so there is no connector to carry it"))
        elif not any(kinds.intersection(readers) for kinds in written.values()):
            written[first].add(readers[0])


def _runs(layout: Layout, flow: Flow, kind: ConnectorKind) -> bool:
    return _switch(layout, flow, kind).strip().lower() != "false"


def _switch(layout: Layout, flow: Flow, kind: ConnectorKind) -> str:
    """The text that turns a connector on or off, with MirrorMaker 2's defaults."""
    name = switch_of(kind)
    levels = [layout.connectors.get((flow, kind), {}), layout.flows.get(flow, {})]
    if kind is ConnectorKind.HEARTBEAT:
        levels.append(layout.plain)
    default = "true" if kind is ConnectorKind.HEARTBEAT else "false"
    return next((level[name].value for level in levels if name in level), default)


def _connector(layout: Layout, flow: Flow, kind: ConnectorKind, shared: Mapping[str, Entry]) -> Connector:
    own = layout.connectors.get((flow, kind), {})
    common = {**shared, **layout.flows.get(flow, {})}
    config = {name: entry for name, entry in common.items() if kind in readers_of(name)} | dict(own)
    for name in (*IDENTITY, switch_of(kind)):
        config.pop(name, None)
    if kind is ConnectorKind.HEARTBEAT and ENABLED not in own:
        config.pop(ENABLED, None)  # the flow's switch; MirrorMaker 2's heartbeats do not look at it
    switch = _switch(layout, flow, kind)
    if switch.strip().lower() != "true":
        name = switch_of(kind)
        config[name] = Entry(f"{flow}.{kind}.{name}", switch, "the flow's own switch")
    name_entry = config.pop("name", None)
    place = next((entry.place for entry in config.values()), f"{flow}")
    return Connector(flow, kind, name_entry.value if name_entry else kind.value, config, place)


def _fill_clusters(layout: Layout, result: Spread) -> None:
    """A cluster's own value wins over one for all; where MirrorMaker 2 would let the other win, the two must be equal."""
    targets = {connector.flow.target for connector in result.connectors}
    for alias in layout.aliases:
        keys = dict(layout.clusters[alias])
        for name, entry in layout.plain.items():
            if is_client_security(name):
                keys.setdefault(name, entry)
            if not _is_of_workers(name) or alias not in targets:
                continue
            if keys.setdefault(name, entry).value != entry.value:
                why = f"{keys[name].key} says otherwise, and a MirrorMaker 2 worker takes {name}; keep one of them"
                result.uncarried.append(Uncarried(name, why))
        result.clusters[alias] = keys
    if not targets:
        result.uncarried += [Uncarried(name, "no flow is enabled") for name in layout.plain if _is_of_workers(name)]


def full_config(result: Spread, connector: Connector) -> dict[str, str]:
    """A connector's whole configuration as Kafka Connect gets it, but for its name."""
    flow = connector.flow
    config = {
        "connector.class": connector.kind.java_class,
        "source.cluster.alias": flow.source,
        "target.cluster.alias": flow.target,
    }
    for side, alias in (("source.", flow.source), ("target.", flow.target)):
        for name, entry in result.clusters[alias].items():
            config[f"{side}{name}" if name.startswith(CLIENTS) else f"{side}cluster.{name}"] = entry.value
    return config | {name: entry.value for name, entry in connector.config.items()}


def meaning(document: Document) -> dict[str, str]:
    """What the Document's connectors get to see, ``A->B.MirrorSourceConnector.topics`` and so on: equal for two
    Documents that say the same at different levels."""
    result = spread(document)
    found = {one.key: "" for one in result.uncarried}
    for connector in result.connectors:
        prefix = f"{connector.flow}.{connector.kind}"
        found[f"{prefix}.name"] = connector.name
        others = [one for one in result.connectors if one.flow == connector.flow]
        found |= {
            f"{prefix}.{name}": value
            for name, value in full_config(result, connector).items()
            if not _is_said_by_readers(connector, name, value, others)
        }
    return found


def _is_said_by_readers(connector: Connector, name: str, value: str, others: list[Connector]) -> bool:
    """A connector that does not read a key has it all the same, as those have it that do: that says nothing."""
    if name not in connector.config or connector.kind in readers_of(name) or connector.is_off:
        return False
    readers = {one.kind: one.config.get(name) for one in others if one.kind in readers_of(name)}
    return readers_of(name)[0] in readers and all(one is not None and one.value == value for one in readers.values())
