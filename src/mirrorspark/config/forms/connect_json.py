"""Kafka Connect's JSON: connectors as POSTed, as PUT, as listed by a running Connect cluster; read and written.

The front door reads with it, ``writing`` writes with it. Knows MirrorMaker 2's three connectors and no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from mirrorspark.config.document import Document, Entry
from mirrorspark.config.forms.connectors import IDENTITY, Connector, switch_of
from mirrorspark.config.forms.gather import agree, gather_clusters, gather_flows
from mirrorspark.config.forms.layout import ConnectorKind
from mirrorspark.config.forms.nodes import Node
from mirrorspark.config.forms.spread import Spread, full_config
from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow

__all__ = [
    "connector_files",
    "connector_list",
    "connector_of",
    "connectors_in",
    "document_of",
    "is_connectors",
    "notes",
    "together",
]

TARGET_ALIAS_DEFAULT = "target"
"""MirrorMaker 2's own."""
_SHORT = {ConnectorKind.SOURCE: "msc", ConnectorKind.CHECKPOINT: "cpc", ConnectorKind.HEARTBEAT: "hbc"}
_STOPPED = ("PAUSED", "STOPPED")
_OF_THE_WORKER = ("group.id", "offset.storage.", "config.storage.", "status.storage.", "exactly.once.source.support")


def is_connectors(node: Node) -> bool:
    """Whether a text looks like connectors, of whatever class."""
    if node.is_list:
        return any(is_connectors(item) for item in node.items())
    if not node.is_mapping:
        return False
    fields = node.mapping()
    return "connector.class" in fields or "config" in fields or any(_is_listed(one) for one in fields.values())


def connectors_in(node: Node) -> list[Connector]:
    """Raises SettingsError for whatever is no connector of MirrorMaker 2."""
    if node.is_list:
        return [one for item in node.items() for one in connectors_in(item)]
    fields = node.mapping()
    if "connector.class" in fields:  # as PUT
        return [connector_of(fields.get("name"), node)]
    if "config" in fields:  # as POSTed, or one answer of GET /connectors/{name}
        state = fields.get("initial_state")
        return [connector_of(fields.get("name"), fields["config"], state=state)]
    if fields and all(_is_listed(one) for one in fields.values()):  # GET /connectors?expand=info
        return [one for item in fields.values() for one in connectors_in(item.mapping()["info"])]
    raise node.error("neither a connector (connector.class is missing) nor a list of connectors")


def _is_listed(node: Node) -> bool:
    return node.is_mapping and "info" in node.mapping()


def connector_of(
    name: Node | None, config: Node, *, given_class: Node | None = None, state: Node | None = None
) -> Connector:
    """One connector from its configuration. ``given_class`` and ``state`` are for forms that say them elsewhere."""
    fields = config.mapping()
    kind = _kind(given_class or config.need("connector.class"))
    inner = fields.get("name")
    if name is not None and inner is not None and name.text() != inner.text():
        raise inner.error(f"{inner.text()} is not the connector's name, {name.text()}; Connect refuses that")
    named = name or inner
    flow = Flow(
        config.need("source.cluster.alias").text(),
        alias.text() if (alias := config.get("target.cluster.alias")) else TARGET_ALIAS_DEFAULT,
    )
    if flow.source == flow.target:
        raise config.error(f"source and target have the same alias, {flow.source}")
    own = {key: Entry(key, node.text(), node.place) for key, node in fields.items() if key not in (*IDENTITY, "name")}
    if state is not None and state.text().upper() in _STOPPED:
        switch = switch_of(kind)
        own[switch] = Entry(switch, "false", state.place)
    return Connector(flow, kind, named.text() if named else kind.value, own, config.place)


