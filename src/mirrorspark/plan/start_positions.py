"""Where a partition begins that has no position yet: ``earliest``, ``latest``, a time in epoch milliseconds, given offsets.

Pure. ``config`` checks the words and knows calendars, ``pipeline.first_place`` asks the source what they come to. A topic's
own word goes before the flow's ``start.at``, and that before the consumer's ``auto.offset.reset``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from mirrorspark.settings import FlowSettings

__all__ = ["Start", "StartKind", "flow_start", "read_start", "read_topic_start", "start_of"]

EPOCH_MS_MIN = 100_000_000_000
"""March 1973. Below it a number is rather seconds, or an offset, than a time in milliseconds."""
OFFSET_MAX = 2**63 - 1
_OFFSETS = "offsets"
_DIGITS = re.compile(r"[0-9]{1,19}")
_PLACE = re.compile(r"([0-9]{1,10})\s*:\s*([0-9]{1,19})")
_CHOICES = "earliest, latest, or a time as 2026-11-01T00:00:00Z or in epoch milliseconds"


class StartKind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"
    OFFSETS = "offsets"


@dataclass(frozen=True, slots=True)
class Start:
    kind: StartKind
    time_ms: int = -1
    offsets: tuple[tuple[int, int], ...] = ()
    """Partition and offset; partitions that are not listed begin where the flow's others do."""
    text: str = ""
    """As it was written."""


EARLIEST = Start(StartKind.EARLIEST, text="earliest")
LATEST = Start(StartKind.LATEST, text="latest")


def read_start(text: str) -> Start:
    """A flow's word. Raises ValueError that says what is wrong with it."""
    value = text.strip()
    if value.lower() == "earliest":
        return EARLIEST
    if value.lower() == "latest":
        return LATEST
    if value.lower().split(maxsplit=1)[:1] == [_OFFSETS]:
        raise ValueError("offsets belong to one topic: write them behind start.at.topic.NAME")
    return Start(StartKind.TIME, time_ms=_time_ms(value), text=value)


def read_topic_start(text: str) -> Start:
    """A topic's word: the same, or ``offsets 0:100,1:200``."""
    value = text.strip()
    word, _, rest = value.partition(" ")
    if word.lower() != _OFFSETS:
        return read_start(value)
    found: dict[int, int] = {}
    for part in rest.split(","):
        place = _PLACE.fullmatch(part.strip())
        if place is None:
            raise ValueError("must be offsets PARTITION:OFFSET,…, e.g. offsets 0:100,1:200")
        partition, offset = int(place[1]), int(place[2])
        if partition in found:
            raise ValueError(f"partition {partition} is given twice")
        if offset > OFFSET_MAX:
            raise ValueError(f"the offset of partition {partition} is larger than any that Kafka has")
        found[partition] = offset
    return Start(StartKind.OFFSETS, offsets=tuple(sorted(found.items())), text=value)


def start_of(settings: FlowSettings, topic: str, partition: int) -> Start:
    """What counts for one partition; of a ``Start`` with offsets there is exactly that partition's."""
    own = dict(settings.start_at_topics).get(topic)
    if own is not None:
        start = read_topic_start(own)
        listed = [(number, offset) for number, offset in start.offsets if number == partition]
        if start.kind is not StartKind.OFFSETS:
            return start
        if listed:
            return Start(StartKind.OFFSETS, offsets=tuple(listed), text=start.text)
    return flow_start(settings)


def flow_start(settings: FlowSettings) -> Start:
    """What counts for topics without a word of their own."""
    if settings.start_at:
        return read_start(settings.start_at)
    return LATEST if settings.start_at_latest else EARLIEST


def _time_ms(value: str) -> int:
    if _DIGITS.fullmatch(value):
        if int(value) < EPOCH_MS_MIN:
            raise ValueError(f"{value} is no time in milliseconds since 1970 (is it seconds, or an offset?)")
        if int(value) > OFFSET_MAX:
            raise ValueError("no time in milliseconds")
        return int(value)
    raise ValueError(f"must be {_CHOICES}")
