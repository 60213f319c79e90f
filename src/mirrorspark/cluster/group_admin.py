"""Consumer groups as an administrator sees them: which there are, who is in them, what they committed; any number at once.

Groups are asked for together, coordinator by coordinator, a bounded number of requests at a time; brokers that know only
one group in a request get one for each. Each group that is refused has its own error. ``control.group_sync`` and the
commands ask; decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse, ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error, is_retriable
from mirrorspark.cluster.cluster_client import COORDINATOR_GROUP, ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.errors import BrokerError, ClusterError
from mirrorspark.names import TopicPartition
from mirrorspark.wire.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE_API_KEY,
    CONSUMER_GROUP_DESCRIBE_VERSION,
    decode_consumer_group_describe,
    encode_consumer_group_describe,
)

__all__ = ["Answers", "GroupAdmin", "GroupOffset", "GroupState", "ListedGroup"]

GROUPS_PER_REQUEST_MAX = 200
REQUESTS_AT_ONCE_MAX = 8
"""On their way at the same time, over all brokers."""
RETRY_PAUSE_S = 0.1
GROUP_ID_NOT_FOUND = 69
OFFSET_FETCH_OF_MANY = 8
OFFSET_FETCH_VERSION_MAX = 9
"""From 10 on topics go by their ids."""
OFFSET_COMMIT_VERSION_MAX = 9
FIND_COORDINATOR_OF_MANY = FIND_COORDINATOR_VERSION_MAX = 4
DEAD, EMPTY = "Dead", "Empty"
UNSTABLE_OFFSET_COMMIT, GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID = 88, 30, 24
_PASSING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    UNSTABLE_OFFSET_COMMIT,
)
"""Asked again at once, until the deadline."""
_OF_THE_GROUP = (*_PASSING, INVALID_GROUP_ID, GROUP_AUTHORIZATION_FAILED, 22, 25, 27, GROUP_ID_NOT_FOUND, 110, 113)
"""Errors of OffsetCommit that stand at each partition and mean the group: generations, members, rebalances."""

GroupOffset = tuple[int, str]
"""Committed offset and metadata."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """As a broker lists it. ``state`` and ``kind`` are "" where the broker is too old to tell."""

    name: str
    protocol_type: str
    state: str = ""
    kind: str = ""  # classic, consumer, share, streams

    @property
    def is_share(self) -> bool:
        return self.kind.lower() == "share" or self.protocol_type == "share"

    @property
    def commits_offsets(self) -> bool:
        """Whether its members are consumers, or it has none and holds offsets only. Connect's workers are neither."""
        return not self.is_share and self.protocol_type in ("", "consumer", "streams")


@dataclass(frozen=True, slots=True)
class GroupState:
    """``Dead`` is Kafka's word for a group that is not there."""

    state: str
    members: int

    @property
    def is_there(self) -> bool:
        return self.state != DEAD

    @property
    def is_free(self) -> bool:
        """Whether nobody can be reading by it."""
        return self.members == 0 and self.state in (DEAD, EMPTY)


@dataclass
class Answers(Generic[T]):
    """What was found for each group, or why not."""

    found: dict[str, T] = field(default_factory=dict)
    refused: dict[str, BrokerError] = field(default_factory=dict)

    def take(self, other: Answers[T]) -> None:
        self.found |= other.found
        self.refused |= other.refused


Ask = Callable[[int, list[str]], Awaitable[Answers[T]]]


