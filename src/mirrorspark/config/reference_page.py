"""The page docs/reference/settings.md, written from the catalogue: ``python -m mirrorspark.config.reference_page FILE``.

``make docs`` runs it; a test holds the page current.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from mirrorspark.config.catalogue import REMOVED, TABLES
from mirrorspark.config.definition import Definition, Kind, Scope

__all__ = ["reference_page"]

_HEAD = """\
# Settings, key by key

Written by `make docs` from the catalogue in `src/mirrorspark/config/catalogue`; do not edit. How files are read, which
level wins and what is refused: [operating/settings.md](../operating/settings.md).

- **where**: the levels at which a key counts, as in MirrorMaker 2. *top* `key`, *cluster* `A.key` (a worker's key counts
  for the flows into A), *flow* `S->T.key` and one connector of it `S->T.MirrorSourceConnector.key`, *client* behind
  `consumer.`, `producer.` or `admin.` of a cluster or a flow. At any other level it is an error that says where it belongs.
- **default**: MirrorMaker 2's, or that of Kafka's clients. Where ours differs, both stand there.
- **here**: the setting that it fills, or why it has no meaning.
"""
_LEVELS = ((Scope.TOP, "top"), (Scope.CLUSTER, "cluster"), (Scope.FLOW, "flow"), (Scope.CLIENT, "client"))
_INTRODUCTIONS = {
    "Our own": "MirrorMaker 2 does not have these and ignores them.",
    "Security": "`S.x` and then `x` fill what `S.consumer.x`, `S.producer.x` and `S.admin.x` leave open.",
    "Consumers of the source": "Behind `S->T.source.consumer.`, `S.consumer.` or `S->T.consumer.`; the first of these wins.",
    "Producers of the target": "Behind `S->T.producer.override.` or `T.producer.`; the first of these wins. Behind "
    "`S->T.producer.` MirrorMaker 2 gives them to the producer of offset syncs alone: an error.",
    "All clients": "Behind any client's prefix; those with *cluster* are a Connect worker's too.",
    "Connect": "What Connect's workers and connectors read.",
}


def reference_page() -> str:
    parts = [_HEAD]
    for title, table in TABLES.items():
        parts.append(f"\n## {title}\n\n")
        if title in _INTRODUCTIONS:
            parts.append(f"{_INTRODUCTIONS[title]}\n\n")
        parts += _rows(table)
    parts.append("\n## No longer there\n\nRefused, since without them more would be mirrored than meant.\n\n")
    parts.append("| key | write instead |\n|---|---|\n")
    parts += [f"| `{old}` | `{new}` |\n" for old, new in REMOVED.items()]
    return "".join(parts)


def _rows(table: tuple[Definition, ...]) -> Iterator[str]:
    yield "| key | values | default | where | meaning | here |\n|---|---|---|---|---|---|\n"
    for one in table:
        cells = (f"`{one.name}`", _values(one), _default(one), _where(one), one.help, _here(one))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _values(one: Definition) -> str:
    if one.choices:
        return ", ".join(f"`{choice}`" for choice in one.choices)
    unit = f", {one.unit}" if one.unit else ""
    bounds = f" {one.bounds}" if one.bounds else ""
    return f"{one.kind.value}{bounds}{unit}"


def _default(one: Definition) -> str:
    if one.required:
        return "required"
    theirs = _code(one.default)
    if one.ours is None:
        return theirs
    return f"{_code(one.ours)}, since {one.why} (MirrorMaker 2: {theirs})"


def _code(text: str | None) -> str:
    if text is None:
        return ""
    return f"`{text}`" if text else "empty"


def _where(one: Definition) -> str:
    return ", ".join(name for level, name in _LEVELS if one.scope & level)


def _here(one: Definition) -> str:
    if one.fills_a_setting:
        return f"`{one.applied}`"
    if one.applied:
        return one.applied
    if one.refused:
        allowed = [f"`{value}`" for value in one.harmless if value]
        unless = f" Only {' or '.join(allowed)} is taken." if allowed and one.kind is Kind.CLASS else ""
        return f"refused, because {one.refused}.{unless}"
    return f"has no meaning, because {one.no_meaning}"


def main(arguments: list[str]) -> None:
    Path(arguments[0]).write_text(reference_page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
