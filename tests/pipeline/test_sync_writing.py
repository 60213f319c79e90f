"""Offset syncs beside the work: what is written where, and that a cluster that takes none only gets an event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.events import Event, EventKind
from mirrorspark.lab.clients import create_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.plain_records import read_records
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.offsets.offset_sync import OffsetSync
from mirrorspark.pipeline import sync_writing
from mirrorspark.pipeline.sync_writing import SyncWriting, offset_syncs_topic
from mirrorspark.pipeline.track import Track
from mirrorspark.plan.lanes import Assignment
from mirrorspark.settings import FlowSettings, GroupSync

AT = TopicPartition("orders", 3)


def _track(writing: SyncWriting) -> Track:
    track = Track(Assignment(AT, "east.orders", ""))
    writing.begin(track)
    return track


def test_refused_once_told_once_and_written_when_it_works_again(
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    connect: Callable[[ClusterOfBrokers], ClusterClient],
    in_loop: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = connect(target_cluster)
    flow = Flow(topic_name, "west")
    settings = FlowSettings(
        flow, client.settings, client.settings, group_sync=GroupSync(offset_syncs_on_target=True, offset_lag_max=10)
    )
    topic = offset_syncs_topic(settings)
    assert topic == f"mm2-offset-syncs.{topic_name}.internal"
    events: list[Event] = []
    monkeypatch.setattr(sync_writing, "WRITE_TIMEOUT_S", 0.3)

    async def refused() -> tuple[SyncWriting, Track]:
        writing = SyncWriting(client, client, settings, events.append)
        track = _track(writing)
        for first in (0, 50):
            assert track.syncs is not None
            track.syncs.see(first, first + 30, first)
            writing.write([track], delayed=False)
            await writing.finish([])
        return writing, track

    writing, track = in_loop(refused())
    assert [(event.kind, event.topic) for event in events] == [(EventKind.OFFSET_SYNCS_REFUSED, topic)]
    create_topic(target_cluster.bootstrap, topic, 1, settings={"cleanup.policy": "compact"})
    monkeypatch.setattr(sync_writing, "WRITE_TIMEOUT_S", 30.0)

    async def taken() -> None:
        assert track.syncs is not None
        track.syncs.see(100, 130, 100)
        writing.write([track], delayed=False)
        await asyncio.sleep(0)
        await writing.finish([track])
        writing.close()

    in_loop(taken())
    found = [
        OffsetSync.from_record(record.key, record.value) for record in read_records(target_cluster.bootstrap, topic)[0]
    ]
    assert found == [OffsetSync(AT, 122, 122), OffsetSync(AT, 130, 130)]  # the last that was due, then the last of all
    assert len(events) == 1


def test_turned_off_there_is_nothing(source_cluster: ClusterOfBrokers, connect: Callable[..., ClusterClient]) -> None:
    client = connect(source_cluster)
    settings = FlowSettings(Flow("east", "west"), client.settings, client.settings)
    assert offset_syncs_topic(settings) == "mm2-offset-syncs.west.internal"
    off = replace(settings, group_sync=GroupSync(offset_syncs_enabled=False))
    writing = SyncWriting(client, client, off, lambda event: None)
    track = _track(writing)
    assert track.syncs is None
    writing.write([track], delayed=True)
