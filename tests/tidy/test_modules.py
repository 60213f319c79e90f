"""Every module of the product: says what it is for, stays short, and leaves nothing for later."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import mirrorspark

SOURCE = Path(mirrorspark.__file__).parent
LINES_MAX = 500
PRINTING = ("lab/", "control/command/")
"""Where people are spoken to; everything else logs or returns."""

_LATER = re.compile(r"\b(?:TODO|FIXME)\b")

MODULES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}
every_module = pytest.mark.parametrize("name", MODULES)


def says_what_it_is_for(text: str) -> bool:
    return bool((ast.get_docstring(ast.parse(text)) or "").strip())


def bare_excepts(text: str) -> list[int]:
    """Line numbers."""
    return [
        node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ExceptHandler) and node.type is None
    ]


def prints(text: str) -> list[int]:
    """Line numbers of calls of the built-in; a console's own ``print`` is another matter."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def left_for_later(text: str) -> list[int]:
    """Line numbers."""
    return [number for number, line in enumerate(text.splitlines(), 1) if _LATER.search(line)]


def is_too_long(text: str) -> bool:
    return len(text.splitlines()) > LINES_MAX


def _text(name: str) -> str:
    return MODULES[name].read_text(encoding="utf-8")


@every_module
def test_a_module_says_what_it_is_for(name: str) -> None:
    assert says_what_it_is_for(_text(name)), f"{name} has no docstring: what is it, who calls it, what may it not do?"


@every_module
def test_no_bare_except(name: str) -> None:
    assert bare_excepts(_text(name)) == []


@every_module
def test_only_commands_and_the_lab_print(name: str) -> None:
    if not name.startswith(PRINTING):
        assert prints(_text(name)) == []


@every_module
def test_no_module_is_too_long(name: str) -> None:
    text = _text(name)
    assert not is_too_long(text), f"{name} has {len(text.splitlines())} lines, more than {LINES_MAX}: find its seam"


@every_module
def test_nothing_is_left_for_later(name: str) -> None:
    assert left_for_later(_text(name)) == []


def test_modules_are_found() -> None:
    assert {"names.py", "wire/record_batch.py", "control/command/run.py", "lab/broker.py"} <= set(MODULES)


def test_a_breach_is_noticed() -> None:
    assert not says_what_it_is_for("import os\n")
    assert not says_what_it_is_for('""" """\n')
    assert not says_what_it_is_for("# only a comment\n")
    assert bare_excepts("try:\n    pass\nexcept:\n    pass\n") == [3]
    assert prints("def tell():\n    print('x')\n") == [2]
    assert left_for_later("a = 1\nb = 2  # TODO: more\n") == [2]
    assert left_for_later('"""FIXME"""') == [1]
    assert is_too_long("\n" * (LINES_MAX + 1))


def test_what_is_allowed_is_no_breach() -> None:
    assert says_what_it_is_for('"""What it is for."""\n')
    assert bare_excepts("try:\n    pass\nexcept ValueError:\n    pass\n") == []
    assert prints("console.print('x')\nprinted = 1\n") == []
    assert left_for_later("todo = [1]  # methods\n") == []
    assert not is_too_long("\n" * LINES_MAX)
