"""Real MirrorMaker 2, then mirrorspark, then MirrorMaker 2 again on one flow under load: nothing lost, nothing twice.

While MirrorMaker 2 carries, a mirror refuses to start beside it. Offsets from before the takeover are translated by its
syncs and skip nothing. The slow forms go round more often, kill instead of stopping, and use Connect with own names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.control.mirror_maker_watch import MirrorMakerRunning, MirrorMakerWatch
from mirrorspark.events import Event, EventKind
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.clients import end_offsets, topic_partitions, total_records, wait_for
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.connect_worker import ConnectWorker, mirror_connectors
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.ledger_check import read_ledger
from mirrorspark.lab.mirror_maker import Endpoint, MirrorMaker, flow_properties
from mirrorspark.lab.raw_log import raw_batches
from mirrorspark.lab.workload import Workload
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.internal_topics import plan_topic
from mirrorspark.offsets.translation import translate
from mirrorspark.settings import ConnectNames, FlowSettings, GroupSync
from mirrorspark.wire.records import decode_records

PARTITIONS = 3
RATE = 300
CARRIED_S = 120.0
MORE = 600
"""Records that each mirror carries before it is stopped."""
HEAP_MB = 512


class Relay:
    """One flow that goes from hand to hand while records come."""

    def __init__(self, settings: FlowSettings, source: str, target: str, topic: str, folder: Path) -> None:
        self.settings = settings
        self.source, self.target = source, target
        self.topic, self.remote = topic, f"{settings.flow.source}.{topic}"
        self.folder = folder
        self.turns = 0
        self.workload = Workload(source, topic, PARTITIONS, seed=3)
        self.workload.create_topic()
        self.workload.start(RATE)

    def properties(self) -> dict[str, str]:
        flow = self.settings.flow
        return flow_properties(
            Endpoint(flow.source, self.source), Endpoint(flow.target, self.target), topics=self.topic
        )

    def carried(self) -> int:
        return total_records(self.target, self.remote) if topic_partitions(self.target, self.remote) else 0

    def wait_for_more(self, who: str, count: int = MORE) -> None:
        wanted = self.carried() + count
        wait_for(lambda: self.carried() >= wanted, f"{who} to carry {count} records", CARRIED_S, every_s=0.2)

    @contextmanager
    def mirror_maker(self) -> Iterator[MirrorMaker]:
        self.turns += 1
        folder = self.folder / f"mm2-{self.turns}"
        mirror = MirrorMaker(self.properties(), folder, heap_mb=HEAP_MB, is_measured=False)
        try:
            mirror.start()
            self.wait_for_more("MirrorMaker 2")
            yield mirror
        finally:
            mirror.stop()

    @contextmanager
    def mirrorspark(self) -> Iterator[FlowWithoutSpark]:
        self.turns += 1
        flow = FlowWithoutSpark(self.settings, folder=self.folder / f"flow-{self.turns}")
        try:
            flow.start()
            self.wait_for_more("mirrorspark")
            yield flow
            flow.stop()
        finally:
            flow.kill()

    def end(self) -> None:
        """Stop the records, and let the mirror that runs come to their end."""
        self.workload.stop()
        wait_until_caught_up(self.source, self.target, self.topic, self.remote)

    def assert_clean(self) -> None:
        verdict = check_copy(self.target, self.remote, self.workload.ledger)
        assert verdict.is_clean, verdict.report()


@pytest.fixture
def relay(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    flow_settings: Callable[..., FlowSettings],
    tmp_path: Path,
) -> Iterator[Callable[..., Relay]]:
    begun: list[Relay] = []

    def begin(change: Callable[[FlowSettings], FlowSettings] = lambda settings: settings) -> Relay:
        settings = change(flow_settings(topic_name, group_sync=GroupSync(groups=f"{topic_name}-.*")))
        begun.append(Relay(settings, source_cluster.bootstrap, target_cluster.bootstrap, topic_name, tmp_path))
        return begun[-1]

    yield begin
    for one in begun:
        one.workload.stop()


def test_a_flow_goes_from_mirror_maker_to_us_and_back(
    relay: Callable[..., Relay],
    target_cluster: ClusterOfBrokers,
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
) -> None:
    flow = relay()
    with flow.mirror_maker():
        _assert_refuses_to_start_beside_it(flow)
    taken_at = {number: end for number, (_, end) in end_offsets(flow.target, flow.remote).items()}
    with flow.mirrorspark() as running:
        assert not running.events, running.events
    _assert_translation_skips_nothing(flow, taken_at)
    with flow.mirror_maker():
        _assert_is_told_beside_it(flow, in_loop, connect(target_cluster))
        flow.end()
    flow.assert_clean()


def _assert_refuses_to_start_beside_it(flow: Relay) -> None:
    beside = FlowWithoutSpark(flow.settings, folder=flow.folder / "beside")
    with pytest.raises(Exception, match="MirrorMaker 2 is carrying"):
        beside.start()
    assert isinstance(beside.failure, MirrorMakerRunning)
    text = str(beside.failure)
    assert f"{flow.settings.flow.source}-mm2" in text
    assert "MirrorSourceConnector-0 RUNNING" in text
    assert "on.mirror.maker.running=continue" in text
    assert topic_partitions(flow.target, plan_topic(flow.settings.flow.books)) == 0, "nothing was written"


def _assert_is_told_beside_it(flow: Relay, in_loop: Callable[..., Any], target: ClusterClient) -> None:
    """What a flow that runs would say within a minute."""
    told: list[Event] = []

    async def tell(events: Sequence[Event]) -> None:
        told.extend(events)

    in_loop(MirrorMakerWatch(target, lambda: flow.settings, tell).look())
    [event] = told
    assert event.kind == EventKind.MIRROR_MAKER_RUNNING
    assert "MirrorSourceConnector-0 RUNNING" in event.text
    other = replace(flow.settings, connect=ConnectNames(group=f"nobody-{flow.topic}"))
    in_loop(MirrorMakerWatch(target, lambda: other, tell).look())
    assert len(told) == 1, "another group is another's"


def _assert_translation_skips_nothing(flow: Relay, taken_at: dict[int, int]) -> None:
    """Every offset that MirrorMaker 2 had carried: never past its record, and close to it where there was a sync."""
    ledger = read_ledger(flow.target, flow.settings.flow.source)
    assert ledger.damaged_entries == 0
    for number, batches in raw_batches(flow.target, flow.remote).items():
        copied = [
            record.offset
            for batch in batches
            if not batch.is_control
            for record in decode_records(batch, flow.remote, number)
        ]
        exact = 0
        # MirrorMaker 2 copied from offset 0 into an empty topic, densely: a record lies where it came from.
        for downstream in copied[: taken_at[number]]:
            found = translate(ledger, TopicPartition(flow.remote, number), downstream)
            there = found.downstream_offset if found.downstream_offset is not None else 0
            assert there <= downstream, (number, downstream, found)
            assert there == downstream or not found.exact, (number, downstream, found)
            exact += found.exact
        assert exact > 0, "the syncs and the comparison tell some of them exactly"


# -- long forms ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_round_and_round_with_clean_stops(relay: Callable[..., Relay]) -> None:
    flow = relay()
    for _ in range(3):
        with flow.mirror_maker():
            flow.wait_for_more("MirrorMaker 2", 5 * MORE)
        with flow.mirrorspark() as running:
            flow.wait_for_more("mirrorspark", 5 * MORE)
            assert not running.events, running.events
    with flow.mirror_maker():
        flow.end()
    flow.assert_clean()


@pytest.mark.slow
def test_a_killed_mirror_maker_leaves_records_that_are_found(relay: Callable[..., Relay]) -> None:
    """It stores offsets once a minute; its newest sync is younger, and from there both logs are compared."""
    flow = relay()
    with flow.mirror_maker() as mirror:
        mirror.kill()
    wait_for(lambda: not _is_refused(flow), "its group to time out", CARRIED_S, every_s=1.0)
    with flow.mirrorspark():
        flow.end()
    flow.assert_clean()


def _is_refused(flow: Relay) -> bool:
    attempt = FlowWithoutSpark(flow.settings, folder=flow.folder / "attempt")
    try:
        attempt.start()
    except Exception:
        if isinstance(attempt.failure, MirrorMakerRunning):
            return True
        raise
    attempt.stop()
    return False


@pytest.mark.slow
def test_a_flow_of_connect_with_its_own_names(relay: Callable[..., Relay]) -> None:
    """MirrorMaker 2's connectors on a Connect worker: other topics, another group, another connector's name."""
    names = ConnectNames("my-connect-offsets", "my-connect-status", "my-connect", "mm2-msc")
    flow = relay(lambda settings: replace(settings, connect=names))

    def worker() -> ConnectWorker:
        flow.turns += 1
        return ConnectWorker(
            flow.target,
            flow.folder / f"connect-{flow.turns}",
            group=names.group,
            offsets_topic=names.offsets_topic,
            status_topic=names.status_topic,
        )

    connectors = mirror_connectors(
        Endpoint(flow.settings.flow.source, flow.source),
        Endpoint(flow.settings.flow.target, flow.target),
        topics=flow.topic,
        names=("mm2-msc", "mm2-cpc"),
    )
    with worker() as connect:
        connect.create(connectors)
        flow.wait_for_more("MirrorMaker 2 on Connect")
        beside = FlowWithoutSpark(flow.settings, folder=flow.folder / "beside")
        with pytest.raises(Exception, match="mm2-msc-0 RUNNING"):
            beside.start()
    with flow.mirrorspark() as running:
        assert not running.events, running.events
    with worker():  # its configuration is in its own topic
        flow.wait_for_more("MirrorMaker 2 on Connect")
        flow.end()
    flow.assert_clean()
