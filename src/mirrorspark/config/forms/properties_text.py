"""A Document as a Java properties text. ``writing`` calls it.

Every character outside ASCII is written as ``\\uXXXX``: Java reads such files as Latin-1, other tools as UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mirrorspark.config.document import Document, Entry
from mirrorspark.config.forms.layout import KEPT, take_apart

__all__ = ["properties_text"]

_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}


def properties_text(document: Document, comments: Iterable[str] = ()) -> str:
    """Grouped by level, in the order of the Document within a group; the same text for the same Document."""
    lines = [f"# {line}" for comment in comments for line in comment.splitlines()]
    for title, entries in _groups(document):
        if lines:
            lines.append("")
        if title:
            lines.append(f"# {_ascii(title)}")
        lines += [f"{_key(entry.key)} = {_value(entry.value)}".rstrip(" ") for entry in entries]
    return "".join(f"{line}\n" for line in lines)


def _groups(document: Document) -> Iterator[tuple[str, list[Entry]]]:
    layout = take_apart(document)
    clusters = [document.entry("clusters")] if "clusters" in document else []
    if clusters or layout.plain:
        yield "", [*clusters, *layout.plain.values()]
    for alias, keys in layout.clusters.items():
        if keys:
            yield f"cluster {alias}", list(keys.values())
    for flow in layout.pairs:
        entries = list(layout.flows.get(flow, {}).values())
        for (owner, _), keys in layout.connectors.items():
            entries += keys.values() if owner == flow else []
        if entries:
            yield f"flow {flow}", entries
    if layout.kept:
        yield f"{KEPT}… has no meaning for a mirror; kept for conversions back", list(layout.kept.values())


def _key(text: str) -> str:
    escaped = _ascii("".join(_ESCAPES.get(char, char) for char in text))
    return "".join(f"\\{char}" if char in " =:#!" else char for char in escaped)


def _value(text: str) -> str:
    """Blanks at the begin would be taken for the separator, those at the end be lost in an editor: both get visible."""
    inner = text.strip(" ")
    lead = len(text) - len(text.lstrip(" ")) if inner else len(text)
    trail = len(text) - lead - len(inner)
    blank = "\\u0020"
    return blank * lead + _ascii("".join(_ESCAPES.get(char, char) for char in inner)) + blank * trail


def _ascii(text: str) -> str:
    out = []
    for char in text:
        code = ord(char)
        if 0x20 <= code < 0x7F:
            out.append(char)
        elif code < 0x10000:
            out.append(f"\\u{code:04X}")
        else:  # Java's characters have 16 bits
            code -= 0x10000
            out.append(f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}")
    return "".join(out)
