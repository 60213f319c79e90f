"""Reads a regular expression by the rules of ``java.util.regex`` into a tree of a few kinds of nodes.

``java_regex.compile_java`` calls ``parse``. Flags, classes and quotations are resolved here: the tree knows only sets of
characters and how they follow one another. What Java refuses and what we cannot express is refused with its position.
"""

from __future__ import annotations

import unicodedata

from mirrorspark.plan import java_classes
from mirrorspark.plan.char_set import CODE_POINT_MAX, CharSet
from mirrorspark.plan.java_reader import PatternReader
from mirrorspark.plan.java_tree import (
    Atomic,
    BackReference,
    Chars,
    Choice,
    Group,
    Look,
    Mode,
    Node,
    Place,
    Position,
    Repeat,
    Sequence,
)

__all__ = ["parse"]

GROUP_DEPTH_MAX = 50
"""Groups inside groups and classes inside classes."""
REPEAT_MAX = 2**31 - 1


def parse(text: str) -> Node:
    """Raises RegexRefused."""
    return _Parser(text).whole()


_SIMPLE_ESCAPES = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NOT_SUPPORTED = {
    "G": "\\G (the end of the last match)",
    "X": "\\X (a grapheme cluster)",
}
_FLAGS = frozenset("idmsu")
_FLAGS_NOT_SUPPORTED = {
    "x": "the flag x (comments and blanks in the pattern)",
    "U": "the flag U (Unicode's definitions of \\w, \\d and \\s)",
    "c": "the flag c (canonical equivalence)",
}


