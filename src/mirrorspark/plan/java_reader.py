"""The characters of a Java regular expression, one after the other, with quotations ``\\Q…\\E`` taken off.

``java_syntax`` reads through it; it knows nothing of groups or classes.
"""

from __future__ import annotations

from dataclasses import dataclass

from mirrorspark.plan.java_tree import RegexRefused

__all__ = ["PatternReader"]

NUMBER_DIGITS_MAX = 11
"""One more than Java's largest repetition has."""
_QUOTED = "a quoted character"
"""What ``PatternReader.peek`` says of one: longer than any character, so it equals none."""


@dataclass(frozen=True, slots=True)
class _Token:
    char: str
    position: int
    is_quoted: bool  # between \Q and \E: no character has a meaning of its own


def _tokens(text: str) -> list[_Token]:
    tokens, at, quoting = [], 0, False
    while at < len(text):
        if text.startswith("\\E" if quoting else "\\Q", at):
            quoting, at = not quoting, at + 2
            continue
        # A backslash takes its character along: in \\Q the second one is no beginning of a quotation.
        length = 2 if text[at] == "\\" and not quoting else 1
        tokens += [_Token(char, at + index, quoting) for index, char in enumerate(text[at : at + length])]
        at += length
    return tokens


class PatternReader:
    """``at`` is the index of the next character and may be set back by whoever looked ahead."""

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self._tokens = _tokens(text)
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        """The character there, "" at the end."""
        if self.at + ahead >= len(self._tokens):
            return ""
        token = self._tokens[self.at + ahead]
        return _QUOTED if token.is_quoted else token.char

    def raw(self) -> str:
        """The next character whether quoted or not; it is taken."""
        if self.at >= len(self._tokens):
            raise self.wrong("the pattern ends too early")
        self.at += 1
        return self._tokens[self.at - 1].char

    def take(self, wanted: str) -> bool:
        if self.peek() != wanted:
            return False
        self.at += 1
        return True

    def position(self) -> int:
        return self._tokens[self.at].position if self.at < len(self._tokens) else self._length

    def wrong(self, why: str, position: int | None = None) -> RegexRefused:
        return RegexRefused(why, self.position() if position is None else position)

    def beyond_us(self, construct: str, position: int) -> RegexRefused:
        return RegexRefused(construct, position, is_java=True)

    def braced(self) -> str:
        position, name = self.position(), ""
        self.at += 1
        while not self.take("}"):
            if not self.peek():
                raise self.wrong("a '{' that is not closed", position)
            name += self.raw()
        return name

    def digits(self, allowed: str, most: int) -> str:
        digits = ""
        while len(digits) < most and self.peek() in tuple(allowed):
            digits += self.raw()
        return digits

    def number(self) -> int | None:
        digits = self.digits("0123456789", NUMBER_DIGITS_MAX)
        return int(digits) if digits else None
