"""What MirrorMaker 2 leaves behind, written by hand: each kind of leftover, and where its partition goes on.

The real MirrorMaker 2 is in ``tests/journeys/test_takeover.py``. One partition for each case.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.group_positions import GroupPositions
from mirrorspark.cluster.keyed_topic import KeyedTopic
from mirrorspark.config.load import load_deployment
from mirrorspark.control.reconcile import ensure_internal_topics
from mirrorspark.control.takeover import Taken, take_over
from mirrorspark.events import Event, EventKind
from mirrorspark.lab.clients import create_topic, producer, topic_partitions
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.ledger_check import read_ledger
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.offset_sync import OffsetSync
from mirrorspark.offsets.position import LastWriter, Position, positions_group
from mirrorspark.offsets.progress import progress_entry
from mirrorspark.offsets.translation import translate

RECORDS = 30
SYNCS = "mm2-offset-syncs.west.internal"
CASES = ("clean", "killed", "no_syncs", "others_wrote", "sync_beyond_end", "ours_is_newer", "handed_back", "reset")
AT = {name: number for number, name in enumerate(CASES)}
TIMEOUT_S = 60.0
TIME_MS = 1_700_000_000_000


class Leftovers:
    """A source topic and its copy; ``stored`` and ``sync`` write what MirrorMaker 2 would."""

    def __init__(
        self, file: Path, topic: str, source: ClusterClient, target: ClusterClient, in_loop: Callable[..., Any]
    ) -> None:
        self.settings = load_deployment(file).flows[0]
        self.topic, self.remote = topic, f"{self.settings.flow.source}.{topic}"
        self._source, self._target, self._in_loop = source, target, in_loop
        in_loop(ensure_internal_topics(target, self.settings))
        self.syncs = KeyedTopic(source, SYNCS)
        self.stored_offsets = KeyedTopic(target, f"mm2-offsets.{self.settings.flow.source}.internal", 25)
        self.positions = GroupPositions(target, positions_group(self.settings.flow))

    def append(self, topic: KeyedTopic, *entries: tuple[bytes, bytes | None]) -> None:
        self._in_loop(topic.append(entries, Deadline(TIMEOUT_S)))

    def stored(self, case: str, last: int | None) -> None:
        key, value = progress_entry(self.settings.flow.source, self.topic, AT[case], last or 0)
        self.append(self.stored_offsets, (key, None if last is None else value))

    def sync(self, case: str, *pairs: tuple[int, int]) -> None:
        syncs = [OffsetSync(TopicPartition(self.topic, AT[case]), *pair) for pair in pairs]
        self.append(self.syncs, *((one.key, one.value) for one in syncs))

    def position(self, case: str, position: Position) -> None:
        wanted = {TopicPartition(self.remote, AT[case]): position.to_commit()}
        self._in_loop(self.positions.commit(wanted, Deadline(TIMEOUT_S)))

    def take_over(self) -> tuple[dict[str, Taken], list[Event]]:
        taken, events = self._in_loop(take_over(self._source, self._target, self.settings))
        return {CASES[one.source.partition]: one for one in taken}, events

    def committed(self) -> dict[str, tuple[int, int]]:
        """Case -> upstream next, downstream end."""
        found = self._in_loop(self.positions.fetch_all(Deadline(TIMEOUT_S)))
        positions = {CASES[at.partition]: Position.from_commit(*told) for at, told in found.items()}
        return {case: (one.upstream_next, one.downstream_end) for case, one in positions.items() if one is not None}

    def stored_now(self) -> dict[int, int]:
        told = self._in_loop(self.stored_offsets.read_all(Deadline(TIMEOUT_S)))
        return {
            json.loads(key)[1]["partition"]: json.loads(value)["offset"]
            for key, value in told.items()
            if value is not None and key.startswith(b"[") and self.topic.encode() in key
        }


@pytest.fixture
def left(
    flow_file: Callable[..., Path],
    topic_name: str,
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    connect: Callable[..., ClusterClient],
    in_loop: Callable[..., Any],
) -> Leftovers:
    """30 records in each partition, of which the copy has 20."""
    file = flow_file(topic_name)
    source, target = source_cluster.bootstrap, target_cluster.bootstrap
    create_topic(source, topic_name, len(CASES))
    if not topic_partitions(source, SYNCS):  # shared by all flows into west
        create_topic(source, SYNCS, 1)
    made = Leftovers(file, topic_name, connect(source_cluster), connect(target_cluster), in_loop)
    create_topic(target, made.remote, len(CASES))
    for number, case in enumerate(CASES):
        values = [f"{case}/{i}".encode() for i in range(RECORDS)]
        write_at(source, topic_name, number, values)
        copied = [*values[:15], b"somebody else's", *values[15:20]] if case == "others_wrote" else values[:20]
        write_at(target, made.remote, number, copied)
    return made


def write_at(bootstrap: str, topic: str, partition: int, values: list[bytes]) -> None:
    """All of one time: a copy has its original's."""
    client = producer(bootstrap)
    for value in values:
        client.produce(topic, value, partition=partition, timestamp=TIME_MS)
    assert client.flush(TIMEOUT_S) == 0


