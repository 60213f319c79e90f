"""Names written out, thousands of them if need be: one look into a table instead of one try for each.

``java_regex`` puts here all options of a pattern that are plain. In a plain name a dot still matches any character, as in
``my.topic``: names are kept by length and by the places of their dots.
"""

from __future__ import annotations

from collections import defaultdict

from mirrorspark.plan.java_classes import LINE_TERMINATORS
from mirrorspark.plan.java_tree import Chars, Node, Sequence

__all__ = ["PlainNames"]

_DOT = ~LINE_TERMINATORS

_Places = tuple[int, ...]


class PlainNames:
    def __init__(self) -> None:
        self._by_length: dict[int, dict[_Places, set[str]]] = defaultdict(lambda: defaultdict(set))

    def add(self, option: Node) -> bool:
        """False if the option is more than a plain name."""
        parts = option.parts if isinstance(option, Sequence) else (option,)
        chars = [part.chars if isinstance(part, Chars) else None for part in parts]
        dots = tuple(place for place, one in enumerate(chars) if one == _DOT)
        letters = ["." if one == _DOT else one.only if one is not None else None for one in chars]
        if None in letters:
            return False
        self._by_length[len(letters)][dots].add("".join(letter for letter in letters if letter is not None))
        return True

    def matches(self, name: str) -> bool:
        for dots, names in self._by_length.get(len(name), {}).items():
            if _with_dots(name, dots) in names and all(name[place] in _DOT for place in dots):
                return True
        return False


def _with_dots(name: str, dots: _Places) -> str:
    if not dots:
        return name
    letters = list(name)
    for place in dots:
        letters[place] = "."
    return "".join(letters)
