"""Texts as trees: places, spellings, and what is refused instead of guessed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.config.forms import nodes
from mirrorspark.config.forms.nodes import parse_json, parse_yaml
from mirrorspark.errors import SettingsError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, st.sampled_from([None, 2, "\t"]))
def test_json_reads_as_python_reads_it(tree: object, indent: int | str | None) -> None:
    assert parse_json(json.dumps(tree, indent=indent), "f").tree() == tree


def test_every_value_knows_its_line_and_path() -> None:
    node = parse_json('{\n  "a": {"b": [1,\n    {"c": "x"}]}\n}', "f.json")
    inner = node.need("a").need("b").items()[1].need("c")
    assert (inner.place, inner.path, inner.text()) == ("f.json:3", "a.b[1].c", "x")
    [node] = parse_yaml("a:\n  b:\n    - 1\n    - c: x\n", "f.yaml")
    inner = node.need("a").need("b").items()[1].need("c")
    assert (inner.place, inner.path, inner.text()) == ("f.yaml:4", "a.b[1].c", "x")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        *(("true", "true"), ("yes", "true"), ("Off", "false"), ("3", "3"), ("-1", "-1"), ("+5", "5"), ("0.80", "0.80")),
        *(('"3"', "3"), ("'yes'", "yes"), ("2024-01-31", "2024-01-31"), ("1.2.3", "1.2.3"), ("a:9092", "a:9092")),
        *(("|\n  one\n  two", "one\ntwo"), ("=", "="), ("!!str 3", "3")),
    ],
)
def test_a_value_is_spelt_as_kafka_gets_it(written: str, text: str) -> None:
    assert parse_yaml(f"x: {written}", "f")[0].need("x").text() == text


@pytest.mark.parametrize("written", ["0x10", "010", "1_000", "12:30", "1.0e+3", ".5", ".inf", "!!binary aGk="])
def test_what_tools_read_differently_is_refused(written: str) -> None:
    with pytest.raises(SettingsError, match=r"f:1: x: .*in quotes"):
        parse_yaml(f"x: {written}", "f")


def test_merged_mappings_are_followed_and_own_fields_win() -> None:
    [node] = parse_yaml("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 4}]}\n", "f")
    assert node.tree() == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 1, "y": 2, "z": 4}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: [", "f:2: not YAML"),
        ("a: 1\na: 2", "f:2: a is given twice, first in line 1"),
        ("x:\n  {a: 1}: 2", "f:2: x: a name must be a text"),
        ("<<: 1", "must name mappings"),
        ("a: &a [*a]", "aliases in a circle"),
        ("a: \x07", "not YAML"),
    ],
)
def test_broken_yaml_names_its_line(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        parse_yaml(text, "f")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1,\n}', "f:1: not JSON|f:2: not JSON"),
        ('{"a": 1,\n "a": 2}', "f:2: a is given twice, first in line 1"),
        ('{"a": NaN}', "NaN is no number"),
        ("[" * 5000, "not JSON"),
        ("[" * 100 + "]" * 100, "too deep"),
    ],
)
def test_broken_json_names_its_line(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        parse_json(text, "f")


def test_a_bomb_does_not_go_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "NODES_MAX", 1000)
    lines = ["a0: &a0 [x, x, x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 12))]
    with pytest.raises(SettingsError, match="too many"):
        parse_yaml("\n".join(lines), "f")


@pytest.mark.parametrize(
    ("text", "problem"), [("x: null", "has no value"), ("x: [1]", "must be a text"), ("x: {}", "a text")]
)
def test_a_setting_needs_a_plain_value(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        parse_yaml(text, "f")[0].mapping()["x"].text()


def test_values_do_not_show() -> None:
    assert "geheim" not in repr(parse_yaml("password: geheim", "f"))
