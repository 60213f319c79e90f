"""Names of remote topics, by MirrorMaker 2's rules for its default and its identity policy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.plan.topic_naming import TopicNaming

DEFAULT = TopicNaming("source")
IDENTITY = TopicNaming("source", identity=True)

topics = st.text("abc.-_", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("separator", "topic", "remote"),
    [(".", "orders", "source.orders"), (".", "my.topic", "source.my.topic"), ("__", "orders", "source__orders")],
)
def test_remote_name(separator: str, topic: str, remote: str) -> None:
    assert TopicNaming("source", separator).remote(topic) == remote


def test_identity_keeps_the_name() -> None:
    assert IDENTITY.remote("orders") == "orders"


@pytest.mark.parametrize(
    ("topic", "origin"),
    [
        ("orders", None),
        ("east.orders", ("east", "orders")),
        ("my.topic", ("my", "topic")),  # any name with the separator in it looks remote
        ("east.west.orders", ("east", "west.orders")),
        ("a.", None),
        (".b", ("", "b")),
        ("a..b", ("a", ".b")),
    ],
)
def test_origin(topic: str, origin: tuple[str, str] | None) -> None:
    assert DEFAULT.origin(topic) == origin


def test_origin_goes_by_the_separator() -> None:
    naming = TopicNaming("source", "_")
    assert naming.origin("us-west.orders") is None
    assert naming.origin("us-west_orders") == ("us-west", "orders")


@given(topics, st.sampled_from([".", "_", "--"]))
def test_origin_undoes_remote(topic: str, separator: str) -> None:
    naming = TopicNaming("source", separator)
    assert naming.origin(naming.remote(topic)) == ("source", topic)


@pytest.mark.parametrize(
    "topic", ["target.t", "target.source.t", "source.target.t", "target.source.target.t", "source.target.source.t"]
)
def test_a_topic_that_has_been_on_the_target_is_a_cycle(topic: str) -> None:
    assert DEFAULT.is_cycle(topic, "target")
    assert not IDENTITY.is_cycle(topic, "target")  # identical names give no protection


@pytest.mark.parametrize("topic", ["t", "source.t", "target", "targets.t", "t.target", "target-t", "", ".", "..."])
def test_other_topics_are_no_cycle(topic: str) -> None:
    assert not DEFAULT.is_cycle(topic, "target")


def test_cycles_go_by_the_separator() -> None:
    assert TopicNaming("source", "_").is_cycle("target_t", "target")
    assert not TopicNaming("source", "_").is_cycle("target.t", "target")


@given(topics, topics)
def test_the_search_for_a_cycle_ends(topic: str, target: str) -> None:
    assert DEFAULT.is_cycle(topic, target) in (True, False)
