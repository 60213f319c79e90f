"""What a mirror wrote is told by its producer id, on real brokers: entered before the first append, never guessed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.topic_configs import effective_config
from mirrorspark.cluster.writer import Writer, obtain_writer
from mirrorspark.events import Event, EventKind
from mirrorspark.lab.clients import create_topic, delete_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.raw_log import read_partition
from mirrorspark.names import Flow, TopicPartition
from mirrorspark.offsets.internal_topics import WRITERS_TOPIC
from mirrorspark.offsets.writer_registry import MirrorWriter
from mirrorspark.pipeline import origin as origin_module
from mirrorspark.pipeline.origin import OriginCheck
from mirrorspark.pipeline.recovery import transactional_id
from mirrorspark.pipeline.writers import FlowWriters, WriterRegistry
from mirrorspark.settings import FlowSettings
from mirrorspark.wire.record_batch import Batch, split_batches, stamp
from mirrorspark.wire.records import encode_batch

if TYPE_CHECKING:
    from conftest import TwoLogs

InLoop = Callable[..., Any]
DEADLINE_S = 60.0


class Reader:
    """A flow that keeps names and reads where a reverse flow writes: the source of two logs."""

    def __init__(self, logs: TwoLogs) -> None:
        self.logs = logs
        self.here, self.there = f"here-{logs.at.topic}", f"there-{logs.at.topic}"
        self.settings = FlowSettings(Flow(self.here, self.there), logs.source.settings, logs.target.settings)
        self.reverse = FlowSettings(Flow(self.there, self.here), logs.target.settings, logs.source.settings)
        self.on_target = WriterRegistry(logs.target, 1)
        self.events: list[Event] = []
        self.check = self.new_check()

    def new_check(self) -> OriginCheck:
        return OriginCheck(self.logs.source, self.settings, on_target=self.on_target, report=self.events.append)

    async def obtain(self, name: str | None) -> Writer:
        client = self.logs.source
        return await obtain_writer(client, name, transaction_timeout_ms=60_000, deadline=Deadline(DEADLINE_S))

    async def lane(self, flow: Flow | None = None, *, entered: bool = True) -> Writer:
        """A writer as a lane of the reverse flow (or of another) obtains it."""
        flow = flow or self.reverse.flow
        writer = await self.obtain(transactional_id(FlowSettings(flow, *[self.settings.source] * 2), 0))
        if entered:
            registry = WriterRegistry(self.logs.source, 1)
            await FlowWriters(registry, flow, 0, 1).enter(writer, Deadline(DEADLINE_S))
        return writer

    def batch(self, writer: Writer | None, records: int = 3) -> Batch:
        """As it would be fetched from the source."""
        (batch,) = split_batches(memoryview(encode_batch(self.logs.records(records), codec=0)), *self.logs.at)
        if writer is not None:
            batch.producer_id = writer.producer_id
        return batch

    async def skips(self, *batches: Batch) -> list[bool]:
        await self.check.learn(batches)
        assert self.check.knows(batches)
        return [self.check.skips(batch) for batch in batches]


@pytest.fixture
def reader(two_logs: TwoLogs) -> Reader:
    return Reader(two_logs)


def test_local_producers_are_carried_and_a_mirrors_batches_are_not(in_loop: InLoop, reader: Reader) -> None:
    async def run() -> None:
        await reader.check.start(Deadline(DEADLINE_S))
        idempotent, transactional = await reader.obtain(None), await reader.obtain(f"app-{reader.here}")
        mirror = await reader.lane()
        batches = [reader.batch(writer) for writer in (None, idempotent, transactional, mirror, None, mirror)]
        assert await reader.skips(*batches) == [False, False, False, True, False, True]
        assert reader.check.skipped == {f"{reader.there}->{reader.here}": [2, 6]}
        assert reader.check.is_mirrored(batches[3])
        assert list(reader.check.skipped.values()) == [[2, 6]]  # a recovery's question is not counted
        assert reader.events == []

    in_loop(run())


def test_a_lane_that_was_entered_after_the_start_is_known(in_loop: InLoop, reader: Reader) -> None:
    """The registry is read to its end as of after the fetch, whatever was read before."""

    async def run() -> None:
        await reader.check.start(Deadline(DEADLINE_S))
        assert await reader.skips(reader.batch(await reader.lane())) == [True]
        other = await reader.lane(Flow(f"{reader.there}-2", reader.here))
        assert not reader.check.knows([reader.batch(other)])
        assert await reader.skips(reader.batch(other)) == [True]

    in_loop(run())


def test_an_entry_is_written_once_and_says_since_when(in_loop: InLoop, reader: Reader) -> None:
    async def run() -> None:
        client = reader.logs.source
        await reader.lane()
        end = (await read_partition(client, TopicPartition(WRITERS_TOPIC, 0)))[-1].next_offset
        again = await reader.lane()  # the next attempt: same producer id, newer epoch
        assert (await read_partition(client, TopicPartition(WRITERS_TOPIC, 0)))[-1].next_offset == end
        registry = WriterRegistry(client, 1)
        await registry.read(Deadline(DEADLINE_S))
        entry = registry.writers[again.producer_id]
        assert (entry.flow, entry.lane, entry.generation) == (reader.reverse.flow, 0, 1)
        assert entry.epoch < again.epoch
        assert await effective_config(client, WRITERS_TOPIC, "cleanup.policy") == "compact"
        # A producer id whose epochs are used up gives way to another one, which is entered as well.
        other = await reader.obtain(None)
        mine = FlowWriters(registry, reader.reverse.flow, 0, 2)
        await mine.enter(again, Deadline(DEADLINE_S))
        await mine.enter(other, Deadline(DEADLINE_S))
        assert mine.ids == {again.producer_id, other.producer_id}
        assert not mine.are_new
        assert FlowWriters(registry, Flow("nobody", reader.here), 0, 2).are_new

    in_loop(run())


def test_a_registry_that_was_deleted_is_made_anew_and_nothing_goes_round(
    in_loop: InLoop, reader: Reader, source_cluster: ClusterOfBrokers
) -> None:
    async def before() -> Writer:
        await reader.check.start(Deadline(DEADLINE_S))
        return await reader.lane()

    async def after(old: Writer) -> None:
        reader.check = reader.new_check()
        await reader.check.start(Deadline(DEADLINE_S))
        # Not in the new registry, but the brokers know whose id it is. So with an older mirrorspark that never entered it.
        assert await reader.skips(reader.batch(old), reader.batch(await reader.lane(entered=False))) == [True, True]
        # A reader that knew the old topic reads the new one from its start.
        third = await reader.lane(Flow(f"{reader.there}-3", reader.here))
        assert await reader.skips(reader.batch(third)) == [True]
        assert third.producer_id in reader.check._registry.writers

    old = in_loop(before())
    delete_topic(source_cluster.bootstrap, WRITERS_TOPIC)
    in_loop(after(old))


def test_records_of_a_third_cluster_are_not_forwarded_and_that_is_told_once(in_loop: InLoop, reader: Reader) -> None:
    async def run() -> None:
        third = Flow(f"third-{reader.here}", reader.here)
        batch = reader.batch(await reader.lane(third))
        assert await reader.skips(batch) == [True]
        (event,) = reader.events
        assert (event.kind, event.topic) == (EventKind.NOT_FORWARDED, str(third))
        assert f"{third.source}->{reader.there}" in event.text
        reader.check = reader.new_check()
        assert await reader.skips(batch) == [True]
        assert len(reader.events) == 1

        # In a mesh the target has them from the third cluster itself.
        fourth = f"fourth-{reader.here}"
        direct = MirrorWriter((await reader.logs.obtain()).producer_id, Flow(fourth, reader.there))
        await WriterRegistry(reader.logs.target, 1).enter(direct, Deadline(DEADLINE_S))
        assert await reader.skips(reader.batch(await reader.lane(Flow(fourth, reader.here)))) == [True]
        assert len(reader.events) == 1

    in_loop(run())


def test_only_so_many_local_producers_are_remembered(
    in_loop: InLoop, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origin_module, "VERDICTS_MAX", 4)

    async def run() -> None:
        mirror = await reader.lane()
        known = [reader.batch(mirror), reader.batch(await reader.obtain(None))]
        assert await reader.skips(*known) == [True, False]
        assert await reader.skips(*[reader.batch(await reader.obtain(None)) for _ in range(2)]) == [False, False]
        assert reader.check.knows([known[0], reader.batch(None)])
        assert not reader.check.knows(known)
        assert await reader.skips(*known) == [True, False]

    in_loop(run())


@pytest.mark.parametrize(
    "settings",
    [{"message.timestamp.type": "LogAppendTime"}, {"compression.type": "gzip"}],
    ids=["append time", "recompressed"],
)
def test_a_broker_that_rewrites_a_batch_keeps_its_producer_id(
    in_loop: InLoop,
    two_logs: TwoLogs,
    connect: Callable[..., ClusterClient],
    target_cluster: ClusterOfBrokers,
    new_topic_name: Callable[[], str],
    settings: dict[str, str],
) -> None:
    topic = new_topic_name()
    create_topic(target_cluster.bootstrap, topic, 1, settings=settings)

    async def run() -> None:
        writer = await two_logs.obtain()
        raw = encode_batch(two_logs.records(5), codec=0)
        (batch,) = split_batches(memoryview(raw), topic, 0)
        stamp(batch, producer_id=writer.producer_id, producer_epoch=writer.epoch, base_sequence=0)
        await two_logs.append(two_logs.target, TopicPartition(topic, 0), raw)
        (found,) = await read_partition(two_logs.target, TopicPartition(topic, 0))
        assert (found.is_log_append_time, found.codec) != (batch.is_log_append_time, batch.codec)
        assert found.producer_id == writer.producer_id

    in_loop(run())
