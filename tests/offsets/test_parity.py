"""Since where offsets are identical, and until where; as a position keeps it."""

from __future__ import annotations

import pytest

from mirrorspark.offsets.parity import Parity
from mirrorspark.offsets.position import LastWriter, Pen, Position

WRITER = LastWriter("lane", 7, 3, 1, clean=False)


def test_it_is_lost_once_and_says_where() -> None:
    parity = Parity(7_000_000)
    assert parity.holds
    assert str(parity) == "identical since 7000000"
    lost = parity.lost(7_000_123)
    assert not lost.holds
    assert str(lost) == "translated since 7000123, identical before, from 7000000 on"
    assert str(Parity(5).lost(5)) == "translated since 5"
    with pytest.raises(AssertionError):
        lost.lost(7_000_124)


@pytest.mark.parametrize("parity", [None, Parity(0), Parity(7).lost(9)])
@pytest.mark.parametrize("pen", [None, Pen(7, 2, 2**31 - 1, 1_700_000_000_000)])
def test_a_position_keeps_it(parity: Parity | None, pen: Pen | None) -> None:
    position = Position(9, 9, "ab", 4, WRITER, parity=parity, pen=pen)
    assert Position.from_commit(*position.to_commit()) == position


def test_a_damaged_one_is_no_position() -> None:
    offset, text = Position(9, 9, "ab", 4, WRITER, parity=Parity(3)).to_commit()
    assert Position.from_commit(offset, text.replace('"i":[3,-1]', '"i":[3]')) is None
    assert Position.from_commit(offset, text.replace('"i":[3,-1]', '"i":["x",1]')) is None
