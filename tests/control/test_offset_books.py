"""The driver's part in offsets, on real brokers: what the ledger's keeper prunes, and where offset syncs go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.offset_books import OffsetBooks, make_offset_syncs_topic
from mirrorspark.events import EventKind
from mirrorspark.lab.clients import admin, create_topic, delete_records, delete_topic, topic_partitions
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.plain_records import write_values
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.offsets.internal_topics import ledger_topic
from mirrorspark.offsets.ledger import LedgerPage, Run, ledger_entry
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.plan.lanes import Assignment
from mirrorspark.settings import FlowSettings, GroupSync

Connect = Callable[[ClusterOfBrokers], ClusterClient]
InLoop = Callable[..., Any]
DEADLINE_S = 60.0


def _settings(source: ClusterClient, target: ClusterClient, alias: str, **changes: Any) -> FlowSettings:
    return FlowSettings(Flow(alias, "west"), source.settings, target.settings, **changes)


def test_the_ledger_is_pruned_with_both_logs_and_small_pages_become_one(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    connect: Connect,
    in_loop: InLoop,
) -> None:
    source, target = connect(source_cluster), connect(target_cluster)
    settings = _settings(source, target, topic_name)
    remote, gone = f"{topic_name}.orders", f"{topic_name}.gone"
    create_topic(source_cluster.bootstrap, topic_name, 2)
    create_topic(target_cluster.bootstrap, remote, 2)
    create_topic(target_cluster.bootstrap, gone, 1)
    create_topic(target_cluster.bootstrap, ledger_topic(settings.flow.books), 1, settings={"cleanup.policy": "compact"})
    for partition in (0, 1):
        write_values(source_cluster.bootstrap, topic_name, [b"x"] * 100, partition=partition)
        write_values(target_cluster.bootstrap, remote, [b"x"] * 90, partition=partition)
    carried = [Assignment(TopicPartition(topic_name, number), remote, "") for number in (0, 1)]
    said: list[str] = []
    books = OffsetBooks(
        settings, source, target, lambda: carried, fail=lambda what, why: said.append(why), clear=said.append
    )
    ledger = KeyedTopic(target, ledger_topic(settings.flow.books))

    async def fill() -> None:
        await target.refresh([remote, gone, ledger.topic])
        ids = {name: target.topics[name].topic_id for name in (remote, gone)}
        places = [TopicPartition(remote, 0), TopicPartition(remote, 1), TopicPartition(gone, 0)]
        for at in places:  # ten pages of nine records and a hole each
            pages = [_page(number, ids[at.topic]) for number in range(10)]
            await ledger.append([ledger_entry(at, page) for page in pages], Deadline(DEADLINE_S))
        await ledger.append([(b"no page", b"at all")], Deadline(DEADLINE_S))

    def known() -> dict[str, list[tuple[int, int]]]:
        store = LedgerStore()
        entries = in_loop(KeyedTopic(target, ledger.topic).catch_up(Deadline(DEADLINE_S)))
        for key, value in entries:
            store.fold(key, value)
        return {str(at): [(one.upstream_start, one.upstream_next) for one in store.pages(at)] for at in store}

    in_loop(fill())
    delete_topic(target_cluster.bootstrap, gone)
    delete_records(target_cluster.bootstrap, remote, {0: 27})
    delete_records(source_cluster.bootstrap, topic_name, {1: 55})
    kept = in_loop(books.keep())
    assert known() == {f"{remote}-0": [(30, 80), (80, 90), (90, 100)], f"{remote}-1": [(50, 80), (80, 90), (90, 100)]}
    assert (kept.partitions, kept.pages, kept.damaged) == (2, 6, 1)
    assert in_loop(books.keep()) is None  # nothing was written since

    delete_records(target_cluster.bootstrap, remote, {0: 90, 1: 90})
    in_loop(
        ledger.append([ledger_entry(TopicPartition(remote, 0), _page(9, target.topics[remote].topic_id))], Deadline(60))
    )
    in_loop(books.keep())
    assert known() == {f"{remote}-0": [(90, 100)], f"{remote}-1": [(90, 100)]}  # the newest says where the copy ends
    assert said == []


def _page(number: int, remote_id: bytes) -> LedgerPage:
    first, downstream = 10 * number, 9 * number
    return LedgerPage.of(
        [Run(first, first + 8, downstream, downstream + 8, 9)],
        upstream_start=first,
        upstream_next=first + 10,
        downstream_start=downstream,
        remote_id=remote_id,
    )


def test_offset_syncs_get_their_topic_where_the_file_says(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    connect: Connect,
    in_loop: InLoop,
) -> None:
    source, target = connect(source_cluster), connect(target_cluster)
    settings = FlowSettings(Flow(f"{topic_name}-s", f"{topic_name}-t"), source.settings, target.settings)

    def make(sync: GroupSync) -> Any:
        return in_loop(make_offset_syncs_topic(source, target, replace(settings, group_sync=sync)))

    on_source, on_target = (f"mm2-offset-syncs.{topic_name}-{side}.internal" for side in "ts")
    assert make(GroupSync(offset_syncs_enabled=False)) == []
    assert topic_partitions(source_cluster.bootstrap, on_source) == 0
    for sync in (GroupSync(), GroupSync(offset_syncs_on_target=True), GroupSync()):
        assert make(sync) == []
    assert topic_partitions(source_cluster.bootstrap, on_source) == 1
    assert topic_partitions(target_cluster.bootstrap, on_target) == 1
    assert on_target not in admin(source_cluster.bootstrap).list_topics(timeout=30).topics


def test_a_topic_that_cannot_be_made_is_told_and_stops_nothing(
    source_cluster: ClusterOfBrokers,
    connect: Connect,
    in_loop: InLoop,
) -> None:
    source = connect(source_cluster)
    settings = FlowSettings(Flow("east", "w/est"), source.settings, source.settings)  # a name that no broker takes
    (event,) = in_loop(make_offset_syncs_topic(source, source, settings))
    assert event.kind == EventKind.OFFSET_SYNCS_REFUSED
    assert event.topic == "mm2-offset-syncs.w/est.internal"
    assert "emit.offset-syncs.enabled=false" in event.text
