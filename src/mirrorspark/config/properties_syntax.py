"""Java properties files, read: comments, continuations, escapes, ``=``/``:``/blank separators; each key with its line.

Knows nothing of what the keys mean. ``forms.properties_text`` writes such files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mirrorspark.config.document import Entry
from mirrorspark.errors import SettingsError

__all__ = ["parse_entries", "read_entries", "repeats"]

_LINE_END = re.compile(r"\r\n|\n|\r")
_UNICODE = re.compile(r"[0-9a-fA-F]{4}")
_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_entries(path: Path) -> list[Entry]:
    """Raises SettingsError for a file that is not there, is no UTF-8 text, or has a broken escape."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingsError(f"{path}: no such file", file=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}", file=str(path)) from error
    return parse_entries(text, str(path))


def parse_entries(text: str, name: str = "properties") -> list[Entry]:
    """Every line that says something, in order; a key that is given twice is there twice."""
    return [
        Entry(_unescape(key, name, number), _unescape(value, name, number), f"{name}:{number}")
        for number, key, value in _logical_lines(text)
    ]


def repeats(entries: Iterable[Entry]) -> list[tuple[Entry, Entry]]:
    """(earlier, later) for each time a key is given again."""
    last: dict[str, Entry] = {}
    found = []
    for entry in entries:
        if entry.key in last:
            found.append((last[entry.key], entry))
        last[entry.key] = entry
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Number of the first line, key, value; escapes as they stand."""
    lines = _LINE_END.split(text)
    number = 0
    while number < len(lines):
        first = number + 1
        line = lines[number].lstrip(_BLANKS)
        number += 1
        if not line or line[0] in "#!":
            continue
        while _continues(line) and number < len(lines):
            line = line[:-1] + lines[number].lstrip(_BLANKS)
            number += 1
        if _continues(line):
            line = line[:-1]
        yield first, *_split(line)


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    at = 0
    while at < len(line) and line[at] not in "=: \t\f":
        at += 2 if line[at] == "\\" else 1
    rest = line[at:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
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
                raise SettingsError(f"{name}:{number}: \\u needs four hex digits", file=name, line=number)
            out.append(chr(int(digits, 16)))
            at += 4
        else:
            out.append(_ESCAPES.get(char, char))
    return _joined(out)


def _joined(parts: list[str]) -> str:
    """Java writes what lies beyond U+FFFF as two escapes; here they become one character again."""
    text = "".join(parts)
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
