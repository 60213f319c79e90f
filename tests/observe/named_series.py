"""The names that people's dashboards and rules have (``named_series.txt``), read for the tests that demand them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["missing_series", "named_series"]

FACTS = Path(__file__).with_name("named_series.txt")


def named_series() -> list[tuple[str, frozenset[str]]]:
    """Name and labels; a name may come twice, with labels of two dashboards."""
    lines = [line.split() for line in FACTS.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return [(name, frozenset(label for part in labels for label in part.split(","))) for name, *labels in lines]


def missing_series(found: Iterable[tuple[str, Iterable[str]]], client: str) -> list[str]:
    """What a page has not: ``found`` are the names and labels of its samples, ``client`` the worker's client id in names."""
    told: dict[str, set[str]] = {}
    for name, labels in found:
        told.setdefault(name, set()).update(labels)
    wanted = [(name.format(client=client), labels) for name, labels in named_series()]
    return [f"{name} {sorted(labels)}" for name, labels in wanted if name not in told or not labels <= told[name]]
