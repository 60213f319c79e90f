"""Settings of topics, as a cluster describes and changes them: many topics in one request, an error for each refused one.

What shall be changed is decided in ``plan.config_rules``; ``control.config_sync`` calls both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from mirrorspark.cluster.broker_errors import broker_error
from mirrorspark.cluster.cluster_admin import in_portions, refusal
from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.errors import BrokerError
from mirrorspark.names import TopicSetting

__all__ = ["Altered", "Described", "alter_configs", "describe_configs", "effective_config"]

DESCRIBED_PER_REQUEST_MAX = 500
"""Topics; an answer has about 2 kB for each."""
ALTERED_PER_REQUEST_MAX = 500
CHANGES_PER_REQUEST_MAX = 2_000
RESOURCE_TOPIC = 2
SET, DELETE = 0, 1


@dataclass
class Described:
    settings: dict[str, list[TopicSetting]] = field(default_factory=dict)
    refused: dict[str, BrokerError] = field(default_factory=dict)


@dataclass
class Altered:
    requests: int = 0
    refused: dict[str, BrokerError] = field(default_factory=dict)


async def describe_configs(client: ClusterClient, topics: Sequence[str]) -> Described:
    """All settings of these topics, wherever they are set."""
    found = Described()
    for first in range(0, len(topics), DESCRIBED_PER_REQUEST_MAX):
        answer = await client.request(_describe(topics[first : first + DESCRIBED_PER_REQUEST_MAX], None))
        for result in answer.results:
            if result.error_code:
                found.refused[result.resource_name] = refusal(
                    result.error_code, "DescribeConfigs", result.resource_name, result.error_message
                )
            else:
                found.settings[result.resource_name] = [
                    TopicSetting(entry.name, entry.value, entry.config_source, entry.read_only, entry.is_sensitive)
                    for entry in result.configs
                ]
    return found


async def effective_config(client: ClusterClient, topic: str, name: str) -> str:
    """What applies to the topic, wherever it is set."""
    (result,) = (await client.request(_describe([topic], [name]))).results
    if result.error_code:
        raise broker_error(result.error_code, "DescribeConfigs", topic)
    return str(result.configs[0].value)


def _describe(topics: Iterable[str], names: list[str] | None) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(resource_type=RESOURCE_TOPIC, resource_name=topic, configuration_keys=names) for topic in topics
        ],
        include_synonyms=False,
    )


async def alter_configs(client: ClusterClient, changes: Mapping[str, Mapping[str, str | None]]) -> Altered:
    """Set what has a value, delete what has none. A topic's changes are taken together or not at all."""
    done = Altered()
    portions = in_portions(
        changes.items(),
        lambda item: len(item[1]),
        items_max=ALTERED_PER_REQUEST_MAX,
        weight_max=CHANGES_PER_REQUEST_MAX,
    )
    for some in portions:
        done.requests += 1
        request = IncrementalAlterConfigsRequest(
            resources=[_alterable(topic, settings) for topic, settings in some], validate_only=False
        )
        for result in (await client.request_controller(request)).responses:
            if result.error_code:
                done.refused[result.resource_name] = refusal(
                    result.error_code, "IncrementalAlterConfigs", result.resource_name, result.error_message
                )
    return done


def _alterable(topic: str, settings: Mapping[str, str | None]) -> Any:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    return resource(
        resource_type=RESOURCE_TOPIC,
        resource_name=topic,
        configs=[
            resource.AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
            for name, value in settings.items()
        ],
    )
