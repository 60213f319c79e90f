"""At which record does a consumer go on that moves from the source to the target? Ours and MirrorMaker 2's answers, counted.

``mirrorspark positions`` and a journey run it. Groups commit after 1 % to 100 % of topics of each kind; the mirror's
checkpoints say where each goes on; the target's own records say how many that reads again, or skips. Lanes are killed
while they carry.
"""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import TopicPartition as Place

from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.clients import consumer, end_offsets, topic_partitions, total_records, wait_for
from mirrorspark.lab.flow_without_spark import FlowWithoutSpark
from mirrorspark.lab.mirror_maker import Endpoint, MirrorMaker, flow_properties
from mirrorspark.lab.numbered_log import NumberedLog, NumberedTopic
from mirrorspark.lab.plain_records import read_records
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.group_checkpoint import GroupCheckpoint

__all__ = [
    "SHARES",
    "Answer",
    "commit_groups",
    "fill",
    "group_of",
    "judge",
    "read_checkpoints",
    "run_mirror_maker",
    "table",
    "wait_for_checkpoints",
]

SHARES = (0.01, 0.1, 0.5, 0.9, 0.99, 1.0)
SLICES = 5
CHECKPOINTS_S = 180.0
CARRIED_S = 120.0
MM2_ALIAS = "mm2"
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """Where a group goes on. ``records`` is how many it read again (positive) or skipped (negative); None: no answer."""

    kind: str
    share: float
    upstream: int
    downstream: int | None
    records: int | None

    @property
    def is_exact(self) -> bool:
        return self.records == 0


