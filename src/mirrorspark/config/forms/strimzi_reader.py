"""Strimzi's KafkaMirrorMaker2 resources, v1beta2 and v1, and IBM's variant, as a Document. The front door calls it.

Also read: KafkaConnector resources of MirrorMaker 2's classes, Secret documents, and lists of all these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mirrorspark.config.document import Document, Entry
from mirrorspark.config.forms.connect_json import connector_of
from mirrorspark.config.forms.connectors import Connector, switch_of
from mirrorspark.config.forms.gather import agree, gather_clusters, gather_flows
from mirrorspark.config.forms.layout import KEPT
from mirrorspark.config.forms.nodes import Node
from mirrorspark.config.forms.secret_store import SecretStore
from mirrorspark.config.forms.strimzi_fields import (
    CLUSTER_FIELDS,
    CONNECTOR_KEPT,
    CONNECTORS,
    MIRROR_FIELDS,
    PATTERNS,
    SPEC_KEPT,
    STRIMZI_WORKER,
    TARGET_FIELDS,
    WORKER_FIELDS,
    check_connector,
    check_fields,
    dedicated_worker,
    kept_value,
)
from mirrorspark.config.forms.strimzi_security import SecurityReader
from mirrorspark.names import Flow

__all__ = ["is_resource", "read_resources"]

GROUPS = ("kafka.strimzi.io", "eventstreams.ibm.com")
VERSIONS = ("v1alpha1", "v1beta1", "v1beta2", "v1")
_RUNTIME = ("managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink")
"""Of ``metadata``: what a running Kubernetes adds."""
_SPEC_FIELDS = ("clusters", "connectCluster", "target", "mirrors", *SPEC_KEPT)


def is_resource(node: Node) -> bool:
    return node.is_mapping and "kind" in node.mapping()


@dataclass
class _Found:
    """What all resources together say."""

    aliases: dict[str, None] = field(default_factory=dict)
    clusters: dict[str, Entry] = field(default_factory=dict)
    connectors: list[Connector] = field(default_factory=list)
    patterns: dict[str, Entry] = field(default_factory=dict)
    kept: dict[str, Entry] = field(default_factory=dict)

    def add_cluster_keys(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            known = self.clusters.get(entry.key)
            self.clusters[entry.key] = agree(known, entry) if known else entry

    def keep(self, key: str, node: Node) -> None:
        self.keep_text(key, kept_value(node.tree()), node.place)

    def keep_text(self, key: str, value: str, place: str) -> None:
        self.kept[key] = Entry(f"{KEPT}{key}", value, place)


def read_resources(nodes: Sequence[Node], store: SecretStore) -> Document:
    """Raises SettingsError where there is no mirror, or a field that is not known, or a secret that is nowhere."""
    resources = list(_flatten(nodes))
    mirrors = [node for node in resources if _kind(node) == "KafkaMirrorMaker2"]
    connectors = [node for node in resources if _kind(node) == "KafkaConnector"]
    for node in resources:
        if _kind(node) == "Secret":
            store.add(node)
        elif _kind(node) == "KafkaMirrorMaker":
            raise node.error("kind KafkaMirrorMaker is MirrorMaker 1; write a KafkaMirrorMaker2 instead")
    if not mirrors and not connectors:
        kinds = ", ".join(_kind(node) for node in resources)
        raise resources[0].error(f"no KafkaMirrorMaker2 among these resources ({kinds})")
    found = _Found()
    security = SecurityReader(store)
    for node in mirrors:
        _Resource(node, found, security).read()
    _add_connectors(connectors, found)
    others = [node for node in resources if _kind(node) not in ("KafkaMirrorMaker2", "KafkaConnector", "Secret")]
    for node in others:
        name = (node.get("metadata") or node).get("name")
        found.keep_text(f"{_kind(node)}/other.{name.text() if name else ''}", "", node.place)
    for variable, secret in security.variables.items():
        found.keep_text(f"/secret.{variable}", secret, "the secrets")
    return _document(found, (mirrors or connectors)[0].place)


def _flatten(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        if _kind(node).endswith("List") and node.get("items") is not None:
            yield from _flatten(node.need("items").items())
        else:
            yield node


def _kind(node: Node) -> str:
    return node.need("kind").text()


def _document(found: _Found, place: str) -> Document:
    aliases = list(found.aliases)
    flows = gather_flows(found.connectors, aliases)
    clusters = [found.clusters[key] for alias in aliases for key in found.clusters if _is_of(key, alias, aliases)]
    first = Entry("clusters", ", ".join(aliases), place)
    return Document([first, *clusters, *flows, *found.patterns.values(), *found.kept.values()])


def _is_of(key: str, alias: str, aliases: Sequence[str]) -> bool:
    return alias == max((one for one in aliases if key.startswith(f"{one}.")), key=len)


def _add_connectors(nodes: Sequence[Node], found: _Found) -> None:
    """KafkaConnector: a connector as Connect has it, in a resource's clothes."""
    connectors = []
    for node in nodes:
        spec = node.need("spec")
        check_fields(spec, ("class", "tasksMax", "config", "state", "pause", *CONNECTOR_KEPT))
        name = node.need("metadata").need("name")
        one = connector_of(name, spec.need("config"), given_class=spec.need("class"), state=spec.get("state"))
        connectors.append(_with_switches(one, spec, found, f"{name.text()}/{one.kind}"))
    clusters, rest = gather_clusters(connectors)
    found.add_cluster_keys(clusters.values())
    found.connectors += rest
    for one in rest:
        found.aliases |= dict.fromkeys((one.flow.source, one.flow.target))


