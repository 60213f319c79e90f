"""Names of remote and internal topics, by the rules of MirrorMaker 2's policies (reference 2.3) and of same-name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.plan.topic_naming import DefaultNaming, IdentityNaming, NamingFacts, SameNaming

DEFAULT = DefaultNaming(NamingFacts("source", "target"))
IDENTITY = IdentityNaming(NamingFacts("source", "target"))
SAME = SameNaming(NamingFacts("source", "target"))

topics = st.text("abc.-_", min_size=1, max_size=12)
real_topics = topics.filter(lambda topic: bool(topic.strip(".")))
separators = st.sampled_from([".", "_", "--", "__"])
policies = st.sampled_from([DefaultNaming, IdentityNaming, SameNaming])


def _default(separator: str, *aliases: str, source: str = "source") -> DefaultNaming:
    return DefaultNaming(NamingFacts(source, "target", separator, aliases=frozenset(aliases)))


# -- default policy ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("separator", "topic", "remote"),
    [(".", "orders", "source.orders"), (".", "my.topic", "source.my.topic"), ("__", "orders", "source__orders")],
)
def test_2_3_default_remote_is_alias_separator_topic(separator: str, topic: str, remote: str) -> None:
    assert _default(separator).remote(topic) == remote


@pytest.mark.parametrize(
    ("topic", "source", "upstream"),
    [
        ("orders", None, None),
        ("east.orders", "east", "orders"),
        ("my.topic", "my", "topic"),  # any name with the separator in it looks remote
        ("east.west.orders", "east", "west.orders"),
        ("a.", None, None),  # a trailing empty part is dropped
        ("a..", None, None),
        (".", None, None),
        ("..", None, None),
        (".b", "", "b"),
        ("a..b", "a", ".b"),
        ("", None, None),
    ],
)
def test_2_3_default_source_is_the_first_part(topic: str, source: str | None, upstream: str | None) -> None:
    assert DEFAULT.source_of(topic) == source
    assert DEFAULT.upstream(topic) == upstream


@pytest.mark.parametrize(
    ("separator", "topic", "source"),
    [
        ("_", "us-west.orders", None),
        ("_", "us-west_orders", "us-west"),
        ("--", "a---", "a"),
        ("--", "a----", None),
    ],
)
def test_2_3_the_separator_is_taken_literally(separator: str, topic: str, source: str | None) -> None:
    assert _default(separator).source_of(topic) == source


@pytest.mark.parametrize(
    ("topic", "source", "upstream"),
    [
        ("us.west.orders", "us.west", "orders"),
        ("us.west.us.west.orders", "us.west", "us.west.orders"),
        ("us.orders", "us", "orders"),
        ("us.west", "us", "west"),  # nothing behind the longer alias
        ("eu.central.orders", "eu.central", "orders"),
        ("eu.orders", "eu", "orders"),  # not a known alias: MirrorMaker 2's rule
    ],
)
def test_2_3_aliases_with_the_separator_in_them_are_known(topic: str, source: str, upstream: str) -> None:
    naming = _default(".", "us", "eu.central", source="us.west")
    assert (naming.source_of(topic), naming.upstream(topic)) == (source, upstream)


def test_2_3_an_empty_separator_goes_by_known_aliases() -> None:
    naming = _default("", "east")
    assert naming.remote("orders") == "sourceorders"
    assert naming.source_of("sourceorders") == "source"
    assert naming.upstream("eastorders") == "orders"
    assert naming.source_of("orders") is None


# -- internal topics ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("separator", "enabled", "offset_syncs", "checkpoints"),
    [
        (".", True, "mm2-offset-syncs.C.internal", "C.checkpoints.internal"),
        ("__", True, "mm2-offset-syncs__C__internal", "C__checkpoints__internal"),
        ("__", False, "mm2-offset-syncs.C.internal", "C.checkpoints.internal"),
    ],
)
@pytest.mark.parametrize("policy", [DefaultNaming, IdentityNaming, SameNaming])
def test_2_3_internal_separator(
    policy: type[DefaultNaming], separator: str, enabled: bool, offset_syncs: str, checkpoints: str
) -> None:
    naming = policy(NamingFacts("source", "target", separator, enabled))
    assert naming.offset_syncs_topic("C") == offset_syncs
    assert naming.checkpoints_topic("C") == checkpoints
    assert naming.is_internal(offset_syncs)
    assert naming.is_internal(checkpoints)
    assert naming.is_checkpoints(checkpoints)
    assert not naming.is_checkpoints(offset_syncs)


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("__consumer_offsets", True),
        ("__transaction_state", True),
        (".hidden", True),
        ("mm2-offsets.source.internal", True),
        ("mm2-status.source.internal", True),
        ("mm2-offset-syncs.target.internal", True),
        ("source.checkpoints.internal", True),
        ("mirrorspark-plan.source.internal", True),
        ("mirrorspark-ledger.source.internal", True),
        ("mm2-offsets_X_internal", False),
        ("_schemas", False),
        ("heartbeats", False),
        ("source.heartbeats", False),
        ("internal", False),
        ("internal.orders", False),
        ("x.internal", False),  # seen on 4.3.1: the filter alone decides
        ("x-internal", False),
    ],
)
def test_2_1_6_internal_topics(topic: str, internal: bool) -> None:
    assert DEFAULT.is_internal(topic) == internal
    assert IDENTITY.is_internal(topic) == internal
    assert SAME.is_internal(topic) == internal


# -- identity and same-name --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "remote"),
    [
        ("orders", "orders"),
        ("my.topic", "my.topic"),
        ("heartbeats", "source.heartbeats"),
        ("east.heartbeats", "source.east.heartbeats"),
        ("my-heartbeats", "source.my-heartbeats"),  # MirrorMaker 2's quirk: a plain test of the end
        ("heartbeats-2", "heartbeats-2"),
    ],
)
def test_2_3_identity_remote(topic: str, remote: str) -> None:
    assert IDENTITY.remote(topic) == remote


@pytest.mark.parametrize(
    ("topic", "source", "upstream"),
    [
        ("orders", "source", "orders"),
        ("east.orders", "source", "east.orders"),
        ("heartbeats", None, None),
        ("east.heartbeats", "east", "heartbeats"),
        ("my-heartbeats", None, None),
    ],
)
def test_2_3_identity_takes_every_topic_for_the_sources(topic: str, source: str | None, upstream: str | None) -> None:
    assert IDENTITY.source_of(topic) == source
    assert IDENTITY.upstream(topic) == upstream


@pytest.mark.parametrize(
    ("topic", "remote", "source"),
    [
        ("orders", "orders", None),
        ("target.orders", "target.orders", None),
        ("heartbeats", "source.heartbeats", None),
        ("east.heartbeats", "source.east.heartbeats", "east"),
        ("my-heartbeats", "my-heartbeats", None),  # not a heartbeats topic, so its name stays
    ],
)
def test_same_name_keeps_all_names_but_heartbeats(topic: str, remote: str, source: str | None) -> None:
    assert SAME.remote(topic) == remote
    assert SAME.source_of(topic) == source


def test_only_same_name_needs_the_origin() -> None:
    assert [policy.needs_origin_check for policy in (DEFAULT, IDENTITY, SAME)] == [False, False, True]


# -- laws --------------------------------------------------------------------------------------------------------------


@given(real_topics, separators, st.sampled_from(["source", "us.west", "a_b", "x--y"]))
def test_upstream_undoes_remote(topic: str, separator: str, alias: str) -> None:
    naming = DefaultNaming(NamingFacts(alias, "target", separator))
    if topic.replace(separator, ""):
        assert naming.source_of(naming.remote(topic)) == alias
        assert naming.upstream(naming.remote(topic)) == topic


@given(topics, separators, policies)
def test_source_and_upstream_are_both_known_or_both_not(
    topic: str, separator: str, policy: type[DefaultNaming]
) -> None:
    naming = policy(NamingFacts("a", "b", separator))
    assert (naming.source_of(topic) is None) == (naming.upstream(topic) is None)


@given(topics, separators)
def test_taking_aliases_off_puts_them_back(topic: str, separator: str) -> None:
    naming = DefaultNaming(NamingFacts("a", "b", separator))
    source, upstream = naming.source_of(topic), naming.upstream(topic)
    if source is not None:
        assert f"{source}{separator}{upstream}" == topic


@given(topics, topics, separators)
def test_different_topics_never_share_a_remote_name(one: str, other: str, separator: str) -> None:
    for policy in (DefaultNaming, SameNaming):
        naming = policy(NamingFacts("a", "b", separator))
        assert (naming.remote(one) == naming.remote(other)) == (one == other)
