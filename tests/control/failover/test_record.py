"""The failover record: what is written is what is read, and what cannot be read is said rather than guessed."""

from __future__ import annotations

import pytest

from mirrorspark.control.failover.record import Mode, Outcome, Record, StepState, format_record, parse_record
from mirrorspark.errors import SettingsError

RECORD = Record("r1", "east->west", Mode.DRAIN, "pid 1 on here", 5)


def test_it_comes_back_as_it_went() -> None:
    record = RECORD.with_step("drain", Outcome("done", {"a": [1, 2]}), 7)
    record = record.with_step("reverse", Outcome("later", state=StepState.POSTPONED), 8)
    assert parse_record(format_record(record), "here") == record
    assert record.is_done("drain")
    assert not record.is_done("reverse")
    assert record.postponed == ["reverse"]
    assert record.facts("drain") == {"a": [1, 2]}
    assert record.facts("groups") == {}


def test_no_record_is_none() -> None:
    assert parse_record(None, "here") is None
    assert parse_record(b"", "here") is None


@pytest.mark.parametrize("raw", [b"{", b"[]", b'{"v":1}', b"7", format_record(RECORD).replace(b"drain", b"dance")])
def test_a_damaged_one_is_named(raw: bytes) -> None:
    with pytest.raises(SettingsError, match=r"here: the failover record cannot be read.*--abandon"):
        parse_record(raw, "here")


def test_one_of_a_later_version_is_left_to_who_wrote_it() -> None:
    with pytest.raises(SettingsError, match="version 2"):
        parse_record(format_record(RECORD).replace(b'"v":1', b'"v":2'), "here")


def test_what_is_repeated_is_forgotten() -> None:
    record = RECORD.with_step("drain", Outcome("x"), 1).with_step("hold", Outcome("y"), 2)
    assert set(record.without(["drain", "none"]).steps) == {"hold"}
