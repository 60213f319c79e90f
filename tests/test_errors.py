"""The error tree: one page, facts that travel, and a flag that callers ask instead of a list of types."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from mirrorspark import errors
from mirrorspark.errors import BrokerError, MirrorError, RequestTimedOut, Unreachable


def _tree(root: type[MirrorError] = MirrorError) -> Iterator[type[MirrorError]]:
    yield root
    for child in root.__subclasses__():
        yield from _tree(child)


CLASSES = [cls for cls in _tree() if cls.__module__ == errors.__name__]
every_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
FACTS = {"topic": "orders", "partition": 3, "offset": 17, "error_code": 6, "looked": ["here", "there"]}


def test_the_page_shows_the_whole_tree() -> None:
    assert len(CLASSES) > 10
    assert sorted(cls.__name__ for cls in CLASSES) == sorted(errors.__all__)
    drawn = (errors.__doc__ or "").split()
    assert [cls.__name__ for cls in CLASSES if cls.__name__ not in drawn] == []


def test_codes_are_stable_upper_case_and_unique() -> None:
    codes = [cls.code for cls in CLASSES]
    assert len(set(codes)) == len(codes)
    assert all(code.isupper() for code in codes)


@every_class
def test_an_error_pickles_with_its_facts(cls: type[MirrorError]) -> None:
    error = cls("orders-3 is lost", **FACTS)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(error, protocol))
        assert type(copy) is cls
        assert (copy.message, copy.facts, copy.args) == (error.message, error.facts, error.args)
        assert copy.retriable == error.retriable


@every_class
def test_an_error_without_facts_pickles(cls: type[MirrorError]) -> None:
    copy = pickle.loads(pickle.dumps(cls("why")))
    assert (type(copy), str(copy), copy.facts) == (cls, "why", {})


@every_class
def test_an_error_lists_itself_as_a_dict(cls: type[MirrorError]) -> None:
    assert cls("why", **FACTS).as_dict() == {"code": cls.code, "message": "why", **FACTS}


@every_class
def test_an_error_says_its_message_and_nothing_else(cls: type[MirrorError]) -> None:
    assert str(cls("why", password="secret")) == "why"
    assert repr(cls("why", password="secret")) == f"{cls.__name__}('why')"


def test_retriable_errors() -> None:
    assert {cls for cls in CLASSES if cls("why").retriable} == {Unreachable, RequestTimedOut}


@pytest.mark.parametrize(
    ("facts", "retriable"), [({}, False), ({"retriable": False}, False), ({"retriable": True}, True)]
)
def test_a_brokers_error_is_retriable_as_its_code_says(facts: dict[str, bool], retriable: bool) -> None:
    error = BrokerError("refused", error_code=6, **facts)
    assert error.retriable is retriable
    assert pickle.loads(pickle.dumps(error)).retriable is retriable
    assert error.error_code == 6


def test_a_class_defined_elsewhere_pickles_too() -> None:
    assert pickle.loads(pickle.dumps(_Own("why", lane=2))).facts == {"lane": 2}


class _Own(MirrorError):
    code = "OWN"
