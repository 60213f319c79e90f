"""From connectors to the entries of a Document: what connectors share is said once, at the flow or at the cluster.

The readers of JSON and Strimzi's YAML call it. The inverse of ``spread``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mirrorspark.config.document import Entry
from mirrorspark.config.forms.connectors import ENABLED, HEARTBEATS, IDENTITY, Connector, readers_of
from mirrorspark.config.forms.layout import ConnectorKind
from mirrorspark.config.forms.spread import CLIENTS
from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow

__all__ = ["agree", "gather_clusters", "gather_flows"]

_PROVIDERS = "config.providers"


def agree(first: Entry, second: Entry) -> Entry:
    """The same key from two places; raises SettingsError that names both, without the values."""
    if first.value != second.value:
        raise SettingsError(
            f"{second.place}: {second.key}: another value than in {first.place}; one cluster has one value: make them equal",
            key=second.key,
            place=second.place,
        )
    return first


def gather_clusters(connectors: Sequence[Connector]) -> tuple[dict[str, Entry], list[Connector]]:
    """``source.cluster.x`` -> ``A.x``. Returns those entries, and the connectors without them.

    ``source.consumer.x`` becomes ``A.consumer.x`` only where every connector of A says the same; it stays otherwise.
    """
    entries: dict[str, Entry] = {}
    for connector in connectors:
        for alias, side in ((connector.flow.source, "source."), (connector.flow.target, "target.")):
            for name, entry in connector.config.items():
                if name.startswith(f"{side}cluster."):
                    key = f"{alias}.{name.removeprefix(f'{side}cluster.')}"
                    moved = Entry(key, entry.value, entry.place)
                    entries[key] = agree(entries[key], moved) if key in entries else moved
    clients = _client_keys(connectors)
    entries |= clients
    rest = [_without(connector, clients) for connector in connectors]
    return entries, rest


def _sides(connector: Connector) -> list[tuple[str, str]]:
    return [(connector.flow.source, "source."), (connector.flow.target, "target.")]


def _client_keys(connectors: Sequence[Connector]) -> dict[str, Entry]:
    seen: dict[str, list[Entry]] = {}
    parts: dict[str, int] = {}
    for connector in connectors:
        for alias, side in _sides(connector):
            parts[alias] = parts.get(alias, 0) + 1
            for name, entry in connector.config.items():
                short = name.removeprefix(side)
                if name.startswith(side) and short.startswith(CLIENTS):
                    seen.setdefault(f"{alias}\n{short}", []).append(entry)
    found = {}
    for both, entries in seen.items():
        alias, short = both.split("\n", 1)
        if len(entries) == parts[alias] and _are_equal(entries):
            key = f"{alias}.{short}"
            found[key] = Entry(key, entries[0].value, entries[0].place)
    return found


def _without(connector: Connector, clients: Mapping[str, Entry]) -> Connector:
    def stays(name: str) -> bool:
        if name.startswith(("source.cluster.", "target.cluster.")) or name in IDENTITY:
            return False
        return all(
            f"{alias}.{name.removeprefix(side)}" not in clients or not name.startswith(side)
            for alias, side in _sides(connector)
        )

    config = {name: entry for name, entry in connector.config.items() if stays(name)}
    return Connector(connector.flow, connector.kind, connector.name, config, connector.place)


def gather_flows(connectors: Sequence[Connector], aliases: Sequence[str]) -> list[Entry]:
    """Entries of flows, and the plain ones that follow from which connectors there are."""
    flows: dict[Flow, dict[ConnectorKind, Connector]] = {}
    for connector in connectors:
        others = flows.setdefault(connector.flow, {})
        if connector.kind in others:
            raise SettingsError(
                f"{connector.place}: a second {connector.kind} for {connector.flow}, beside {others[connector.kind].place}; "
                "a mirror has one for each flow: give each set of connectors to a mirror of its own",
                place=connector.place,
            )
        others[connector.kind] = connector
    providers = _common_providers(connectors)
    entries = list(providers)
    entries += _heartbeats(flows, aliases)
    for flow, parts in flows.items():
        entries += _switches(flow, parts)
        entries += _names(flow, parts)
        entries += _keys(flow, parts, {entry.key for entry in providers})
    return entries


def _common_providers(connectors: Sequence[Connector]) -> list[Entry]:
    """Config providers are the process's, not a flow's: said once where all connectors say the same."""
    names = dict.fromkeys(name for one in connectors for name in one.config if name.startswith(_PROVIDERS))
    found = []
    for name in names:
        held = [one.config[name] for one in connectors if name in one.config]
        if len(held) == len(connectors) and _are_equal(held):
            found.append(Entry(name, held[0].value, held[0].place))
    return found


def _heartbeats(flows: Mapping[Flow, Mapping[ConnectorKind, Connector]], aliases: Sequence[str]) -> Iterable[Entry]:
    """In mm2.properties every pair of clusters has heartbeats unless told otherwise; connectors are what they are."""
    texts: dict[Flow, Entry] = {}
    for flow, parts in flows.items():
        if one := parts.get(ConnectorKind.HEARTBEAT):
            text = one.config[HEARTBEATS].value if HEARTBEATS in one.config else "true"
            texts[flow] = Entry(f"{flow}.{HEARTBEATS}", text, one.place)
    wanted = {flow for flow, entry in texts.items() if entry.value.strip().lower() != "false"}
    plain = {flow for flow in wanted if texts[flow].value == "true"}
    pairs = len(aliases) * (len(aliases) - 1)
    if len(wanted) < pairs:
        yield Entry(HEARTBEATS, "false", "follows from the heartbeat connectors that are there")
        yield from (texts[flow] for flow in flows if flow in wanted)
    else:
        yield from (texts[flow] for flow in flows if flow in wanted - plain)


def _switches(flow: Flow, parts: Mapping[ConnectorKind, Connector]) -> Iterable[Entry]:
    def text(kind: ConnectorKind) -> str:
        if kind not in parts:
            return "false"
        return parts[kind].config[ENABLED].value if ENABLED in parts[kind].config else "true"

    source = text(ConnectorKind.SOURCE)
    if ConnectorKind.SOURCE in parts:
        yield Entry(f"{flow}.{ENABLED}", source, parts[ConnectorKind.SOURCE].place)
    if text(ConnectorKind.CHECKPOINT) != source:
        place = (
            parts[ConnectorKind.CHECKPOINT].place
            if ConnectorKind.CHECKPOINT in parts
            else f"{flow} has no {ConnectorKind.CHECKPOINT}"
        )
        yield Entry(f"{flow}.{ConnectorKind.CHECKPOINT}.{ENABLED}", text(ConnectorKind.CHECKPOINT), place)


def _names(flow: Flow, parts: Mapping[ConnectorKind, Connector]) -> Iterable[Entry]:
    for kind, one in parts.items():
        if one.name != kind.value:  # a dedicated MirrorMaker 2's name for it
            yield Entry(f"{flow}.{kind}.name", one.name, one.place)


def _keys(flow: Flow, parts: Mapping[ConnectorKind, Connector], elsewhere: set[str]) -> Iterable[Entry]:
    """A key goes to the flow where all connectors that read it say the same, to a connector otherwise."""
    for name in dict.fromkeys(name for one in parts.values() for name in one.config):
        holders = {kind: one.config[name] for kind, one in parts.items() if name in one.config}
        if name == ENABLED:
            holders = {kind: entry for kind, entry in holders.items() if kind is ConnectorKind.HEARTBEAT}
        if name == HEARTBEATS:
            holders.pop(ConnectorKind.HEARTBEAT, None)
        if name in elsewhere:
            continue
        readers = [kind for kind in readers_of(name) if kind in parts]
        values = [holders[kind] for kind in readers if kind in holders]
        # Without the first reader the others stand for themselves: it is the one that would carry a flow's key alone.
        is_common = readers_of(name)[0] in parts and len(values) == len(readers) and _are_equal(values)
        if is_common and name not in (ENABLED, HEARTBEATS):
            yield Entry(f"{flow}.{name}", values[0].value, values[0].place)
            holders = {
                kind: entry
                for kind, entry in holders.items()
                if entry.value != values[0].value or (kind not in readers and parts[kind].is_off)
            }
        yield from (Entry(f"{flow}.{kind}.{name}", entry.value, entry.place) for kind, entry in holders.items())


def _are_equal(entries: Sequence[Entry]) -> bool:
    return len({entry.value for entry in entries}) == 1
