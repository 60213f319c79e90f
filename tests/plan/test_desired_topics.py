"""One action with a named reason for every topic (reference 2.4), from snapshots alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.names import Flow, TopicPartition
from mirrorspark.plan.desired_topics import Action, ActionKind, Reason, SeenTopic, TopicRules, desired_topics
from mirrorspark.plan.lanes import Assignment
from mirrorspark.settings import ClusterSettings, FlowSettings, Limits, Naming, Policies

SETTINGS = FlowSettings(Flow("east", "west"), ClusterSettings("east", ()), ClusterSettings("west", ()))


def snapshot(*topics: SeenTopic) -> dict[str, SeenTopic]:
    return {topic.name: topic for topic in topics}


def topic(name: str, partitions: int = 1, topic_id: str = "id", **changes: Any) -> SeenTopic:
    return SeenTopic(name, partitions, topic_id, **changes)


def carried(*topics: str, remote_id: str = "") -> list[Assignment]:
    return [Assignment(TopicPartition(name, 0), f"east.{name}", "id", remote_id) for name in topics]


def decide(
    source: list[SeenTopic], target: list[SeenTopic], before: list[Assignment] | None = None, **changes: Any
) -> list[Action]:
    return desired_topics(snapshot(*source), snapshot(*target), TopicRules(replace(SETTINGS, **changes)), before or [])


def the_one(actions: list[Action]) -> tuple[ActionKind, str]:
    (action,) = actions
    return action.kind, action.reason


# -- rule 2.4 ----------------------------------------------------------------------------------------------------------


def test_2_4_2_a_missing_topic_is_created_with_the_sources_partitions() -> None:
    (action,) = decide([topic("a", 7)], [])
    assert action == Action(ActionKind.CREATE, "a", "east.a", Reason.MISSING_ON_TARGET, "", 7)
    assert action.changes_target


def test_2_4_3_fewer_partitions_are_grown() -> None:
    (action,) = decide([topic("a", 3)], [topic("east.a", 1)])
    assert (action.kind, action.partitions, action.partitions_now) == (ActionKind.GROW, 3, 1)


def test_2_4_3_more_partitions_are_left_alone() -> None:
    (action,) = decide([topic("a", 1)], [topic("east.a", 3)])
    assert (action.kind, action.reason, action.changes_target) == (ActionKind.CARRY, Reason.MORE_PARTITIONS, False)


def test_2_4_5_in_step_is_carried() -> None:
    assert the_one(decide([topic("a", 2)], [topic("east.a", 2)])) == (ActionKind.CARRY, Reason.IN_STEP)


def test_2_4_5_a_topic_deleted_on_the_target_is_let_go_first() -> None:
    """A lane may still hold it: it is made in the next pass, when the plan no longer has it."""
    (action,) = decide([topic("a")], [], carried("a"))
    assert (action.kind, action.reason) == (ActionKind.WAIT, Reason.TARGET_TOPIC_DELETED)
    assert "not copied again" in action.text
    assert action.changes_target
    (action,) = decide([topic("a")], [], carried("a"), policies=Policies(on_target_topic_deleted="remirror"))
    assert "is copied again" in action.text
    assert the_one(decide([topic("a")], [])) == (ActionKind.CREATE, Reason.MISSING_ON_TARGET)


def test_2_4_5_a_topic_made_anew_by_somebody_is_known_by_its_id() -> None:
    before = carried("a", remote_id="old")
    assert the_one(decide([topic("a")], [topic("east.a", topic_id="new")], before)) == (
        ActionKind.CARRY,
        Reason.TARGET_TOPIC_RECREATED,
    )
    assert the_one(decide([topic("a", 2)], [topic("east.a", topic_id="new")], before)) == (
        ActionKind.GROW,
        Reason.TARGET_TOPIC_RECREATED,
    )
    for unknown in (topic("east.a", topic_id=""), topic("east.a", topic_id="old")):
        assert the_one(decide([topic("a")], [unknown], before)) == (ActionKind.CARRY, Reason.IN_STEP)


def test_2_4_7_a_deleted_source_topic_keeps_its_copy() -> None:
    actions = decide([topic("b")], [topic("east.a"), topic("east.b")], carried("a", "b"))
    assert [(one.topic, one.kind) for one in actions] == [("b", ActionKind.CARRY), ("a", ActionKind.KEEP)]
    assert actions[1].reason == Reason.SOURCE_TOPIC_DELETED


@pytest.mark.parametrize("error_code", [3, 5, 29])
def test_2_1_9_one_topic_that_cannot_be_described_does_not_fail_the_scan(error_code: int) -> None:
    """In MirrorMaker 2 one failing describe fails all."""
    actions = decide([topic("a"), topic("b", 0, error_code=error_code), topic("c")], [])
    assert [(one.topic, one.kind) for one in actions] == [
        ("a", ActionKind.CREATE),
        ("b", ActionKind.WAIT),
        ("c", ActionKind.CREATE),
    ]
    assert (actions[1].reason, str(error_code) in actions[1].text) == (Reason.NOT_READY_ON_SOURCE, True)


def test_2_1_9_topics_that_kafka_lists_as_internal_are_left_out() -> None:
    assert the_one(decide([topic("a", internal=True)], [], topics="a")) == (ActionKind.SKIP, Reason.KAFKA_INTERNAL)


@pytest.mark.parametrize("on_target", [[topic("east.a"), topic("east.b")], [topic("east.a"), topic("own")]])
def test_2_4_5_what_is_only_on_the_target_causes_nothing(on_target: list[SeenTopic]) -> None:
    assert the_one(decide([topic("a")], on_target)) == (ActionKind.CARRY, Reason.IN_STEP)


@pytest.mark.parametrize(("source", "target"), [(1, 3), (2, 100)])
def test_2_5_8_partitions_never_become_fewer(source: int, target: int) -> None:
    (action,) = decide([topic("a", source)], [topic("east.a", target)])
    assert not action.changes_target


# -- deletion, where it is wanted ---------------------------------------------------------------------------------------

DELETE = Policies(on_source_topic_deleted="delete")


def test_a_copy_is_deleted_where_wanted() -> None:
    actions = decide([topic("b")], [topic("east.a")], carried("a"), policies=DELETE)
    assert [(one.remote, one.kind) for one in actions if one.topic == "a"] == [("east.a", ActionKind.DELETE)]


def test_too_many_deletions_at_once_delete_nothing() -> None:
    names = [f"t{number}" for number in range(4)]
    limits = Limits(topic_deletions_max=3)
    actions = decide([topic("b")], [], carried(*names), policies=DELETE, limits=limits)
    assert {one.kind for one in actions if one.topic in names} == {ActionKind.KEEP}
    assert {one.reason for one in actions if one.topic in names} == {Reason.TOO_MANY_DELETIONS}
    actions = decide([topic("b")], [], carried(*names[:3]), policies=DELETE, limits=limits)
    assert {one.kind for one in actions if one.topic in names} == {ActionKind.DELETE}


def test_an_empty_source_deletes_nothing() -> None:
    assert the_one(decide([], [topic("east.a")], carried("a"), policies=DELETE)) == (
        ActionKind.KEEP,
        Reason.SOURCE_LIST_EMPTY,
    )


def test_only_carried_and_still_wanted_topics_are_deleted() -> None:
    assert decide([topic("b")], [topic("east.a")], policies=DELETE)[1:] == []
    assert decide([topic("b")], [topic("east.a")], carried("a"), policies=DELETE, topics="b")[1:] == []


# -- what is left out ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["__consumer_offsets", "x.internal", "west.orders", "other"])
def test_what_the_filter_refuses_is_skipped_with_its_reason(name: str) -> None:
    (action,) = decide([topic(name)], [], topics="orders, west.*")
    assert action.kind is ActionKind.SKIP
    assert action.text
    assert action.reason
    assert not action.changes_target


def test_kafkas_own_topics_are_skipped() -> None:
    assert the_one(decide([topic("share", internal=True)], [])) == (ActionKind.SKIP, Reason.KAFKA_INTERNAL)


def test_a_name_that_no_topic_can_have_is_skipped() -> None:
    (action,) = decide([topic("a" * 249)], [])
    assert (action.kind, action.reason) == (ActionKind.SKIP, Reason.REMOTE_NAME_INVALID)
    assert "249" in action.text


@pytest.mark.parametrize(("code", "partitions"), [(5, 1), (0, 0)])
def test_a_topic_that_is_not_ready_waits(code: int, partitions: int) -> None:
    unsure = SeenTopic("a", partitions, error_code=code)
    assert the_one(decide([unsure], [])) == (ActionKind.WAIT, Reason.NOT_READY_ON_SOURCE)
    on_target = SeenTopic("east.a", partitions, error_code=code)
    assert the_one(decide([topic("a")], [on_target])) == (ActionKind.WAIT, Reason.NOT_READY_ON_TARGET)


def test_two_topics_with_one_remote_name() -> None:
    rules = TopicRules(replace(SETTINGS, naming=Naming("identity")))
    object.__setattr__(rules, "policy", _Shouting())
    actions = desired_topics(snapshot(topic("a"), topic("A")), {}, rules)
    assert [(one.topic, one.kind, one.reason) for one in actions] == [
        ("A", ActionKind.CREATE, Reason.MISSING_ON_TARGET),
        ("a", ActionKind.SKIP, Reason.REMOTE_NAME_TAKEN),
    ]
    assert "A has this name" in actions[1].text


class _Shouting:
    needs_origin_check = False

    def remote(self, topic: str) -> str:
        return topic.upper()


# -- for any clusters ----------------------------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "c", "west.d", "__e"])
sources = st.dictionaries(names, st.integers(1, 3))
targets = st.dictionaries(names.map(lambda name: f"east.{name}"), st.integers(1, 3))


@given(sources, targets, st.lists(names, unique=True), st.sampled_from(["keep", "delete"]))
def test_every_topic_has_one_action_and_a_second_pass_changes_nothing(
    source: dict[str, int], target: dict[str, int], before: list[str], policy: str
) -> None:
    there = [topic(name, count) for name, count in source.items()]
    remote = {name: topic(name, count) for name, count in target.items()}
    policies = Policies(on_source_topic_deleted=policy)
    actions = decide(there, list(remote.values()), carried(*before), policies=policies)
    assert sorted(one.topic for one in actions if one.topic in source) == sorted(source)
    assert len({one.topic for one in actions}) == len(actions)
    for action in actions:
        if action.kind is ActionKind.DELETE:
            remote.pop(action.remote, None)
        elif action.changes_target:
            remote[action.remote] = topic(action.remote, action.partitions)
    after = decide(there, list(remote.values()), policies=policies)
    assert not any(one.changes_target for one in after)
