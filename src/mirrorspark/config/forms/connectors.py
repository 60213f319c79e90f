"""MirrorMaker 2's connectors as values, and which of them reads which key.

Kafka Connect and Strimzi know connectors, mm2.properties knows flows: ``spread`` and ``gather`` go between the two and
share these words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirrorspark.config.catalogue import REMOVED, plain_definition
from mirrorspark.config.document import Entry
from mirrorspark.config.forms.layout import ConnectorKind
from mirrorspark.names import Flow

__all__ = ["ENABLED", "HEARTBEATS", "IDENTITY", "Connector", "readers_of", "switch_of"]

ENABLED = "enabled"
HEARTBEATS = "emit.heartbeats.enabled"
IDENTITY = ("connector.class", "source.cluster.alias", "target.cluster.alias")
"""What a connector is; in a Document the flow and the level say it."""


def readers_of(key: str) -> tuple[ConnectorKind, ...]:
    """The connectors to which a flow's key says something; all of them for a key that is not known."""
    definition = plain_definition(REMOVED.get(key, key))
    names = definition.connectors if definition is not None else ()
    return tuple(kind for kind in ConnectorKind if not names or kind.value in names)


def switch_of(kind: ConnectorKind) -> str:
    """The key that turns a connector off."""
    return HEARTBEATS if kind is ConnectorKind.HEARTBEAT else ENABLED


@dataclass(frozen=True, slots=True)
class Connector:
    """One connector of one flow. ``config`` holds what it has of its own: no identity, no name."""

    flow: Flow
    kind: ConnectorKind
    name: str
    config: Mapping[str, Entry] = field(repr=False)
    place: str

    @property
    def is_off(self) -> bool:
        """Kept for its keys alone."""
        name = switch_of(self.kind)
        return name in self.config and self.config[name].value.strip().lower() == "false"
