"""MirrorMaker 2's lists of names and regular expressions: ``topics``, ``topics.exclude``, ``groups``, …

Split at commas, joined with ``|`` into one Java pattern that must match a whole name. Filters of topics, groups and
properties are made of two of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from mirrorspark.errors import SettingsError
from mirrorspark.plan.java_regex import JavaPattern, RegexRefused, compile_java

__all__ = ["NameList"]

_JAVA_BLANKS = "".join(map(chr, range(0x21)))
_COMMA = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
_CUT_REPETITION = re.compile(r"\{\d*$")


@dataclass(frozen=True, slots=True)
class NameList:
    """``pattern`` is None for an empty list, which matches nothing."""

    elements: tuple[str, ...]
    pattern: JavaPattern | None

    @classmethod
    def read(cls, text: str, key: str) -> NameList:
        """Raises SettingsError that names the key, the element, the construct and its position."""
        return _read(text, key)

    def matches(self, name: str) -> bool:
        return self.pattern is not None and self.pattern.matches(name)

    @property
    def plain_names(self) -> tuple[str, ...] | None:
        """The elements if all are made of a name's characters only (a dot among them still matches any character)."""
        names = tuple(element for element in self.elements if element)
        return names if all(_PLAIN_NAME.fullmatch(name) for name in names) else None


@lru_cache(maxsize=256)
def _read(text: str, key: str) -> NameList:
    """Remembered, since every refresh asks for the same lists again."""
    trimmed = text.strip(_JAVA_BLANKS)
    if not trimmed:
        return NameList((), None)
    elements = tuple(_COMMA.split(trimmed))
    try:
        # Joined bare, as MirrorMaker 2 does it: a (?i) in front counts for all elements.
        return NameList(elements, compile_java("|".join(elements)))
    except RegexRefused as refused:
        raise _refusal(refused, text, key, elements) from refused


def _refusal(refused: RegexRefused, text: str, key: str, elements: tuple[str, ...]) -> SettingsError:
    element, position = _place(refused, elements)
    if any(_CUT_REPETITION.search(one) for one in elements[:-1]):
        why = "not a regular expression: a comma ends an element of the list, so {n,m} cannot be written; write a?a? or a+"
    elif refused.is_java:
        why = f"Java knows this, mirrorspark does not: {refused.why}"
    else:
        why = f"not a regular expression: {refused.why}"
    where = f"in '{element}', character {position + 1}" if position is not None else f"in '{element}'"
    return SettingsError(f"{key}={text}: {why} ({where})", key=key, element=element)


def _place(refused: RegexRefused, elements: tuple[str, ...]) -> tuple[str, int | None]:
    """The element that the position in the joined pattern falls into, and the position there."""
    position = refused.position
    if position is None:
        return next(filter(_is_refused, elements), "|".join(elements)), None
    for element in elements[:-1]:
        if position <= len(element):
            return element, position
        position -= len(element) + 1
    return elements[-1], position


def _is_refused(element: str) -> bool:
    try:
        compile_java(element)
    except RegexRefused:
        return True
    return False
