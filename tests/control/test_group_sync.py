"""A flow's groups, followed for real between two clusters, with a ledger that the test writes in the lanes' place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mirrorspark.cluster.cluster_admin import NewTopic, create_topics
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.commit_log import CommitLog
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_admin import GroupAdmin
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control import source_groups, target_groups
from mirrorspark.control.target_groups import TargetGroups, Wanted
from mirrorspark.events import EventKind
from mirrorspark.lab.clients import consumer, create_topic, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.plain_records import write_values
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.group_checkpoint import GroupCheckpoint
from mirrorspark.offsets.group_sync import Synced, Verdict
from mirrorspark.offsets.internal_topics import ledger_topic
from mirrorspark.offsets.ledger import LedgerPage, Run, ledger_entry

from .led_flow import LedFlow
from .led_groups import LedGroups

DEADLINE_S = 60.0
MakeGroups = Callable[..., LedGroups]


def test_commits_become_checkpoints_and_offsets_and_never_go_back_by_themselves(
    groups: MakeGroups, topic_name: str, target_cluster: ClusterOfBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_groups, "MEMBERS_RECHECK_S", 0.2)
    one = groups()
    one.wait(lambda: one.remote in one.flow.planned, "the remote topic")
    write_values(target_cluster.bootstrap, one.remote.topic, [b"x"] * 120)
    group, other, stranger = f"{topic_name}-a", f"{topic_name}-b", f"not-{topic_name}"
    for name in (group, other, stranger):
        one.commit(name, 10, metadata="kept")
    assert one.on_target(group) is None, "nothing is mirrored, nothing can be said"
    one.mirror(8)
    one.wait(lambda: one.on_target(group) == (108, "kept"), "the mirrored end: the rest has not arrived")
    one.wait(lambda: one.picture["waiting"] == 2, "both to be shown as waiting")
    one.mirror(20)
    one.wait(lambda: one.on_target(group) == (110, "kept"), "the exact offset, when the records had arrived")
    exact = GroupCheckpoint(group, one.remote, 10, 110, "kept")
    one.wait(lambda: one.checkpoint(group) == exact, "its checkpoint")
    one.wait(lambda: one.on_target(other) == (110, "kept") and one.picture["waiting"] == 0, "the other group")

    # The source group goes back: so does the target's, since nobody else moved it.
    one.commit(group, 4)
    one.wait(lambda: one.on_target(group) == (104, ""), "the rewind")
    one.wait(lambda: one.checkpoint(group) == GroupCheckpoint(group, one.remote, 4, 104, ""), "its checkpoint")

    # Somebody on the target goes on by themselves: theirs stays, wherever the source group goes.
    one.commit(group, 115, on="target", metadata="theirs")
    one.commit(group, 3)
    one.wait(lambda: one.checkpoint(group) == GroupCheckpoint(group, one.remote, 3, 103, ""), "the checkpoint")
    one.commit(other, 12)
    one.wait(lambda: one.on_target(other) == (112, ""), "a later round")
    assert one.on_target(group) == (115, "theirs")
    one.commit(group, 16)
    one.wait(lambda: one.on_target(group) == (116, ""), "the source group has passed it")
    one.commit(group, 999, on="target")
    one.commit(group, 17)
    one.wait(lambda: one.on_target(group) == (117, ""), "what lies beyond the log's end is nobody's")
    one.commit(group, 16)
    one.wait(lambda: one.on_target(group) == (116, ""), "the rewind by one")

    # With members there, the group is theirs.
    member = consumer(target_cluster.bootstrap, {"group.id": other, "auto.offset.reset": "earliest"})
    create_topic(target_cluster.bootstrap, f"{topic_name}-own", 1)
    member.subscribe([f"{topic_name}-own"])
    try:
        wait_for(lambda: member.poll(0.1) is None and bool(member.assignment()), "the member", DEADLINE_S)
        one.commit(other, 18)
        one.wait(lambda: one.picture["with_members_on_target"] == 1, "the member to be noticed")
        assert one.on_target(other) == (112, "")
    finally:
        member.close()
    one.wait(lambda: one.on_target(other) == (118, ""), "the group, when its member had left")

    # Its offset there was theirs to keep; and a group that vanishes on the source stays on the target.
    one.in_loop(_delete_group(one.source, group))
    one.wait(lambda: one.picture["vanished"] == 1, "the group's end")
    assert one.on_target(group) == (116, "")
    assert one.on_target(stranger) is None
    assert not one.flow.runtime.status.events


async def _delete_group(admin: GroupAdmin, group: str) -> None:
    from kafka.protocol.admin import DeleteGroupsRequest

    node = admin._coordinators[group]
    answer = await admin._client.request(DeleteGroupsRequest(groups_names=[group]), node=node)
    assert [one.error_code for one in answer.results] == [0]


def test_a_restart_goes_on_from_checkpoints_and_tells_of_what_it_cannot_read(
    groups: MakeGroups, topic_name: str
) -> None:
    one = groups()
    group = f"{topic_name}-a"
    one.mirror(20)
    one.commit(group, 10)
    one.wait(lambda: one.on_target(group) == (110, ""), "the offset")
    one.append(f"{one.alias}.checkpoints.internal", b"no checkpoint", b"at all")
    one.append(ledger_topic(one.alias), b"no page", b"either")
    one.flow.stop()
    one.commit(group, 7)  # back, while nobody looked

    flow = LedFlow(one.flow.file)
    flow.start()
    try:
        one.flow = flow
        one.wait(lambda: one.on_target(group) == (107, ""), "the rewind that happened meanwhile")
        events = flow.runtime.status.events
        one.wait(lambda: len(events) == 2, "both damaged records to be told")
        assert {event.kind for event in events.values()} == {EventKind.INTERNAL_RECORD_DAMAGED}
    finally:
        flow.stop()


def test_a_group_that_reads_what_came_from_the_target_goes_back_there(
    led_flow: Callable[..., LedFlow],
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    """``west.t`` on the source was mirrored from ``t`` on west: the other flow's ledger says where that is."""
    brought, original = TopicPartition(f"west.{topic_name}", 0), TopicPartition(topic_name, 0)
    create_topic(source_cluster.bootstrap, brought.topic, 1)
    create_topic(target_cluster.bootstrap, original.topic, 1)
    here, there = connect(source_cluster), GroupAdmin(connect(target_cluster))
    in_loop(create_topics(here, [NewTopic(ledger_topic("west"), 1, 1, {"cleanup.policy": "compact"})]))
    pages = [
        LedgerPage.of([Run(7, 11, 0, 4, 5)], upstream_start=7, upstream_next=12, downstream_start=0),
        LedgerPage.of([Run(14, 20, 6, 12, 7)], upstream_start=12, upstream_next=21, downstream_start=6),
    ]
    ledger = KeyedTopic(here, ledger_topic("west"))
    in_loop(ledger.append([ledger_entry(brought, pages[0])], Deadline(DEADLINE_S)))
    group = f"{topic_name}-group"
    commits = GroupAdmin(here)
    in_loop(commits.commit({group: {brought: (3, "")}}, Deadline(DEADLINE_S)))
    settings = {"groups": group, "sync__group__offsets__enabled": "true"}
    flow = led_flow(f"{topic_name}, {brought.topic}", **settings)

    def is_at(offset: int) -> bool:
        found = in_loop(there.offsets({group: None}, Deadline(DEADLINE_S))).found[group]
        return bool(found == {original: (offset, "")})

    flow.wait(lambda: is_at(10), "the original's offset")
    in_loop(commits.commit({group: {brought: (8, "")}}, Deadline(DEADLINE_S)))
    flow.wait(lambda: is_at(12), "the end of what the ledger knows")
    in_loop(ledger.append([ledger_entry(brought, pages[1])], Deadline(DEADLINE_S)))
    flow.wait(lambda: is_at(16), "the exact one, when the ledger told more")


