"""Lists of names as an authorizer can say them: exact where that is possible, and never too narrow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.plan.name_list import NameList
from mirrorspark.plan.name_patterns import ALL, LITERAL, PREFIXED, NamePattern, names_in, patterns_of


def _of(text: str) -> list[tuple[str, bool]]:
    return [(str(one), one.is_exact) for one in patterns_of(NameList.read(text, "topics"))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        (".*", [("*", True)]),
        ("orders", [("orders", True)]),
        ("my.topic", [("my.topic", True)]),
        ("orders.*", [("orders*", True)]),
        (r"orders\..*", [("orders.*", True)]),
        (r"\Qa.b\E", [("a.b", True)]),
        ("^orders$", [("orders", True)]),
        ("a, b, ab.*", [("a", True), ("b", True), ("ab*", True)]),
        ("(a|b).*", [("a*", True), ("b*", True)]),
        ("(a|b)-(x|y)", [("a-x", True), ("a-y", True), ("b-x", True), ("b-y", True)]),
        ("orders-[0-9]+", [("orders-*", False)]),
        ("orders.*-eu", [("orders*", False)]),
        (".*-eu", [("*", False)]),
        ("(?i)orders", [("*", False)]),
        ("orders?", [("order*", False)]),
        ("a{2}b", [("a*", False)]),
        ("orders.*, orders-x, .*", [("*", True)]),
        (".*-eu, orders", [("*", False)]),
    ],
)
def test_a_list_becomes_names_and_beginnings(text: str, found: list[tuple[str, bool]]) -> None:
    assert _of(text) == found


def test_what_covers_another_stands_alone() -> None:
    everything, prefix, name = NamePattern(LITERAL, ALL), NamePattern(PREFIXED, "or"), NamePattern(LITERAL, "orders")
    assert everything.covers(prefix)
    assert prefix.covers(name)
    assert prefix.covers(NamePattern(PREFIXED, "ord"))
    assert not prefix.covers(everything)
    assert not name.covers(NamePattern(PREFIXED, "orders"))


def test_many_options_become_what_they_have_in_common() -> None:
    text = "(" + "|".join(f"shop{number}" for number in range(20)) + ")-(" + "|".join(map(str, range(20))) + ")"
    assert _of(text) == [("shop*", False)]


def test_names_that_are_written_out() -> None:
    assert names_in("orders, pay.*, a.b, .*-eu", "topics") == frozenset()  # covered by the last one
    assert names_in("orders, pay.*, a.b", "topics") == {"orders", "a.b"}


_PIECES = st.sampled_from(["a", "b", "-", r"\.", ".", ".*", ".+", "[ab]", "(a|b)", "(ab)?", "a*", r"\w", "x{2}"])


@given(st.lists(st.lists(_PIECES, min_size=1, max_size=5).map("".join), min_size=1, max_size=3), st.data())
def test_whatever_the_list_matches_is_covered(elements: list[str], data: st.DataObject) -> None:
    """But for the dots of a name that is written out, which mean dots."""
    names = NameList.read(",".join(elements), "topics")
    name = data.draw(st.text(alphabet="ab-.x", min_size=1, max_size=8))
    if names.matches(name):
        patterns = patterns_of(names)
        wanted = NamePattern(LITERAL, name)
        plain = {one.name for one in patterns if one.pattern == LITERAL}
        is_other_dot = any(
            len(name) == len(one)
            and all(mine in (its, mine if its == "." else its) for mine, its in zip(name, one, strict=True))
            for one in plain
        )
        assert is_other_dot or any(one.covers(wanted) for one in patterns)


@given(st.lists(st.lists(_PIECES, min_size=1, max_size=5).map("".join), min_size=1, max_size=3), st.data())
def test_an_exact_beginning_covers_nothing_else(elements: list[str], data: st.DataObject) -> None:
    names = NameList.read(",".join(elements), "topics")
    name = data.draw(st.text(alphabet="ab-.x", min_size=1, max_size=8))
    patterns = patterns_of(names)
    if all(one.is_exact for one in patterns) and any(one.covers(NamePattern(LITERAL, name)) for one in patterns):
        assert names.matches(name)
