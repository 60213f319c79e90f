"""A list of names and regular expressions as an authorizer can say it: whole names, beginnings of names, or all.

``required_acls`` asks for the patterns of a flow's topics and groups. ACLs know no regular expressions: where a list cannot
be said exactly the pattern is the narrowest that covers it, and ``is_exact`` tells. What a list excludes cannot be said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mirrorspark.plan.java_classes import LINE_TERMINATORS
from mirrorspark.plan.java_syntax import parse
from mirrorspark.plan.java_tree import Atomic, Chars, Choice, Group, Node, Place, Position, Repeat, Sequence
from mirrorspark.plan.name_list import NameList

__all__ = ["ALL", "LITERAL", "PREFIXED", "NamePattern", "names_in", "patterns_of", "without_covered"]

LITERAL, PREFIXED = "LITERAL", "PREFIXED"
ALL = "*"
"""As a literal name: every resource of its kind."""
BEGINNINGS_MAX = 100
"""Of one element, as ``(a|b|c)-(x|y)``; with more of them what they have in common is taken."""
_ANY = ~LINE_TERMINATORS
_EDGES = (Place.BEGIN, Place.END, Place.LAST_LINE_END, Place.LAST_UNIX_LINE_END)


@dataclass(frozen=True, slots=True, order=True)
class NamePattern:
    """``is_exact``: covers what the list wants and nothing else."""

    pattern: str
    name: str
    is_exact: bool = True

    @property
    def is_all(self) -> bool:
        return self.pattern == LITERAL and self.name == ALL

    def covers(self, other: NamePattern) -> bool:
        if self.is_all:
            return True
        if self.pattern == PREFIXED:
            return not other.is_all and other.name.startswith(self.name)
        return (self.pattern, self.name) == (other.pattern, other.name)

    def __str__(self) -> str:
        return f"{self.name}*" if self.pattern == PREFIXED else self.name


@dataclass(frozen=True, slots=True)
class _Beginning:
    """``is_open``: more may follow."""

    text: str
    is_open: bool = False
    is_exact: bool = True


_ANYTHING = _Beginning("", is_open=True, is_exact=False)


def patterns_of(names: NameList) -> list[NamePattern]:
    """Those that cover the list, none of them within another."""
    if names.pattern is None:
        return []
    tree = parse("|".join(names.elements))
    options = tree.options if isinstance(tree, Choice) else (tree,)
    found = []
    for option in options:
        plain = _plain_name(option)
        found += [_Beginning(plain)] if plain is not None else _beginnings(option)
    return without_covered(_pattern(one) for one in found if one.text or one.is_open)


def names_in(text: str, key: str) -> frozenset[str]:
    """The names that a list has written out."""
    return frozenset(
        one.name for one in patterns_of(NameList.read(text, key)) if one.pattern == LITERAL and not one.is_all
    )


def without_covered(patterns: Iterable[NamePattern]) -> list[NamePattern]:
    """Each once, and only those that no other one covers."""
    unique = {(one.pattern, one.name): one for one in sorted(patterns)}.values()
    return [one for one in unique if not any(other is not one and other.covers(one) for other in unique)]


def _pattern(beginning: _Beginning) -> NamePattern:
    if not beginning.is_open:
        return NamePattern(LITERAL, beginning.text, beginning.is_exact)
    if not beginning.text:
        return NamePattern(LITERAL, ALL, beginning.is_exact)
    return NamePattern(PREFIXED, beginning.text, beginning.is_exact)


def _plain_name(option: Node) -> str | None:
    """A name written out. Its dots match any character in a regular expression; whoever wrote it means dots."""
    parts = option.parts if isinstance(option, Sequence) else (option,)
    letters = []
    for part in parts:
        if not isinstance(part, Chars):
            return None
        letters.append("." if part.chars == _ANY else part.chars.only)
    return "".join(letter for letter in letters if letter) if None not in letters else None


def _beginnings(node: Node) -> list[_Beginning]:
    match node:
        case Chars(chars) if chars.only is not None:
            return [_Beginning(chars.only)]
        case Sequence(parts):
            return _of_sequence(parts)
        case Choice(options):
            return _few([one for option in options for one in _beginnings(option)])
        case Group(body) | Atomic(body):
            return _beginnings(body)
        case Position(place) if place in _EDGES:
            return [_Beginning("")]
        case Repeat(body, least, most):
            if least == 0 and most is None and isinstance(body, Chars) and body.chars == _ANY:
                return [_Beginning("", is_open=True)]
            if least == 0:
                return [_ANYTHING]
            return [replace(one, is_open=True, is_exact=False) for one in _beginnings(body)]
    return [_ANYTHING]


def _of_sequence(parts: tuple[Node, ...]) -> list[_Beginning]:
    found = [_Beginning("")]
    for part in parts:
        grown: list[_Beginning] = []
        for one in found:
            if one.is_open:  # what follows narrows it, which a beginning cannot say
                grown.append(replace(one, is_exact=False))
                continue
            grown += [
                _Beginning(one.text + more.text, more.is_open, one.is_exact and more.is_exact)
                for more in _beginnings(part)
            ]
        found = _few(grown)
    return found


def _few(beginnings: list[_Beginning]) -> list[_Beginning]:
    return beginnings if len(beginnings) <= BEGINNINGS_MAX else [_common(beginnings)]


def _common(beginnings: list[_Beginning]) -> _Beginning:
    first, last = min(one.text for one in beginnings), max(one.text for one in beginnings)
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    return _Beginning(first[:same], is_open=True, is_exact=False)
