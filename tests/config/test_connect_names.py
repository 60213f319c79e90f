"""What MirrorMaker 2 calls its things on the target: dedicated, on Connect, and with Strimzi."""

from __future__ import annotations

from mirrorspark.config.load import parse_deployment
from mirrorspark.offsets.internal_topics import progress_topic_of
from mirrorspark.settings import ConnectNames, FlowSettings

BASE = {
    "clusters": "east, west",
    "east.bootstrap.servers": "e:9092",
    "west.bootstrap.servers": "w:9092",
    "east->west.enabled": "true",
}


def flow(**more: str) -> FlowSettings:
    return parse_deployment({**BASE, **more}).flows[0]


def test_dedicated_names_follow_the_source() -> None:
    settings = flow()
    assert settings.connect == ConnectNames()
    assert progress_topic_of(settings) == "mm2-offsets.east.internal"


def test_names_of_a_worker_and_a_connector() -> None:
    own = {
        "west.offset.storage.topic": "connect-offsets",
        "west.status.storage.topic": "connect-status",
        "west.group.id": "connect-cluster",
        "east->west.MirrorSourceConnector.name": "mm2-msc",
    }
    settings = flow(**own)
    assert settings.connect == ConnectNames("connect-offsets", "connect-status", "connect-cluster", "mm2-msc")
    assert progress_topic_of(settings) == "connect-offsets"
    settings = flow(**own, **{"east->west.offsets.storage.topic": "of-its-own"})
    assert progress_topic_of(settings) == "of-its-own"


def test_strimzi_names_connectors_after_the_flow() -> None:
    settings = flow(**{"strimzi/my-mirror/metadata": "{}"})
    assert settings.connect.connector == "east->west.MirrorSourceConnector"
