"""Events: their keys, their words, their bytes."""

from __future__ import annotations

import dataclasses
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.events import Event, EventKind

KINDS = [value for name, value in vars(EventKind).items() if name.isupper()]
GAP = Event(EventKind.DATA_GAP, "retention passed", "orders", 3, 100, 149, waits=True, at_ms=1_700_000_000_000)

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
numbers = st.integers(-1, 2**62)
events = st.builds(Event, st.sampled_from(KINDS), texts, texts, numbers, numbers, numbers, st.booleans(), numbers)


def test_kinds_are_unique_dotted_names() -> None:
    assert len(set(KINDS)) == len(KINDS) > 8
    assert all(kind == kind.lower() and "." in kind and "/" not in kind for kind in KINDS)


@given(events)
def test_an_event_reads_back(event: Event) -> None:
    assert Event.from_json(event.to_json()) == event
    assert pickle.loads(pickle.dumps(event)) == event


def test_an_event_is_one_line_of_plain_json() -> None:
    raw = GAP.to_json()
    assert b"\n" not in raw
    assert json.loads(raw) == dataclasses.asdict(GAP)


def test_a_repeat_has_the_same_key_and_a_new_range_another() -> None:
    assert GAP.key == "event/data.gap/orders/3/100"
    assert dataclasses.replace(GAP, text="again", at_ms=5, offset_last=160).key == GAP.key
    for change in ({"offset_first": 150}, {"partition": 4}, {"topic": "clicks"}, {"kind": EventKind.TOPIC_RECREATED}):
        assert dataclasses.replace(GAP, **change).key != GAP.key


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (GAP, "data.gap orders-3 offsets 100..149: retention passed"),
        (Event("topic.refused", "why", topic="orders"), "topic.refused orders: why"),
        (Event("fence.unavailable", "why"), "fence.unavailable: why"),
        (Event("x.y", "why", "orders", 0, 0, 0), "x.y orders-0 offsets 0..0: why"),
    ],
)
def test_an_event_in_words(event: Event, text: str) -> None:
    assert str(event) == text


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        GAP.text = "other"  # type: ignore[misc]


def test_an_event_notes_when_it_was_made() -> None:
    assert isinstance(Event("x.y", "why").at_ms, int)
