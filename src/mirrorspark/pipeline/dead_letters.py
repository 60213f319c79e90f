"""Records that the target's topic does not take, set aside on the target with their origin in headers.

Only with ``on.record.too.large=dead-letter``. The topic is made when first needed, with a size limit that fits.
"""

from __future__ import annotations

from collections.abc import Callable

from mirrorspark.cluster.cluster_admin import NewTopic, create_topics
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.errors import PartitionStopped
from mirrorspark.pipeline.track import Track
from mirrorspark.settings import FlowSettings
from mirrorspark.wire.records import Record, encode_batch

__all__ = ["DeadLetters"]

RECORD_BYTES_MAX = 256 * 1024 * 1024


class DeadLetters:
    def __init__(self, target: ClusterClient, settings: FlowSettings, count: Callable[[str], None]) -> None:
        """``count``: told of each that is written, and of each that failed."""
        self._target = target
        self._count = count
        self._settings = settings
        self.topic = f"mirrorspark-dead-letters.{settings.flow.books}.internal"
        self._made = False

    async def set_aside(self, track: Track, record: Record) -> None:
        self._count("dead_letters")
        try:
            await self._write(track, record)
        except BaseException:
            self._count("dead_letters_failed")
            raise

    async def _write(self, track: Track, record: Record) -> None:
        if not self._made:
            wanted = NewTopic(
                self.topic,
                1,
                min(self._settings.internal_replication_factor, max(1, len(self._target.nodes))),
                {"max.message.bytes": str(RECORD_BYTES_MAX), "cleanup.policy": "delete", "retention.ms": "-1"},
            )
            refused = await create_topics(self._target, [wanted])
            if refused:
                raise PartitionStopped(f"the dead-letter topic cannot be made: {refused[self.topic]}")
            self._made = True
        origin = (
            (b"mirrorspark.source.cluster", self._settings.flow.source.encode()),
            (b"mirrorspark.source.topic", track.source.topic.encode()),
            (b"mirrorspark.source.partition", str(track.source.partition).encode()),
            (b"mirrorspark.source.offset", str(record.offset).encode()),
        )
        batch = encode_batch([record._replace(offset=0, headers=(*record.headers, *origin))], codec=0)
        await KeyedTopic(self._target, self.topic).append_batch(0, batch, Deadline(60.0))
