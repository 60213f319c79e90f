"""Positions kept with the target's own group coordinator: one OffsetFetch to read, one OffsetCommit to write.

A position is an offset and a short text (what the text means is ``offsets.position``'s business).
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from mirrorspark.cluster.broker_errors import broker_error
from mirrorspark.cluster.cluster_client import COORDINATOR_GROUP, ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.names import TopicPartition

__all__ = ["GroupPositions"]

COMMIT_PARTITIONS_MAX = 1_000
"""Partitions in one OffsetCommit: keeps the coordinator's log append below its message limit."""


class GroupPositions:
    def __init__(self, client: ClusterClient, group: str) -> None:
        self._client = client
        self.group = group

    async def fetch_all(self, deadline: Deadline) -> dict[TopicPartition, tuple[int, str]]:
        """Every position of the group, as of its last finished transaction."""
        return await self._fetch(None, deadline)

    async def fetch(self, wanted: list[TopicPartition], deadline: Deadline) -> dict[TopicPartition, tuple[int, str]]:
        topics: dict[str, list[int]] = {}
        for at in wanted:
            topics.setdefault(at.topic, []).append(at.partition)
        return await self._fetch(topics, deadline)

    async def _fetch(
        self, topics: dict[str, list[int]] | None, deadline: Deadline
    ) -> dict[TopicPartition, tuple[int, str]]:
        listed = None
        if topics is not None:
            listed = [
                OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
                for topic, numbers in topics.items()
            ]
        answer = await self._client.request_coordinator(
            OffsetFetchRequest(group_id=self.group, topics=listed, require_stable=False),
            COORDINATOR_GROUP,
            self.group,
            deadline,
        )
        if answer.error_code:
            raise broker_error(answer.error_code, "OffsetFetch", f"group {self.group}")
        found = {}
        for topic in answer.topics:
            for part in topic.partitions:
                if part.error_code:
                    raise broker_error(part.error_code, "OffsetFetch", f"{topic.name}-{part.partition_index}")
                if part.committed_offset >= 0:
                    at = TopicPartition(topic.name, part.partition_index)
                    found[at] = (part.committed_offset, part.metadata or "")
        return found

    async def commit(self, positions: Mapping[TopicPartition, tuple[int, str]], deadline: Deadline) -> None:
        """All of them, or BrokerError. Retries while the coordinator moves."""
        items = list(positions.items())
        for first in range(0, len(items), COMMIT_PARTITIONS_MAX):
            await self._commit_some(items[first : first + COMMIT_PARTITIONS_MAX], deadline)

    async def _commit_some(self, items: list[tuple[TopicPartition, tuple[int, str]]], deadline: Deadline) -> None:
        topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
        topics: dict[str, list[object]] = {}
        for at, (offset, metadata) in items:
            topics.setdefault(at.topic, []).append(
                topic_class.OffsetCommitRequestPartition(
                    partition_index=at.partition,
                    committed_offset=offset,
                    committed_leader_epoch=-1,
                    committed_metadata=metadata,
                )
            )
        answer = await self._client.request_coordinator(
            OffsetCommitRequest(
                group_id=self.group,
                generation_id_or_member_epoch=-1,
                member_id="",
                group_instance_id=None,
                retention_time_ms=-1,
                topics=[topic_class(name=topic, partitions=parts) for topic, parts in topics.items()],
            ),
            COORDINATOR_GROUP,
            self.group,
            deadline,
        )
        for topic in answer.topics:
            for part in topic.partitions:
                if part.error_code:
                    raise broker_error(part.error_code, "OffsetCommit", f"{topic.name}-{part.partition_index}")
