"""Matches a whole text against a tree without ever going back: all ways are followed at once.

``java_regex`` takes it for patterns on which a backtracking matcher could run for hours, such as ``(a+)+b``. It costs at
most (states x characters) steps. Lazy and greedy make no difference to whether a whole text matches; possessive
repetitions, look-arounds and back references do, so those have no place here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from mirrorspark.plan.char_set import CharSet
from mirrorspark.plan.java_tree import Chars, Choice, Group, Mode, Node, Place, Position, RegexRefused, Repeat, Sequence

__all__ = ["STATES_MAX", "LinearMatcher", "is_regular"]

STATES_MAX = 5_000
"""A pattern with more (counted repetitions are written out) is refused."""
MEMORY_STEPS_MAX = 20_000
"""Steps remembered for the next text; then it is forgotten as a whole."""

_Active = frozenset[int]


def is_regular(node: Node) -> bool:
    """Whether the pattern is made only of what can be followed in all ways at once."""
    match node:
        case Chars() | Position():
            return True
        case Sequence(parts):
            return all(map(is_regular, parts))
        case Choice(options):
            return all(map(is_regular, options))
        case Repeat(body, _, _, mode):
            return mode is not Mode.POSSESSIVE and is_regular(body)
        case Group(body):
            return is_regular(body)
        case _:
            return False


@dataclass(slots=True)
class _State:
    """Either a character leads on, or nothing does, on condition that the place is right (if one is given)."""

    chars: CharSet | None = None
    place: Place | None = None
    ways: list[int] = field(default_factory=list)


class LinearMatcher:
    def __init__(self, tree: Node) -> None:
        """Raises RegexRefused if it would have too many states."""
        self._states: list[_State] = []
        self._end = self._add(_State())
        self._begin = self._build(tree, self._end)
        self._has_places = any(state.place for state in self._states)
        self._memory: dict[tuple[_Active, str], _Active] = {}

    def matches(self, text: str) -> bool:
        active = self._spread({self._begin}, text, 0)
        for index, char in enumerate(text):
            active = self._step(active, char, text, index)
            if not active:
                return False
        return self._end in active

    def _step(self, active: _Active, char: str, text: str, index: int) -> _Active:
        if self._has_places:
            return self._spread(self._after(active, char), text, index + 1)
        found = self._memory.get((active, char))
        if found is None:
            if len(self._memory) >= MEMORY_STEPS_MAX:
                self._memory.clear()
            found = self._memory[active, char] = self._spread(self._after(active, char), text, index + 1)
        return found

    def _after(self, active: _Active, char: str) -> set[int]:
        reached: set[int] = set()
        for number in active:
            state = self._states[number]
            if state.chars is not None and char in state.chars:
                reached.update(state.ways)
        return reached

    def _spread(self, reached: set[int], text: str, index: int) -> _Active:
        """With all that can be reached from there without a character."""
        todo = list(reached)
        while todo:
            state = self._states[todo.pop()]
            if state.chars is not None or (state.place is not None and not _is_at(state.place, text, index)):
                continue
            new = [way for way in state.ways if way not in reached]
            reached.update(new)
            todo += new
        return frozenset(reached)

    # -- building, from the end backwards ------------------------------------------------------------------------------

    def _add(self, state: _State) -> int:
        if len(self._states) >= STATES_MAX:
            raise RegexRefused(f"repetitions that come to more than {STATES_MAX} states", is_java=True)
        self._states.append(state)
        return len(self._states) - 1

    def _build(self, node: Node, then: int) -> int:
        match node:
            case Chars(chars):
                return self._add(_State(chars=chars, ways=[then]))
            case Position(place):
                return self._add(_State(place=place, ways=[then]))
            case Sequence(parts):
                for part in reversed(parts):
                    then = self._build(part, then)
                return then
            case Choice(options):
                return self._add(_State(ways=[self._build(option, then) for option in options]))
            case Repeat(body, least, most, _):
                return self._build_repeat(body, least, most, then)
            case Group(body):
                return self._build(body, then)
            case _:
                raise AssertionError(f"{node} is not regular")

    def _build_repeat(self, body: Node, least: int, most: int | None, then: int) -> int:
        if most is None:
            loop = self._add(_State(ways=[then]))
            self._states[loop].ways.append(self._build(body, loop))
            then = loop
        else:
            after = then
            for _ in range(most - least):
                then = self._add(_State(ways=[after, self._build(body, then)]))
        for _ in range(least):
            before = len(self._states)
            then = self._build(body, then)
            if len(self._states) == before:
                break  # nothing to repeat, so once more changes nothing
        return then


@lru_cache(maxsize=len(Place))
def _compiled(place: Place) -> re.Pattern[str]:
    return re.compile(place.value)


def _is_at(place: Place, text: str, index: int) -> bool:
    return _compiled(place).match(text, index) is not None
