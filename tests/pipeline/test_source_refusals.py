"""How often a source that refuses us is asked again."""

from __future__ import annotations

from mirrorspark.errors import AuthenticationFailed, Unreachable
from mirrorspark.pipeline.source_refusals import (
    REFUSED_PAUSE_S_MAX,
    RELOCATE_PAUSE_S,
    STREAM_PAUSE_S,
    SourceRefusals,
)

REFUSED = AuthenticationFailed("east.sasl.jaas.config: h:1: the broker refused the login of user mirror")
AWAY = Unreachable("h:1: cannot connect")
RECOVERS_WITHIN_S = 10.0


def test_what_passes_by_itself_is_asked_for_soon() -> None:
    refusals = SourceRefusals()
    assert [refusals.pause_after(AWAY, RELOCATE_PAUSE_S) for _ in range(100)] == [RELOCATE_PAUSE_S] * 100
    assert refusals.text == ""


def test_a_login_that_is_refused_is_tried_less_and_less_often() -> None:
    refusals = SourceRefusals()
    pauses = [refusals.pause_after(REFUSED, STREAM_PAUSE_S) for _ in range(20)]
    assert pauses[0] == STREAM_PAUSE_S
    assert pauses == sorted(pauses)
    assert pauses[-1] == REFUSED_PAUSE_S_MAX < RECOVERS_WITHIN_S
    assert sum(pause < REFUSED_PAUSE_S_MAX for pause in pauses) < 6, "a handful of tries, then one in five seconds"
    assert "refused the login of user mirror" in refusals.text


def test_another_trouble_or_an_answer_begins_anew() -> None:
    refusals = SourceRefusals()
    for _ in range(10):
        refusals.pause_after(REFUSED, STREAM_PAUSE_S)
    refusals.pause_after(AWAY, STREAM_PAUSE_S)
    assert refusals.text == ""
    assert refusals.pause_after(REFUSED, STREAM_PAUSE_S) == STREAM_PAUSE_S
    refusals.answered([])
    assert refusals.text == ""
    assert refusals.pause_after(REFUSED, STREAM_PAUSE_S) == STREAM_PAUSE_S
