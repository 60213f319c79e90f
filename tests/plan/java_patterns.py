"""Random regular expressions in Java's syntax, made from a seed, and names that are likely to match them or nearly so."""

from __future__ import annotations

import random

ATOMS = (
    *(
        "a",
        "b",
        "c",
        "A",
        "1",
        "-",
        "_",
        "é",
        ".",
        "ab",
        "orders",
        r"\.",
        r"\-",
        r"\w",
        r"\d",
        r"\s",
        r"\W",
        r"\D",
        r"\S",
    ),
    *(r"\h", r"\v", r"\R", r"\t", r"\x61", r"\u0062", r"\x{63}", r"\0101", r"\cA", r"\e", r"\n", r"\r", r"\Qa.b\E"),
    *(r"\p{Alpha}", r"\p{Lower}", r"\p{Upper}", r"\p{Punct}", r"\P{Alnum}", r"\p{L}", r"\pL", r"\p{Lu}", r"\p{IsLl}"),
    *(r"\p{gc=Nd}", r"\p{XDigit}", r"\p{Blank}", r"\p{Space}", r"\p{Cntrl}", r"\p{Graph}", r"\p{Print}", r"\p{ASCII}"),
    *("^", "$", r"\A", r"\z", r"\Z", r"\b", r"\B", "]", "}", ",", r"\N{LATIN SMALL LETTER A}"),
)
IN_CLASS = (
    *(
        "a",
        "b-c",
        "A-C",
        "0-9",
        ".",
        "-",
        "_",
        "^",
        "$",
        r"\&",
        r"\]",
        r"\-",
        r"\w",
        r"\D",
        r"\p{Lower}",
        r"\P{L}",
        r"\h",
    ),
    *(r"\v", r"\Q]-\E", r"\x41-\x43", "é", "*", "|", "(", "1", "~", r"\\"),
)
QUANTIFIERS = ("?", "*", "+", "{2}", "{1,2}", "{0,}", "{0,1}")
OPENINGS = (
    *("(", "(", "(?:", "(?:", "(?:", "(?<n>", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?s-i:", "(?m:", "(?u-s:"),
    *("(?iu:", "(?-m:", "(?d:"),
)
FLAGS = ("(?i)", "(?s)", "(?m)", "(?iu)", "(?d)", "(?md)", "(?-i)", "(?is-m)")
NAME_CHARS = "aaabbbcABC1_-. é\n\r\u2028\x01\t\x1b"
NOISE = "()[]{}*+?|\\^$&-.a1,<>=!:QEpk"


class PatternMaker:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pattern(self) -> str:
        chance = self._random.random()
        text = self._choice(2)
        if chance < 0.15:
            text = self._random.choice(FLAGS) + text
        return self._damaged(text) if chance > 0.9 else text

    def names(self, pattern: str, count: int) -> list[str]:
        fixed = ["", "a", "b", "ab", "aa", "orders", "a.b"]
        # What a word is outside ASCII differs between Java 17 and 19; ours is the later one's.
        chars = NAME_CHARS if r"\b" not in pattern.lower() else NAME_CHARS.replace("é", "")
        return fixed + ["".join(self._random.choices(chars, k=self._random.randint(1, 6))) for _ in range(count)]

    def _choice(self, depth: int) -> str:
        return "|".join(self._sequence(depth) for _ in range(self._random.choice((1, 1, 1, 2, 3))))

    def _sequence(self, depth: int) -> str:
        return "".join(self._part(depth) for _ in range(self._random.choice((0, 1, 1, 2, 2, 3))))

    def _part(self, depth: int) -> str:
        atom = self._atom(depth)
        if self._random.random() < 0.4 and not atom.endswith("R"):  # Java 17 repeats \\R in a way of its own
            atom += self._random.choice(QUANTIFIERS) + self._random.choice(("", "", "", "?", "+"))
        return atom

    def _atom(self, depth: int) -> str:
        chance = self._random.random()
        if depth and chance < 0.3:
            return self._random.choice(OPENINGS) + self._choice(depth - 1) + ")"
        if chance < 0.5:
            return self._class(2)
        if chance < 0.53:
            return self._random.choice((r"(a|b)\1", r"(b?)(\w)\2", r"(?<m>.)\k<m>"))
        if chance < 0.55:
            return self._random.choice(FLAGS)
        return self._random.choice(ATOMS)

    def _class(self, depth: int) -> str:
        items = [self._item(depth) for _ in range(self._random.randint(1, 3))]
        if depth and self._random.random() < 0.25:
            items += ["&&", self._item(depth)]
        return "[" + self._random.choice(("", "", "^")) + "".join(items) + "]"

    def _item(self, depth: int) -> str:
        if depth and self._random.random() < 0.2:
            return self._class(depth - 1)
        return self._random.choice(IN_CLASS)

    def _damaged(self, text: str) -> str:
        at = self._random.randint(0, len(text))
        cut = self._random.choice((0, 0, 1, 2))
        return text[:at] + "".join(self._random.choices(NOISE, k=self._random.randint(0, 2))) + text[at + cut :]
