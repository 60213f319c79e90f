"""How commands print: tables of plain columns for people, JSON for machines. Every command that lists something uses it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

__all__ = ["DASH", "AsJson", "first_line", "print_json", "print_lines", "table"]

DASH = "-"
LINE_LETTERS_MAX = 160

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """The first row is the head. Columns are as wide as they must be."""
    listed = list(rows)
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return [
        "  " + "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in listed
    ]


def print_lines(lines: Iterable[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def first_line(text: str) -> str:
    """Of a trace: its first line says what happened, the rest where."""
    line = (text.strip().splitlines() or [""])[0]
    return line if len(line) <= LINE_LETTERS_MAX else line[:LINE_LETTERS_MAX] + "…"
