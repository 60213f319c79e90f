"""A Document taken apart by levels: plain keys, clusters, flows, connectors.

The writers of this package call it. It knows where a key stands, not what it means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from mirrorspark.config.definition import CHECKPOINT, HEARTBEAT, SOURCE, Scope
from mirrorspark.config.document import Document, Entry
from mirrorspark.config.key_path import flow_pairs, split_key
from mirrorspark.names import Flow

__all__ = ["KEPT", "ConnectorKind", "Layout", "aliases_of", "take_apart"]

KEPT = "strimzi/"
"""Begin of keys that keep what a Strimzi resource says and a mirror has no use for. No alias can hold a slash."""


class ConnectorKind(StrEnum):
    """MirrorMaker 2's connectors, by the last part of their class name."""

    SOURCE = SOURCE
    CHECKPOINT = CHECKPOINT
    HEARTBEAT = HEARTBEAT

    @property
    def java_class(self) -> str:
        return f"org.apache.kafka.connect.mirror.{self.value}"


@dataclass
class Layout:
    """Keys without their level in front -> entries (which keep the whole key)."""

    aliases: tuple[str, ...]
    plain: dict[str, Entry] = field(default_factory=dict)
    clusters: dict[str, dict[str, Entry]] = field(default_factory=dict)
    flows: dict[Flow, dict[str, Entry]] = field(default_factory=dict)
    connectors: dict[tuple[Flow, ConnectorKind], dict[str, Entry]] = field(default_factory=dict)
    kept: dict[str, Entry] = field(default_factory=dict)

    @property
    def pairs(self) -> list[Flow]:
        """Every flow that could be, in the order of the aliases."""
        return flow_pairs(self.aliases)


def aliases_of(document: Document) -> tuple[str, ...]:
    """Of ``clusters``, each once."""
    found = (alias.strip() for alias in document.get("clusters", "").split(","))
    return tuple(dict.fromkeys(alias for alias in found if alias))


def take_apart(document: Document) -> Layout:
    layout = Layout(aliases_of(document))
    layout.clusters = {alias: {} for alias in layout.aliases}
    for entry in document.entries:
        if entry.key.startswith(KEPT):
            layout.kept[entry.key.removeprefix(KEPT)] = entry
        elif entry.key != "clusters":
            _put(layout, entry)
    return layout


def _put(layout: Layout, entry: Entry) -> None:
    path = split_key(entry.key, layout.aliases)
    if path.flow is not None and path.connector:
        keys = layout.connectors.setdefault((path.flow, ConnectorKind(path.connector)), {})
        keys[entry.key.removeprefix(f"{path.flow}.{path.connector}.")] = entry
    elif path.flow is not None:
        layout.flows.setdefault(path.flow, {})[entry.key.removeprefix(f"{path.flow}.")] = entry
    elif path.level is Scope.CLUSTER:
        layout.clusters[path.cluster][entry.key.removeprefix(f"{path.cluster}.")] = entry
    else:
        layout.plain[entry.key] = entry
