"""Every key that is known, by where it stands: the one table behind checks, settings, reference page and REST."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from mirrorspark.config.catalogue.clients import ADMIN, COMMON, CONSUMER, PRODUCER
from mirrorspark.config.catalogue.connect import CONNECT
from mirrorspark.config.catalogue.groups import GROUPS, HEARTBEATS
from mirrorspark.config.catalogue.own import OWN
from mirrorspark.config.catalogue.replication import REPLICATION
from mirrorspark.config.catalogue.security import SECURITY
from mirrorspark.config.catalogue.top_level import REMOVED, TOP_LEVEL
from mirrorspark.config.definition import Definition, Scope

__all__ = [
    "CLIENTS",
    "PLAIN",
    "REMOVED",
    "SECURITY_NAMES",
    "TABLES",
    "client_definition",
    "nearest",
    "plain_definition",
]

TABLES: Mapping[str, tuple[Definition, ...]] = {
    "File and clusters": TOP_LEVEL,
    "Topics": REPLICATION,
    "Groups and offset syncs": GROUPS,
    "Heartbeats": HEARTBEATS,
    "Our own": OWN,
    "Security": SECURITY,
    "Consumers of the source": CONSUMER,
    "Producers of the target": PRODUCER,
    "Admin clients": ADMIN,
    "All clients": COMMON,
    "Connect": CONNECT,
}
"""In the reference page's order; the title is the REST definition's group."""

_NEARNESS = 0.75
"""Of a name that is offered instead of an unknown one; 1 is equality."""


def _by_name(definitions: Iterable[Definition]) -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    for one in definitions:
        assert one.name not in found, f"{one.name} is there twice"
        assert not one.is_family or one.name.endswith(".*"), f"{one.name}: a family begins behind a dot"
        found[one.name] = one
    return found


PLAIN: Mapping[str, Definition] = _by_name(
    one
    for table in (TOP_LEVEL, REPLICATION, GROUPS, HEARTBEATS, OWN, SECURITY, COMMON, CONNECT)
    for one in table
    if one.scope & (Scope.TOP | Scope.CLUSTER | Scope.FLOW)
)
"""What stands without ``consumer.`` and the like before it: at the top level, a cluster's or a flow's."""

_FOR_ALL = tuple(one for one in (*TOP_LEVEL, *SECURITY, *COMMON) if one.scope & Scope.CLIENT)
CLIENTS: Mapping[str, Mapping[str, Definition]] = {
    "consumer": _by_name((*CONSUMER, *_FOR_ALL)),
    "producer": _by_name((*PRODUCER, *_FOR_ALL)),
    "admin": _by_name((*ADMIN, *_FOR_ALL)),
}

SECURITY_NAMES = frozenset({one.name for one in SECURITY} | {"bootstrap.servers"}) - {"security.providers"}
"""Of client keys, those that MirrorMaker 2 copies from a cluster's level, and from the top, to each client."""


def _find(table: Mapping[str, Definition], name: str) -> Definition | None:
    """The key itself, else the narrowest family that it belongs to."""
    if (exact := table.get(name)) is not None and not exact.is_family:
        return exact
    while "." in name:
        name = name.rpartition(".")[0]
        if (family := table.get(f"{name}.*")) is not None:
            return family
    return None


def plain_definition(name: str) -> Definition | None:
    return _find(PLAIN, name)


def client_definition(role: str, name: str) -> Definition | None:
    """``role`` is consumer, producer or admin."""
    return _find(CLIENTS[role], name)


def nearest(name: str, role: str = "") -> str | None:
    """The known name that is most like this one; None if none is."""
    table = CLIENTS[role] if role else PLAIN
    names = [one for one in table if not one.endswith("*")]
    found = difflib.get_close_matches(name, names, n=1, cutoff=_NEARNESS)
    return found[0] if found else None
