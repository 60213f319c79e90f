"""Groups of both protocols as a real coordinator shows them, and the tail of what they commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mirrorspark.cluster import group_admin
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.commit_log import CommitLog
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_admin import DEAD, EMPTY, GroupAdmin
from mirrorspark.lab.clients import consumer, create_topic, producer, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.consumer_offsets_record import CONSUMER_OFFSETS_TOPIC, parse_commit

DEADLINE_S = 60.0
UNKNOWN_MEMBER_ID = 25


def test_groups_are_listed_described_read_and_written(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_topic(target_cluster.bootstrap, topic_name, 3)
    admin = GroupAdmin(connect(target_cluster))
    at = [TopicPartition(topic_name, number) for number in range(3)]
    names = [f"{topic_name}-g{number}" for number in range(7)]
    monkeypatch.setattr(group_admin, "GROUPS_PER_REQUEST_MAX", 3)

    def ask(work: Any) -> Any:
        answers = in_loop(work)
        assert answers.refused == {}
        return answers.found

    deadline = Deadline(DEADLINE_S)
    assert ask(admin.describe(names[:2], deadline)) == dict.fromkeys(names[:2], group_admin.GroupState(DEAD, 0))
    assert ask(admin.offsets({names[0]: None}, deadline)) == {names[0]: {}}
    wanted = {name: {at[0]: (number, "by us"), at[2]: (5, "")} for number, name in enumerate(names)}
    assert ask(admin.commit(wanted, deadline)) == {name: {} for name in names}
    assert ask(admin.offsets(dict.fromkeys(names), deadline, stable=True)) == wanted
    assert ask(admin.offsets({names[1]: [at[0], at[1]]}, deadline)) == {names[1]: {at[0]: (1, "by us")}}
    listed = in_loop(admin.list_groups(deadline))
    assert all(listed[name].commits_offsets and listed[name].state == EMPTY for name in names)
    missing = TopicPartition(f"{topic_name}-not-there", 0)
    assert ask(admin.commit({names[0]: {missing: (1, "")}}, deadline)) == {names[0]: {missing: 3}}

    # Brokers of older days take one group in a request.
    monkeypatch.setattr(group_admin, "OFFSET_FETCH_VERSION_MAX", 7)
    monkeypatch.setattr(group_admin, "FIND_COORDINATOR_VERSION_MAX", 3)
    old = GroupAdmin(admin._client)
    assert ask(old.offsets(dict.fromkeys(names), deadline)) == wanted


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_seen_and_refuses_to_be_written(
    protocol: str,
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    create_topic(target_cluster.bootstrap, topic_name, 1)
    admin = GroupAdmin(connect(target_cluster))
    group, at = f"{topic_name}-group", TopicPartition(topic_name, 0)
    member = consumer(
        target_cluster.bootstrap,
        {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"},
    )
    member.subscribe([topic_name])
    try:

        def has_joined() -> bool:
            member.poll(0.1)
            return len(member.assignment()) == 1

        wait_for(has_joined, "the member's partition", DEADLINE_S)
        state = in_loop(admin.describe([group], Deadline(DEADLINE_S))).found[group]
        assert state.members == 1
        assert not state.is_free
        refused = in_loop(admin.commit({group: {at: (5, "")}}, Deadline(DEADLINE_S))).refused
        assert refused[group].error_code == UNKNOWN_MEMBER_ID
        assert in_loop(admin.list_groups(Deadline(DEADLINE_S)))[group].kind.lower() == protocol
    finally:
        member.close()
    state = in_loop(admin.describe([group], Deadline(DEADLINE_S))).found[group]
    assert state.is_free
    assert state.state in (EMPTY, DEAD)
    assert in_loop(admin.commit({group: {at: (5, "")}}, Deadline(DEADLINE_S))).refused == {}


def test_commits_are_followed_as_they_happen_and_transactions_when_they_end(
    in_loop: Callable[..., Any],
    connect: Callable[..., ClusterClient],
    source_cluster: ClusterOfBrokers,
    topic_name: str,
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 2)
    client = connect(source_cluster)
    group, at = f"{topic_name}-group", TopicPartition(topic_name, 1)
    admin, log = GroupAdmin(client), CommitLog(client, CONSUMER_OFFSETS_TOPIC)
    in_loop(admin.commit({group: {at: (1, "")}}, Deadline(DEADLINE_S)))  # the topic is there from now on
    in_loop(log.start(Deadline(DEADLINE_S)))
    seen: list[int | None] = []

    def take(entries: list[Any]) -> None:
        for entry in entries:
            record = parse_commit(*entry)
            if record is not None and record.group == group:
                assert record.at == at
                seen.append(record.commit.offset if record.commit else None)

    for offset in (2, 3):
        in_loop(admin.commit({group: {at: (offset, "text")}}, Deadline(DEADLINE_S)))
    take(in_loop(log.catch_up(Deadline(DEADLINE_S))))
    assert seen == [2, 3]

    from confluent_kafka import TopicPartition as Offset

    other = consumer(source_cluster.bootstrap, {"group.id": group})
    writer = producer(source_cluster.bootstrap, {"transactional.id": topic_name})
    writer.init_transactions(DEADLINE_S)
    for offset, ends in ((10, "abort"), (11, "commit")):
        writer.begin_transaction()
        writer.send_offsets_to_transaction([Offset(topic_name, 1, offset)], other.consumer_group_metadata(), DEADLINE_S)
        take(in_loop(log.catch_up(Deadline(DEADLINE_S))))
        assert not {10, 11} & set(seen), "undecided"
        getattr(writer, f"{ends}_transaction")(DEADLINE_S)

    async def until_decided() -> None:
        while 11 not in seen:
            take(await log.poll(wait_ms=200))

    in_loop(until_decided())
    assert seen == [2, 3, 11]
    other.close()

    in_loop(admin.commit({group: {at: (20, "")}}, Deadline(DEADLINE_S)))
    in_loop(log.skip(Deadline(DEADLINE_S)))
    in_loop(admin.commit({group: {at: (21, "")}}, Deadline(DEADLINE_S)))
    take(in_loop(log.catch_up(Deadline(DEADLINE_S))))
    assert seen == [2, 3, 11, 21]
    log.close()
