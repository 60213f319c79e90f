"""Every key of a document, one by one: known or not, at a level where somebody reads it, of the right type.

MirrorMaker 2 drops what it does not know, or finds at the wrong level, without a word. Here each such key is an error that
says where it belongs (with ``--lenient`` a warning).
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Sequence
from dataclasses import replace

from mirrorspark.config.catalogue import CLIENTS, REMOVED, SECURITY_NAMES, client_definition, nearest
from mirrorspark.config.definition import Definition, Kind, Scope
from mirrorspark.config.document import Document
from mirrorspark.config.findings import Findings
from mirrorspark.config.forms.strimzi_fields import why_without_meaning
from mirrorspark.config.key_path import KeyPath, split_key
from mirrorspark.names import Flow
from mirrorspark.plan.java_regex import RegexRefused, compile_java

__all__ = ["check_keys"]

_OFFSET_SYNCS = ("producer", "source.producer", "target.producer")
_LEVELS = {Scope.TOP: "at the top level", Scope.CLUSTER: "at a cluster's level", Scope.FLOW: "at a flow's level"}
_NEARNESS = 0.8
"""Of an alias that is offered instead of an unknown one; east and west are not near."""
_JAAS_OPTIONS = ("username", "password", "principal", "keyTab", "useKeyTab", "storeKey")
"""What stands alone in a line when a sasl.jaas.config was broken into two."""


def check_keys(document: Document, aliases: Sequence[str], flows: Sequence[Flow], findings: Findings) -> None:
    """``flows`` are those that are enabled: remedies name them first."""
    examples = list(flows) or [Flow(*pair) for pair in itertools.pairwise(aliases)]
    checker = _Checker(findings, aliases, examples[0] if examples else Flow("S", "T"))
    for key in document:
        checker.check(key, document[key])


def check_patterns(text: str) -> None:
    """A comma list of names or Java regexes, joined bare as MirrorMaker 2 does it. Raises ValueError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        compile_java("|".join(parts))
    except RegexRefused as refused:
        if refused.is_java:
            raise ValueError(f"a Java regex that cannot be followed here: {refused.why}") from None
        comma = "; a comma always parts the list, so {1,3} cannot be written" if "{" in text else ""
        raise ValueError(f"not a regular expression: {refused.why}{comma}") from None


def _is_told_by(definition: Definition) -> bool:
    """Whether the name alone shows that a cluster is meant; ``topics.listeners`` shows nothing."""
    return definition.name == "bootstrap.servers" or definition.name.startswith(("security.", "ssl.", "sasl."))


