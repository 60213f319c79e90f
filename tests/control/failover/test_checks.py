"""What is said before a failover: what stops it in which mode, and what is only worth a word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mirrorspark.control.failover.checks import Finding, Level, Standing, check
from mirrorspark.control.failover.moving_groups import GroupChecks, GroupChoice, check_groups
from mirrorspark.control.failover.record import Mode, Record
from mirrorspark.control.failover.report import Report, next_actions, reverse_lines
from mirrorspark.control.failover.reverse_flow import ReverseFlow, StartRule, reversed_settings, start_rule
from mirrorspark.control.failover.stranded import find_stranded
from mirrorspark.control.flow_lag import FlowLag, PartitionLag
from mirrorspark.control.group_view import GroupDescription, GroupPartition
from mirrorspark.errors import BrokerError
from mirrorspark.names import Flow
from mirrorspark.observe.flow_status import FlowStatus
from mirrorspark.offsets.translation import Reason
from mirrorspark.plan.desired_topics import TopicRules
from mirrorspark.settings import ClusterSettings, FlowSettings, Naming

EAST, WEST = ClusterSettings("east", (("e", 1),)), ClusterSettings("west", (("w", 2),))
FLOW = FlowSettings(Flow("east", "west"), EAST, WEST, topics="orders")
REVERSE = ReverseFlow(reversed_settings(FLOW), is_in_file=True)
BEHIND = PartitionLag("orders", 0, "east.orders", 0, 110, 100, 100)
LEVEL = replace(BEHIND, source_end=100)


def standing(mode: Mode = Mode.DRAIN, **changes: Any) -> Standing:
    it = Standing(
        FLOW,
        mode,
        FlowLag("east->west", (LEVEL,)),
        FlowStatus("east->west"),
        is_carried=True,
        paused=frozenset(),
        record=None,
        groups=GroupChecks((), (), ("billing",)),
        drift=None,
        reverse=REVERSE,
    )
    return replace(it, **changes)


def stops(it: Standing) -> list[str]:
    return [one.subject for one in check(it) if one.level is Level.IN_THE_WAY]


def test_all_is_well() -> None:
    assert {one.level for one in check(standing())} == {Level.FINE}


@pytest.mark.parametrize(
    ("changes", "when_draining", "when_cutting"),
    [
        ({"lag": FlowLag("f", (BEHIND,))}, [], []),
        ({"lag": FlowLag("f", (BEHIND,)), "is_carried": False}, ["mirror"], []),
        ({"is_carried": False}, [], []),  # nothing is left to carry
        ({"lag": FlowLag("f", (LEVEL,), source_error="gone"), "groups": None}, ["source"], []),
        ({"paused": frozenset({"*"})}, ["mirror"], []),
        ({"paused": frozenset({"east.orders"})}, ["mirror"], []),
        ({"groups": GroupChecks(("group billing is in use",), (), ())}, ["groups"], ["groups"]),
    ],
)
def test_what_is_in_the_way(changes: dict[str, Any], when_draining: list[str], when_cutting: list[str]) -> None:
    assert stops(standing(**changes)) == when_draining
    assert stops(standing(Mode.CUT, **changes)) == when_cutting


def test_a_pause_of_our_own_is_not_in_the_way() -> None:
    record = Record("r", "east->west", Mode.DRAIN, "me", 0, is_holding=True)
    assert stops(standing(paused=frozenset({"*"}), record=record, is_carried=False)) == []


def test_a_partition_that_waits_stops_a_drain() -> None:
    status = FlowStatus("east->west")
    status.fold(
        b"lane/0",
        b'{"lane":0,"generation":null,"state":"carrying","since_ms":1,"at_ms":2,"partitions":1,"held_bytes":0,'
        b'"waiting":{"east.orders-0":"too large"},"moved":[]}',
    )
    assert stops(standing(status=status, lag=FlowLag("f", (BEHIND,)))) == ["waiting"]
    assert stops(standing(Mode.CUT, status=status, lag=FlowLag("f", (BEHIND,)))) == []


def test_what_is_left_behind_is_numbered() -> None:
    texts = [one.text for one in check(standing(Mode.CUT, lag=FlowLag("f", (BEHIND, LEVEL))))]
    assert "orders-0: offsets 100..109 (10)" in texts
    beats = replace(BEHIND, topic="heartbeats", is_heartbeat=True)
    found = find_stranded(FlowLag("f", (BEHIND, beats)))
    assert (found.count, found.records, found.is_known) == (1, 10, True)
    blind = find_stranded(FlowLag("f", (replace(BEHIND, source_end=None),), source_error="gone"))
    assert not blind.is_known
    assert str(blind.partitions[0]) == "orders-0: whatever the source has from offset 100 on"
    new = replace(BEHIND, mirrored_to=None, source_start=7)
    assert (find_stranded(FlowLag("f", (new,))).partitions[0].first, new.records) == (7, 103)


# -- groups ------------------------------------------------------------------------------------------------------------

PART = GroupPartition("orders", 0, "east.orders", 50, 100, 50, 50, True, Reason.MIRRORED.value, None, None, "")
GROUP = GroupDescription("billing", "classic", "Empty", True, "", "not there", 0, (PART,))
AHEAD = replace(PART, exact=False, reason=Reason.AHEAD.value)
MERGED = replace(PART, exact=False, reason=Reason.MERGED.value)


@pytest.mark.parametrize(
    ("group", "mode", "is_last", "is_in_the_way"),
    [
        (GROUP, Mode.DRAIN, True, False),
        (replace(GROUP, target_members=2), Mode.DRAIN, True, True),
        (replace(GROUP, target_members=2), Mode.CUT, True, True),
        (replace(GROUP, state="Stable"), Mode.DRAIN, False, True),
        (replace(GROUP, state="Stable"), Mode.CUT, True, False),
        (replace(GROUP, partitions=(AHEAD,)), Mode.DRAIN, False, False),  # a drain mends it
        (replace(GROUP, partitions=(AHEAD,)), Mode.DRAIN, True, True),
        (replace(GROUP, partitions=(AHEAD,)), Mode.CUT, True, False),
        (replace(GROUP, partitions=(MERGED,)), Mode.CUT, True, True),
        (replace(GROUP, partitions=(replace(PART, is_beyond_end=True),)), Mode.CUT, True, True),
    ],
)
def test_groups(group: GroupDescription, mode: Mode, is_last: bool, is_in_the_way: bool) -> None:
    found = check_groups([group], mode, GroupChoice(), is_last=is_last)
    assert bool(found.in_the_way) == is_in_the_way
    assert all("billing" in text for text in (*found.in_the_way, *found.notices))


def test_inexact_positions_may_be_allowed() -> None:
    group = replace(GROUP, partitions=(MERGED,), left_out={"audit": "not in topics"})
    found = check_groups([group], Mode.DRAIN, GroupChoice(allow_inexact=True), is_last=True)
    assert found.in_the_way == ()
    assert len(found.notices) == 2


# -- the flow back, and the report -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "rule"),
    [("default", StartRule.BY_NAME), ("same-name", StartRule.BY_ORIGIN), ("identity", StartRule.AT_END)],
)
def test_how_the_flow_back_tells_what_came_from_here(policy: str, rule: StartRule) -> None:
    settings = replace(FLOW, naming=Naming(policy), topics=".*")
    remote = TopicRules(settings).policy.remote("orders")
    assert start_rule(TopicRules(reversed_settings(settings)), remote) is rule


def test_what_to_do_next() -> None:
    record = Record("r", "east->west", Mode.DRAIN, "me", 0)
    known = next_actions(FLOW, REVERSE, ["orders"], record)
    assert any("orders and east.orders" in text for text in known)
    assert known[-1] == "to go back: mirrorspark failback FILE --flow 'east->west'"
    missing = next_actions(
        replace(FLOW, naming=Naming("identity")), replace(REVERSE, is_in_file=False), ["orders"], record
    )
    assert "  west->east.enabled = true" in missing
    assert "  east->west.enabled = false" in missing  # two of them would go round for ever
    assert reverse_lines(FLOW, REVERSE) == ["west->east.enabled = true", "west->east.topics = orders"]


def test_a_report_is_for_people_and_machines() -> None:
    finding = Finding(Level.NOTICE, "lag", "much")
    report = Report("east->west", "cut", "not ready", [finding], error="first\nsecond")
    assert report.lines() == ["east->west cut: not ready", "  notice lag: much", "  failed: first", "  failed: second"]
    assert report.to_json()["checks"] == [{"level": "notice", "subject": "lag", "text": "much"}]
    assert not report.is_well


def test_a_group_that_may_not_be_looked_at_is_in_the_way() -> None:
    """Who may not see the target's groups would move none, and call it done."""
    refused = {"billing": BrokerError("our user lacks the ACL Describe on the group"), "audit": BrokerError("no")}
    found = check_groups([], Mode.CUT, GroupChoice(left_alone=("audit",)), is_last=True, refused=refused)
    (text,) = found.in_the_way
    assert "group billing cannot be looked at: our user lacks the ACL Describe" in text
    assert "--leave-group billing" in text
