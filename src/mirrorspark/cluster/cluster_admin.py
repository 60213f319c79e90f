"""Topics as an administrator changes them: create, grow, delete, any number of them.

Requests are kept within what a controller takes at once; one that is throttled or has moved is waited for, up to the
deadline. Each topic that is refused has its own error. Called by ``control.reconcile`` and by whoever needs a topic of
its own; decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.errors import BrokerError

__all__ = ["NewTopic", "create_topics", "delete_topics", "grow_topics", "in_portions", "refusal"]

TOPICS_PER_REQUEST_MAX = 100
CHANGES_PER_REQUEST_MAX = 2_000
"""Topics, partitions and settings in one request. A controller writes them as one batch of at most 10,000 records."""
REQUEST_TIMEOUT_MS = 30_000
CHANGE_TIMEOUT_S = 15.0
"""How long quotas and moving controllers are waited for; what is left then is up to the next pass."""
RETRY_PAUSE_S = 0.2
PASSING = (ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)
"""Sent again at once; a topic that was made before the time was up answers that it exists."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


def in_portions(
    items: Iterable[T], weight: Callable[[T], int], *, items_max: int, weight_max: int
) -> Iterator[list[T]]:
    """Lists that are short and light enough for one request; an item that is too heavy goes alone."""
    some: list[T] = []
    total = 0
    for item in items:
        one = weight(item)
        if some and (len(some) >= items_max or total + one > weight_max):
            yield some
            some, total = [], 0
        some.append(item)
        total += one
    if some:
        yield some


def refusal(code: int, request: str, about: str, message: str | None) -> BrokerError:
    """A broker's answer for one thing, with the words that it gave."""
    error = broker_error(code, request, about)
    return BrokerError(f"{error}: {message}", **error.facts) if message else error


async def create_topics(
    client: ClusterClient, topics: list[NewTopic], timeout_s: float = CHANGE_TIMEOUT_S
) -> dict[str, BrokerError]:
    """Create what is missing. Returns why not, for those that were not made; an existing one is no refusal.

    An error that is ``retriable`` is no refusal either: time was up, the rest may follow later.
    """

    def request(some: list[NewTopic]) -> Any:
        return CreateTopicsRequest(
            topics=[_creatable(topic) for topic in some], timeout_ms=REQUEST_TIMEOUT_MS, validate_only=False
        )

    return await _change(
        client,
        {topic.name: topic for topic in topics},
        request,
        lambda answer: answer.topics,
        weight=lambda topic: 1 + topic.partitions + len(topic.configs),
        harmless=ErrorCode.TOPIC_ALREADY_EXISTS,
        timeout_s=timeout_s,
    )


def _creatable(topic: NewTopic) -> Any:
    topic_class = CreateTopicsRequest.CreatableTopic
    return topic_class(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[],
        configs=[topic_class.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


async def grow_topics(
    client: ClusterClient, counts: Mapping[str, int], timeout_s: float = CHANGE_TIMEOUT_S
) -> dict[str, BrokerError]:
    """Raise partition counts. Returns why not, as ``create_topics``; one that is as large already is no refusal."""

    def request(some: list[tuple[str, int]]) -> Any:
        topic_class = CreatePartitionsRequest.CreatePartitionsTopic
        return CreatePartitionsRequest(
            topics=[topic_class(name=topic, count=count, assignments=None) for topic, count in some],
            timeout_ms=REQUEST_TIMEOUT_MS,
            validate_only=False,
        )

    return await _change(
        client,
        {topic: (topic, count) for topic, count in counts.items()},
        request,
        lambda answer: answer.results,
        weight=lambda pair: pair[1],
        harmless=ErrorCode.INVALID_PARTITIONS,
        timeout_s=timeout_s,
    )


async def delete_topics(
    client: ClusterClient, topics: Iterable[str], timeout_s: float = CHANGE_TIMEOUT_S
) -> dict[str, BrokerError]:
    """Returns why not, as ``create_topics``; one that is not there any more is no refusal."""

    def request(some: list[str]) -> Any:
        return DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in some],
            topic_names=some,
            timeout_ms=REQUEST_TIMEOUT_MS,
        )

    return await _change(
        client,
        {name: name for name in topics},
        request,
        lambda answer: answer.responses,
        weight=lambda _: 1,
        harmless=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        timeout_s=timeout_s,
    )


async def _change(
    client: ClusterClient,
    wanted: Mapping[str, T],
    request: Callable[[list[T]], Any],
    results: Callable[[Any], Iterable[Any]],
    *,
    weight: Callable[[T], int],
    harmless: int,
    timeout_s: float,
) -> dict[str, BrokerError]:
    """Send in portions; send again what was throttled or met a controller that moved, until the deadline."""
    deadline = Deadline(timeout_s)
    refused: dict[str, BrokerError] = {}
    todo = dict(wanted)
    while todo:
        later: dict[str, T] = {}
        pause_s = RETRY_PAUSE_S
        for some in in_portions(
            todo.values(), weight, items_max=TOPICS_PER_REQUEST_MAX, weight_max=CHANGES_PER_REQUEST_MAX
        ):
            message = request(some)
            answer = await client.request_controller(message, REQUEST_TIMEOUT_MS / 1000 + 5)
            for result in results(answer):
                if result.error_code in (0, harmless):
                    refused.pop(result.name, None)
                    continue
                refused[result.name] = refusal(
                    result.error_code,
                    message.name.removesuffix("Request"),
                    result.name,
                    getattr(result, "error_message", None),
                )
                if result.error_code in PASSING:
                    later[result.name] = todo[result.name]
                if result.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED:
                    pause_s = max(pause_s, answer.throttle_time_ms / 1000)
        if not later or deadline.passed:
            break
        await asyncio.sleep(deadline.at_most(pause_s))
        await client.refresh([])  # the controller may have moved
        todo = later
    return refused