def fill(
    topics: Sequence[NumberedTopic],
    records: int,
    flow: Callable[[], FlowWithoutSpark],
    *,
    kills: int,
    seed: int,
    tell: Tell,
) -> FlowWithoutSpark:
    """Write everything, with the flow carrying it from early on and its lanes killed now and then."""
    for topic in topics:
        if topic.kind == "compacted":
            topic.write(records)
            topic.wait_until_compacted(tell)
        else:
            topic.write(records // SLICES)
    running = flow()
    dice = random.Random(seed)
    for number in range(max(kills, SLICES - 1)):
        if number < SLICES - 1:
            for topic in topics:
                if topic.kind != "compacted":
                    topic.write(records // SLICES)
        if number < kills:
            _kill_while_carrying(running, topics, dice)
    tell(f"written and carried, {running.lanes.starts if running.lanes else 0} starts of lanes")
    return running


def _kill_while_carrying(flow: FlowWithoutSpark, topics: Sequence[NumberedTopic], dice: random.Random) -> None:
    settings = flow.settings
    remotes = [f"{settings.flow.source}.{topic.topic}" for topic in topics]
    target = ",".join(f"{host}:{port}" for host, port in settings.target.bootstrap)

    def carried() -> int:
        return sum(total_records(target, remote) for remote in remotes if topic_partitions(target, remote))

    before = carried()
    for topic in topics:
        if topic.kind != "compacted":
            topic.write(200)
    wait_for(lambda: carried() > before, "records to be carried", CARRIED_S)
    time.sleep(dice.uniform(0.0, 0.6))
    lanes = flow.lanes
    assert lanes is not None
    wait_for(lambda: bool(lanes.pids), "lanes to kill", CARRIED_S)
    for pid in lanes.pids.values():
        os.kill(pid, signal.SIGKILL)


def commit_groups(topics: Sequence[NumberedTopic], prefix: str) -> dict[tuple[str, str], int]:
    """(group, topic) -> committed offset, right after the last record that the group has read."""
    committed: dict[tuple[str, str], int] = {}
    logs = {topic.topic: NumberedLog.read(topic.bootstrap, topic.topic) for topic in topics}
    for share in SHARES:
        group = group_of(prefix, share)
        client = consumer(topics[0].bootstrap, {"group.id": group})
        places = []
        for topic in topics:
            log = logs[topic.topic]
            read = math.ceil(share * len(log.offsets))
            # A group that has read everything stands at the log's end, after the last marker.
            end = end_offsets(topic.bootstrap, topic.topic, committed=True)[0][1]
            committed[group, topic.topic] = log.offsets[read - 1] + 1 if share < 1.0 else end
            places.append(Place(topic.topic, 0, committed[group, topic.topic]))
        client.commit(offsets=places, asynchronous=False)
        client.close()
    return committed


def group_of(prefix: str, share: float) -> str:
    return f"{prefix}-{share * 100:g}-percent"


def read_checkpoints(bootstrap: str, alias: str) -> dict[tuple[str, TopicPartition], GroupCheckpoint]:
    topic = f"{alias}.checkpoints.internal"
    if not topic_partitions(bootstrap, topic):
        return {}
    records = read_records(bootstrap, topic, isolation="read_uncommitted")[0]
    found = [one for one in (GroupCheckpoint.from_record(record.key, record.value) for record in records) if one]
    return {(one.group, one.at): one for one in found}


def judge(
    topics: Sequence[NumberedTopic], committed: dict[tuple[str, str], int], target: str, alias: str, prefix: str
) -> list[Answer]:
    """By the target's own records: which lies first at or after the answer, and which should."""
    checkpoints = read_checkpoints(target, alias)
    answers = []
    for topic in topics:
        remote = f"{alias}.{topic.topic}"
        there, copy = NumberedLog.read(topic.bootstrap, topic.topic), NumberedLog.read(target, remote)
        for share in SHARES:
            group = group_of(prefix, share)
            upstream = committed[group, topic.topic]
            checkpoint = checkpoints.get((group, TopicPartition(remote, 0)))
            if checkpoint is None or checkpoint.upstream_offset != upstream:
                answers.append(Answer(topic.kind, share, upstream, None, None))
                continue
            read = _read_before(topic.kind, upstream, there, copy)
            again = read - copy.records_before(checkpoint.downstream_offset)
            answers.append(Answer(topic.kind, share, upstream, checkpoint.downstream_offset, again))
    return answers


def _read_before(kind: str, upstream: int, there: NumberedLog, copy: NumberedLog) -> int:
    """How many of the copy's records the group has read on the source."""
    if kind != "transactional":  # numbers are offsets; the cleaner may have taken more from the source since
        return sum(1 for number in copy.numbers if number < upstream)
    read = there.records_before(upstream)
    last = there.numbers[read - 1] if read else -1
    return sum(1 for number in copy.numbers if number <= last)


def wait_for_checkpoints(
    target: str, alias: str, committed: dict[tuple[str, str], int], deadline_s: float = CHECKPOINTS_S
) -> None:
    """Until there is one for every offset that was committed."""

    def all_there() -> bool:
        found = read_checkpoints(target, alias)
        return all(
            (one := found.get((group, TopicPartition(f"{alias}.{topic}", 0)))) is not None
            and one.upstream_offset == offset
            for (group, topic), offset in committed.items()
        )

    wait_for(all_there, f"checkpoints of {alias}", deadline_s, 0.3)


def run_mirror_maker(
    source: str, target: str, topics: Sequence[NumberedTopic], prefix: str, folder: Path, tell: Tell
) -> list[Answer]:
    """The real one, in one life, over logs that are there already: what its checkpoints say of the same groups."""
    committed = commit_groups(topics, prefix)
    properties = flow_properties(
        Endpoint(MM2_ALIAS, source),
        Endpoint("west", target),
        topics="|".join(topic.topic for topic in topics),
        extra={
            "emit.checkpoints.interval.seconds": "5",
            f"{MM2_ALIAS}->west.groups": f"{prefix}-.*",
            f"{MM2_ALIAS}.consumer.isolation.level": "read_committed",
            "offset.flush.interval.ms": "5000",
        },
    )
    with MirrorMaker(properties, folder):
        for topic in topics:
            wait_until_caught_up(source, target, topic.topic, f"{MM2_ALIAS}.{topic.topic}", 600.0)
        tell("MirrorMaker 2 has caught up")
        time.sleep(30.0)  # its last syncs and checkpoints; some groups never get one
    return judge(topics, committed, target, MM2_ALIAS, prefix)


def table(ours: Iterable[Answer], theirs: Iterable[Answer] = ()) -> str:
    """Records read again by each group, or skipped."""
    beside = {(one.kind, one.share): one for one in theirs}
    lines = ["| source | group at | mirrorspark | MirrorMaker 2 |", "|---|---|---|---|"]
    for one in ours:
        other = beside.get((one.kind, one.share))
        lines.append(f"| {one.kind} | {one.share * 100:g} % | {_told(one)} | {_told(other) if other else ''} |")
    return "\n".join(lines)


def _told(answer: Answer) -> str:
    if answer.records is None:
        return "no answer"
    if answer.records < 0:
        return f"{-answer.records:,} skipped"
    return "exact" if answer.is_exact else f"{answer.records:,} read again"
