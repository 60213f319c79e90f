"""Our own YAML: the keys of mm2.properties, flat or by levels. Read by the front door, written by ``writing``.

``east: {bootstrap.servers: …}`` and ``east.bootstrap.servers: …`` say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from mirrorspark.config.document import Document, Entry
from mirrorspark.config.forms.layout import aliases_of, take_apart
from mirrorspark.config.forms.nodes import Node

__all__ = ["dump", "is_plain", "plain_document", "plain_yaml"]

WIDTH = 10_000
"""No folding: a value stays on its line, so that it can be searched for."""
_OTHER_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
"""YAML folds them like line ends unless they are escaped."""
_AS_IS = re.compile(r"true|false|0|-?[1-9][0-9]{0,17}")


def is_plain(node: Node) -> bool:
    return node.is_mapping and "clusters" in node.mapping() and "kind" not in node.mapping()


def plain_document(node: Node) -> Document:
    """Raises SettingsError; a key that is said both ways is an error."""
    entries: dict[str, Entry] = {}
    for entry, at in _entries(node, ""):
        if entry.key in entries:
            raise at.error(f"{entry.key} is given twice, first in {entries[entry.key].place}; keep one")
        entries[entry.key] = entry
    return Document(entries.values())


def _entries(node: Node, prefix: str) -> Iterator[tuple[Entry, Node]]:
    for name, inner in node.mapping().items():
        key = f"{prefix}{name}"
        if inner.is_mapping:
            yield from _entries(inner, f"{key}.")
        elif inner.is_list:
            yield Entry(key, ", ".join(item.text() for item in inner.items()), inner.place), inner
        else:
            yield Entry(key, inner.text(), inner.place), inner


def plain_yaml(document: Document, comments: tuple[str, ...] = ()) -> str:
    head = "".join(f"# {line}\n" for comment in comments for line in comment.splitlines())
    return head + dump(_tree(document))


def _tree(document: Document) -> dict[str, Any]:
    layout = take_apart(document)
    tree: dict[str, Any] = {entry.key: entry.value for entry in document.entries if entry.key == "clusters"}
    tree |= {name: entry.value for name, entry in layout.plain.items()}
    groups: dict[str, dict[str, str]] = {}
    for alias in aliases_of(document):
        groups[alias] = {name: entry.value for name, entry in layout.clusters[alias].items()}
    for flow in layout.pairs:
        keys = {name: entry.value for name, entry in layout.flows.get(flow, {}).items()}
        for (owner, kind), own in layout.connectors.items():
            if owner == flow:
                keys |= {f"{kind}.{name}": entry.value for name, entry in own.items()}
        groups[str(flow)] = keys
    for title, keys in groups.items():
        if keys and title not in document:
            tree[title] = keys
        else:  # a setting has the name of the group
            tree |= {f"{title}.{name}": value for name, value in keys.items()}
    return tree | {entry.key: entry.value for entry in layout.kept.values()}


class _Dumper(yaml.SafeDumper):
    """Texts that read back as they are need no quotes; long ones with lines are written as lines."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    if _AS_IS.fullmatch(text):
        tag = "bool" if text[0] in "tf" else "int"
        return dumper.represent_scalar(f"tag:yaml.org,2002:{tag}", text)
    style = '"' if _OTHER_LINE_ENDS.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dump(tree: Any) -> str:
    """Trees of dicts, lists and texts; numbers and booleans may be given as texts."""
    return str(yaml.dump(tree, Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True))
