"""The source offsets of a flow where Connect keeps them: read all, write some.

Lanes write there as they carry (``pipeline.bookkeeping``); this is for the driver's takeover and for people's commands.
An offset is that of the last mirrored record; None takes it away (Connect's reset).
"""

from __future__ import annotations

from collections.abc import Mapping

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.internal_topics import progress_topic_of
from mirrorspark.offsets.progress import parse_progress, progress_entry, progress_key
from mirrorspark.settings import FlowSettings

__all__ = ["ConnectOffsets"]


class ConnectOffsets:
    """``open`` first. A topic that is not there has no offsets, and takes none."""

    def __init__(self, client: ClusterClient, settings: FlowSettings) -> None:
        self._client = client
        self._source = settings.flow.source
        self._connector = settings.connect.connector
        self._keyed: KeyedTopic | None = None
        self.topic = progress_topic_of(settings)

    async def open(self, deadline: Deadline) -> bool:
        """Whether the topic is there. Raises BrokerError where it may not be seen."""
        (found,) = await self._client.refresh([self.topic], deadline)
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        if found.error_code:
            raise broker_error(found.error_code, "Metadata", f"topic {self.topic} on cluster {self._client.alias}")
        # With as many partitions as it has: Java looks for a key where that number puts it.
        self._keyed = KeyedTopic(self._client, self.topic, len(found.partitions))
        return True

    async def read(self, deadline: Deadline) -> dict[TopicPartition, int]:
        """Last mirrored offset of each source partition."""
        offsets: dict[TopicPartition, int] = {}
        if self._keyed is None:
            return offsets
        for key, value in (await self._keyed.read_all(deadline)).items():
            entry = parse_progress(key, value, self._source, self._connector)
            if entry is not None and entry[2] is not None and entry[1] >= 0 and entry[2] >= 0:
                offsets[TopicPartition(entry[0], entry[1])] = entry[2]
        return offsets

    async def write(self, offsets: Mapping[TopicPartition, int | None], deadline: Deadline) -> None:
        if self._keyed is None or not offsets:
            return
        entries: list[tuple[bytes, bytes | None]] = [
            progress_entry(self._source, *at, offset, self._connector)
            if offset is not None
            else (progress_key(self._source, *at, self._connector), None)
            for at, offset in offsets.items()
        ]
        await self._keyed.append(entries, deadline)
