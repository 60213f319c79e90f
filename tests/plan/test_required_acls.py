"""What a flow's settings ask for, and no more; that it is enough is shown by the journey of the same name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from mirrorspark.control.acl_list import own_names
from mirrorspark.names import Flow
from mirrorspark.plan.required_acls import RequiredAcl, for_heartbeats, required_acls, without_included
from mirrorspark.settings import ClusterSettings, FlowSettings, GroupSync, Heartbeats, Naming, Policies, TopicSync

SERVERS = (("h", 9092),)
BARE = FlowSettings(
    Flow("east", "west"),
    ClusterSettings("east", SERVERS),
    ClusterSettings("west", SERVERS),
    topics="orders",
    topic_sync=TopicSync(configs_enabled=False, acls_enabled=False),
    group_sync=GroupSync(checkpoints_enabled=False, offset_syncs_enabled=False),
    heartbeats=Heartbeats(emitted=False, replicated=False),
)
"""Carries one topic, and nothing else is on."""


def _acls(settings: FlowSettings, **asked: Any) -> list[RequiredAcl]:
    return required_acls(settings, own_names(settings), **asked)


def _texts(acls: Iterable[RequiredAcl]) -> set[str]:
    return {str(one) for one in acls}


def _more(settings: FlowSettings, **asked: Any) -> set[str]:
    """Beyond the bare flow's."""
    return _texts(_acls(settings, **asked)) - _texts(_acls(BARE))


def test_a_bare_flow() -> None:
    found = _texts(_acls(BARE))
    assert {one for one in found if one.endswith("of east")} == {
        "Read on topic orders of east",
        "DescribeConfigs on topic orders of east",
    }
    own = [f"mirrorspark-{name}.east.internal" for name in ("plan", "status", "ledger")]
    own += ["mm2-offsets.east.internal", "mirrorspark-writers.internal"]
    assert {one for one in found if one.endswith("of west")} == {
        *(f"{operation} on topic east.orders of west" for operation in ("Create", "Write", "Read", "Alter")),
        *(f"{operation} on topic {topic} of west" for topic in own for operation in ("Create", "Write", "Read")),
        "Read on group __mirrorspark-east->west of west",
        "Write on transactional-id __mirrorspark-east->west-* of west",
        "Describe on group east-mm2 of west",
    }


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"topic_sync": TopicSync(acls_enabled=False)}, {"AlterConfigs on topic east.orders of west"}),
        (
            {"topic_sync": TopicSync(configs_enabled=False)},
            {"Describe on cluster kafka-cluster of east", "Alter on cluster kafka-cluster of west"},
        ),
        (
            {"heartbeats": Heartbeats(replicated=False)},
            {"Create on topic heartbeats of west", "Write on topic heartbeats of west"},
        ),
        (
            {"group_sync": GroupSync(checkpoints_enabled=False)},
            {f"{one} on topic mm2-offset-syncs.west.internal of east" for one in ("Create", "Write")},
        ),
        (
            {"group_sync": GroupSync(checkpoints_enabled=False, offset_syncs_on_target=True)},
            {f"{one} on topic mm2-offset-syncs.east.internal of west" for one in ("Create", "Write")},
        ),
        (
            {"group_sync": GroupSync(groups="g.*", offset_syncs_enabled=False)},
            {
                "Describe on group g* of east",
                "Read on topic __consumer_offsets of east",
                *(f"{one} on topic east.checkpoints.internal of west" for one in ("Create", "Read", "Write")),
            },
        ),
        (
            {
                "group_sync": GroupSync(
                    groups="g", checkpoints_enabled=False, offsets_enabled=True, offset_syncs_enabled=False
                )
            },
            {
                "Describe on group g of east",
                "Read on topic __consumer_offsets of east",
                *(f"{one} on topic east.checkpoints.internal of west" for one in ("Create", "Read")),
                "Read on group g of west",
                "Read on topic __consumer_offsets of west",
            },
        ),
        ({"policies": Policies(on_source_topic_deleted="delete")}, {"Delete on topic east.orders of west"}),
        (
            {"policies": Policies(on_record_too_large="dead-letter")},
            {
                "DescribeConfigs on topic east.orders of west",
                *(f"{one} on topic mirrorspark-dead-letters.east.internal of west" for one in ("Create", "Write")),
            },
        ),
        (
            {"offsets": "identical"},
            {"DescribeConfigs on topic east.orders of west", "Delete on topic east.orders of west"},
        ),
    ],
    ids=[
        "settings",
        "ACLs",
        "heartbeats",
        "syncs",
        "syncs there",
        "checkpoints",
        "groups",
        "delete",
        "letters",
        "same",
    ],
)
def test_what_is_switched_on_asks_for_more(changes: dict[str, Any], more: set[str]) -> None:
    assert _more(replace(BARE, **changes)) == more


