"""Pages that say what code says: the command reference is what the commands print, tables of limits hold the limits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import mirrorspark
from mirrorspark.__main__ import app, command_reference
from mirrorspark.config.catalogue import CLIENTS, PLAIN
from mirrorspark.settings import Limits

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = Path(mirrorspark.__file__).parent
_ROW = re.compile(
    r"^\| `(?P<name>[A-Za-z_]+)` \| (?P<second>[^|]+) \| (?P<third>[^|]+) \|(?P<rest>.*)\|$", re.MULTILINE
)
_UNITS = {"": 1, "s": 1, "h": 3600, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def _rows(begin: str, end: str) -> Iterator[re.Match[str]]:
    """Rows of the table between two texts of the architecture's page."""
    page = (DOCS / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return _ROW.finditer(page[page.index(begin) : page.index(end)])


LIMITS = {row["name"]: row for row in _rows("## Limits", "Constants beside the code")}
CONSTANTS = {row["name"]: row for row in _rows("Constants beside the code", "### What is bounded")}


# -- commands ----------------------------------------------------------------------------------------------------------


def test_the_command_reference_is_current() -> None:
    assert (DOCS / "reference" / "cli.md").read_text(encoding="utf-8") == command_reference(), "run make docs"


def test_the_command_reference_has_every_command() -> None:
    page = command_reference()
    names = [one.name or one.callback.__name__ for one in app.registered_commands if one.callback]
    names += [str(one.name) for one in app.registered_groups]
    assert {"run", "plan", "status", "convert", "demo", "chaos", "positions", "bench", "groups"} <= set(names)
    for name in names:
        assert f"\n## `mirrorspark {name}`\n" in page


# -- limits ------------------------------------------------------------------------------------------------------------


def test_the_table_of_limits_has_each_of_them() -> None:
    assert list(LIMITS) == [one.name for one in fields(Limits)], "docs/ARCHITECTURE.md, in the order of settings.Limits"


@pytest.mark.parametrize("name", [one.name for one in fields(Limits)])
def test_a_limit_is_told_as_it_is(name: str) -> None:
    row = LIMITS[name]
    value = getattr(Limits(), name)
    assert row["third"].split()[0] == f"{value:,}"
    if said := re.search(r"\((\d+) (\w+)\)", row["third"]):
        assert int(said[1]) * _UNITS[said[2]] == value
    unit = row["second"].strip()
    assert unit in name or unit.removesuffix("s") in name, "the name carries the unit"


def test_a_limits_key_is_the_one_that_fills_it() -> None:
    own = {
        one.applied.removeprefix("limits."): name for name, one in PLAIN.items() if one.applied.startswith("limits.")
    }
    for name, row in LIMITS.items():
        key = row["rest"].rpartition("|")[2].strip().strip("`")
        if name in own:
            assert key == own[name]
        elif key:
            client = key.partition(".")[0]
            assert CLIENTS[client][key.removeprefix(f"{client}.")].applied == f"limits.{name}"


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_is_told_as_it_is(name: str) -> None:
    row = CONSTANTS[name]
    said = re.fullmatch(r"([\d,]+) ?(\w*)", row["third"].strip())
    assert said, f"{name}: {row['third']} is no number with a unit"
    value = int(said[1].replace(",", "")) * _UNITS[said[2]] * (1000 if name.endswith("_MS") else 1)
    assert _constant(SOURCE / row["second"].strip().strip("`"), name) == value


def _constant(path: Path, name: str) -> object:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets):
            return eval(compile(ast.Expression(node.value), str(path), "eval"), {"__builtins__": {}})
    raise AssertionError(f"{path} has no {name}")
