"""Sets of characters as ranges of code points: what a Java character class is once it has been read.

``java_classes`` and ``java_syntax`` build them, the matchers ask them. Union, intersection and complement are exact, so
Java's ``[a-z&&[^aeiou]]`` needs no counterpart in Python's syntax.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["CODE_POINT_MAX", "CharSet"]

CODE_POINT_MAX = 0x10FFFF

_Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CharSet:
    """``ranges`` are inclusive, sorted, and neither overlap nor touch."""

    ranges: tuple[_Range, ...] = ()

    @classmethod
    def of(cls, *parts: str | _Range) -> CharSet:
        """Strings stand for their characters, pairs for ranges of code points."""
        ranges: list[_Range] = []
        for part in parts:
            ranges += [(ord(char), ord(char)) for char in part] if isinstance(part, str) else [part]
        return cls.from_ranges(ranges)

    @classmethod
    def from_ranges(cls, ranges: Iterable[_Range]) -> CharSet:
        merged: list[_Range] = []
        for first, last in sorted(ranges):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        return cls(tuple(merged))

    @classmethod
    def from_points(cls, points: Iterable[int]) -> CharSet:
        return cls.from_ranges((point, point) for point in points)

    def __or__(self, other: CharSet) -> CharSet:
        return CharSet.from_ranges((*self.ranges, *other.ranges))

    def __and__(self, other: CharSet) -> CharSet:
        return ~(~self | ~other)

    def __invert__(self) -> CharSet:
        gaps, begin = [], 0
        for first, last in self.ranges:
            if begin < first:
                gaps.append((begin, first - 1))
            begin = last + 1
        if begin <= CODE_POINT_MAX:
            gaps.append((begin, CODE_POINT_MAX))
        return CharSet(tuple(gaps))

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __contains__(self, char: str) -> bool:
        point = ord(char)
        index = bisect_right(self.ranges, (point, CODE_POINT_MAX))
        return index > 0 and point <= self.ranges[index - 1][1]

    @property
    def only(self) -> str | None:
        """The character of a set that has just one."""
        if len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1]:
            return chr(self.ranges[0][0])
        return None

    def to_python(self) -> str:
        """The same set in the syntax of Python's ``re``."""
        if not self.ranges:
            return "(?!)"
        if self.ranges == ((0, CODE_POINT_MAX),):
            return "(?s:.)"
        if self.only is not None:
            return re.escape(self.only)
        if (
            self.ranges[-1][1] == CODE_POINT_MAX
        ):  # a long range takes re milliseconds to compile, what is left out does not
            return "[^" + "".join(map(_range_to_python, (~self).ranges)) + "]"
        return "[" + "".join(map(_range_to_python, self.ranges)) + "]"


def _range_to_python(ends: _Range) -> str:
    first, last = (re.escape(chr(point)) for point in ends)
    return first if first == last else f"{first}-{last}"
