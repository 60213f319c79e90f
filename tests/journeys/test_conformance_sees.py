"""The conformance suite is no formality: recorded answers agree with themselves, and each planted difference is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.journeys.connect_cases import CASES, Case
from tests.journeys.test_connect_conformance import Answer, differences

STATUS = {
    "name": "msc",
    "connector": {"state": "RUNNING", "worker_id": "127.0.0.1:8083"},
    "tasks": [{"id": 0, "state": "RUNNING", "worker_id": "127.0.0.1:8083"}],
    "type": "source",
}
"""As Kafka Connect 4.1 answered ``GET /connectors/msc/status``; the version left out."""
CREATED = Answer(
    201, {"name": "msc", "config": {"topics": "a"}, "tasks": [], "type": "source"}, "http://c/connectors/msc"
)
REFUSED = Answer(409, {"error_code": 409, "message": "Connector msc already exists"}, "")
SEEN = Answer(200, STATUS, "")
CASE = Case("a planted case", "GET", "/connectors/{msc}/status")
EXACT = replace(CASE, exact=("error_code",))


def _status(**changes: Any) -> Answer:
    return replace(SEEN, body={**STATUS, **changes})


def test_what_is_recorded_agrees_with_itself() -> None:
    for answer in (CREATED, REFUSED, SEEN):
        assert differences(CASE, answer, answer) == []
    other_values = _status(name="another", tasks=[*STATUS["tasks"], STATUS["tasks"][0]])  # type: ignore[misc]
    assert differences(CASE, SEEN, other_values) == [], "names and counts are a user's"


@pytest.mark.parametrize(
    ("ours", "word"),
    [
        (replace(SEEN, code=202), "code 200, ours 202"),
        (replace(SEEN, body=None), "shape"),
        (replace(SEEN, body=[STATUS]), "shape"),
        (replace(SEEN, location="http://c/connectors/msc"), "location"),
        (_status(type=None), "shape"),
        (_status(more=1), "shape"),
        (_status(connector={"state": "RUNNING"}), "shape"),
        (_status(tasks=[{"id": "0", "state": "RUNNING", "worker_id": "x"}]), "shape"),
        (_status(tasks=[]), "shape"),
        (replace(SEEN, body={key: value for key, value in STATUS.items() if key != "name"}), "shape"),
    ],
)
def test_a_planted_difference_is_found(ours: Answer, word: str) -> None:
    found = differences(CASE, SEEN, ours)
    assert found, "the suite would have passed"
    assert any(word in line for line in found), found


def test_a_created_connector_must_say_where_it_is() -> None:
    assert differences(CASE, CREATED, replace(CREATED, location=""))
    assert differences(CASE, CREATED, replace(CREATED, code=200))


def test_an_error_must_have_its_own_code() -> None:
    assert differences(EXACT, REFUSED, replace(REFUSED, body={"error_code": 400, "message": "other words"}))
    assert differences(EXACT, REFUSED, replace(REFUSED, body={"error_code": 409, "message": "other words"})) == []
    assert differences(EXACT, REFUSED, replace(REFUSED, body={"error": "x"}))


def test_only_a_clients_mistake_may_have_another_code() -> None:
    """Connect answers some mistakes with 500: ours is 400 then, and nothing else is."""
    theirs, ours = (Answer(code, {"error_code": code, "message": "x"}, "") for code in (500, 400))
    assert differences(CASE, theirs, ours) == []
    assert differences(CASE, ours, theirs)
    assert differences(CASE, theirs, replace(ours, code=404))


def test_no_two_cases_share_a_name() -> None:
    """Answers are kept by it: one of the two would never be compared."""
    assert len({case.name for case in CASES}) == len(CASES)
