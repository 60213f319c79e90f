"""Settings of remote topics by MirrorMaker 2's rules (reference 2.4 and 2.5), each test named after its rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.errors import SettingsError
from mirrorspark.names import SettingOrigin, TopicSetting
from mirrorspark.plan.config_rules import ChangeReason, ConfigRules, SettingChange
from mirrorspark.settings import TopicSync

DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER = 2, 3
TOPIC, STATIC, DEFAULT = SettingOrigin.TOPIC, SettingOrigin.STATIC_BROKER, SettingOrigin.DEFAULT

FROM_TARGET = ConfigRules(TopicSync())
FROM_SOURCE = ConfigRules(TopicSync(use_defaults_from="source"))


def setting(value: str | None = "5", origin: int = TOPIC, name: str = "retention.ms", **changes: bool) -> TopicSetting:
    return TopicSetting(name, value, origin, **changes)


def wanted(changes: list[SettingChange]) -> dict[str, str | None]:
    return {one.name: one.wanted for one in changes}


# -- rule 2.4.2: what a new topic is made with ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "taken", "taken_with_defaults"),
    [
        (setting(), True, True),
        (setting(origin=DEFAULT), False, True),
        (setting(origin=STATIC), False, False),
        (setting(origin=DYNAMIC_BROKER), True, True),  # rule 2.5.4: inherited from a dynamic default, copied
        (setting(origin=DYNAMIC_DEFAULT_BROKER), True, True),
        (setting(read_only=True), False, False),
        (setting(sensitive=True), False, False),
        (setting(None), False, False),
        (setting(name="min.insync.replicas"), False, False),
        (setting(name="message.timestamp.type"), False, False),
    ],
)
def test_2_4_2_new_topic_settings(source: TopicSetting, taken: bool, taken_with_defaults: bool) -> None:
    assert FROM_TARGET.at_creation([source]) == ({source.name: source.value} if taken else {})
    assert FROM_SOURCE.at_creation([source]) == ({source.name: source.value} if taken_with_defaults else {})


# -- rule 2.5: existing topics -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [FROM_TARGET, FROM_SOURCE])
def test_2_5_1_what_is_equal_is_not_sent(rules: ConfigRules) -> None:
    assert rules.changes([setting()], [setting()]) == []


def test_2_5_1_what_differs_is_set() -> None:
    [change] = FROM_TARGET.changes([setting("5")], [setting("9")])
    assert change == SettingChange("retention.ms", "5", "9", "5", ChangeReason.SOURCE_VALUE)
    assert str(change) == "retention.ms: 9 -> 5 (the source topic has it)"


def test_2_5_1_an_inherited_value_does_not_count_as_set() -> None:
    assert wanted(FROM_TARGET.changes([setting("5")], [setting("5", DEFAULT)])) == {"retention.ms": "5"}


@pytest.mark.parametrize(
    "source",
    [
        setting(read_only=True),
        setting(sensitive=True),
        setting(origin=STATIC),
        setting(name="unclean.leader.election.enable"),
        setting(name="follower.replication.throttled.replicas"),
    ],
)
@pytest.mark.parametrize("rules", [FROM_TARGET, FROM_SOURCE])
def test_2_5_2_never_considered(rules: ConfigRules, source: TopicSetting) -> None:
    assert rules.changes([source], [replace_value(source, "other")]) == []


def replace_value(one: TopicSetting, value: str) -> TopicSetting:
    return one._replace(value=value, origin=TOPIC, read_only=False, sensitive=False)


def test_2_5_3_default_of_the_source_deletes_the_targets_override() -> None:
    [change] = FROM_TARGET.changes([setting("5", DEFAULT)], [setting("9")])
    assert (change.wanted, change.reason) == (None, ChangeReason.NOT_SET_ON_SOURCE)
    assert str(change) == (
        "retention.ms: 9 -> (deleted) (not set on the source topic, so the target's default applies)"
    )


def test_2_5_3_default_of_the_source_and_none_on_the_target_is_in_step() -> None:
    assert FROM_TARGET.changes([setting("5", DEFAULT)], [setting("9", DEFAULT)]) == []
    assert FROM_TARGET.changes([setting("5", DEFAULT)], [setting("9", STATIC)]) == []


def test_2_5_3_default_of_the_source_is_set_with_use_defaults_from_source() -> None:
    [change] = FROM_SOURCE.changes([setting("-1", DEFAULT)], [setting("9", DEFAULT)])
    assert (change.wanted, change.reason) == ("-1", ChangeReason.SOURCE_DEFAULT)
    assert FROM_SOURCE.changes([setting("-1", DEFAULT)], [setting("-1", TOPIC)]) == []


@pytest.mark.parametrize("origin", [DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER])
def test_2_5_4_dynamic_broker_defaults_are_copied_as_overrides(origin: int) -> None:
    assert wanted(FROM_TARGET.changes([setting("5", origin)], [setting("9", DEFAULT)])) == {"retention.ms": "5"}


def test_2_5_5_static_broker_settings_are_neither_set_nor_deleted() -> None:
    assert FROM_TARGET.changes([setting("5", STATIC)], [setting("9", TOPIC)]) == []
    assert FROM_SOURCE.changes([setting("5", STATIC)], [setting("9", DEFAULT)]) == []


def test_2_5_6_excluded_properties_keep_the_targets_value() -> None:
    rules = ConfigRules(TopicSync(config_properties_exclude=r"delete\.retention\.ms, segment\..*"))
    source = [setting("1", name="delete.retention.ms"), setting("2", name="segment.bytes"), setting("3")]
    target = [setting("9", name="delete.retention.ms"), setting("9", name="segment.bytes"), setting("9")]
    assert wanted(rules.changes(source, target)) == {"retention.ms": "3"}


def test_2_5_6_excludes_match_whole_names() -> None:
    rules = ConfigRules(TopicSync(config_properties_exclude="retention"))
    assert not rules.excludes("retention.ms")
    assert not ConfigRules(TopicSync(config_properties_exclude="")).excludes("min.insync.replicas")


def test_2_5_8_the_default_excludes() -> None:
    excluded = ["min.insync.replicas", "message.timestamp.type", "message.timestamp.difference.max.ms"]
    assert all(map(FROM_TARGET.excludes, excluded))
    assert not FROM_TARGET.excludes("cleanup.policy")


def test_a_setting_that_the_target_does_not_know_is_named_and_not_sent() -> None:
    [change] = FROM_TARGET.changes([setting(name="brand.new")], [setting()])
    assert (change.reason, change.is_sent) == (ChangeReason.UNKNOWN_ON_TARGET, False)


def test_excludes_that_are_no_regex_are_refused_by_key() -> None:
    with pytest.raises(SettingsError, match=r"config\.properties\.exclude"):
        ConfigRules(TopicSync(config_properties_exclude="ok, ["))


# -- for any settings --------------------------------------------------------------------------------------------------

settings_of_a_topic = st.lists(
    st.builds(
        TopicSetting,
        st.sampled_from(["retention.ms", "cleanup.policy", "min.insync.replicas", "segment.bytes"]),
        st.sampled_from(["1", "2", "3"]),
        st.sampled_from([TOPIC, DYNAMIC_BROKER, STATIC, DEFAULT]),
        st.booleans(),
        st.booleans(),
    ),
    unique_by=lambda one: one.name,
)


@given(settings_of_a_topic, settings_of_a_topic, st.sampled_from([FROM_TARGET, FROM_SOURCE]))
def test_after_the_changes_there_is_nothing_to_change(
    source: list[TopicSetting], target: list[TopicSetting], rules: ConfigRules
) -> None:
    there = {one.name: one for one in target}
    for change in rules.changes(source, target):
        if not change.is_sent:
            continue
        if change.wanted is None:
            there[change.name] = there[change.name]._replace(value="default", origin=DEFAULT)
        else:
            there[change.name] = TopicSetting(change.name, change.wanted, TOPIC)
    assert [one for one in rules.changes(source, there.values()) if one.is_sent] == []
