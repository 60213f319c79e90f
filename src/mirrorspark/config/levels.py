"""Which of several places a value comes from: MirrorMaker 2's precedence, written down once.

For one flow S->T, most specific first:

- connector keys: ``S->T.MirrorSourceConnector.x``, ``S->T.x``, ``x``
- worker keys: ``T.x``, and ``x`` for those that MirrorMaker 2 hands on
- the source's consumer: ``S->T.source.consumer.x``, ``S.consumer.x``, ``S->T.consumer.x``. Of security, ``S.x`` and then
  ``x`` fill what ``S.consumer.x`` leaves open, before ``S->T.consumer.x`` and ``S->T.source.cluster.x`` are asked
- the target's producer: ``S->T.producer.override.x``, ``T.producer.x``; of security then ``T.x`` and ``x``

That a cluster's ``consumer.`` beats a flow's is no slip: MirrorMaker 2 turns it into ``source.consumer.``. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mirrorspark.config.catalogue import CLIENTS, PLAIN, SECURITY_NAMES
from mirrorspark.config.definition import CONNECTORS, SOURCE, Definition, Scope
from mirrorspark.config.document import Document, Entry
from mirrorspark.config.findings import shown
from mirrorspark.names import Flow

__all__ = ["DEFAULT", "Effective", "Levels"]

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Effective:
    """One value that counts: its name, where it came from, and at which level it stands there."""

    name: str
    value: str | None = field(repr=False)
    """None: not given, and there is no default."""
    entry: Entry | None
    """As it stands in the file; None for a default."""
    level: str
    """``default``, ``top level``, ``cluster west``, ``flow east->west`` …"""

    @property
    def origin(self) -> str:
        return self.entry.place if self.entry is not None else DEFAULT

    @property
    def text(self) -> str:
        """The value as it may be shown."""
        if self.entry is not None:
            return shown(self.entry.key, self.entry.value)
        return self.value or ""


class Levels:
    """The document as one flow sees it. ``raw`` is what the file says, ``document`` the same with values resolved."""

    def __init__(self, document: Document, raw: Document, flow: Flow) -> None:
        self._document = document
        self._raw = raw
        self.flow = flow

    # -- what is asked ---------------------------------------------------------------------------------------------

    def plain(self, definition: Definition, connector: str = "") -> Effective:
        """A connector's or a worker's key."""
        if definition.scope & Scope.FLOW:
            default = definition.connectors[0] if definition.connectors else SOURCE
            return self._first(definition.name, definition, self.of_connector(definition, connector or default))
        return self._first(definition.name, definition, self._of_worker(definition))

    def consumer(self, name: str) -> Effective:
        """A key of the consumer that reads the source."""
        return self._first(f"source.consumer.{name}", CLIENTS["consumer"][name], self._of_consumer(name))

    def producer(self, name: str) -> Effective:
        """A key of the producer that writes to the target."""
        return self._first(f"target.producer.{name}", CLIENTS["producer"][name], self._of_producer(name))

    def admin(self, side: str, name: str) -> Effective:
        """A security key of the admin client of one side: asked only to tell whether it is another login."""
        alias = self.flow.source if side == "source" else self.flow.target
        return self._first(f"{side}.admin.{name}", CLIENTS["admin"][name], self._of_client(side, alias, "admin", name))

    def of_cluster(self, alias: str, definition: Definition) -> Effective:
        """A plain key of one cluster, as ``A.client.id``."""
        return self._first(f"{alias}.{definition.name}", definition, iter((f"{alias}.{definition.name}",)))

    # -- where to look, most specific first ------------------------------------------------------------------------

    def of_connector(self, definition: Definition, connector: str = SOURCE) -> Iterator[str]:
        yield f"{self.flow}.{connector}.{definition.name}"
        yield f"{self.flow}.{definition.name}"
        if definition.scope & Scope.TOP:
            yield definition.name

    def _of_worker(self, definition: Definition) -> Iterator[str]:
        yield f"{self.flow.target}.{definition.name}"
        if definition.scope & Scope.TOP:
            yield definition.name

    def _of_consumer(self, name: str) -> Iterator[str]:
        return self._of_client("source", self.flow.source, "consumer", name)

    def _of_client(self, side: str, alias: str, role: str, name: str) -> Iterator[str]:
        yield from self._in_flow(f"{side}.{role}.{name}")
        yield f"{alias}.{role}.{name}"
        if name in SECURITY_NAMES:
            yield f"{alias}.{name}"
            yield name
        yield from self._in_flow(f"{role}.{name}")
        if name in SECURITY_NAMES:
            yield from self._in_flow(f"{side}.cluster.{name}")

    def _of_producer(self, name: str) -> Iterator[str]:
        yield from self._in_flow(f"producer.override.{name}")
        yield f"{self.flow.target}.producer.{name}"
        if name in SECURITY_NAMES:
            yield f"{self.flow.target}.{name}"
            yield name
            yield from self._in_flow(f"target.cluster.{name}")

    def _in_flow(self, name: str) -> Iterator[str]:
        yield f"{self.flow}.{SOURCE}.{name}"
        yield f"{self.flow}.{name}"

    # -- the first that is there -----------------------------------------------------------------------------------

    def _first(self, name: str, definition: Definition, keys: Iterator[str]) -> Effective:
        for key in keys:
            if key in self._document:
                return Effective(name, self._document[key], self._raw.entry(key), self._level(key))
        return Effective(name, definition.effective_default, None, DEFAULT)

    def _level(self, key: str) -> str:
        if key.startswith(f"{self.flow}."):
            connector = next((one for one in CONNECTORS if key.startswith(f"{self.flow}.{one}.")), "")
            return f"flow {self.flow}" + (f", {connector}" if connector else "")
        aliases: Sequence[str] = (self.flow.source, self.flow.target)
        fitting = [alias for alias in aliases if key.startswith(f"{alias}.") and key not in PLAIN]
        return f"cluster {max(fitting, key=len)}" if fitting else "top level"
