"""Faults as values: the same seed draws the same, each kind before any comes again; what was done is undone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from mirrorspark.lab.broker_faults import NAMES
from mirrorspark.lab.faults import Fault, Struck, drawn, table


@contextmanager
def _noted(calls: list[str], dice: random.Random) -> Iterator[str]:
    calls.append("act")
    try:
        yield "somebody"
    finally:
        calls.append("undo")


def test_same_seed_draws_the_same_and_another_seed_something_else() -> None:
    assert drawn(1, NAMES, 20) == drawn(1, NAMES, 20)
    assert drawn(1, NAMES, 20) != drawn(2, NAMES, 20)


def test_every_kind_is_drawn_before_any_comes_again() -> None:
    names = drawn(5, NAMES, 2 * len(NAMES) + 3)
    assert set(names[: len(NAMES)]) == set(names[len(NAMES) : 2 * len(NAMES)]) == set(NAMES)
    assert len(names) == 2 * len(NAMES) + 3
    assert len(NAMES) <= 20, "twenty faults meet every kind"


def test_a_fault_is_undone_also_when_what_it_meets_fails() -> None:
    calls: list[str] = []
    fault = Fault("noted", partial(_noted, calls))
    seen: list[str] = []
    with pytest.raises(ZeroDivisionError), fault.strike(random.Random(1)) as what:
        seen.append(f"{what}: {1 // len(seen)}")
    assert calls == ["act", "undo"]


def test_table_and_json_tell_both_stalls() -> None:
    struck = Struck("target-cut", "brokers 1, 2", 12.0, 20.5, 22.0, stall_s=0.25, partition_stall_s=8.75)
    head, line = table([struck]).splitlines()
    assert head.split() == ["at", "fault", "lasted", "stall", "partition", "what"]
    assert line.split() == ["12", "s", "target-cut", "8.5", "s", "0.2", "s", "8.8", "s", "brokers", "1,", "2"]
    assert struck.to_json()["partition_stall_s"] == 8.75
