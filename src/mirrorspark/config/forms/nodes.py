"""YAML and JSON texts as trees whose every node knows its file and line.

The readers of this package call it. Values keep the spelling that Kafka would get to see (``true``, ``3``); what two
readers of YAML would understand differently (``0x10``, ``12:30``, ``1_000``) is refused instead of guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from mirrorspark.errors import SettingsError

__all__ = ["Node", "parse_json", "parse_yaml"]

NODES_MAX = 200_000
"""Nodes of one text after its aliases are followed; more is a bomb, not a configuration."""
DEPTH_MAX = 60
"""Levels of one text."""

_TAG = "tag:yaml.org,2002:"
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"[-+]?[0-9]+\.[0-9]+")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+|\n')

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Node:
    """One value. ``place`` is ``file:line``; ``path`` says where in the tree it stands, for people."""

    place: str
    path: str
    content: Scalar | dict[str, Node] | tuple[Node, ...] = field(repr=False)
    spelling: str = field(default="", repr=False)

    def error(self, problem: str) -> SettingsError:
        """The problem with its place in front, to be raised."""
        return SettingsError(f"{self.place}: {self.path or 'the document'}: {problem}", place=self.place, key=self.path)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.content, dict)

    @property
    def is_list(self) -> bool:
        return isinstance(self.content, tuple)

    @property
    def is_null(self) -> bool:
        return self.content is None

    def mapping(self) -> Mapping[str, Node]:
        if not isinstance(self.content, dict):
            raise self.error("must be a mapping of names to values")
        return self.content

    def items(self) -> tuple[Node, ...]:
        if not isinstance(self.content, tuple):
            raise self.error("must be a list")
        return self.content

    def text(self) -> str:
        """The value of a setting."""
        if isinstance(self.content, dict | tuple):
            raise self.error("must be a text, a number, true or false")
        if self.content is None:
            raise self.error('has no value; leave it out, or write "" for an empty one')
        return self.spelling

    def get(self, name: str) -> Node | None:
        """A field of a mapping; one that is null counts as not there, as in Kubernetes."""
        found = self.mapping().get(name)
        return None if found is None or found.is_null else found

    def need(self, name: str) -> Node:
        found = self.get(name)
        if found is None:
            raise self.error(f"{name} is missing")
        return found

    def tree(self) -> Any:
        """Plain Python values, for ``json.dumps``."""
        if isinstance(self.content, dict):
            return {name: node.tree() for name, node in self.content.items()}
        if isinstance(self.content, tuple):
            return [node.tree() for node in self.content]
        return self.content


def parse_yaml(text: str, name: str) -> list[Node]:
    """The documents of a text; empty ones are left out. Raises SettingsError."""
    try:
        composed = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}" if mark else name
        raise SettingsError(f"{place}: not YAML: {error.problem or error.context}", place=place) from None
    except yaml.YAMLError as error:
        raise SettingsError(f"{name}: not YAML: {str(error).splitlines()[0]}", place=name) from None
    builder = _Builder(name)
    nodes = [builder.build(one, "", 0) for one in composed if one is not None]
    return [node for node in nodes if not node.is_null]


class _Builder:
    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0

    def build(self, node: yaml.Node, path: str, depth: int) -> Node:
        place = f"{self._name}:{node.start_mark.line + 1}"
        self._count += 1
        if self._count > NODES_MAX or depth > DEPTH_MAX:
            raise SettingsError(f"{place}: {path}: too many or too deep values (aliases in a circle?)", place=place)
        if isinstance(node, yaml.MappingNode):
            fields = {key: self.build(value, _join(path, key), depth + 1) for key, value in self._fields(node, path)}
            return Node(place, path, fields)
        if isinstance(node, yaml.SequenceNode):
            items = (self.build(one, f"{path}[{at}]", depth + 1) for at, one in enumerate(node.value))
            return Node(place, path, tuple(items))
        return _scalar(node, place, path)

    def _fields(self, node: yaml.MappingNode, path: str, depth: int = 0) -> Iterator[tuple[str, yaml.Node]]:
        """Own fields and merged ones (``<<``); own ones win."""
        own: dict[str, yaml.Node] = {}
        merged: dict[str, yaml.Node] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == f"{_TAG}merge":
                for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if not isinstance(part, yaml.MappingNode) or depth > DEPTH_MAX:
                        raise SettingsError(f"{self._name}:{line}: {path}: << must name mappings", line=line)
                    for name, inner in self._fields(part, path, depth + 1):
                        merged.setdefault(name, inner)
                continue
            if not isinstance(key, yaml.ScalarNode):
                raise SettingsError(f"{self._name}:{line}: {path}: a name must be a text", line=line)
            name = str(key.value)
            if name in own:
                raise _twice(self._name, line, _join(path, name), lines[name])
            own[name], lines[name] = value, line
        yield from {**merged, **own}.items()


def _scalar(node: yaml.Node, place: str, path: str) -> Node:
    text, kind = str(node.value), node.tag.removeprefix(_TAG)
    if kind in ("str", "timestamp", "value"):
        return Node(place, path, text, text)
    if kind == "null":
        return Node(place, path, None)
    if kind == "bool":
        value = text.lower() in ("true", "yes", "on")
        return Node(place, path, value, str(value).lower())
    if kind == "int" and _WHOLE.fullmatch(text):
        return Node(place, path, int(text), str(int(text)))
    if kind == "float" and _DECIMAL.fullmatch(text):
        return Node(place, path, float(text), text)
    raise SettingsError(f"{place}: {path}: {text} is read differently by different tools; put it in quotes", key=path)


def parse_json(text: str, name: str) -> Node:
    """Raises SettingsError."""
    try:
        json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        place = f"{name}:{error.lineno}"
        raise SettingsError(f"{place}: not JSON: {error.msg} (column {error.colno})", place=place) from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{name}: not JSON: {error}", place=name) from None
    return _JsonText(text, name).value("", 0)


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no number in JSON")


class _JsonText:
    """Walks the tokens of a text that is known to be JSON, and counts its lines."""

    def __init__(self, text: str, name: str) -> None:
        self._tokens = _TOKEN.findall(text.removeprefix("\ufeff"))
        self._at, self._line, self._name = 0, 1, name

    def _next(self) -> str:
        token: str = self._peek()
        self._at += 1
        return token

    def _peek(self) -> str:
        while self._tokens[self._at] == "\n":
            self._line += 1
            self._at += 1
        return str(self._tokens[self._at])

    def value(self, path: str, depth: int) -> Node:
        token = self._next()
        place = f"{self._name}:{self._line}"
        if depth > DEPTH_MAX:
            raise SettingsError(f"{place}: {path}: too deep", place=place)
        if token == "{":
            return Node(place, path, dict(self._pairs(path, depth)))
        if token == "[":
            return Node(place, path, tuple(self._elements(path, depth)))
        plain = json.loads(token)
        return Node(place, path, plain, plain if isinstance(plain, str) else token)

    def _pairs(self, path: str, depth: int) -> Iterator[tuple[str, Node]]:
        lines: dict[str, int] = {}
        while self._peek() != "}":
            key = json.loads(self._next())
            if key in lines:
                raise _twice(self._name, self._line, _join(path, key), lines[key])
            lines[key] = self._line
            self._next()  # the colon
            yield key, self.value(_join(path, key), depth + 1)
            if self._peek() == ",":
                self._next()
        self._next()

    def _elements(self, path: str, depth: int) -> Iterator[Node]:
        at = 0
        while self._peek() != "]":
            yield self.value(f"{path}[{at}]", depth + 1)
            at += 1
            if self._peek() == ",":
                self._next()
        self._next()


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _twice(name: str, line: int, path: str, first: int) -> SettingsError:
    place = f"{name}:{line}"
    return SettingsError(f"{place}: {path} is given twice, first in line {first}; keep one", place=place, key=path)
