"""The pause record: people write it by hand, too."""

from __future__ import annotations

import pytest

from mirrorspark.control.pauses import format_pauses, parse_pauses
from mirrorspark.errors import SettingsError


@pytest.mark.parametrize("names", [frozenset(), frozenset({"*"}), frozenset({"east.a", "östlich"})])
def test_reads_what_was_written(names: frozenset[str]) -> None:
    assert parse_pauses(format_pauses(names)) == names


@pytest.mark.parametrize("raw", [None, b""])
def test_no_record_pauses_nothing(raw: bytes | None) -> None:
    assert parse_pauses(raw) == frozenset()


@pytest.mark.parametrize(
    "raw", [b"east.orders", b'"east.orders"', b"{}", b"[1]", b"null", b"[", b"\xff", b'["a", null]']
)
def test_anything_else_is_refused_and_says_how_to_mend_it(raw: bytes) -> None:
    with pytest.raises(SettingsError, match="mirrorspark pause"):
        parse_pauses(raw)
