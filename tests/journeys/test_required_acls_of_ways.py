"""``mirrorspark acls`` for other ways of mirroring: enough for them, and what it lists for them alone cannot be left out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journeys.acl_proof import all_removals, everything_works, listening, shorten_pauses
from tests.journeys.locked_flows import LockedFlow, beyond
from tests.journeys.locked_ways import WAYS

from mirrorspark.lab.clients import create_topic, delete_topic, topic_partitions
from mirrorspark.lab.locked_pair import LockedPair
from mirrorspark.offsets.heartbeat import HEARTBEATS_TOPIC
from mirrorspark.offsets.internal_topics import WRITERS_TOPIC

USERS_OF_ONE = 20


@pytest.fixture(scope="module")
def running_pair() -> Iterator[LockedPair]:
    with LockedPair(USERS_OF_ONE * len(WAYS)) as pair:
        yield pair


@pytest.fixture
def pair(running_pair: LockedPair, monkeypatch: pytest.MonkeyPatch) -> LockedPair:
    """With heartbeats of somebody on the source, and without what flows have in common there."""
    shorten_pauses(monkeypatch)
    source = running_pair.source.bootstrap
    for topic in (HEARTBEATS_TOPIC, WRITERS_TOPIC):
        if topic_partitions(source, topic):
            delete_topic(source, topic)
    create_topic(source, HEARTBEATS_TOPIC, 1)
    return running_pair


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", WAYS)
def test_the_list_for_a_way_is_enough_and_has_nothing_to_spare(pair: LockedPair, tmp_path: Path, way: str) -> None:
    first = USERS_OF_ONE * list(WAYS).index(way)
    lines = WAYS[way](pair, first, tmp_path).lines()
    own = beyond(lines, LockedFlow(pair, first, tmp_path).lines())
    print(f"{len(lines)} lines, of its own: {[str(lines[number]) for number in own]}")
    assert own
    # One after the other: some are told only while a topic that flows share is missing, or when it goes.
    for index, number in enumerate(own):
        flow = WAYS[way](pair, first + index, tmp_path)
        with listening([flow]):
            asyncio.run(all_removals({number: flow}))
        if not topic_partitions(pair.source.bootstrap, HEARTBEATS_TOPIC):
            create_topic(pair.source.bootstrap, HEARTBEATS_TOPIC, 1)
    flow = WAYS[way](pair, first + len(own), tmp_path)
    with listening([flow]):
        asyncio.run(everything_works(flow))
