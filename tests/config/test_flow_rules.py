"""Two flows into one remote topic: an error where it is certain, a warning where patterns leave it open."""

from __future__ import annotations

import pytest

from mirrorspark.config.load import parse_deployment
from mirrorspark.errors import SettingsError

IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
SAME = {"replication.policy.class": "mirrorspark.SameNameReplicationPolicy"}
HUB = {
    "clusters": "a, b, hub",
    **{f"{alias}.bootstrap.servers": "h:1" for alias in ("a", "b", "hub")},
    "a->hub.enabled": "true",
    "b->hub.enabled": "true",
}
NESTED = {
    "clusters": "us, us.west, hub",
    **{f"{alias}.bootstrap.servers": "h:1" for alias in ("us", "us.west", "hub")},
    "us->hub.enabled": "true",
    "us.west->hub.enabled": "true",
}


@pytest.mark.parametrize(
    ("properties", "shared"),
    [
        ({**HUB, **IDENTITY, "topics": "orders, clicks"}, "clicks, orders"),
        ({**HUB, **SAME, "topics": "orders"}, "orders"),
        ({**HUB, **IDENTITY, "a->hub.topics": "x, orders", "b->hub.topics": "orders, y.*"}, "orders"),
        ({**HUB, "a->hub.replication.policy.class": "identity", "a->hub.topics": "b.x",
          "b->hub.topics": "x"}, "b.x"),
        ({**NESTED, "us->hub.topics": "west.x", "us.west->hub.topics": "x"}, "us.west.x"),
    ],
)  # fmt: skip
def test_two_flows_into_the_same_remote_topic(properties: dict[str, str], shared: str) -> None:
    with pytest.raises(SettingsError, match=f"would both write to {shared} on hub") as caught:
        parse_deployment(properties)
    assert str(caught.value.facts["key"]).endswith("topics")


@pytest.mark.parametrize(
    "properties",
    [
        {**HUB, **IDENTITY},
        {**HUB, **IDENTITY, "a->hub.topics": "a.*", "b->hub.topics": "b.*"},
        {**HUB, **IDENTITY, "a->hub.topics": "orders", "b->hub.topics": "ord.*"},
    ],
)
def test_patterns_are_told(properties: dict[str, str]) -> None:
    [remark] = parse_deployment(properties).remarks
    assert remark.kind == "warning"
    assert "a->hub and b->hub keep topic names" in remark.text


@pytest.mark.parametrize(
    "properties",
    [
        HUB,
        {**HUB, "topics": "orders"},
        {**HUB, **IDENTITY, "a->hub.topics": "orders", "b->hub.topics": "clicks"},
        {**HUB, **IDENTITY, "a->hub.topics": "orders", "b->hub.topics": "c.*"},
        {**HUB, **IDENTITY, "b->hub.enabled": "false"},
        {**NESTED, "us->hub.topics": "x", "us.west->hub.topics": "x"},
    ],
)
def test_what_stays_apart_needs_no_word(properties: dict[str, str]) -> None:
    assert parse_deployment(properties).remarks == []
