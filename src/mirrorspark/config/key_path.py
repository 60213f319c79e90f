"""A key taken apart: the level it stands at, whose it is, and the name that is left.

``split_key`` is the one place that knows how prefixes are written. An alias may contain dots and separators: the longest
one that fits wins. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mirrorspark.config.catalogue import CLIENTS, REMOVED, client_definition, plain_definition
from mirrorspark.config.definition import CONNECTORS, Definition, Scope
from mirrorspark.names import Flow

__all__ = ["KeyPath", "flow_pairs", "split_key"]

_Named = TypeVar("_Named", str, Flow)
_SIDES = ("source", "target")
ROLES = tuple(CLIENTS)
_CLIENT_PREFIXES = (
    *(f"{side}.{role}" for side in _SIDES for role in ROLES),
    *(f"{side}.cluster" for side in _SIDES),
    *(f"{role}.override" for role in ROLES),
    *ROLES,
)
"""In this order: ``producer.override.x`` is not the producer's ``override.x``."""


@dataclass(frozen=True, slots=True)
class KeyPath:
    """``client`` is what stands before a client's key: ``consumer``, ``source.consumer``, ``target.cluster`` …"""

    level: Scope
    name: str
    cluster: str = ""
    flow: Flow | None = None
    connector: str = ""
    client: str = ""

    @property
    def role(self) -> str:
        """Which client: consumer, producer, admin; empty for a cluster's base, or for no client's key."""
        return next((role for role in ROLES if role in self.client.split(".")), "")

    @property
    def definition(self) -> Definition | None:
        if self.role:
            return client_definition(self.role, self.name)
        if self.client:  # source.cluster. and target.cluster.: any client's
            found = (client_definition(role, self.name) for role in ROLES)
            return next((one for one in found if one is not None), None)
        return plain_definition(self.name)

    @property
    def is_known(self) -> bool:
        return self.definition is not None or (not self.client and self.name in REMOVED)


def flow_pairs(aliases: Sequence[str]) -> list[Flow]:
    """Every ordered pair of different clusters, as MirrorMaker 2 goes through them."""
    return [Flow(source, target) for source in aliases for target in aliases if source != target]


def split_key(key: str, aliases: Sequence[str]) -> KeyPath:
    flows = [flow for flow in flow_pairs(aliases) if key.startswith(f"{flow}.")]
    if flow := _longest(flows):
        return _of_flow(flow, key.removeprefix(f"{flow}."))
    if "->" in key:
        return KeyPath(Scope.FLOW, key)
    at_top = _client_or_plain(Scope.TOP, key)
    if alias := _longest(alias for alias in aliases if key.startswith(f"{alias}.")):
        of_cluster = _client_or_plain(Scope.CLUSTER, key.removeprefix(f"{alias}."), cluster=alias)
        # An alias may be called "topics" or "source": then the name decides.
        is_plain_at_top = not at_top.client and at_top.is_known
        if of_cluster.is_known or not is_plain_at_top:
            return of_cluster
    return at_top


def _longest(found: Iterable[_Named]) -> _Named | None:
    return max(found, key=lambda one: len(str(one)), default=None)


def _of_flow(flow: Flow, rest: str) -> KeyPath:
    for connector in CONNECTORS:
        if rest.startswith(f"{connector}."):
            return _client_or_plain(Scope.FLOW, rest.removeprefix(f"{connector}."), flow=flow, connector=connector)
    return _client_or_plain(Scope.FLOW, rest, flow=flow)


def _client_or_plain(
    level: Scope, rest: str, *, cluster: str = "", flow: Flow | None = None, connector: str = ""
) -> KeyPath:
    plain = KeyPath(level, rest, cluster, flow, connector)
    if plain.is_known:
        return plain
    for prefix in _CLIENT_PREFIXES:
        if rest.startswith(f"{prefix}."):
            return KeyPath(level, rest.removeprefix(f"{prefix}."), cluster, flow, connector, prefix)
    return plain