class _Parser(PatternReader):
    """One descent through one pattern."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._flags: frozenset[str] = frozenset()
        self._depth = 0
        self._groups = 0
        self._groups_closed: set[int] = set()
        self._names: dict[str, int] = {}

    # -- sequences and groups ------------------------------------------------------------------------------------------

    def whole(self) -> Node:
        found = self._expression()
        if self.peek() == ")":
            raise self.wrong("a ')' that closes nothing")
        return found

    def _expression(self) -> Node:
        options = [self._sequence()]
        while self.take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            found = self._atom()
            if found is not None:
                parts.append(self._quantified(found))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _atom(self) -> Node | None:
        """None for flags, which are nothing to repeat."""
        char = self.peek()
        if char == "(":
            return self._group()
        if char == "[":
            return Chars(self._class())
        if char == "\\":
            return self._escape()
        if char == "{":  # with a number behind it, Java repeats nothing so many times
            raise self.beyond_us("'{' with nothing before it to repeat", self.position())
        if char in ("*", "+", "?"):
            raise self.wrong(f"'{char}' with nothing before it to repeat")
        literal = self.raw()
        if char == ".":
            return Chars(~self._line_terminators())
        if char == "^":
            return Position(self._by_lines(Place.BEGIN, Place.LINE_BEGIN, Place.UNIX_LINE_BEGIN))
        if char == "$":
            ends = Place.LAST_UNIX_LINE_END if "d" in self._flags else Place.LAST_LINE_END
            return Position(self._by_lines(ends, Place.LINE_END, Place.UNIX_LINE_END))
        return self._literal(ord(literal))

    def _literal(self, point: int) -> Chars:
        return Chars(self._span(point, point))

    def _span(self, first: int, last: int) -> CharSet:
        if "i" not in self._flags:
            return CharSet.of((first, last))
        return java_classes.any_case(first, last, unicode_case="u" in self._flags)

    def _line_terminators(self) -> CharSet:
        if "s" in self._flags:
            return CharSet()
        return java_classes.UNIX_LINE_TERMINATORS if "d" in self._flags else java_classes.LINE_TERMINATORS

    def _by_lines(self, single: Place, multiple: Place, unix: Place) -> Place:
        if "m" not in self._flags:
            return single
        return unix if "d" in self._flags else multiple

    def _group(self) -> Node | None:
        position, before = self.position(), self._flags
        self.at += 1
        self._enter(position)
        kind = self._group_kind(position)
        if kind is None:
            self._depth -= 1
            return None
        number = self._groups
        body = self._expression()
        if not self.take(")"):
            raise self.wrong("a '(' that is not closed", position)
        self._flags = before
        self._depth -= 1
        if kind == "capture":
            self._groups_closed.add(number)
            return Group(body)
        if kind == ">":
            return Atomic(body)
        return body if kind == ":" else Look(body, "<" not in kind, "!" in kind, position)

    def _enter(self, position: int) -> None:
        self._depth += 1
        if self._depth > GROUP_DEPTH_MAX:
            raise self.beyond_us(f"more than {GROUP_DEPTH_MAX} groups or classes inside one another", position)

    def _group_kind(self, position: int) -> str | None:
        """``capture``, or what stands behind ``(?``; None for flags alone."""
        if not self.take("?"):
            self._groups += 1
            return "capture"
        for kind in (":", "=", "!", ">", "<=", "<!"):
            if "".join(self.peek(index) for index in range(len(kind))) == kind:
                self.at += len(kind)
                return kind
        if self.take("<"):
            self._groups += 1
            name = self._group_name()
            if name in self._names:
                raise self.wrong(f"a second group called {name}", position)
            self._names[name] = self._groups
            return "capture"
        self._read_flags(position)
        return ":" if self.raw() == ":" else None

    def _group_name(self) -> str:
        name = ""
        while self.peek().isascii() and self.peek().isalnum():
            name += self.raw()
        if not name[:1].isalpha() or not self.take(">"):
            raise self.wrong("a group's name must be letters and digits, a letter first, with '>' behind it")
        return name

    def _read_flags(self, position: int) -> None:
        """Up to the ``)`` or ``:`` that ends them."""
        adding = True
        while (char := self.peek()) not in (")", ":"):
            if char in _FLAGS_NOT_SUPPORTED:
                raise self.beyond_us(_FLAGS_NOT_SUPPORTED[char], self.position())
            if char == "-" and adding:
                adding = False
            elif char in _FLAGS:
                self._flags = self._flags | {char} if adding else self._flags - {char}
            else:
                raise self.wrong(f"'(?{char}' begins no group that Java knows", position)
            self.at += 1

    # -- quantifiers ---------------------------------------------------------------------------------------------------

    def _quantified(self, body: Node) -> Node:
        position, char = self.position(), self.peek()
        if char not in ("*", "+", "?", "{"):
            return body
        self.at += 1
        if char == "{":
            least, most = self._bounds(position)
        else:
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        mode = Mode.LAZY if self.take("?") else Mode.POSSESSIVE if self.take("+") else Mode.GREEDY
        return Repeat(body, least, most, mode)

    def _bounds(self, position: int) -> tuple[int, int | None]:
        least = self.number()
        if least is None:
            raise self.wrong("'{' without a number behind it; a brace that is meant as such is written \\{", position)
        most: int | None = least
        if self.take(","):
            most = self.number()
        if not self.take("}"):
            raise self.wrong("a '{' that is not closed", position)
        if (most is not None and most < least) or max(least, most or 0) > REPEAT_MAX:
            raise self.wrong("a repetition whose bounds are the wrong way round or too large", position)
        return least, most

    # -- escapes -------------------------------------------------------------------------------------------------------

    def _escape(self) -> Node:
        position = self.position()
        found = self._escaped(in_class=False)
        if isinstance(found, CharSet):
            return Chars(found)
        if isinstance(found, int):
            return self._literal(found)
        if found in "123456789":
            return self._back_reference(int(found), position)
        if found == "k":
            return self._named_reference(position)
        if found == "R":
            line = Sequence((Chars(CharSet.of("\r")), Chars(CharSet.of("\n"))))
            return Choice((line, Chars(java_classes.LINE_BREAKS)))
        if found == "b" and self.peek() == "{" and self.peek(1) == "g":
            raise self.beyond_us("\\b{g} (the edge of a grapheme cluster)", position)
        last_end = Place.LAST_UNIX_LINE_END if "d" in self._flags else Place.LAST_LINE_END
        places = {"A": Place.BEGIN, "z": Place.END, "Z": last_end, "b": Place.WORD_EDGE, "B": Place.NO_WORD_EDGE}
        return Position(places[found])

    def _escaped(self, *, in_class: bool) -> CharSet | int | str:
        """What stands behind a backslash: a set, one code point, or the letter of what is no character."""
        position = self.position()
        self.at += 1
        letter = self.raw()
        if letter in _NOT_SUPPORTED and not in_class:
            raise self.beyond_us(_NOT_SUPPORTED[letter], position)
        if letter in ("p", "P"):
            return self._property(letter, position)
        if (found := java_classes.escape_class(letter)) is not None:
            return found
        if letter in _SIMPLE_ESCAPES:
            return ord(_SIMPLE_ESCAPES[letter])
        if letter in ("0", "x", "u", "c", "N"):
            return self._coded(letter, position)
        if letter in tuple("123456789AbBkRzZ") and not in_class:
            return letter
        if letter.isascii() and letter.isalnum():
            raise self.wrong(f"\\{letter} has no meaning here", position)
        return ord(letter)

    def _property(self, letter: str, position: int) -> CharSet:
        name = self.braced() if self.peek() == "{" else self.raw()
        found = java_classes.property_class(name, ignore_case="i" in self._flags)
        if found is None:
            raise self.beyond_us(f"\\{letter}{{{name}}} (a property that Python's tables do not hold)", position)
        return found if letter == "p" else ~found

    def _coded(self, letter: str, position: int) -> int:
        """A character given by number or name."""
        if letter == "c":
            return ord(self.raw()) ^ 64
        if letter == "N":
            return self._by_name(position)
        if letter == "0":
            digits = self.digits("01234567", 3)
            if len(digits) == 3 and digits[0] > "3":
                digits, self.at = digits[:2], self.at - 1
            return self._code(digits, 8, position)
        if letter == "x":
            braced = self.peek() == "{"
            digits = self.braced() if braced else self.digits("0123456789abcdefABCDEF", 2)
            return self._code(digits if braced or len(digits) == 2 else "", 16, position)
        return self._utf16(position)

    def _utf16(self, position: int) -> int:
        """``\\uXXXX``; a high surrogate and a low one behind it are one character."""
        digits = self.digits("0123456789abcdefABCDEF", 4)
        point = self._code(digits if len(digits) == 4 else "", 16, position)
        if not 0xD800 <= point <= 0xDBFF or self.peek() != "\\" or self.peek(1) != "u":
            return point
        before, self.at = self.at, self.at + 2
        low = int(self.digits("0123456789abcdefABCDEF", 4) or "0", 16)
        if 0xDC00 <= low <= 0xDFFF:
            return 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
        self.at = before
        return point

    def _by_name(self, position: int) -> int:
        name = self.braced() if self.peek() == "{" else ""
        try:
            return ord(unicodedata.lookup(name))
        except KeyError:
            raise self.wrong(f"\\N{{{name}}} is no character's name", position) from None

    def _code(self, digits: str, base: int, position: int) -> int:
        try:
            point = int(digits, base)
        except ValueError:
            raise self.wrong("a character's code without its digits", position) from None
        if not digits.isalnum() or point > CODE_POINT_MAX:
            raise self.wrong("a code that is no character's", position)
        return point

    def _back_reference(self, number: int, position: int) -> Node:
        # As in Java: further digits belong to it as long as that many groups have begun.
        while self.peek() in tuple("0123456789") and number * 10 + int(self.peek()) <= self._groups:
            number = number * 10 + int(self.raw())
        return self._reference(number, f"\\{number}", position)

    def _named_reference(self, position: int) -> Node:
        if not self.take("<"):
            raise self.wrong("\\k without '<' behind it", position)
        name = self._group_name()
        if name not in self._names:
            raise self.wrong(f"there is no group called {name}", position)
        return self._reference(self._names[name], f"\\k<{name}>", position)

    def _reference(self, number: int, written: str, position: int) -> Node:
        if number not in self._groups_closed:
            raise self.beyond_us(f"{written} (a reference to a group that is not complete before it)", position)
        return BackReference(number, "i" in self._flags, "u" in self._flags)

    # -- classes -------------------------------------------------------------------------------------------------------

    def _class(self) -> CharSet:
        """``[…]``, with unions ``[a[bc]]`` and intersections ``[a-z&&[^aeiou]]``."""
        position = self.position()
        self.at += 1
        self._enter(position)
        is_negated = self.take("^")
        found = self._class_items(position, is_first=True)
        while self.peek() == "&":
            self.at += 2
            found &= self._operand(position)
        self.at += 1
        self._depth -= 1
        return ~found if is_negated else found

    def _class_items(self, position: int, *, is_first: bool) -> CharSet:
        """A union, up to ``]`` or ``&&``, which stay. A ``]`` that comes first in a class is a character."""
        found, is_empty = CharSet(), True
        while not self._ends_items(is_empty and is_first):
            if not self.peek():
                raise self.wrong("a '[' that is not closed", position)
            found |= self._class() if self.peek() == "[" else self._class_range()
            is_empty = False
        if is_empty:
            raise self.beyond_us("'&&' in a class without anything before or behind it", self.position())
        return found

    def _ends_items(self, is_first: bool) -> bool:
        return (self.peek() == "]" and not is_first) or (self.peek() == "&" and self.peek(1) == "&")

    def _operand(self, position: int) -> CharSet:
        """What stands behind ``&&``. Java forgets brackets that plain characters follow, so that is not read at all."""
        begins_with_bracket = self.peek() == "["
        if self.peek() == "&":
            raise self.beyond_us("'&&&' in a class", self.position())
        found, is_empty = CharSet(), True
        while not self._ends_items(False):
            if not self.peek():
                raise self.wrong("a '[' that is not closed", position)
            if begins_with_bracket and self.peek() != "[":
                raise self.beyond_us("'&&[…]' with characters behind the inner class", self.position())
            found |= self._class() if self.peek() == "[" else self._class_range()
            is_empty = False
        if is_empty:
            raise self.beyond_us("'&&' in a class without anything behind it", self.position())
        return found

    def _class_range(self) -> CharSet:
        position = self.position()
        first = self._class_char(before_dash=True)
        if isinstance(first, CharSet):
            return first
        if self.peek() != "-" or self.peek(1) in ("[", "]", ""):
            return self._span(first, first)
        self.at += 1
        last = self._class_char(before_dash=False)
        if isinstance(last, CharSet) or last < first:
            raise self.wrong("a range of characters that ends before it begins", position)
        return self._span(first, last)

    def _class_char(self, *, before_dash: bool) -> CharSet | int:
        if self.peek() != "\\":
            return ord(self.raw())
        # Java reads \v as the one character 0x0B where it is an end of a range.
        if self.peek(1) == "v" and (self.peek(2) == "-" if before_dash else True):
            self.at += 2
            return 0x0B
        found = self._escaped(in_class=True)
        assert not isinstance(found, str)
        return found