class _Checker:
    def __init__(self, findings: Findings, aliases: Sequence[str], example: Flow) -> None:
        self._findings = findings
        self._aliases = aliases
        self._example = example

    def check(self, key: str, value: str) -> None:
        if (why := why_without_meaning(key)) is not None:
            if why:
                self._findings.note(key, f"has no meaning here, because {why}")
            return
        path = split_key(key, self._aliases)
        definition = path.definition
        if path.level is Scope.FLOW and path.flow is None:
            self._unknown_flow(key)
        elif not path.client and path.name in REMOVED:
            self._removed(key, path)
        elif definition is None:
            self._unknown(key, path)
        elif where := self._misplaced(path, definition):
            self._findings.not_understood(key, where)
        else:
            self._check_value(key, value, path, definition)

    # -- unknown ---------------------------------------------------------------------------------------------------

    def _unknown_flow(self, key: str) -> None:
        source, _, rest = key.partition("->")
        wrong = next(
            (end for end in (source, rest) if not any(end == a or end.startswith(f"{a}.") for a in self._aliases)),
            source,
        )
        hint = self._like(wrong.split(".")[0])
        self._findings.not_understood(key, f"not a flow between two of clusters = {', '.join(self._aliases)}{hint}")

    def _removed(self, key: str, path: KeyPath) -> None:
        new = REMOVED[path.name]
        self._findings.error(
            key, f"MirrorMaker 2 no longer has it and would ignore it; write {key.removesuffix(path.name)}{new}"
        )

    def _unknown(self, key: str, path: KeyPath) -> None:
        if place := self._clients_key(path):
            reason = f"has no effect {_LEVELS[path.level]}, as in MirrorMaker 2; write {place}"
        elif path.level is Scope.TOP and path.name in _JAAS_OPTIONS:
            reason = "no key of a mirror; if it belongs to the line before, end that line with a backslash"
        elif alias := self._missing_alias(path):
            reason = f"there is no cluster {alias}; clusters = {', '.join(self._aliases)}{self._like(alias)}"
        elif near := self._near(path):
            reason = f"not known; did you mean {key.removesuffix(path.name)}{near}?"
        else:
            reason = "not known, and MirrorMaker 2 would ignore it; remove it"
        self._findings.not_understood(key or "(no key)", reason)

    def _clients_key(self, path: KeyPath) -> str | None:
        """Where a client's key belongs that stands without ``consumer.`` or ``producer.``; None if it is none."""
        role = next((role for role in CLIENTS if not path.client and client_definition(role, path.name)), "")
        return self._client_places(replace(path, client=role)) if role else None

    @staticmethod
    def _near(path: KeyPath) -> str | None:
        return nearest(path.name, path.role or ("consumer" if path.client else ""))

    @staticmethod
    def _missing_alias(path: KeyPath) -> str | None:
        """What stands before a cluster's key at the top level: an alias that is misspelt, or not in ``clusters``."""
        if path.level is not Scope.TOP or path.client:
            return None
        parts = path.name.split(".")
        for count in range(1, len(parts)):
            alias, rest = ".".join(parts[:count]), ".".join(parts[count:])
            of_cluster = split_key(f"A.{rest}", ["A"])
            definition = of_cluster.definition
            if definition is not None and (of_cluster.client == of_cluster.role != "" or _is_told_by(definition)):
                return alias
        return None

    def _like(self, alias: str) -> str:
        near = difflib.get_close_matches(alias, self._aliases, n=1, cutoff=_NEARNESS)
        return f". Did you mean {near[0]}?" if near else ""

    # -- the wrong level -------------------------------------------------------------------------------------------

    def _misplaced(self, path: KeyPath, definition: Definition) -> str | None:
        """Why nobody reads the key where it stands, and where it belongs; None if it is well."""
        if path.client:
            return self._misplaced_client(path)
        if definition.scope & path.level:
            return None
        return f"has no effect {_LEVELS[path.level]}, as in MirrorMaker 2; write {self._places(definition, path)}"

    def _misplaced_client(self, path: KeyPath) -> str | None:
        name, flow = path.name, path.flow or self._example
        if path.level is Scope.TOP:
            return f"has no effect at the top level, as in MirrorMaker 2; write {self._client_places(path)}"
        if path.level is Scope.CLUSTER:
            if path.client == path.role:
                return None
            return f"has no effect at a cluster's level, as in MirrorMaker 2; write {self._client_places(path)}"
        if path.client in _OFFSET_SYNCS and (path.client == "producer" or name not in SECURITY_NAMES):
            return (
                "MirrorMaker 2 gives it to the producer of offset syncs only, never to the one that writes records; "
                f"write {flow.target}.producer.{name} or {flow}.producer.override.{name}"
            )
        if path.client == "consumer.override":
            return f"has no effect here, as in MirrorMaker 2; write {flow}.consumer.{name}"
        if path.client.endswith(".cluster") and name not in SECURITY_NAMES:
            places = self._client_places(path)
            return f"MirrorMaker 2 takes only addresses and security behind {path.client}.; write {places}"
        return None

    def _places(self, definition: Definition, path: KeyPath) -> str:
        name = path.name
        flow = path.flow or self._example
        if path.level is Scope.FLOW and definition.scope & Scope.CLIENT:
            return f"{flow.source}.{name} or {flow.target}.{name}"
        places = []
        if definition.scope & Scope.FLOW:
            places.append(f"{flow}.{name} for one flow")
        if definition.scope & Scope.TOP:
            places.append(f"{name} for all")
        if definition.scope & Scope.CLUSTER:
            places.append(f"{flow.target}.{name} for the flows into {flow.target}")
        if not places:
            places.append(f"{flow.source}.consumer.{name}")
        return " or ".join(places)

    def _client_places(self, path: KeyPath) -> str:
        flow = path.flow or self._example
        role = path.role or "consumer"
        alias = path.cluster or (flow.target if role == "producer" or path.client == "target.cluster" else flow.source)
        return f"{alias}.{role}.{path.name}"

    # -- values ----------------------------------------------------------------------------------------------------

    def _check_value(self, key: str, value: str, path: KeyPath, definition: Definition) -> None:
        if "${" in value and path.name.partition(".")[0] not in ("transforms", "predicates"):
            return  # what could not be resolved has been told
        try:
            definition.read(value)
            if definition.kind is Kind.PATTERNS:
                check_patterns(value)
        except ValueError as error:
            self._findings.bad_value(key, self._with_advice(str(error), value, definition))
            return
        if path.flow is not None and path.name in ("source.cluster.alias", "target.cluster.alias"):
            alias = path.flow.source if path.name.startswith("source") else path.flow.target
            if value.strip() != alias:
                self._findings.bad_value(key, f"must be {alias}, since it stands in the flow {path.flow}")
            return
        if definition.is_harmless(value):
            return
        if definition.refused:
            self._findings.error(key, f"cannot be honoured, because {definition.refused}")
        elif definition.no_meaning:
            self._findings.note(key, f"has no meaning here, because {definition.no_meaning}")
        elif path.client in _OFFSET_SYNCS and path.level is Scope.FLOW:
            self._findings.note(key, "has no meaning here, because a cluster has one login for all clients")
        elif path.client == "admin.override":
            self._findings.note(
                key, "has no meaning here, because admin requests go over the same connections as all others"
            )

    @staticmethod
    def _with_advice(reason: str, value: str, definition: Definition) -> str:
        """MirrorMaker 2 takes a negative interval for "never"."""
        if definition.kind is Kind.WHOLE and definition.unit == "s" and value.strip().startswith("-"):
            return f"{reason}; to switch it off there is the key that ends with .enabled"
        return reason
