"""``mirrorspark status`` on identical offsets: how many partitions have them, and since where the others have not."""

from __future__ import annotations

from typing import Any

from mirrorspark.control.command.status import _offset_lines, _offsets
from mirrorspark.offsets.parity import Parity


def _part(number: int, parity: Parity | None) -> dict[str, Any]:
    return {"topic": "orders", "partition": number, "offsets": _offsets(parity)}


def test_nothing_is_said_where_nobody_asked() -> None:
    assert _offset_lines([_part(0, None)]) == []


def test_those_that_lost_them_are_named() -> None:
    parts = [_part(0, Parity(7_000_000)), _part(1, Parity(5).lost(90)), _part(2, None)]
    assert _offset_lines(parts) == [
        "offsets: identical on 1 of 3 partitions",
        "orders-1: translated since 90, identical before, from 5 on",
    ]
    assert parts[0]["offsets"] == {
        "identical": True,
        "since": 7_000_000,
        "lost_at": None,
        "text": "identical since 7000000",
    }
