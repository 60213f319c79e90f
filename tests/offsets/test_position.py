"""A partition's position as a group offset on the target, and what is not one."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import NewerFormat
from mirrorspark.names import Flow
from mirrorspark.offsets.position import Booked, LastWriter, Position, positions_group

WRITER = LastWriter("__mirrorspark-east->west-0", 4_000, 3, 17, clean=False)
POSITION = Position(1_000, 950, "ab" * 16, 5, WRITER)
TEXT: dict[str, Any] = json.loads(POSITION.to_commit()[1])

numbers = st.integers(-1, 2**62)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
writers = st.none() | st.builds(LastWriter, texts, numbers, numbers, numbers, st.booleans())


def test_the_group_is_left_out_by_mirror_makers_default_filter() -> None:
    assert positions_group(Flow("east", "west")) == "__mirrorspark-east->west"
    assert positions_group(Flow("east", "west", "orders")) == "__mirrorspark-east->west/orders"


def test_committed_text() -> None:
    offset, metadata = POSITION.to_commit()
    assert offset == 950
    assert metadata == (
        '{"v":1,"up":1000,"id":"abababababababababababababababab","le":5,'
        '"w":["__mirrorspark-east->west-0",4000,3,17],"clean":0}'
    )


def test_committed_text_fits_into_a_brokers_default_limit() -> None:
    """offset.metadata.max.bytes is 4096."""
    most = 2**63 - 1
    writer = LastWriter(f"__mirrorspark-{'s' * 200}->{'t' * 200}-{'0' * 10}", most, 2**15 - 1, most, clean=True)
    assert len(Position(most, most, "f" * 32, 2**31 - 1, writer).to_commit()[1]) < 4096


pairs = st.tuples(numbers, numbers)
bookeds = (
    st.builds(Booked, numbers, numbers)
    | st.builds(Booked, numbers, numbers, pairs)
    | st.builds(Booked, numbers, numbers, pairs, st.tuples(numbers, numbers, numbers))
)


def test_how_far_the_ledger_is_written_travels_with_the_position() -> None:
    booked = Booked(990, 940, (100, 50), (100, 989, 50))
    position = Position(1_000, 950, "", 5, None, booked)
    text = position.to_commit()[1]
    assert text == '{"v":1,"up":1000,"id":"","le":5,"w":null,"clean":1,"b":[[990,940],[100,50],[100,989,50]]}'
    assert Position.from_commit(950, text) == position


@pytest.mark.parametrize(
    "booked", ["[[1]]", "[1,2]", "[[1,2],[3]]", "[[1,2],[3,4],[5]]", '"x"', "[[1,2],[3,4],[5,6,7],[8]]"]
)
def test_a_position_with_a_damaged_ledger_place_is_none(booked: str) -> None:
    assert Position.from_commit(950, f'{{"v":1,"up":1,"id":"","le":5,"w":null,"clean":1,"b":{booked}}}') is None


@given(st.builds(Position, numbers, numbers, texts, numbers, writers, st.none() | bookeds))
def test_a_position_reads_back(position: Position) -> None:
    assert Position.from_commit(*position.to_commit()) == position


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        " ",
        "reset by hand",
        "null",
        "1",
        "[]",
        '"v"',
        "{}",
        '{"v":1}',
        "{" * 50,
        json.dumps({**TEXT, "v": 0}),
        json.dumps({**TEXT, "up": None}),
        json.dumps({**TEXT, "up": "many"}),
        json.dumps({**TEXT, "up": []}),
        json.dumps({**TEXT, "up": float("inf")}),
        json.dumps({**TEXT, "le": float("nan")}),
        json.dumps({**TEXT, "w": ["id", 1]}),
        json.dumps({**TEXT, "w": ["id", 1, 2, "x"]}),
        json.dumps({**TEXT, "w": {"id": 1}}),
        json.dumps({**TEXT, "w": 7}),
    ],
)
def test_foreign_text_is_no_position(metadata: str) -> None:
    assert Position.from_commit(950, metadata) is None


@pytest.mark.parametrize("missing", ["v", "up", "id", "le", "w", "clean"])
def test_text_with_a_part_missing_is_no_position(missing: str) -> None:
    metadata = json.dumps({key: value for key, value in TEXT.items() if key != missing})
    assert Position.from_commit(950, metadata) is None


@given(texts)
def test_arbitrary_text_is_no_position(metadata: str) -> None:
    assert Position.from_commit(950, metadata) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(TEXT)), json_values)
def test_a_part_of_another_type_never_raises(part: str, value: object) -> None:
    newer = isinstance(value, int) and value > 1
    with pytest.raises(NewerFormat) if part == "v" and newer else nullcontext():
        Position.from_commit(950, json.dumps({**TEXT, part: value}))


def test_a_newer_mirrorsparks_position_is_refused_and_not_proved_anew() -> None:
    with pytest.raises(NewerFormat, match=r"a position on the target is of format 2, .* reads formats up to 1"):
        Position.from_commit(950, json.dumps({**TEXT, "v": 2, "up": {"unknown": True}}))
