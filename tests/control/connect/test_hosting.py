"""Connectors on a real cluster: kept over restarts, refused as a whole or not at all, and honest about what fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.control.connect.hosting import Hosting
from mirrorspark.control.connect.topics import STATUS_PARTITIONS, ConnectTopics, TopicNames
from mirrorspark.control.flow_runtime import Query
from mirrorspark.control.flow_set import FlowSet
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.names import Flow
from mirrorspark.rest.connector_host import ConnectorState, Refusal, TargetState
from mirrorspark.settings import FlowSettings

WAIT_S = 60.0
PACKAGE = "org.apache.kafka.connect.mirror"


class NoSpark:
    """For flows that never come so far."""

    where = "no Spark"
    tasks_at_once: int | None = None

    def begin(self, lanes: int) -> None:
        pass

    async def _up(self) -> object:
        return None

    def up(self) -> Awaitable[object]:
        return self._up()

    def make_query(self, settings: FlowSettings, generation: int) -> Query:
        raise NotImplementedError

    def carry_early(self, settings: FlowSettings, generation: int) -> bool:
        return False


@pytest.fixture
def hosted(
    connect: Callable[[ClusterOfBrokers], Any], target_cluster: ClusterOfBrokers, topic_name: str
) -> Callable[[], Any]:
    client = connect(target_cluster)

    @asynccontextmanager
    async def begin() -> AsyncIterator[Hosting]:
        flows = FlowSet(NoSpark())
        topics = ConnectTopics(client, TopicNames(f"{topic_name}-configs", f"{topic_name}-status", 1))
        hosting = Hosting(client, topics, flows, worker_id=lambda: "here:1")
        await hosting.start()
        try:
            yield hosting
        finally:
            await hosting.stop()
            await flows.stop()

    return begin


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not is_so():
            await asyncio.sleep(0.05)


def _config(kind: str, target: ClusterOfBrokers, **more: str) -> dict[str, str]:
    return {
        "connector.class": f"{PACKAGE}.Mirror{kind}Connector",
        "source.cluster.alias": "nowhere",
        "target.cluster.alias": "west",
        "source.cluster.bootstrap.servers": "127.0.0.1:1",
        "target.cluster.bootstrap.servers": target.bootstrap,
        **more,
    }


def test_connectors_are_kept(
    hosted: Any, in_loop: Any, connect: Any, target_cluster: ClusterOfBrokers, topic_name: str
) -> None:
    config = _config("Source", target_cluster, **{"vendor.secret": "marked"})
    statuses = KeyedTopic(connect(target_cluster), f"{topic_name}-status", STATUS_PARTITIONS)

    async def told() -> dict[str, str]:
        records = await statuses.read_all(Deadline(WAIT_S))
        return {key.decode(): json.loads(raw)["state"] for key, raw in records.items() if raw is not None}

    async def first() -> None:
        async with hosted() as hosting:
            await hosting.create("a", config, TargetState.RUNNING)
            await hosting.create("b", _config("Checkpoint", target_cluster), TargetState.STOPPED)
            await hosting.create("gone", _config("Heartbeat", target_cluster), TargetState.PAUSED)
            await _until(lambda: hosting.status("a").state is ConnectorState.FAILED)
            assert "nowhere.bootstrap.servers" in hosting.status("a").trace
            assert hosting.status("b").state is ConnectorState.STOPPED
            assert hosting.status("gone").state is ConnectorState.PAUSED
            await _refused_changes(hosting, config)
            await hosting.delete("gone")
            async with asyncio.timeout(WAIT_S):
                while (await told()).get("status-connector-a") != "FAILED":
                    await asyncio.sleep(0.1)

    async def second() -> None:
        async with hosted() as hosting:
            assert hosting.names() == ["a", "b"]
            assert hosting.info("a").config == {**config, "name": "a"}
            assert hosting.status("b").state is ConnectorState.STOPPED
            # A secret that was hidden comes back as it was.
            await hosting.put_config("a", {**config, "vendor.secret": "[hidden]", "topics": "x"})
            assert hosting.info("a").config["vendor.secret"] == "marked"
            await hosting.aim("a", TargetState.STOPPED)
            await _until(lambda: hosting.status("a").state is ConnectorState.STOPPED)

    in_loop(first())
    in_loop(second())


async def _refused_changes(hosting: Hosting, config: dict[str, str]) -> None:
    """Each with its code, and nothing changed."""
    before = {name: hosting.info(name).config for name in hosting.names()}
    with pytest.raises(Refusal) as caught:
        await hosting.create("a", config, TargetState.RUNNING)
    assert caught.value.status == 409
    for name, wrong in (
        ("x", {**config, "tasks.max": "0"}),
        ("x", {**config, "connector.class": "NoSuch"}),
        ("x", {"tasks.max": "1"}),
        ("", config),
        ("x\n", config),
        ("x", {**config, "vendor.secret": "[hidden]"}),
        ("x", {**config, "topics": "${nobody:/a:b}"}),
    ):
        with pytest.raises(Refusal) as caught:
            await hosting.create(name, wrong, TargetState.RUNNING)
        assert caught.value.status == 400
    login = {"source.cluster.security.protocol": "SASL_SSL", "source.cluster.sasl.mechanism": "PLAIN"}
    with pytest.raises(Refusal, match=r"source\.cluster\.sasl\.jaas\.config: it does not end with ';'") as caught:
        await hosting.put_config("x", {**config, **login, "source.cluster.sasl.jaas.config": "marked"})
    assert (caught.value.status, "marked" in str(caught.value)) == (400, False)
    with pytest.raises(Refusal, match="STOPPED"):
        await hosting.reset_offsets("a")
    with pytest.raises(Refusal) as caught:
        await hosting.patch_config("nobody", {})
    assert caught.value.status == 404
    assert {name: hosting.info(name).config for name in hosting.names()} == before


def test_a_flow_is_held_by_its_source_connector(hosted: Any, in_loop: Any, target_cluster: ClusterOfBrokers) -> None:
    """One that never ran is not begun before it is resumed; a pair that only beats has nothing to hold."""

    async def work() -> None:
        async with hosted() as hosting:
            await hosting.create("beats", _config("Heartbeat", target_cluster), TargetState.STOPPED)
            with pytest.raises(Refusal, match="no MirrorSourceConnector") as caught:
                await hosting.hold(Flow("nowhere", "west"), True)
            assert caught.value.status == 409
            await hosting.create("data", _config("Source", target_cluster), TargetState.RUNNING)
            await hosting.hold(Flow("nowhere", "west", "team"), True)
            assert hosting.status("data").state is ConnectorState.PAUSED
            servers = {one.name: one for one in hosting.effective(Flow("nowhere", "west"))}[
                "source.consumer.bootstrap.servers"
            ]
            assert (servers.value, servers.origin.partition(" ")[0]) == ("127.0.0.1:1", "connector")
            await hosting.hold(Flow("nowhere", "west"), False)
            assert hosting.status("data").state is not ConnectorState.PAUSED

    in_loop(work())
