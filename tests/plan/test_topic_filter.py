"""Which topics a flow wants: lists, regexes, excludes, internal topics and cycles, by MirrorMaker 2's rules."""

from __future__ import annotations

import pytest

from mirrorspark.errors import SettingsError
from mirrorspark.plan.topic_filter import TopicFilter, is_internal
from mirrorspark.plan.topic_naming import TopicNaming
from mirrorspark.settings import FlowSettings

NAMING = TopicNaming("source")
DEFAULT_EXCLUDE = FlowSettings.__dataclass_fields__["topics_exclude"].default


def _wants(topic: str, topics: str = ".*", exclude: str = "", naming: TopicNaming = NAMING) -> bool:
    return TopicFilter(topics, exclude, naming, target="target").refusal(topic) is None


@pytest.mark.parametrize(
    ("topics", "topic", "wanted"),
    [
        (".*", "orders", True),
        ("orders", "orders", True),
        ("orders", "orders2", False),  # the whole name must match
        ("orders", "my-orders", False),
        ("order", "orders", False),
        ("^orders.*", "orders2", True),  # anchors do no harm
        ("orders$", "orders", True),
        ("a,b", "a", True),
        ("a,b", "b", True),
        ("a,b", "a,b", False),
        (" a , b ", "b", True),
        ("a,,b,", "b", True),
        ("orders|clicks", "clicks", True),
        ("orders|clicks, logs", "logs", True),
        ("orders|clicks", "orders|clicks", False),
        ("my.topic", "my.topic", True),
        ("my.topic", "my-topic", True),  # a plain name is a regex too
        ("my\\.topic", "my-topic", False),
        ("", "orders", False),  # an empty list wants nothing
        (" , ", "orders", False),
        ("ord[a-z]+s", "orders", True),
        ("(?i)orders, clicks", "ORDERS", True),  # one regex, joined: a flag in front counts for all of it
        ("(?i)orders, clicks", "Clicks", True),
    ],
)
def test_include(topics: str, topic: str, wanted: bool) -> None:
    assert _wants(topic, topics) == wanted


@pytest.mark.parametrize(
    ("exclude", "topic", "wanted"),
    [
        ("", "orders", True),  # an empty list excludes nothing
        ("orders", "orders", False),  # wins over the include
        ("orders", "orders2", True),
        ("a, orders", "orders", False),
        ("orders|clicks, logs", "clicks", False),
        ("my.topic", "my-topic", False),
    ],
)
def test_exclude(exclude: str, topic: str, wanted: bool) -> None:
    assert _wants(topic, ".*", exclude) == wanted


@pytest.mark.parametrize("topic", ["orders.replica", "x.internal", "x-internal", "__consumer_offsets"])
def test_default_exclude(topic: str) -> None:
    assert not _wants(topic, ".*", DEFAULT_EXCLUDE)
    assert _wants("orders", ".*", DEFAULT_EXCLUDE)


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("__consumer_offsets", True),
        ("__transaction_state", True),
        (".hidden", True),
        ("mm2-offsets.source.internal", True),
        ("mm2-offset-syncs.target.internal", True),
        ("source.checkpoints.internal", True),
        ("some-internal", True),
        ("mm2-offsets_X_internal", False),
        ("_schemas", False),
        ("heartbeats", False),
        ("internal", False),
        ("internal.orders", False),
    ],
)
def test_internal_topics(topic: str, internal: bool) -> None:
    assert is_internal(topic) == internal
    assert _wants(topic) == (not internal), "no filter setting lets an internal topic through"


def test_internal_topics_go_by_the_separator_too() -> None:
    assert is_internal("mm2-offset-syncs__C__internal", "__")
    assert not _wants("mm2-offset-syncs__C__internal", naming=TopicNaming("source", "__"))
    assert _wants("mm2-offset-syncs__C__internal")


@pytest.mark.parametrize("topic", ["t", "source.t"])
def test_topics_that_were_never_on_the_target_are_wanted(topic: str) -> None:
    assert _wants(topic)


@pytest.mark.parametrize(
    "topic", ["target.t", "target.source.t", "source.target.t", "target.source.target.t", "source.target.source.t"]
)
def test_cycles_are_refused_by_name_alone(topic: str) -> None:
    assert not _wants(topic)
    assert _wants(topic, naming=TopicNaming("source", identity=True))


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("__consumer_offsets", "internal"),
        ("clicks", "not in topics"),
        ("orders.replica", "topics.exclude"),
        ("target.orders", "cycle"),
    ],
)
def test_a_refusal_says_why(topic: str, reason: str) -> None:
    chosen = TopicFilter(r".*orders.*", r".*\.replica", NAMING, target="target")
    assert reason in (chosen.refusal(topic) or "")


@pytest.mark.parametrize(("topics", "exclude", "key"), [("(", "", "topics"), (".*", "a, [", "topics.exclude")])
def test_a_broken_regex_names_its_key(topics: str, exclude: str, key: str) -> None:
    with pytest.raises(SettingsError, match="not a regular expression") as caught:
        TopicFilter(topics, exclude, NAMING, target="target")
    assert caught.value.facts["key"] == key
    assert str(caught.value).startswith(f"{key}=")