def test_topics_that_keep_their_names_need_the_registry_of_the_source() -> None:
    found = _texts(_acls(replace(BARE, naming=Naming(policy="same-name"))))
    assert {f"{one} on topic mirrorspark-writers.internal of east" for one in ("Create", "Read")} <= found
    assert "Write on topic orders of west" in found


def test_beginnings_become_prefixes_on_both_sides() -> None:
    found = _texts(_acls(replace(BARE, topics="orders.*")))
    assert "Read on topic orders* of east" in found
    assert "Write on topic east.orders* of west" in found


def test_everything_is_a_prefix_where_names_have_one_and_all_topics_where_not() -> None:
    assert "Write on topic east.* of west" in _texts(_acls(replace(BARE, topics=".*")))
    same = _acls(replace(BARE, topics=".*", naming=Naming(policy="identity")))
    assert "Write on topic * of west" in _texts(same)
    assert "Write on topic mirrorspark-plan.east.internal of west" not in _texts(same), "all topics include it"


def test_a_pattern_that_no_acl_can_say_is_wide_or_written_out() -> None:
    settings = replace(BARE, topics=".*-eu, orders")
    (read,) = [one for one in _acls(settings) if one.cluster == "east" and one.operation == "Read"]
    assert (read.name, read.is_wide) == ("*", True)
    found = _acls(settings, listed=["orders", "x-eu"])
    assert {one.name for one in found if one.cluster == "east" and one.operation == "Read"} == {"orders", "x-eu"}
    assert not any(one.is_wide for one in found)


def test_heartbeats_that_are_on_the_source_are_carried() -> None:
    settings = replace(BARE, heartbeats=Heartbeats(emitted=False))
    found = _texts(_acls(settings, heartbeats=["heartbeats"]))
    assert {"Read on topic heartbeats of east", "Write on topic east.heartbeats of west"} <= found
    assert _more(settings) == set(), "nobody writes any there"


def test_a_pair_with_heartbeats_alone() -> None:
    assert _texts(for_heartbeats(replace(BARE, heartbeats=Heartbeats(), enabled=False))) == {
        "Create on topic heartbeats of west",
        "Write on topic heartbeats of west",
    }
    assert for_heartbeats(BARE) == []


def test_failover_and_takeover_on_demand() -> None:
    settings = replace(BARE, group_sync=GroupSync(groups="g", checkpoints_enabled=False, offset_syncs_enabled=False))
    assert _more(settings, with_failover=True) == {
        "Describe on group g of east",
        "Read on group g of west",
        "Read on topic __consumer_offsets of west",
        "Read on topic mirrorspark-plan.west.internal of east",
        "Read on topic mirrorspark-status.west.internal of east",
    }
    same = replace(settings, naming=Naming("same-name"))
    assert _texts(_acls(same, with_failover=True)) - _texts(_acls(same)) == {
        *_more(settings, with_failover=True),
        "Read on group __mirrorspark-west->east of east",
    }
    assert _more(settings, with_takeover=True) == {
        "Read on topic mm2-offset-syncs.west.internal of east",
        "Read on topic mm2-status.east.internal of west",
    }


def test_what_another_line_includes_is_left_out() -> None:
    read = next(one for one in _acls(BARE) if one.operation == "Read" and one.cluster == "east")
    describe = replace(read, operation="Describe")
    everything = replace(read, name="*")
    assert without_included([describe, read, read]) == [read]
    assert without_included([describe, read, everything]) == [everything]
    elsewhere = replace(describe, cluster="north")
    assert without_included([read, elsewhere]) == [read, elsewhere]


def test_each_line_has_a_reason() -> None:
    for one in _acls(replace(BARE, group_sync=GroupSync(offsets_enabled=True), topic_sync=TopicSync())):
        assert one.why
        assert "{" not in one.why
