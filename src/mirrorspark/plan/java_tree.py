"""A Java regular expression as a tree: sets of characters, how they follow one another, and what must hold in between.

``java_syntax`` builds it; ``java_regex`` and ``linear_match`` turn it into something that matches. Values only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mirrorspark.plan.char_set import CharSet

__all__ = [
    "Atomic",
    "BackReference",
    "Chars",
    "Choice",
    "Group",
    "Look",
    "Mode",
    "Node",
    "Place",
    "Position",
    "RegexRefused",
    "Repeat",
    "Sequence",
]


class RegexRefused(Exception):
    """``why`` names the construct; ``position`` counts from 0 in the pattern, None if it is the pattern as a whole.

    Becomes a SettingsError at the border, in ``name_list``.
    """

    def __init__(self, why: str, position: int | None = None, *, is_java: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.position = position
        self.is_java = is_java  # whether Java would accept it


class Mode(Enum):
    GREEDY = ""
    LAZY = "?"
    POSSESSIVE = "+"


class Place(Enum):
    """Positions between characters; the values are how Python's ``re`` says them."""

    BEGIN = r"\A"
    END = r"\Z"
    LAST_LINE_END = r"(?=\r\n\Z|(?<!\r)\n\Z|[\r\x85\u2028\u2029]?\Z)"
    LAST_UNIX_LINE_END = r"(?=\n?\Z)"
    LINE_BEGIN = r"(?!\Z)(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n))"
    UNIX_LINE_BEGIN = r"(?!\Z)(?:\A|(?<=\n))"
    LINE_END = r"(?=\r|(?<!\r)\n|[\x85\u2028\u2029]|\Z)"
    UNIX_LINE_END = r"(?=\n|\Z)"
    WORD_EDGE = r"(?a:\b)"
    NO_WORD_EDGE = r"(?!(?a:\b))"  # not \B, which Python denies in an empty text


@dataclass(frozen=True, slots=True)
class Chars:
    chars: CharSet


@dataclass(frozen=True, slots=True)
class Position:
    place: Place


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``most`` is None for no bound."""

    body: Node
    least: int
    most: int | None
    mode: Mode = Mode.GREEDY


@dataclass(frozen=True, slots=True)
class Group:
    """A capturing group; they are numbered from 1 in the order of their opening."""

    body: Node


@dataclass(frozen=True, slots=True)
class Atomic:
    body: Node


@dataclass(frozen=True, slots=True)
class Look:
    body: Node
    is_ahead: bool
    is_negative: bool
    position: int


@dataclass(frozen=True, slots=True)
class BackReference:
    number: int
    ignore_case: bool
    unicode_case: bool


Node = Chars | Position | Sequence | Choice | Repeat | Group | Atomic | Look | BackReference
