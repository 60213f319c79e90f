"""Which consumer groups are checkpointed: groups and groups.exclude, by MirrorMaker 2's rules (reference 1.4, 1.7)."""

from __future__ import annotations

import pytest

from mirrorspark.errors import SettingsError
from mirrorspark.names import Flow
from mirrorspark.plan.group_filter import GroupFilter, GroupRefusal
from mirrorspark.settings import ClusterSettings, FlowSettings

SETTINGS = FlowSettings(Flow("a", "b"), ClusterSettings("a", (("h", 1),)), ClusterSettings("b", (("h", 1),)))


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        ("billing", None),
        ("console-consumer-1234", GroupRefusal.EXCLUDED),
        ("console-consumer", None),
        ("connect-sink", GroupRefusal.EXCLUDED),
        ("my-connect-sink", None),
        ("__mirrorspark-a->b", GroupRefusal.EXCLUDED),
        ("gruppe mit Leerzeichen, 中", None),
    ],
)
def test_1_4_default_lists(group: str, reason: GroupRefusal | None) -> None:
    refused = GroupFilter.of(SETTINGS).refusal(group)
    assert (refused.reason if refused else None) == reason


@pytest.mark.parametrize(
    ("groups", "exclude", "group", "said"),
    [
        ("billing, audit-.*", "", "audit-1", None),
        ("billing, audit-.*", "audit-1", "audit-1", "in groups.exclude"),
        ("billing", "", "billing2", "not in groups"),
        ("", "", "billing", "not in groups"),
    ],
)
def test_1_4_excludes_win_and_the_whole_name_must_match(
    groups: str, exclude: str, group: str, said: str | None
) -> None:
    refused = GroupFilter(groups, exclude).refusal(group)
    assert (str(refused) if refused else None) == said


def test_a_broken_list_names_its_key() -> None:
    with pytest.raises(SettingsError) as caught:
        GroupFilter(".*", "a(", key="a->b.groups")
    assert caught.value.facts["key"] == "a->b.groups.exclude"