class GroupAdmin:
    """Of one cluster. Remembers which broker coordinates which group."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._coordinators: dict[str, int] = {}
        self._turns = asyncio.Semaphore(REQUESTS_AT_ONCE_MAX)

    # -- which there are --------------------------------------------------------------------------------------------

    async def list_groups(self, deadline: Deadline) -> dict[str, ListedGroup]:
        """Of all brokers, each of which knows its own. Raises where one cannot say within the deadline."""
        found: dict[str, ListedGroup] = {}
        for node in self._client.nodes:
            while True:
                request = ListGroupsRequest(states_filter=[], types_filter=[])
                answer = await self._request(node, request, ListGroupsResponse, ListGroupsRequest.max_version)
                if answer.error_code == 0:
                    break
                if not is_retriable(answer.error_code) or deadline.passed:
                    raise broker_error(answer.error_code, "ListGroups", f"broker {node} of {self._client.alias}")
                await asyncio.sleep(RETRY_PAUSE_S)
            for group in answer.groups:
                state, kind = getattr(group, "group_state", None), getattr(group, "group_type", None)
                found[group.group_id] = ListedGroup(group.group_id, group.protocol_type or "", state or "", kind or "")
                self._coordinators[group.group_id] = node
        return found

    # -- who is in them ---------------------------------------------------------------------------------------------

    async def describe(self, groups: Iterable[str], deadline: Deadline) -> Answers[GroupState]:
        """State and number of members, of groups of both consumer protocols."""
        answers = await self._by_coordinator(groups, self._describe_classic, deadline)
        # A group of the newer protocol is not there for the older request.
        unknown = [group for group, found in answers.found.items() if not found.is_there]
        answers.take(await self._by_coordinator(unknown, self._describe_consumer, deadline))
        return answers

    async def _describe_classic(self, node: int, groups: list[str]) -> Answers[GroupState]:
        request = DescribeGroupsRequest(groups=groups, include_authorized_operations=False)
        answer = await self._request(node, request, DescribeGroupsResponse, DescribeGroupsRequest.max_version)
        answers: Answers[GroupState] = Answers()
        for group in answer.groups:
            if group.error_code in (0, GROUP_ID_NOT_FOUND):
                state = DEAD if group.error_code else group.group_state
                answers.found[group.group_id] = GroupState(state, len(group.members))
            else:
                answers.refused[group.group_id] = self._refusal(group.error_code, "DescribeGroups", group.group_id)
        return answers

    async def _describe_consumer(self, node: int, groups: list[str]) -> Answers[GroupState]:
        link = await self._client.connection(node)
        answers: Answers[GroupState] = Answers()
        if CONSUMER_GROUP_DESCRIBE_API_KEY not in link.versions:
            answers.found = dict.fromkeys(groups, GroupState(DEAD, 0))  # too old to have such groups
            return answers
        raw = [
            link.send_raw(
                CONSUMER_GROUP_DESCRIBE_API_KEY,
                CONSUMER_GROUP_DESCRIBE_VERSION,
                True,
                [encode_consumer_group_describe(group)],
            )
            for group in groups
        ]
        async with asyncio.timeout(self._client.request_timeout_s):
            told = [decode_consumer_group_describe((await one).view) for one in raw]
        for group, one in zip(groups, told, strict=True):
            if one.error_code in (0, GROUP_ID_NOT_FOUND):
                answers.found[group] = GroupState(DEAD if one.error_code else one.state, one.members)
            else:
                answers.refused[group] = self._refusal(one.error_code, "ConsumerGroupDescribe", group)
        return answers

    # -- what they committed ----------------------------------------------------------------------------------------

    async def offsets(
        self, wanted: Mapping[str, Collection[TopicPartition] | None], deadline: Deadline, *, stable: bool = False
    ) -> Answers[dict[TopicPartition, GroupOffset]]:
        """Committed offsets of these partitions (None: of all). A partition without one is left out.

        ``stable``: a group with an offset that a transaction has yet to decide is waited for.
        """

        async def ask(node: int, groups: list[str]) -> Answers[dict[TopicPartition, GroupOffset]]:
            link = await self._client.connection(node)
            version = link.version(OffsetFetchRequest.API_KEY, 1, OFFSET_FETCH_VERSION_MAX, "OffsetFetch")
            if version >= OFFSET_FETCH_OF_MANY:
                return await self._offsets_of_many(node, {group: wanted[group] for group in groups}, stable)
            answers: Answers[dict[TopicPartition, GroupOffset]] = Answers()
            for one in await asyncio.gather(
                *(self._offsets_of_one(node, group, wanted[group], stable) for group in groups)
            ):
                answers.take(one)
            return answers

        return await self._by_coordinator(wanted, ask, deadline)

    async def _offsets_of_many(
        self, node: int, wanted: Mapping[str, Collection[TopicPartition] | None], stable: bool
    ) -> Answers[dict[TopicPartition, GroupOffset]]:
        group_class = OffsetFetchRequest.OffsetFetchRequestGroup
        topic_class = group_class.OffsetFetchRequestTopics
        listed = [
            group_class(group_id=group, member_id=None, member_epoch=-1, topics=_topics(topic_class, partitions))
            for group, partitions in wanted.items()
        ]
        request = OffsetFetchRequest(groups=listed, require_stable=stable)
        answer = await self._request(node, request, OffsetFetchResponse, OFFSET_FETCH_VERSION_MAX)
        answers: Answers[dict[TopicPartition, GroupOffset]] = Answers()
        for group in answer.groups:
            self._read_offsets(answers, group.group_id, group)
        return answers

    async def _offsets_of_one(
        self, node: int, group: str, partitions: Collection[TopicPartition] | None, stable: bool
    ) -> Answers[dict[TopicPartition, GroupOffset]]:
        topics = _topics(OffsetFetchRequest.OffsetFetchRequestTopic, partitions)
        request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=stable)
        answer = await self._request(node, request, OffsetFetchResponse, OFFSET_FETCH_OF_MANY - 1)
        answers: Answers[dict[TopicPartition, GroupOffset]] = Answers()
        self._read_offsets(answers, group, answer)
        return answers

    def _read_offsets(self, answers: Answers[dict[TopicPartition, GroupOffset]], group: str, told: Any) -> None:
        code = getattr(told, "error_code", 0) or 0
        found: dict[TopicPartition, GroupOffset] = {}
        for topic in told.topics:
            for part in topic.partitions:
                code = code or part.error_code
                if part.committed_offset >= 0:
                    found[TopicPartition(topic.name, part.partition_index)] = part.committed_offset, part.metadata or ""
        if code == GROUP_ID_NOT_FOUND:
            answers.found[group] = {}
        elif code:
            answers.refused[group] = self._refusal(code, "OffsetFetch", group)
        else:
            answers.found[group] = found

    async def commit(
        self, wanted: Mapping[str, Mapping[TopicPartition, GroupOffset]], deadline: Deadline
    ) -> Answers[dict[TopicPartition, int]]:
        """Write offsets as an administrator: the coordinator takes them only for a group that has no members now.

        Found are the error codes of single partitions that were refused while the group was not.
        """

        async def ask(node: int, groups: list[str]) -> Answers[dict[TopicPartition, int]]:
            answers: Answers[dict[TopicPartition, int]] = Answers()
            for one in await asyncio.gather(*(self._commit_one(node, group, wanted[group]) for group in groups)):
                answers.take(one)
            return answers

        return await self._by_coordinator(wanted, ask, deadline)

    async def _commit_one(
        self, node: int, group: str, offsets: Mapping[TopicPartition, GroupOffset]
    ) -> Answers[dict[TopicPartition, int]]:
        topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
        topics: dict[str, list[Any]] = {}
        for at, (offset, metadata) in offsets.items():
            topics.setdefault(at.topic, []).append(
                topic_class.OffsetCommitRequestPartition(
                    partition_index=at.partition,
                    committed_offset=offset,
                    committed_leader_epoch=-1,
                    committed_metadata=metadata,
                )
            )
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            retention_time_ms=-1,
            topics=[topic_class(name=topic, partitions=parts) for topic, parts in topics.items()],
        )
        answer = await self._request(node, request, OffsetCommitResponse, OFFSET_COMMIT_VERSION_MAX)
        codes = {
            TopicPartition(topic.name, part.partition_index): part.error_code
            for topic in answer.topics
            for part in topic.partitions
            if part.error_code
        }
        answers: Answers[dict[TopicPartition, int]] = Answers()
        of_group = next((code for code in codes.values() if code in _OF_THE_GROUP), 0)
        if of_group:
            answers.refused[group] = self._refusal(of_group, "OffsetCommit", group)
        else:
            answers.found[group] = codes
        return answers

    # -- to whom ----------------------------------------------------------------------------------------------------

    async def _by_coordinator(self, groups: Iterable[str], ask: Ask[T], deadline: Deadline) -> Answers[T]:
        """Ask each group's coordinator; again, while coordinators move or load, until the deadline."""
        answers: Answers[T] = Answers()
        todo = list(groups)
        while todo:
            await self._locate([group for group in todo if group not in self._coordinators], answers.refused, deadline)
            by_node: dict[int, list[str]] = {}
            for group in todo:
                if group in self._coordinators:
                    by_node.setdefault(self._coordinators[group], []).append(group)
            portions = [
                (node, some[first : first + GROUPS_PER_REQUEST_MAX])
                for node, some in by_node.items()
                for first in range(0, len(some), GROUPS_PER_REQUEST_MAX)
            ]
            for one in await asyncio.gather(*(self._in_turn(ask, node, some) for node, some in portions)):
                answers.take(one)
            todo = [group for group in todo if (why := answers.refused.get(group)) and why.error_code in _PASSING]
            for group in todo:
                self._coordinators.pop(group, None)
            if not todo or deadline.passed:
                break
            for group in todo:
                del answers.refused[group]
            await asyncio.sleep(RETRY_PAUSE_S)
        return answers

    async def _in_turn(self, ask: Ask[T], node: int, groups: list[str]) -> Answers[T]:
        """A broker that does not answer makes its groups' answer one that passes: another may coordinate them soon."""
        async with self._turns:
            try:
                return await ask(node, groups)
            except TimeoutError:
                why = f"broker {node} of {self._client.alias} does not answer"
            except ClusterError as error:
                if not error.retriable:
                    raise
                why = str(error)
        facts = {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE, "retriable": True}
        return Answers(refused={group: BrokerError(why, **facts) for group in groups})

    async def _locate(self, groups: list[str], refused: dict[str, BrokerError], deadline: Deadline) -> None:
        """Find the coordinators of groups whose coordinator is not known."""
        for first in range(0, len(groups), GROUPS_PER_REQUEST_MAX):
            some = groups[first : first + GROUPS_PER_REQUEST_MAX]
            while True:
                try:
                    await self._locate_some(some, refused)
                    break
                except ClusterError as error:
                    if not error.retriable or deadline.passed:
                        raise
                    await asyncio.sleep(RETRY_PAUSE_S)
                    await self._client.refresh([], deadline)

    async def _locate_some(self, groups: list[str], refused: dict[str, BrokerError]) -> None:
        node = await self._client._any_node()
        link = await self._client.connection(node)
        version = link.version(FindCoordinatorRequest.API_KEY, 1, FIND_COORDINATOR_VERSION_MAX, "FindCoordinator")
        if version >= FIND_COORDINATOR_OF_MANY:
            request = FindCoordinatorRequest(key_type=COORDINATOR_GROUP, coordinator_keys=groups)
            answer = await self._request(node, request, FindCoordinatorResponse, version)
            told = {one.key: (one.error_code, one.node_id) for one in answer.coordinators}
        else:
            told = {}
            for group in groups:
                request = FindCoordinatorRequest(key=group, key_type=COORDINATOR_GROUP)
                answer = await self._request(node, request, FindCoordinatorResponse, version)
                told[group] = answer.error_code, answer.node_id
        if any(code == 0 and found not in self._client.nodes for code, found in told.values()):
            await self._client.refresh([])
        for group, (code, found) in told.items():
            if code:
                refused[group] = self._refusal(code, "FindCoordinator", group)
            else:
                self._coordinators[group] = found

    async def _request(self, node: int, message: Any, response: Any, version_max: int) -> Any:
        """At the newest version that both sides know, up to the one given."""
        link = await self._client.connection(node)
        version = link.version(message.API_KEY, 0, version_max, message.name)
        return await link.request(message, response, version, self._client.request_timeout_s)

    def _refusal(self, code: int, request: str, group: str) -> BrokerError:
        return broker_error(code, request, f"group {group} on cluster {self._client.alias}", group=group)


def _topics(topic_class: Any, partitions: Collection[TopicPartition] | None) -> list[Any] | None:
    if partitions is None:
        return None
    topics: dict[str, list[int]] = {}
    for at in partitions:
        topics.setdefault(at.topic, []).append(at.partition)
    return [topic_class(name=topic, partition_indexes=numbers) for topic, numbers in topics.items()]
