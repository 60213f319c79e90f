"""Which partition goes to which lane, and the plan document that lanes follow.

Spreading is sticky: a partition stays where it is unless its lane is gone or clearly heavier than the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from mirrorspark.errors import NewerFormat
from mirrorspark.names import TopicPartition

__all__ = ["Assignment", "Owner", "Plan", "spread"]

IMBALANCE_MIN = 1.5
"""A partition moves only if the heaviest lane carries this many times the lightest one's bytes."""
VERSION = 1
"""Raised only when an older mirrorspark would misread what is written: a key that it does not know, it ignores."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The driver that leads a flow now. A higher generation takes the flow over."""

    generation: int
    id: str
    host: str
    pid: int

    def __str__(self) -> str:
        return f"mirrorspark pid {self.pid} on {self.host} (generation {self.generation})"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One source partition and where it lands. Topic ids are hex, "" where a cluster has none or nobody looked."""

    source: TopicPartition
    remote_topic: str
    topic_id: str
    remote_id: str = ""
    is_remade: bool = False
    """Whether the remote topic stands in place of an earlier one that was carried and then deleted."""

    @property
    def remote(self) -> TopicPartition:
        return TopicPartition(self.remote_topic, self.source.partition)


@dataclass(frozen=True)
class Plan:
    """What the lanes of a flow shall carry. Published as one record; every lane follows it within an epoch."""

    owner: Owner
    version: int = 0
    stopping: bool = False
    lanes: tuple[tuple[Assignment, ...], ...] = ()
    paused: frozenset[str] = field(default_factory=frozenset)  # remote topics, or "*" for the whole flow
    resized: int = 0
    """The version with which the number of lanes changed last: an epoch that was begun before it ends, also when the
    number has changed back since."""

    def lane(self, index: int) -> tuple[Assignment, ...]:
        return self.lanes[index] if index < len(self.lanes) else ()

    def is_paused(self, remote_topic: str) -> bool:
        return "*" in self.paused or remote_topic in self.paused

    def to_json(self) -> bytes:
        lanes = []
        for lane in self.lanes:
            topics: dict[str, list[object]] = {}
            for one in lane:
                known = [one.remote_id, *([1] if one.is_remade else [])] if one.remote_id else []
                entry = topics.setdefault(one.source.topic, [one.remote_topic, one.topic_id, [], *known])
                entry[2].append(one.source.partition)  # type: ignore[attr-defined]
            lanes.append(topics)
        owner = self.owner
        text = {
            "v": VERSION,
            "owner": [owner.generation, owner.id, owner.host, owner.pid],
            "version": self.version,
            "stopping": self.stopping,
            "paused": sorted(self.paused),
            "lanes": lanes,
            **({"resized": self.resized} if self.resized else {}),
        }
        return json.dumps(text, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, raw: bytes) -> Plan:
        """Raises NewerFormat for a plan that only a newer mirrorspark understands."""
        text = json.loads(raw)
        if text["v"] > VERSION:
            raise NewerFormat.of("the flow's plan", text["v"], VERSION)
        lanes = tuple(
            tuple(one for topic, entry in lane.items() for one in _assignments(topic, *entry)) for lane in text["lanes"]
        )
        owner, paused = Owner(*text["owner"]), frozenset(text["paused"])
        return cls(owner, text["version"], text["stopping"], lanes, paused, text.get("resized", 0))

    @staticmethod
    def owner_in(raw: bytes) -> Owner:
        """Who leads, by a plan of whatever format: these four stay in their place in every format to come, so that an older
        mirrorspark knows to step aside for a newer one."""
        return Owner(*json.loads(raw)["owner"][:4])

    def with_pauses(self, paused: Iterable[str]) -> Plan:
        return replace(self, paused=frozenset(paused))


def _assignments(
    topic: str, remote: str, topic_id: str, partitions: Iterable[int], remote_id: str = "", is_remade: int = 0
) -> list[Assignment]:
    """A topic's entry of a plan as ``to_json`` writes it; what an earlier version did not write is left open."""
    return [
        Assignment(TopicPartition(topic, number), remote, topic_id, remote_id, bool(is_remade)) for number in partitions
    ]


def spread(
    wanted: Iterable[Assignment],
    lane_count: int,
    *,
    before: tuple[tuple[Assignment, ...], ...] = (),
    bytes_per_s: Mapping[TopicPartition, float] | None = None,
) -> tuple[tuple[Assignment, ...], ...]:
    """Sticky and even: by measured bytes where they are known, by count otherwise. Same input, same answer."""
    assert lane_count >= 1
    weights = bytes_per_s or {}
    mean = sum(weights.values()) / len(weights) if weights else 1.0
    base = max(mean * 0.1, 1.0)  # an idle partition still costs a little, so counts even out too

    def weight(one: Assignment) -> float:
        return weights.get(one.remote, 0.0) + base

    todo = {one.remote: one for one in wanted}
    lanes: list[dict[TopicPartition, Assignment]] = [{} for _ in range(lane_count)]
    for index, lane in enumerate(before[:lane_count]):
        for one in lane:
            if one.remote in todo:
                lanes[index][one.remote] = todo.pop(one.remote)
    loads = [sum(map(weight, lane.values())) for lane in lanes]
    for one in sorted(todo.values(), key=lambda item: (-weight(item), item.remote)):
        lightest = min(range(lane_count), key=lambda i: (loads[i], len(lanes[i]), i))
        lanes[lightest][one.remote] = one
        loads[lightest] += weight(one)
    _even_out(lanes, loads, weight)
    return tuple(tuple(sorted(lane.values(), key=lambda item: item.remote)) for lane in lanes)


def _even_out(lanes: list[dict[TopicPartition, Assignment]], loads: list[float], weight: object) -> None:
    """Move partitions from the heaviest to the lightest lane while that helps; bounded by the number of partitions."""
    weigh = weight
    assert callable(weigh)
    for _ in range(sum(map(len, lanes))):
        crowded = [i for i in range(len(lanes)) if len(lanes[i]) > 1]  # a lone partition has nowhere better to be
        if not crowded:
            return
        heavy = max(crowded, key=lambda i: loads[i])
        light = min(range(len(lanes)), key=lambda i: loads[i])
        apart = loads[heavy] - loads[light]
        if loads[heavy] <= loads[light] * IMBALANCE_MIN:
            return
        helping = [one for one in lanes[heavy].values() if weigh(one) < apart]
        if not helping:
            return
        one = min(helping, key=lambda item: (abs(weigh(item) - apart / 2), item.remote))
        del lanes[heavy][one.remote]
        lanes[light][one.remote] = one
        loads[heavy] -= weigh(one)
        loads[light] += weigh(one)