def test_where_commits_may_not_be_followed_groups_are_asked_and_that_is_told(
    led_flow: Callable[..., LedFlow],
    groups: MakeGroups,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mirrorspark.cluster.broker_errors import ErrorCode, broker_error

    async def refuse(self: CommitLog, deadline: Deadline) -> None:
        raise broker_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Metadata", "topic __consumer_offsets")

    start = CommitLog.start
    monkeypatch.setattr(CommitLog, "start", refuse)
    monkeypatch.setattr(source_groups, "POLL_INTERVAL_S", 0.3)
    flow = led_flow(topic_name, groups=f"{topic_name}-.*", sync__group__offsets__enabled="true")
    flow.wait(lambda: flow.runtime.status.groups.get("mode") == "polling", "the groups to be polled")
    monkeypatch.setattr(CommitLog, "start", start)
    one = groups()  # brings both clients; its own flow follows
    one.flow, one.alias = flow, flow.settings.flow.source
    one.remote = TopicPartition(f"{one.alias}.{topic_name}", 0)
    one.mirror(20)
    one.commit(f"{topic_name}-a", 10)
    one.wait(lambda: one.on_target(f"{topic_name}-a") == (110, ""), "the offset")
    flow.wait(lambda: EventKind.GROUPS_POLLED in {one.kind for one in flow.runtime.status.events.values()}, "the event")


def test_a_commit_at_the_very_moment_of_a_write_is_put_back(
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_topic(target_cluster.bootstrap, topic_name, 1)
    client = connect(target_cluster)
    at, group = TopicPartition(topic_name, 0), f"{topic_name}-group"
    targets, somebody = TargetGroups(client), GroupAdmin(connect(target_cluster))
    wanted = {group: {at: Wanted(Synced(5, 50), "ours")}}
    assert in_loop(targets.sync(wanted)).verdicts == {(group, at): Verdict.WRITE_FIRST}
    write = GroupAdmin.commit

    async def commit_late(self: GroupAdmin, offsets: Any, deadline: Deadline) -> Any:
        if self is targets._admin:
            monkeypatch.setattr(GroupAdmin, "commit", write)
            await write(somebody, {group: {at: (90, "theirs")}}, deadline)
        return await write(self, offsets, deadline)

    monkeypatch.setattr(GroupAdmin, "commit", commit_late)
    outcome = in_loop(targets.sync({group: {at: Wanted(Synced(6, 60), "ours")}}))
    assert outcome.restored == [(group, at)]
    assert outcome.written == []
    assert in_loop(somebody.offsets({group: None}, Deadline(DEADLINE_S))).found[group] == {at: (90, "theirs")}
    # It is theirs from now on.
    assert in_loop(targets.sync({group: {at: Wanted(Synced(4, 40))}})).verdicts == {(group, at): Verdict.TARGET_AHEAD}
    targets.close()