def _kind(node: Node) -> ConnectorKind:
    """Connect takes the whole name, its last part, and that without ``Connector``."""
    for kind in ConnectorKind:
        if node.text() in (kind.java_class, kind.value, kind.value.removesuffix("Connector")):
            return kind
    known = ", ".join(kind.value for kind in ConnectorKind)
    raise node.error(f"{node.text()} is no connector of MirrorMaker 2; only {known} can be run here: leave it out")


def document_of(connectors: Sequence[Connector], worker: Document | None = None) -> Document:
    """All connectors of a deployment, with the Connect worker's own properties where they are given."""
    flows = [connector.flow for connector in connectors]
    aliases = list(dict.fromkeys(alias for flow in flows for alias in (flow.source, flow.target)))
    clusters, rest = gather_clusters(connectors)
    if worker is not None:
        _add_worker(clusters, worker, {flow.target for flow in flows})
    first = Entry("clusters", ", ".join(aliases), connectors[0].place)
    ordered = sorted(clusters.values(), key=lambda entry: _place_of_alias(entry.key, aliases))
    return Document([first, *ordered, *gather_flows(rest, aliases)])


def _place_of_alias(key: str, aliases: Sequence[str]) -> int:
    return next((at for at, alias in enumerate(aliases) if key.startswith(f"{alias}.")), len(aliases))


def _add_worker(clusters: dict[str, Entry], worker: Document, targets: set[str]) -> None:
    """A Connect worker lives on the cluster into which its connectors write."""
    if len(targets) != 1:
        places = ", ".join(sorted(targets))
        raise SettingsError(
            f"{worker.entries[0].place}: a Connect worker writes into one cluster, but the connectors write into {places}; "
            "read the connectors of each target by themselves"
        )
    target = targets.pop()
    for entry in worker.entries:
        moved = Entry(f"{target}.{entry.key}", entry.value, entry.place)
        key = moved.key
        clusters[key] = agree(clusters[key], moved) if key in clusters else moved


def connector_list(result: Spread) -> str:
    """All connectors in one text, each as it is POSTed."""
    return json.dumps([_posted(result, one) for one in result.connectors], indent=2, ensure_ascii=False) + "\n"


def connector_files(result: Spread) -> dict[str, str]:
    """File name -> text. Named after the source, and after the target too where that is not enough."""
    flows_from: dict[str, int] = {}
    for flow in result.flows:
        flows_from[flow.source] = flows_from.get(flow.source, 0) + 1
    files = {}
    for one in result.connectors:
        ending = one.flow.source if flows_from[one.flow.source] == 1 else f"{one.flow.source}-to-{one.flow.target}"
        text = json.dumps(_posted(result, one), indent=2, ensure_ascii=False) + "\n"
        files[f"mm2-{_SHORT[one.kind]}-{ending}.json"] = text
    return files


def _posted(result: Spread, one: Connector) -> dict[str, object]:
    return {"name": one.name, "config": full_config(result, one)}


def together(keys: Sequence[str], text: str) -> list[str]:
    """One note for several keys, or none."""
    return [f"{', '.join(dict.fromkeys(keys))}: {text}"] if keys else []


def notes(result: Spread) -> Iterable[str]:
    """What a person should know before handing the connectors to a Connect cluster."""
    targets = dict.fromkeys(flow.target for flow in result.flows)
    worker = [
        entry.key
        for alias in targets
        for name, entry in result.clusters[alias].items()
        if name.startswith(_OF_THE_WORKER)
    ]
    yield from together(worker, "Connect takes it from its worker's own file, not from a connector; set it there too")
    by_name: dict[tuple[str, str], list[Connector]] = {}
    for one in result.connectors:
        by_name.setdefault((one.flow.target, one.name), []).append(one)
    for (target, name), ones in by_name.items():
        if len(ones) > 1:
            flows = ", ".join(str(one.flow) for one in ones)
            yield (
                f"{flows}: their connectors into {target} have the same name, {name}, which a Connect cluster cannot hold; "
                f"give names, such as {ones[0].flow}.{ones[0].kind}.name"
            )
