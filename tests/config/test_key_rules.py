"""Rules between the keys of one flow that MirrorMaker 2 does not have; its own are in ``test_mm2_rules``."""

from __future__ import annotations

import pytest

from mirrorspark.config.load import parse_deployment
from mirrorspark.errors import SettingsError

BASE = {
    "clusters": "east, west",
    "east.bootstrap.servers": "e1:9092",
    "west.bootstrap.servers": "w1:9092",
    "east->west.enabled": "true",
}
IDENTICAL = {**BASE, "east->west.offsets": "identical"}


def test_offsets_are_translated_unless_asked_for() -> None:
    (flow,) = [one for one in parse_deployment(BASE).flows if one.enabled]
    assert not flow.identical_offsets
    assert flow.starts_before_spark


def test_identical_offsets_are_a_flows_own_affair() -> None:
    both_ways = {**IDENTICAL, "west->east.enabled": "true"}
    found = {str(one.flow): one for one in parse_deployment(both_ways).flows}
    assert found["east->west"].identical_offsets
    assert not found["east->west"].starts_before_spark
    assert not found["west->east"].identical_offsets


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"west.exactly.once.source.support": "enabled"}, "leave no room for transactions of the mirror's own"),
        ({"replication.policy.class": "mirrorspark.SameNameReplicationPolicy"}, "producers of both clusters write"),
    ],
)
def test_what_does_not_go_with_identical_offsets_is_refused_by_name(other: dict[str, str], why: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_deployment({**IDENTICAL, **other})
    assert "east->west.offsets: " in str(caught.value)
    assert why in str(caught.value)


def test_another_word_is_refused() -> None:
    with pytest.raises(SettingsError, match="identical"):
        parse_deployment({**BASE, "east->west.offsets": "same"})