def _with_switches(one: Connector, spec: Node, found: _Found, kept: str) -> Connector:
    """tasksMax, state and pause go into the configuration; what has no meaning is kept."""
    config = dict(one.config)
    if (tasks := spec.get("tasksMax")) is not None:
        config["tasks.max"] = Entry("tasks.max", tasks.text(), tasks.place)
    state, pause = spec.get("state"), spec.get("pause")
    is_stopped = state is not None and state.text().lower() in ("paused", "stopped")
    if is_stopped or (pause is not None and pause.content is True):
        switch = switch_of(one.kind)
        config[switch] = Entry(switch, "false", (state or pause or spec).place)
    for name in CONNECTOR_KEPT:
        if (node := spec.get(name)) is not None:
            found.keep(f"{kept}.{name}", node)
    return Connector(one.flow, one.kind, one.name, config, one.place)


class _Resource:
    """One KafkaMirrorMaker2."""

    def __init__(self, node: Node, found: _Found, security: SecurityReader) -> None:
        self._node, self._found, self._security = node, found, security
        version = node.need("apiVersion")
        group, _, number = version.text().partition("/")
        if group not in GROUPS or number not in VERSIONS:
            raise version.error(
                f"{version.text()} is not known; there is {' and '.join(GROUPS)} with {', '.join(VERSIONS)}"
            )
        metadata = node.get("metadata")
        name = metadata.get("name") if metadata else None
        self._name = name.text() if name else "mm2"
        if f"{self._name}/apiVersion" in found.kept:
            raise node.error(f"a second KafkaMirrorMaker2 named {self._name}; run each by itself, or rename one")
        found.keep(f"{self._name}/apiVersion", version)
        if metadata:
            tree = {key: value for key, value in metadata.tree().items() if key not in _RUNTIME}
            found.keep_text(f"{self._name}/metadata", kept_value(tree), metadata.place)

    def read(self) -> None:
        spec = self._node.need("spec")
        check_fields(spec, _SPEC_FIELDS)
        mirrors = spec.need("mirrors").items()
        clusters = self._clusters(spec, mirrors)
        target = self._worker_alias(spec, dict(clusters))
        flows = [self._flow(mirror, spec, dict(clusters)) for mirror in mirrors]
        for alias, node in clusters:
            self._found.aliases[alias] = None
            self._found.add_cluster_keys(self._cluster_keys(alias, node))
        for flow, mirror in zip(flows, mirrors, strict=True):
            self._mirror(flow, mirror)
        self._found.add_cluster_keys(self._worker_keys(spec, target, dict(clusters)[target], flows))
        self._found.keep_text(f"{self._name}/flows", ", ".join(map(str, flows)), self._node.place)
        for name in SPEC_KEPT:
            if (kept := spec.get(name)) is not None:
                self._found.keep(f"{self._name}/spec.{name}", kept)

    def _clusters(self, spec: Node, mirrors: Sequence[Node]) -> list[tuple[str, Node]]:
        """Sources first. In v1 a source stands inside its mirror and may be there several times."""
        if (target := spec.get("target")) is None:
            nodes = list(spec.need("clusters").items())
            aliases = [node.need("alias").text() for node in nodes]
            for node in nodes:
                check_fields(node, CLUSTER_FIELDS)
                if aliases.count(node.need("alias").text()) > 1:
                    raise node.error(f"a second cluster with the alias {node.need('alias').text()}")
        else:
            nodes = [mirror.need("source") for mirror in mirrors]
            for node in nodes:
                check_fields(node, CLUSTER_FIELDS)
            check_fields(target, TARGET_FIELDS)
            nodes.append(target)
        return [(node.need("alias").text(), node) for node in nodes]

    def _cluster_keys(self, alias: str, cluster: Node) -> Iterator[Entry]:
        servers = cluster.need("bootstrapServers")
        found = {"bootstrap.servers": Entry(f"{alias}.bootstrap.servers", servers.text(), servers.place)}
        for name, (value, node) in self._security.read(cluster).items():
            found[name] = Entry(f"{alias}.{name}", value, node.place)
        for name, node in _fields(cluster, "config").items():
            entry = Entry(f"{alias}.{name}", node.text(), node.place)
            if name in found and found[name].value != entry.value:
                raise node.error(
                    f"another value than {found[name].place} gives; Strimzi's workers take that, its connectors this: "
                    "leave it out of config"
                )
            found[name] = entry
        yield from found.values()

    def _worker_alias(self, spec: Node, clusters: Mapping[str, Node]) -> str:
        if (target := spec.get("target")) is not None:
            return target.need("alias").text()
        connect = spec.need("connectCluster")
        if connect.text() not in clusters:
            raise connect.error(f"{connect.text()} is not the alias of one of the clusters")
        return connect.text()

    def _worker_keys(self, spec: Node, alias: str, cluster: Node, flows: Sequence[Flow]) -> Iterator[Entry]:
        """What a dedicated MirrorMaker 2 would take anyway is not said."""
        is_v1 = spec.get("target") is not None
        sources = {flow.source for flow in flows}
        dedicated = dedicated_worker(next(iter(sources))) if len(sources) == 1 else {}
        config = _fields(cluster, "config")
        for name, key in WORKER_FIELDS.items():
            node = cluster.need(name) if is_v1 else config.get(key)
            value = node.text() if node else STRIMZI_WORKER[key]
            full = f"{alias}.{key}"
            if dedicated.get(key) == value:
                if full in self._found.clusters and self._found.clusters[full].value == value:
                    del self._found.clusters[full]
            else:
                yield Entry(full, value, node.place if node else f"{cluster.place} (Strimzi's default)")

    def _mirror(self, flow: Flow, mirror: Node) -> None:
        patterns: dict[str, Entry] = {}
        for name, key in PATTERNS.items():
            if (node := mirror.get(name)) is not None and key not in patterns:
                patterns[key] = Entry(f"{flow}.{key}", node.text(), node.place)
        self._found.patterns |= {entry.key: entry for entry in patterns.values()}
        for name, kind in CONNECTORS.items():
            if (node := mirror.get(name)) is not None:
                check_connector(node)
                config = dict(self._connector_config(node, patterns, f"{self._name}/{flow}.{name}"))
                one = Connector(flow, kind, f"{flow}.{kind}", config, node.place)
                self._found.connectors.append(_with_switches(one, node, self._found, f"{self._name}/{flow}.{name}"))

    def _connector_config(self, node: Node, patterns: Mapping[str, Entry], kept: str) -> Iterator[tuple[str, Entry]]:
        for name, value in _fields(node, "config").items():
            if name in patterns:
                if patterns[name].value != value.text():
                    self._found.keep(f"{kept}.config.{name}", value)
            elif name not in ("name", "connector.class"):  # the operator's own
                yield name, Entry(name, value.text(), value.place)

    def _flow(self, mirror: Node, spec: Node, clusters: Mapping[str, Node]) -> Flow:
        check_fields(mirror, MIRROR_FIELDS)
        if (target := spec.get("target")) is not None:
            flow = Flow(mirror.need("source").need("alias").text(), target.need("alias").text())
        else:
            flow = Flow(mirror.need("sourceCluster").text(), mirror.need("targetCluster").text())
            for field_name, alias in (("sourceCluster", flow.source), ("targetCluster", flow.target)):
                if alias not in clusters:
                    raise mirror.need(field_name).error(f"{alias} is not the alias of one of the clusters")
            self._check_target(mirror.need("targetCluster"), spec.need("connectCluster").text(), clusters)
        if flow.source == flow.target:
            raise mirror.error(f"source and target are the same cluster, {flow.source}")
        return flow

    def _check_target(self, target: Node, connect: str, clusters: Mapping[str, Node]) -> None:
        """Connect's producers write into the cluster of its workers, wherever a mirror points."""
        servers = {alias: node.need("bootstrapServers").text() for alias, node in clusters.items()}
        if target.text() != connect and servers[target.text()] != servers.get(connect):
            raise target.error(
                f"{target.text()} is not connectCluster, {connect}: Kafka Connect would write into {connect}, so Strimzi "
                "refuses this; make a KafkaMirrorMaker2 for each target (all may stand in one file)"
            )


def _fields(node: Node, name: str) -> Mapping[str, Node]:
    inner = node.get(name)
    return inner.mapping() if inner is not None else {}
