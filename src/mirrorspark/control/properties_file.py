"""Java properties files: comments, continuations, escapes, ``=``/``:``/blank separators. Order kept, last value wins."""

from __future__ import annotations

import re
from pathlib import Path

from mirrorspark.errors import SettingsError

__all__ = ["parse_properties", "read_properties"]

_UNICODE = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingsError(f"{path}: no such file", file=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}", file=str(path)) from error
    return parse_properties(text, str(path))


def parse_properties(text: str, name: str = "properties") -> dict[str, str]:
    found: dict[str, str] = {}
    lines = re.split(r"\r\n|\n|\r", text)
    number = 0
    while number < len(lines):
        first = number
        line = lines[number].lstrip(" \t\f")
        number += 1
        if not line or line[0] in "#!":
            continue
        while _continues(line) and number < len(lines):
            line = line[:-1] + lines[number].lstrip(" \t\f")
            number += 1
        if _continues(line):
            line = line[:-1]
        key, value = _split(line)
        found[_unescape(key, name, first + 1)] = _unescape(value, name, first + 1)
    return found


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    at = 0
    while at < len(line) and line[at] not in "=: \t\f":
        at += 2 if line[at] == "\\" else 1
    rest = line[at:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return line[:at], rest


def _unescape(text: str, name: str, number: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\" or at == len(text):
            out.append(char if char != "\\" else "")
            continue
        char = text[at]
        at += 1
        if char == "u":
            digits = text[at : at + 4]
            if not _UNICODE.fullmatch(digits):
                raise SettingsError(f"{name}, line {number}: \\u needs four hex digits", file=name, line=number)
            out.append(chr(int(digits, 16)))
            at += 4
        else:
            out.append(_ESCAPES.get(char, char))
    return "".join(out)
