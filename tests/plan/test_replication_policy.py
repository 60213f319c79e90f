"""Which policy a name stands for: built in, a Java class that users have in their files, or somebody's entry point."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow
from mirrorspark.plan.replication_policy import (
    ReplicationPolicy,
    is_heartbeats,
    original_topic,
    policy_choice,
    policy_for,
)
from mirrorspark.plan.topic_naming import DefaultNaming, IdentityNaming, NamingFacts, SameNaming
from mirrorspark.settings import ClusterSettings, FlowSettings, Naming

DEFAULT = DefaultNaming(NamingFacts("source", "target"))
OWN_POLICY = """
from mirrorspark.plan.topic_naming import DefaultNaming


class Upper(DefaultNaming):
    def remote(self, topic):
        return topic.upper()


class Poor:
    def __init__(self, facts):
        pass

    def remote(self, topic):
        return topic


def broken(facts):
    raise RuntimeError("no such table")
"""
ENTRY_POINTS = """
[mirrorspark.replication_policy]
upper = own_policy_of_a_test:Upper
com.example.UpperReplicationPolicy = own_policy_of_a_test:Upper
poor = own_policy_of_a_test:Poor
broken = own_policy_of_a_test:broken
absent = no_such_module_anywhere:Policy
"""


def _settings(naming: Naming, source: str = "east", target: str = "west") -> FlowSettings:
    clusters = [ClusterSettings(alias, (("h", 1),)) for alias in (source, target)]
    return FlowSettings(Flow(source, target), *clusters, naming=naming)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with policies, as pip would have put it there."""
    (tmp_path / "own_policy_of_a_test.py").write_text(OWN_POLICY)
    folder = tmp_path / "own_policy_of_a_test-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: own-policy-of-a-test\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("default", DefaultNaming),
        ("identity", IdentityNaming),
        ("same-name", SameNaming),
        ("org.apache.kafka.connect.mirror.DefaultReplicationPolicy", DefaultNaming),
        ("org.apache.kafka.connect.mirror.IdentityReplicationPolicy", IdentityNaming),
        ("io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy", IdentityNaming),
        ("com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy", SameNaming),
        ("mirrorspark.SameNameReplicationPolicy", SameNaming),
    ],
)
def test_known_names(name: str, policy: type[DefaultNaming]) -> None:
    built = policy_for(_settings(Naming(policy=name)))
    assert type(built) is policy
    assert isinstance(built, ReplicationPolicy)


def test_settings_reach_the_policy() -> None:
    built = policy_for(_settings(Naming("default", "__", False)), aliases=["us__west"])
    assert built.remote("orders") == "east__orders"
    assert built.checkpoints_topic("east") == "east.checkpoints.internal"
    assert built.source_of("us__west__orders") == "us__west"


def test_a_class_that_is_replaced_says_so() -> None:
    assert "same-name" in policy_choice("com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy").note
    assert policy_choice("org.apache.kafka.connect.mirror.DefaultReplicationPolicy").note == ""


@pytest.mark.parametrize("name", ["Default", "com.example.DefaultReplicationPolicy", "", "upper"])
def test_unknown_names_are_refused_with_what_is_known(name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        policy_choice(name, key="a->b.replication.policy.class")
    text = str(caught.value)
    assert text.startswith(f"a->b.replication.policy.class={name}: ")
    assert "same-name" in text
    assert "mirrorspark.replication_policy" in text
    assert caught.value.facts["key"] == "a->b.replication.policy.class"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["upper", "com.example.UpperReplicationPolicy"])
def test_own_policies_come_by_entry_point(name: str) -> None:
    assert policy_choice(name).name == name
    assert policy_for(_settings(Naming(policy=name))).remote("orders") == "ORDERS"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "said"),
    [("poor", "lacks"), ("broken", "no such table"), ("absent", "no_such_module_anywhere")],
)
def test_own_policies_that_do_not_work_are_refused_by_name(name: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        policy_for(_settings(Naming(policy=name)))
    assert str(caught.value).startswith(f"replication.policy.class={name}: ")


@pytest.mark.usefixtures("installed")
def test_what_an_own_policy_lacks_is_listed() -> None:
    with pytest.raises(SettingsError, match=r"lacks .*is_internal.*source_of"):
        policy_for(_settings(Naming(policy="poor")))


@pytest.mark.parametrize(
    ("topic", "original"),
    [("t", "t"), ("a.t", "t"), ("a.b.t", "t"), ("a.", "a."), ("a.heartbeats", "heartbeats")],
)
def test_2_3_original_topic_takes_all_aliases_off(topic: str, original: str) -> None:
    assert original_topic(DEFAULT, topic) == original


@pytest.mark.parametrize(
    ("separator", "topic", "is_one"),
    [
        (".", "heartbeats", True),
        (".", "us-west.heartbeats", True),
        (".", "a.b.c.heartbeats", True),
        (".", "my-heartbeats", False),
        (".", "heartbeats.x", False),
        ("_", "us-west.heartbeats", False),
        ("_", "us-west_heartbeats", True),
    ],
)
def test_2_1_5_heartbeats_topics(separator: str, topic: str, is_one: bool) -> None:
    for policy in (DefaultNaming, IdentityNaming, SameNaming):
        assert is_heartbeats(policy(NamingFacts("a", "b", separator)), topic) == is_one


def test_a_policy_that_never_ends_is_cut_off() -> None:
    class Endless(DefaultNaming):
        def upstream(self, topic: str) -> str:
            return f"x{topic}"

    assert not is_heartbeats(Endless(NamingFacts("a", "b")), "t")
