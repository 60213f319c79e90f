"""Regular expressions with the meaning that ``java.util.regex`` gives them, for whole names.

``name_list`` compiles topic, group and property lists with it. A pattern becomes one of Python's ``re``; where that could
run for long (backtracking), it is followed in all ways at once instead, and where that is not possible either it is
refused: no pattern can hang a refresh. Nothing is approximated: what cannot be expressed exactly is refused by name.
"""

from __future__ import annotations

import itertools
import re

from mirrorspark.plan.backtracking import ways_to_try
from mirrorspark.plan.java_syntax import parse
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
    RegexRefused,
    Repeat,
    Sequence,
)
from mirrorspark.plan.linear_match import LinearMatcher, is_regular
from mirrorspark.plan.plain_names import PlainNames

__all__ = ["JavaPattern", "RegexRefused", "compile_java"]

WAYS_QUICK_MAX = 1e6
"""Ways that ``re`` may try on one name; above it the linear matcher is taken: slower on most names, never slow."""
WAYS_MAX = 1e10
"""The same where only ``re`` will do (look-arounds, back references, possessive): above it the pattern is refused.

A name of 249 characters made for the purpose could then take some seconds; names as people give them take microseconds.
"""
LOOK_BEHIND_FORMS_MAX = 64
"""Python looks back over a fixed length only: a look-behind of several lengths is written out in so many forms at most."""


class JavaPattern:
    """``matches`` is ``Matcher.matches()``: the whole name."""

    def __init__(self, tree: Node) -> None:
        self._plain = PlainNames()
        self._linear: LinearMatcher | None = None
        self._quick: re.Pattern[str] | None = None
        options = tree.options if isinstance(tree, Choice) else (tree,)
        others = tuple(option for option in options if not self._plain.add(option))
        if others:
            self._compile(Choice(others))

    def _compile(self, rest: Node) -> None:
        ways = ways_to_try(rest)
        if ways > WAYS_QUICK_MAX and is_regular(rest):
            self._linear = LinearMatcher(rest)
        elif ways > WAYS_MAX:
            raise RegexRefused(
                "repetitions inside or after repetitions together with a look-around, a back reference or a possessive "
                "repetition: on some names the search would take hours. Write it with fewer repetitions",
                is_java=True,
            )
        else:
            # Not fullmatch: Python 3.11 applies it inside atomic groups too.
            self._quick = re.compile(f"(?:{_python(rest)})\\Z")

    def matches(self, name: str) -> bool:
        if self._plain.matches(name):
            return True
        if self._linear is not None:
            return self._linear.matches(name)
        return self._quick is not None and self._quick.match(name) is not None


def compile_java(text: str) -> JavaPattern:
    """Raises RegexRefused, which names the construct and its position."""
    try:
        return JavaPattern(parse(text))
    except (OverflowError, RecursionError, re.error) as error:
        raise RegexRefused(f"a pattern that Python cannot compile ({error})", is_java=True) from error


# -- into Python's syntax ----------------------------------------------------------------------------------------------


def _python(node: Node) -> str:
    match node:
        case Chars(chars):
            return chars.to_python()
        case Position(place):
            return place.value
        case Sequence(parts):
            return "".join(map(_python, parts))
        case Choice(options):
            return "(?:" + "|".join(map(_python, options)) + ")"
        case Repeat():
            return _repeat_to_python(node)
        case Group(body):
            return f"({_python(body)})"
        case Atomic(body):
            return f"(?>{_python(body)})"
        case BackReference():
            return _reference_to_python(node)
        case Look():
            return _look_to_python(node)


def _repeat_to_python(node: Repeat) -> str:
    bounds = f"{{{node.least},{'' if node.most is None else node.most}}}"
    if node.mode is Mode.POSSESSIVE:
        # Java goes back into no round of it. Written as atomic groups: Python 3.11's possessive ones have had their bugs.
        return f"(?>(?>{_python(node.body)}){bounds})"
    return f"(?:{_python(node.body)}){bounds}{node.mode.value}"


def _reference_to_python(node: BackReference) -> str:
    if not node.ignore_case:
        return f"(?:\\{node.number})"
    return f"(?i:\\{node.number})" if node.unicode_case else f"(?ai:\\{node.number})"


def _look_to_python(node: Look) -> str:
    if node.is_ahead:
        return f"(?{'!' if node.is_negative else '='}{_python(node.body)})"
    forms = [_python(form) for form in _fixed_forms(node.body, node.position)]
    if node.is_negative:
        return "".join(f"(?<!{form})" for form in forms)
    return "(?:" + "|".join(f"(?<={form})" for form in forms) + ")"


def _fixed_forms(node: Node, position: int) -> list[Node]:
    """Sequences of fixed length that together match what the node does."""
    match node:
        case Chars() | Position() | Look():
            forms: list[Node] = [node]
        case Sequence(parts):
            forms = _joined([_fixed_forms(part, position) for part in parts], position)
        case Choice(options):
            forms = [form for option in options for form in _fixed_forms(option, position)]
        case Repeat(body, least, most, mode) if (
            most is not None and most <= LOOK_BEHIND_FORMS_MAX and mode is not Mode.POSSESSIVE
        ):
            once = _fixed_forms(body, position)
            if len(once) > 1 and most > 1:
                raise RegexRefused("a look-behind with a repetition of several forms", position)  # Java refuses it, too
            forms = [form for times in range(least, most + 1) for form in _joined([once] * times, position)]
        case _:
            raise RegexRefused("a look-behind of no fixed length", position, is_java=True)
    if len(forms) > LOOK_BEHIND_FORMS_MAX:
        raise _too_many_forms(position)
    return forms


def _joined(parts: list[list[Node]], position: int) -> list[Node]:
    count = 1
    for part in parts:
        count *= len(part)
        if count > LOOK_BEHIND_FORMS_MAX:
            raise _too_many_forms(position)
    return [Sequence(chosen) for chosen in itertools.product(*parts)]


def _too_many_forms(position: int) -> RegexRefused:
    return RegexRefused(
        f"a look-behind that may match in more than {LOOK_BEHIND_FORMS_MAX} forms", position, is_java=True
    )