def test_each_kind_of_leftover(left: Leftovers, target_cluster: ClusterOfBrokers) -> None:
    alias = left.settings.flow.source
    nobody = LastWriter(f"__mirrorspark-{left.settings.flow}-0", 1, 1, 1, clean=True)
    for case in CASES:
        left.stored(case, 19)
    left.stored("killed", 11)  # a flush interval behind
    left.stored("reset", None)
    left.sync("clean", (0, 0), (4, 4), (9, 9))
    left.sync("killed", (0, 0), (14, 14))
    left.sync("others_wrote", (0, 0), (9, 9))
    left.sync("sync_beyond_end", (0, 0), (9, 9), (18, 77))
    left.sync("ours_is_newer", (9, 9))
    left.sync("handed_back", (5, 5), (12, 12))
    left.position("ours_is_newer", Position(20, 20, "", -1, nobody))
    left.position("handed_back", Position(10, 10, "", -1, nobody))
    # Damaged, or somebody else's: left out, and nothing of it is in the way.
    left.append(left.syncs, (b"no sync", b"at all"), (OffsetSync(TopicPartition(left.topic, 0), -7, 3).key, b"short"))
    left.append(
        left.stored_offsets, (b"{", b"x"), (b'["MirrorSourceConnector",{"cluster":"%s"}]' % alias.encode(), b"{}")
    )
    left.append(left.stored_offsets, progress_entry("other", left.topic, 0, 5), progress_entry(alias, "gone", 0, 5))

    taken, events = left.take_over()
    assert sorted(taken) == sorted(["clean", "killed", "no_syncs", "others_wrote", "sync_beyond_end", "handed_back"]), (
        "what we carried last ourselves, and what was reset, is left alone"
    )
    # "sync_beyond_end": the newest pair cannot be, the one before is compared.
    unproved = {case for case, one in taken.items() if one.unproved}
    assert unproved == {"no_syncs", "others_wrote"}
    [event] = events
    assert event.kind == EventKind.TAKEOVER_UNPROVED
    assert f"{left.topic}-{AT['no_syncs']}" in event.text
    assert left.committed() == {
        "clean": (20, 20),
        "killed": (20, 20),
        "no_syncs": (20, 20),
        "others_wrote": (20, 21),
        "sync_beyond_end": (20, 20),
        "ours_is_newer": (20, 20),
        "handed_back": (20, 20),
    }
    stored = left.stored_now()
    assert stored[AT["killed"]] == 19, "MirrorMaker 2 must not copy again what was found, should it take the flow back"
    assert AT["reset"] not in stored

    ledger = read_ledger(target_cluster.bootstrap, alias)
    assert ledger.damaged_entries == 0

    def translated(case: str, offset: int) -> tuple[int | None, bool]:
        found = translate(ledger, TopicPartition(left.remote, AT[case]), offset)
        return found.downstream_offset, found.exact

    assert [translated("clean", offset) for offset in (0, 3, 4, 8, 9, 13, 19, 20)] == [
        *((0, True), (1, False), (4, True), (5, False), (9, True), (13, True), (19, True), (20, True))
    ]
    assert translated("others_wrote", 19) == (10, False)
    assert translated("handed_back", 12) == (12, True)

    assert left.take_over() == ({}, []), "once is enough"


def test_what_our_own_killed_lane_left_is_for_lanes_to_prove(left: Leftovers) -> None:
    """Stored offsets may be ahead of a killed lane's position; who wrote the newest sync's record tells whose they are."""
    unclean = LastWriter(f"__mirrorspark-{left.settings.flow}-0", 1, 1, 1, clean=False)
    for case in ("clean", "killed"):
        left.stored(case, 19)
        left.position(case, Position(10, 10, "", -1, unclean))
    left.sync("clean", (15, 15))
    taken, _ = left.take_over()
    assert sorted(taken) == ["clean"], "a plain producer wrote it; of the other nothing is known"
    assert left.committed() == {"clean": (20, 20), "killed": (10, 10)}


def test_a_flow_that_mirror_maker_never_carried(left: Leftovers) -> None:
    assert left.take_over() == ({}, [])
    assert left.committed() == {}
