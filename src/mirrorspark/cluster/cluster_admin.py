"""Topics as an administrator sees them: list, create, grow, and their explicit settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, DescribeConfigsRequest

from mirrorspark.cluster.broker_errors import ErrorCode, broker_error
from mirrorspark.cluster.cluster_client import ClusterClient

__all__ = ["NewTopic", "create_topics", "effective_config", "explicit_configs", "grow_topics"]

TOPICS_PER_REQUEST_MAX = 100
RESOURCE_TOPIC = 2
CONFIG_SOURCE_TOPIC = 1


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


async def create_topics(client: ClusterClient, topics: list[NewTopic], timeout_ms: int = 30_000) -> dict[str, str]:
    """Create what is missing. Returns {topic: why not} for those the cluster refused; an existing one is no refusal."""
    refused: dict[str, str] = {}
    topic_class = CreateTopicsRequest.CreatableTopic
    for first in range(0, len(topics), TOPICS_PER_REQUEST_MAX):
        request = CreateTopicsRequest(
            topics=[
                topic_class(
                    name=topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    assignments=[],
                    configs=[
                        topic_class.CreatableTopicConfig(name=name, value=value)
                        for name, value in topic.configs.items()
                    ],
                )
                for topic in topics[first : first + TOPICS_PER_REQUEST_MAX]
            ],
            timeout_ms=timeout_ms,
            validate_only=False,
        )
        answer = await client.request_controller(request, timeout_ms / 1000 + 5)
        for topic in answer.topics:
            if topic.error_code not in (0, ErrorCode.TOPIC_ALREADY_EXISTS):
                error = broker_error(topic.error_code, "CreateTopics", topic.name)
                refused[topic.name] = f"{error}: {topic.error_message}" if topic.error_message else str(error)
    return refused


async def grow_topics(client: ClusterClient, counts: Mapping[str, int], timeout_ms: int = 30_000) -> dict[str, str]:
    """Raise partition counts. Returns {topic: why not}."""
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=count, assignments=None)
            for topic, count in counts.items()
        ],
        timeout_ms=timeout_ms,
        validate_only=False,
    )
    answer = await client.request_controller(request, timeout_ms / 1000 + 5)
    return {
        result.name: f"{broker_error(result.error_code, 'CreatePartitions', result.name)}: {result.error_message or ''}"
        for result in answer.results
        if result.error_code
    }


async def effective_config(client: ClusterClient, topic: str, name: str) -> str:
    """What applies to the topic, wherever it is set."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=RESOURCE_TOPIC, resource_name=topic, configuration_keys=[name]
            )
        ],
        include_synonyms=False,
    )
    (result,) = (await client.request(request)).results
    if result.error_code:
        raise broker_error(result.error_code, "DescribeConfigs", topic)
    return str(result.configs[0].value)


async def explicit_configs(client: ClusterClient, topics: list[str]) -> dict[str, dict[str, str]]:
    """Settings that were set on the topics themselves (not inherited), by topic."""
    found: dict[str, dict[str, str]] = {}
    for first in range(0, len(topics), TOPICS_PER_REQUEST_MAX):
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=RESOURCE_TOPIC, resource_name=topic, configuration_keys=None
                )
                for topic in topics[first : first + TOPICS_PER_REQUEST_MAX]
            ],
            include_synonyms=False,
        )
        answer = await client.request(request)
        for result in answer.results:
            if result.error_code:
                raise broker_error(result.error_code, "DescribeConfigs", result.resource_name)
            found[result.resource_name] = {
                entry.name: entry.value
                for entry in result.configs
                if entry.config_source == CONFIG_SOURCE_TOPIC and entry.value is not None and not entry.is_sensitive
            }
    return found
