"""How many ways a backtracking matcher may try on one name, at worst: the reason to take another matcher or to refuse.

``java_regex`` asks. An upper estimate from the pattern alone, for names of Kafka's greatest length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

from mirrorspark.plan.char_set import CharSet
from mirrorspark.plan.java_tree import (
    Atomic,
    BackReference,
    Chars,
    Choice,
    Group,
    Look,
    Mode,
    Node,
    Position,
    Repeat,
    Sequence,
)

__all__ = ["NAME_LENGTH_MAX", "ways_to_try"]

NAME_LENGTH_MAX = 249
"""Characters of a Kafka topic's name."""


@dataclass(frozen=True, slots=True)
class _Ways:
    """``open``: ways that a later failure sends the matcher back into; ``most``: ways tried in all, inside included."""

    open: float = 1.0
    most: float = 1.0


_Next = CharSet | None
"""The characters that can come next; None where that is not known."""


def ways_to_try(tree: Node) -> float:
    """May be infinite."""
    return _ways(tree, CharSet()).most


def _ways(node: Node, follow: _Next) -> _Ways:
    """``follow`` is what can come behind the node. A repetition that the next character alone ends leaves no way open."""
    match node:
        case Sequence(parts):
            return _in_sequence(parts, follow)
        case Choice(options):
            found = [_ways(option, follow) for option in options]
            add = max if _are_told_apart(options) else sum
            return _Ways(add(one.open for one in found), add(one.most for one in found))
        case Repeat(body, least, most, Mode.POSSESSIVE):
            return _Ways(1.0, _repeated(Atomic(body), least, most, None).most)
        case Repeat(body, least, most, _):
            return _repeated(body, least, most, follow)
        case Group(body):
            return _ways(body, follow)
        case Atomic(body) | Look(body):
            return _Ways(1.0, _ways(body, None).most)
        case _:
            return _Ways()


def _in_sequence(parts: tuple[Node, ...], follow: _Next) -> _Ways:
    found = []
    for part in reversed(parts):
        found.append(_ways(part, follow))
        follow = _before(part, follow)
    open_so_far, most = 1.0, 1.0
    for ways in reversed(found):
        most = max(most, open_so_far * ways.most)
        open_so_far *= ways.open
    return _Ways(open_so_far, max(most, open_so_far))


def _repeated(body: Node, least: int, most: int | None, follow: _Next) -> _Ways:
    starts = _starts(body)
    once = _ways(body, follow if most == 1 else _either(starts, follow))
    times = NAME_LENGTH_MAX if most is None else min(NAME_LENGTH_MAX, most)
    counts = 1 if most == least else max(1, times - least + 1)
    if once.open <= 1.0 and not _may_be_empty(body):
        is_ended_by_next = starts is not None and follow is not None and not starts & follow
        return _Ways(1.0 if is_ended_by_next else float(counts), counts * once.most)
    if times <= 1:
        return _Ways(once.open + counts - 1, once.most + counts - 1)
    try:
        ways = max(once.open, 2.0) ** times
    except OverflowError:
        ways = math.inf
    return _Ways(ways, ways * once.most)


def _are_told_apart(options: tuple[Node, ...]) -> bool:
    """Whether the next character alone decides which option can match."""
    seen = CharSet()
    for option in options:
        starts = _starts(option)
        if starts is None or seen & starts or _may_be_empty(option):
            return False
        seen |= starts
    return True


def _either(one: _Next, other: _Next) -> _Next:
    return None if one is None or other is None else one | other


def _before(node: Node, follow: _Next) -> _Next:
    """What can come next where the node begins."""
    return _either(_starts(node), follow) if _may_be_empty(node) else _starts(node)


def _starts(node: Node) -> _Next:
    """The characters that the node can begin with; none for what takes no character."""
    match node:
        case Chars(chars):
            return chars
        case Sequence(parts):
            found: _Next = CharSet()
            for part in reversed(parts):
                found = _before(part, found)
            return found
        case Choice(options):
            return reduce(_either, map(_starts, options))
        case Repeat(body) | Group(body) | Atomic(body):
            return _starts(body)
        case BackReference():
            return None
        case Position() | Look():
            return CharSet()


def _may_be_empty(node: Node) -> bool:
    match node:
        case Chars():
            return False
        case Sequence(parts):
            return all(map(_may_be_empty, parts))
        case Choice(options):
            return any(map(_may_be_empty, options))
        case Repeat(body, least, _, _):
            return least == 0 or _may_be_empty(body)
        case Group(body) | Atomic(body):
            return _may_be_empty(body)
        case _:
            return True
