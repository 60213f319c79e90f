"""Spark masters as text."""

from __future__ import annotations

import pytest

from mirrorspark.errors import SettingsError
from mirrorspark.pipeline.spark_master import TASK_ATTEMPTS_MAX, check_master, is_local, local_slots, with_attempts


@pytest.mark.parametrize(
    ("given", "used"),
    [
        (None, f"local[3,{TASK_ATTEMPTS_MAX}]"),
        ("local", f"local[1,{TASK_ATTEMPTS_MAX}]"),
        ("local[4]", f"local[4,{TASK_ATTEMPTS_MAX}]"),
        ("local[*]", f"local[*,{TASK_ATTEMPTS_MAX}]"),
        ("local[4,7]", "local[4,7]"),
        ("local[*, 7]", "local[*, 7]"),
        ("local-cluster[2,1,512]", "local-cluster[2,1,512]"),
        ("spark://host:7077", "spark://host:7077"),
        ("yarn", "yarn"),
    ],
)
def test_a_local_master_gets_our_attempts_unless_it_says_its_own(given: str | None, used: str) -> None:
    assert with_attempts(given, 3) == used


@pytest.mark.parametrize(
    ("master", "local", "slots"),
    [
        (None, True, None),
        ("local", True, 1),
        ("local[2]", True, 2),
        ("local[2,9]", True, 2),
        ("local[*]", True, None),
        ("local-cluster[2,1,512]", False, None),
        ("spark://local:7077", False, None),
        ("k8s://https://host", False, None),
    ],
)
def test_what_is_local(master: str | None, local: bool, slots: int | None) -> None:
    assert is_local(master) is local
    assert local_slots(master) == slots


@pytest.mark.parametrize(
    "master", ["local", "local[2]", "local[*]", "local[2,5]", "yarn", "spark://a:1,b:2", "k8s://x"]
)
def test_known_masters(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master", ["", "foo", "local[", "local[0]", "local[x]", "local[2][3]", "spark://", "localhost:7077"]
)
def test_unknown_masters_are_refused_before_spark_starts(master: str) -> None:
    with pytest.raises(SettingsError, match="not a Spark master"):
        check_master(master)
