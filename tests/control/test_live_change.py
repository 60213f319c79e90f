"""What an edit changes, and whether lanes have to be started anew for it."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mirrorspark.pipeline
from mirrorspark.control.live_change import DRIVER_SETTINGS, Changes, changed_settings, difference
from mirrorspark.names import Flow
from mirrorspark.settings import ClusterSettings, FlowSettings

SECRET = "hunter2"


def _flow(name: str = "a", **changes: Any) -> FlowSettings:
    cluster = ClusterSettings(name, (("h", 1),), {"ssl.key.password": SECRET})
    return replace(FlowSettings(Flow(name, "west"), cluster, ClusterSettings("west", (("w", 1),))), **changes)


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else f"{value}x"


def _places() -> list[str]:
    """Every setting of a flow, ``part.field`` inside a part."""
    found = []
    for field in fields(FlowSettings):
        value = getattr(_flow(), field.name)
        if field.name in ("flow", "source", "target"):
            continue
        if is_dataclass(value):
            found += [f"{field.name}.{inner.name}" for inner in fields(value)]
        else:
            found.append(field.name)
    return found


def _changed(settings: FlowSettings, place: str) -> FlowSettings:
    part, dot, name = place.partition(".")
    if not dot:
        return replace(settings, **{place: _other(getattr(settings, place))})
    inner = getattr(settings, part)
    return replace(settings, **{part: replace(inner, **{name: _other(getattr(inner, name))})})


def test_nothing() -> None:
    assert not difference([_flow()], [_flow()])
    assert difference([_flow()], [_flow()]) == Changes()


@pytest.mark.parametrize("place", _places())
def test_every_setting_is_noticed_and_named(place: str) -> None:
    new = _changed(_flow(), place)
    assert changed_settings(_flow(), new) == [place]
    changes = difference([_flow(), _flow("b")], [new, _flow("b")])
    is_told = place in DRIVER_SETTINGS or place.partition(".")[0] in DRIVER_SETTINGS
    assert (changes.told, changes.restarted) == (((new,), ()) if is_told else ((), (new,)))
    (text,) = changes.texts
    assert text.startswith("a->west: ")
    assert text.endswith("applied as it runs" if is_told else "it is drained and started anew")


def test_people_read_the_keys_of_their_file() -> None:
    new = _changed(_changed(_flow(), "topic_sync.refresh_interval_s"), "topics")
    (text,) = difference([_flow()], [new]).texts
    assert text == "a->west: topics, refresh.topics.interval.seconds changed; applied as it runs"


def test_a_cluster_that_is_reached_otherwise_restarts_the_flow_and_shows_no_secret() -> None:
    new = replace(_flow(), source=ClusterSettings("a", (("h", 1),), {"ssl.key.password": f"{SECRET}3"}))
    changes = difference([_flow()], [new])
    assert changes.restarted == (new,)
    assert changes.texts == ("a->west: cluster a changed; it is drained and started anew",)


def test_a_pair_without_a_flow_has_no_lanes_to_restart() -> None:
    old, new = _flow(enabled=False), _flow(enabled=False, tasks_max=7)
    assert difference([old], [new]).told == (new,)
    assert difference([old], [_flow()]).restarted == (_flow(),)
    assert difference([_flow()], [old]).restarted == (old,)


def test_no_lane_looks_at_what_is_only_told_to_the_driver() -> None:
    """Else it would go on with the old value until its next epoch."""
    folder = Path(mirrorspark.pipeline.__file__).parent
    text = "\n".join(path.read_text() for path in sorted(folder.glob("*.py")))
    for place in DRIVER_SETTINGS:
        name = re.escape(place.rpartition(".")[2])
        assert not re.search(rf"(settings|policies|limits|group_sync|wanted)\.{name}\b", text), place
    assert set(DRIVER_SETTINGS) <= {*_places(), *(place.partition(".")[0] for place in _places())}


@given(st.sets(st.sampled_from("abcd")), st.sets(st.sampled_from("abcd")), st.sets(st.sampled_from("abcd")))
def test_old_and_changes_give_new(before: set[str], after: set[str], edited: set[str]) -> None:
    old = [_flow(name) for name in sorted(before)]
    new = [_flow(name, topics="other" if name in edited else ".*") for name in sorted(after)]
    changes = difference(old, new)
    kept = {one.flow: one for one in old if one.flow not in changes.removed}
    kept |= {one.flow: one for one in (*changes.added, *changes.told, *changes.restarted)}
    assert kept == {one.flow: one for one in new}
    assert len(changes.texts) == sum(
        map(len, (changes.added, changes.removed, changes.told, changes.restarted)), start=0
    )
