"""Java's named sets of characters: predefined classes, POSIX classes, Unicode categories, and what "any case" means there.

``java_syntax`` asks. What Python's Unicode tables do not hold (scripts, blocks, binary properties) is not guessed: the
answer is None and the pattern is refused by name.
"""

from __future__ import annotations

import itertools
import unicodedata
from functools import lru_cache

from mirrorspark.plan.char_set import CODE_POINT_MAX, CharSet

__all__ = [
    "ANY",
    "LINE_BREAKS",
    "LINE_TERMINATORS",
    "UNIX_LINE_TERMINATORS",
    "any_case",
    "escape_class",
    "property_class",
]

ANY = CharSet.of((0, CODE_POINT_MAX))
LINE_TERMINATORS = CharSet.of("\n\r\x85\u2028\u2029")
"""What ``.`` does not match and ``$`` stops at."""
UNIX_LINE_TERMINATORS = CharSet.of("\n")
LINE_BREAKS = CharSet.of("\n\x0b\f\r\x85\u2028\u2029")
"""``\\v``, and with ``\\r\\n`` as one: ``\\R``."""

_LOWER = CharSet.of((0x61, 0x7A))
_UPPER = CharSet.of((0x41, 0x5A))
_DIGIT = CharSet.of((0x30, 0x39))
_ALNUM = _LOWER | _UPPER | _DIGIT
_PUNCT = CharSet.of((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E))
_SPACE = CharSet.of(" \t\n\x0b\f\r")
_HORIZONTAL = CharSet.of(" \t\xa0\u1680\u180e\u202f\u205f\u3000", (0x2000, 0x200A))

_ESCAPES = {
    "d": _DIGIT,
    "w": _ALNUM | CharSet.of("_"),
    "s": _SPACE,
    "h": _HORIZONTAL,
    "v": LINE_BREAKS,
}
_POSIX = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": CharSet.of((0, 0x7F)),
    "Alpha": _LOWER | _UPPER,
    "Digit": _DIGIT,
    "Alnum": _ALNUM,
    "Punct": _PUNCT,
    "Graph": _ALNUM | _PUNCT,
    "Print": _ALNUM | _PUNCT | CharSet.of(" "),
    "Blank": CharSet.of(" \t"),
    "Cntrl": CharSet.of((0, 0x1F), (0x7F, 0x7F)),
    "XDigit": _DIGIT | CharSet.of("abcdefABCDEF"),
    "Space": _SPACE,
    "L1": CharSet.of((0, 0xFF)),
    "all": ANY,
}
_CATEGORIES = (
    *("Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Me", "Mc", "Nd", "Nl", "No", "Zs", "Zl", "Zp"),
    *("Cc", "Cf", "Co", "Cs", "Pd", "Ps", "Pe", "Pc", "Po", "Sm", "Sc", "Sk", "So", "Pi", "Pf"),
)
_WITH_CASE = ("Lu", "Ll", "Lt")
_CATEGORY_PREFIXES = ("gc=", "general_category=")


def escape_class(letter: str) -> CharSet | None:
    """``\\d``, ``\\W`` and so on: ASCII, as in Java without the flag ``U``."""
    found = _ESCAPES.get(letter.lower())
    return found if found is None or letter.islower() else ~found


def property_class(name: str, *, ignore_case: bool) -> CharSet | None:
    """What ``\\p{name}`` stands for; None where Java or we do not know it."""
    prefix, equals, value = name.partition("=")
    if equals:
        return _by_category(value, ignore_case) if f"{prefix.lower()}=" in _CATEGORY_PREFIXES else None
    if name.startswith("Is"):
        return _by_category(name[2:], ignore_case)
    if ignore_case and name in ("Lower", "Upper"):
        return _POSIX["Alpha"]
    return _POSIX[name] if name in _POSIX else _by_category(name, ignore_case)


def _by_category(name: str, ignore_case: bool) -> CharSet | None:
    if name == "LC" or (ignore_case and name in _WITH_CASE):
        return _of_categories(_WITH_CASE)
    if name == "LD":
        return _of_categories((*_starting_with("L"), "Nd"))
    if name in _CATEGORIES:
        return _of_categories((name,))
    return _of_categories(_starting_with(name)) if len(name) == 1 and _starting_with(name) else None


def _starting_with(letter: str) -> tuple[str, ...]:
    return tuple(name for name in _CATEGORIES if name.startswith(letter))


def _of_categories(names: tuple[str, ...]) -> CharSet:
    found = CharSet()
    for name in names:
        found |= _categories()[name]
    return found


@lru_cache(maxsize=1)
def _categories() -> dict[str, CharSet]:
    """Looks at every code point once: some tenths of a second, for the rare pattern that needs it."""
    ranges: dict[str, list[tuple[int, int]]] = {name: [] for name in _CATEGORIES}
    points = range(CODE_POINT_MAX + 1)
    for name, run in itertools.groupby(points, key=lambda point: unicodedata.category(chr(point))):
        members = tuple(run)
        ranges[name].append((members[0], members[-1]))
    return {name: CharSet(tuple(found)) for name, found in ranges.items()}


# -- case --------------------------------------------------------------------------------------------------------------


def any_case(first: int, last: int, *, unicode_case: bool) -> CharSet:
    """What a character or range of a pattern matches under the flag ``i``: ASCII letters only, unless ``u`` is set too."""
    exact = CharSet.of((first, last))
    if not unicode_case:
        return exact | _swapped(exact & _LOWER, -32) | _swapped(exact & _UPPER, 32)
    if first == last:
        folded = _fold(first)
        return exact | CharSet.from_points(point for point, (_, low) in _case_pairs().items() if low == folded)
    return exact | CharSet.from_points(
        point for point, pair in _case_pairs().items() if first <= pair[0] <= last or first <= pair[1] <= last
    )


def _swapped(letters: CharSet, distance: int) -> CharSet:
    return CharSet(tuple((first + distance, last + distance) for first, last in letters.ranges))


def _fold(point: int) -> int:
    return _case_pairs()[point][1] if point in _case_pairs() else point


@lru_cache(maxsize=1)
def _case_pairs() -> dict[int, tuple[int, int]]:
    """Of all characters with case: (upper, lower of upper), each a single character as Java's simple mapping has it."""
    pairs = {}
    for point in range(CODE_POINT_MAX + 1):
        char = chr(point)
        upper = _single(char.upper(), char.title(), char)
        lower = "i" if upper == "\u0130" else _single(upper.lower(), upper)
        if upper != char or lower != char:
            pairs[point] = (ord(upper), ord(lower))
    return pairs


def _single(*mappings: str) -> str:
    return next(mapping for mapping in mappings if len(mapping) == 1)
