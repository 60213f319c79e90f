"""Which topics a flow wants, by MirrorMaker 2's rules (reference 2.1, 2.2): lists, internal topics, heartbeats, cycles."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow
from mirrorspark.plan.replication_policy import ReplicationPolicy, is_heartbeats, policy_for
from mirrorspark.plan.topic_filter import Refusal, TopicFilter
from mirrorspark.plan.topic_naming import DefaultNaming, IdentityNaming, NamingFacts, SameNaming
from mirrorspark.settings import ClusterSettings, FlowSettings, Heartbeats, Naming

FACTS = NamingFacts("source", "target")
DEFAULT = DefaultNaming(FACTS)
IDENTITY = IdentityNaming(FACTS)
SAME = SameNaming(FACTS)
DEFAULT_EXCLUDE = FlowSettings.__dataclass_fields__["topics_exclude"].default


def _wants(topic: str, topics: str = ".*", exclude: str = "", policy: ReplicationPolicy = DEFAULT) -> bool:
    return TopicFilter(topics, exclude, policy, target="target").refusal(topic) is None


# -- 2.1, the lists ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topics", "topic", "wanted"),
    [
        (".*", "orders", True),
        ("orders", "orders", True),
        ("orders", "orders2", False),
        ("orders", "my-orders", False),
        ("order", "orders", False),
        ("^orders.*", "orders2", True),  # anchors do no harm
        ("orders$", "orders", True),
        ("orders|clicks", "clicks", True),
        ("orders|clicks, logs", "logs", True),
        ("orders|clicks", "orders|clicks", False),
        ("ord[a-z]+s", "orders", True),
        ("(?i)orders, clicks", "ORDERS", True),  # one regex, joined: a flag in front counts for all of it
        ("(?i)orders, clicks", "Clicks", True),
        ("[a-z&&[^o]]+", "clicks", True),
        ("[a-z&&[^o]]+", "orders", False),
        ("(?!tmp).*", "tmp-orders", False),
        (r"\p{Alpha}+\.\d{2}", "orders.42", True),
    ],
)
def test_2_1_1_joined_with_a_bar_and_matched_whole(topics: str, topic: str, wanted: bool) -> None:
    assert _wants(topic, topics) == wanted


@pytest.mark.parametrize(
    ("topics", "topic", "wanted"),
    [
        ("a,b", "a", True),
        ("a,b", "b", True),
        ("a,b", "a,b", False),
        (" a , b ", "b", True),
        ("a,\n  b", "b", True),
        ("a,,b,", "b", True),
    ],
)
def test_2_1_2_lists_are_split_on_commas(topics: str, topic: str, wanted: bool) -> None:
    assert _wants(topic, topics) == wanted


@pytest.mark.parametrize(
    ("topic", "wanted"),
    [
        ("mm2-offset-syncs.b.internal", False),
        ("a.checkpoints.internal", False),
        ("b.a.checkpoints.internal", False),
        ("mm2-offsets.a.internal", False),
        ("mm2-status.a.internal", False),
        ("mm2-configs.a.internal", False),
        ("heartbeats", True),
    ],
)
@pytest.mark.parametrize("topics", [".*", "mm2.*, .*internal, heartbeats", "nothing"])
def test_2_1_7_a_mirrors_own_topics_are_never_mirrored_but_for_heartbeats(
    topic: str, wanted: bool, topics: str
) -> None:
    assert _wants(topic, topics, "") == wanted


def test_2_1_2_a_comma_inside_a_regex_cannot_be_written() -> None:
    with pytest.raises(SettingsError, match=r"a comma ends an element of the list, so \{n,m\} cannot be written"):
        _wants("aa", "a{1,3}")


@pytest.mark.parametrize(
    ("topics", "topic", "wanted"),
    [("my.topic", "my.topic", True), ("my.topic", "my-topic", True), (r"my\.topic", "my-topic", False)],
)
def test_2_1_3_plain_names_are_regexes_too(topics: str, topic: str, wanted: bool) -> None:
    assert _wants(topic, topics) == wanted


@pytest.mark.parametrize(
    ("topics", "exclude", "wanted"), [("", "", False), (" ", "", False), (" , ", "", False), (".*", "", True)]
)
def test_2_1_4_an_empty_list_wants_nothing_and_excludes_nothing(topics: str, exclude: str, wanted: bool) -> None:
    assert _wants("orders", topics, exclude) == wanted


@pytest.mark.parametrize(
    ("exclude", "topic", "wanted"),
    [
        ("orders", "orders", False),
        ("orders", "orders2", True),
        ("a, orders", "orders", False),
        ("orders|clicks, logs", "clicks", False),
        ("my.topic", "my-topic", False),
    ],
)
def test_2_1_1_excludes_win(exclude: str, topic: str, wanted: bool) -> None:
    assert _wants(topic, ".*", exclude) == wanted


@pytest.mark.parametrize(
    "topic", ["orders.replica", "x.internal", "x-internal", "__consumer_offsets", "a.checkpoints.internal"]
)
def test_2_1_8_default_exclude(topic: str) -> None:
    assert not _wants(topic, ".*", DEFAULT_EXCLUDE)
    assert _wants("orders", ".*", DEFAULT_EXCLUDE)


# -- 2.1, heartbeats and internal topics -------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [DEFAULT, IDENTITY, SAME])
@pytest.mark.parametrize("topic", ["heartbeats", "us-west.heartbeats", "a.b.heartbeats"])
def test_2_1_5_heartbeats_pass_a_filter_that_refuses_all(policy: ReplicationPolicy, topic: str) -> None:
    assert _wants(topic, "", ".*", policy)
    strict = TopicFilter("", ".*", policy, target="target", heartbeats_replicated=False)
    assert strict.refusal(topic) is not None


def test_2_1_5_heartbeats_go_by_the_separator() -> None:
    policy = DefaultNaming(NamingFacts("source", "target", "_"))
    assert not _wants("us-west.heartbeats", "", "", policy)
    assert _wants("us-west_heartbeats", "", "", policy)


def test_2_1_5_without_the_override_heartbeats_follow_the_filter() -> None:
    chosen = TopicFilter("heartbeats", "", DEFAULT, target="target", heartbeats_replicated=False)
    assert chosen.refusal("heartbeats") is None


@pytest.mark.parametrize(
    "topic",
    [
        "__consumer_offsets",
        ".hidden",
        "mm2-offsets.x.internal",
        "mm2-offset-syncs.target.internal",
        "x.checkpoints.internal",
    ],
)
def test_2_1_6_no_filter_setting_lets_an_internal_topic_through(topic: str) -> None:
    refused = TopicFilter(".*", "", DEFAULT, target="target").refusal(topic)
    assert refused is not None
    assert refused.reason is Refusal.INTERNAL


@pytest.mark.parametrize("topic", ["x.internal", "x-internal"])
def test_2_1_6_a_plain_internal_name_is_mirrored_if_the_filter_lets_it_through(topic: str) -> None:
    assert _wants(topic)


def test_2_1_6_internal_topics_go_by_the_separator() -> None:
    other = DefaultNaming(NamingFacts("source", "target", "__"))
    assert not _wants("mm2-offset-syncs__C__internal", policy=other)
    assert _wants("mm2-offset-syncs__C__internal")
    assert _wants("mm2-offsets_X_internal")


# -- 2.2, cycles -------------------------------------------------------------------------------------------------------

CYCLES = ["target.t", "target.source.t", "source.target.t", "target.source.target.t", "source.target.source.t"]


@pytest.mark.parametrize("topic", CYCLES)
def test_2_2_cycles_are_refused(topic: str) -> None:
    assert not _wants(topic)


@pytest.mark.parametrize("topic", ["t", "source.t", "targets.t", "t.target", "target", "target-t"])
def test_2_2_other_topics_are_accepted(topic: str) -> None:
    assert _wants(topic)


@pytest.mark.parametrize("policy", [IDENTITY, SAME])
@pytest.mark.parametrize("topic", CYCLES)
def test_2_2_identical_names_give_no_protection(policy: ReplicationPolicy, topic: str) -> None:
    assert _wants(topic, policy=policy)


@pytest.mark.parametrize("policy", [DEFAULT, IDENTITY, SAME])
@pytest.mark.parametrize(
    ("topic", "wanted"),
    [
        ("target.heartbeats", False),
        ("source.target.heartbeats", False),
        ("heartbeats", True),
        ("othersource.heartbeats", True),
    ],
)
def test_2_2_heartbeats_are_checked_for_cycles_always(policy: ReplicationPolicy, topic: str, wanted: bool) -> None:
    assert _wants(topic, policy=policy) == wanted


@pytest.mark.parametrize("topic", ["us.west.orders", "x.us.west.orders"])
def test_cycles_are_seen_with_an_alias_that_contains_the_separator(topic: str) -> None:
    policy = DefaultNaming(NamingFacts("us.east", "us.west"))
    assert TopicFilter(".*", "", policy, target="us.west").refusal(topic) is not None
    assert TopicFilter(".*", "", policy, target="us.west").refusal("us.orders") is None


@pytest.mark.parametrize(
    ("topic", "inflows", "reason"),
    [
        ("target.orders", (), Refusal.LOOKS_LIKE_CYCLE),  # perhaps a topic of the source itself
        ("target.orders", ("target",), Refusal.CYCLE),
        ("target.orders", ("other",), Refusal.LOOKS_LIKE_CYCLE),
        ("other.target.orders", (), Refusal.CYCLE),
    ],
)
def test_2_2_a_local_topic_named_like_the_targets_is_told_apart(
    topic: str, inflows: tuple[str, ...], reason: Refusal
) -> None:
    refused = TopicFilter(".*", "", DEFAULT, target="target", source="source", inflows=inflows).refusal(topic)
    assert refused is not None
    assert refused.reason is reason
    assert ("looks like it came from target" in str(refused)) == (reason is Refusal.LOOKS_LIKE_CYCLE)


# -- reasons and errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "reason", "text"),
    [
        ("__consumer_offsets", Refusal.INTERNAL, "internal topic"),
        ("clicks", Refusal.NOT_INCLUDED, "not in topics"),
        ("orders.replica", Refusal.EXCLUDED, "in topics.exclude"),
        ("x.target.orders", Refusal.CYCLE, "cycle"),
    ],
)
def test_a_refusal_says_why(topic: str, reason: Refusal, text: str) -> None:
    refused = TopicFilter(r".*orders.*", r".*\.replica", DEFAULT, target="target").refusal(topic)
    assert refused is not None
    assert refused.reason is reason
    assert text in str(refused)


@pytest.mark.parametrize(
    ("topics", "exclude", "key", "said"),
    [
        ("(", "", "topics", "not a regular expression: a '(' that is not closed (in '(', character 1)"),
        (".*", "a, [", "topics.exclude", "not a regular expression: a '[' that is not closed (in '[', character 1)"),
        ("a, b*+*", "", "topics", "'*' with nothing before it to repeat (in 'b*+*', character 4)"),
        (
            "a, x\\G",
            "",
            "topics",
            "Java knows this, mirrorspark does not: \\G (the end of the last match) (in 'x\\G', character 2)",
        ),
        ("a, (?=(x+)+y).*", "", "topics", "(in '(?=(x+)+y).*')"),
    ],
)
def test_a_list_that_cannot_be_read_names_key_element_and_place(topics: str, exclude: str, key: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        TopicFilter(topics, exclude, DEFAULT, target="target")
    assert caught.value.facts["key"] == key
    assert str(caught.value).startswith(f"{key}=")
    assert said in str(caught.value)


def test_settings_make_a_filter() -> None:
    clusters = [ClusterSettings(alias, (("h", 1),)) for alias in ("source", "target")]
    settings = FlowSettings(
        Flow("source", "target"),
        *clusters,
        topics="orders",
        topics_exclude="",
        naming=Naming(separator="_"),
        heartbeats=Heartbeats(replicated=False),
    )
    chosen = TopicFilter.of(settings, policy_for(settings), inflows=["target"])
    assert chosen.refusal("orders") is None
    assert chosen.refusal("heartbeats") is not None
    assert chosen.refusal("target_orders") is not None


# -- laws --------------------------------------------------------------------------------------------------------------

words = st.sampled_from(["a", "b", "source", "target", "heartbeats", "internal", "mm2", "__x", "checkpoints"])
names = st.lists(words, min_size=1, max_size=4).map(".".join)
lists = st.lists(st.sampled_from([".*", "a", r".*\.b", "source.*", "heartbeats", ".*internal"]), max_size=3).map(
    ", ".join
)


def _in_list(topic: str, text: str) -> bool:
    return any(re.fullmatch(part, topic) for part in text.split(", ") if part)


def _is_cycle(topic: str, policy: DefaultNaming) -> bool:
    source, upstream = policy.source_of(topic), policy.upstream(topic)
    if source is None or upstream is None:
        return False
    return source == "target" or (upstream != topic and _is_cycle(upstream, policy))


@given(names, lists, lists, st.booleans(), st.sampled_from([DEFAULT, IDENTITY, SAME]))
def test_the_filter_is_what_the_reference_defines(
    topic: str, topics: str, exclude: str, heartbeats: bool, policy: DefaultNaming
) -> None:
    chosen = TopicFilter(topics, exclude, policy, target="target", heartbeats_replicated=heartbeats)
    listed = _in_list(topic, topics) and not _in_list(topic, exclude)
    wanted = (
        (listed or (heartbeats and is_heartbeats(policy, topic)))
        and not policy.is_internal(topic)
        and not _is_cycle(topic, policy)
    )
    assert (chosen.refusal(topic) is None) == wanted


aliases = st.sampled_from(["a", "b", "c", "us.west", "us.east", "eu"])


@given(st.lists(aliases, min_size=2, max_size=8), st.sampled_from(["t", "my.topic", "heartbeats", "a.b"]))
def test_along_no_chain_of_default_flows_does_a_topic_come_back(chain: list[str], topic: str) -> None:
    """Each step is a flow that mirrors what its filter lets through; whoever has had the topic never gets it again."""
    known = frozenset(chain)
    visited = [chain[0]]
    for source, target in itertools.pairwise(chain):
        if source == target:
            continue
        policy = DefaultNaming(NamingFacts(source, target, aliases=known))
        if TopicFilter(".*", "", policy, target=target).refusal(topic) is not None:
            break
        topic = policy.remote(topic)
        visited.append(target)
    assert len(set(visited)) == len(visited)
