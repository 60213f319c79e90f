"""Who writes for a mirror on a cluster: one record for each producer id that a lane of any flow was given there.

Kept in a compacted topic of that cluster (``internal_topics.WRITERS_TOPIC``). Key: the producer id in decimal digits. Value:
JSON. ``pipeline.writers`` reads and writes it; this file only knows the bytes (docs/decisions/0009).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from mirrorspark.names import Flow

__all__ = ["MirrorWriter", "flow_of_transactional_id", "parse_writer", "told_key", "writer_entry"]

VERSION = 1
UNKNOWN_FLOW = Flow("?", "?")
_DIGITS = re.compile(rb"\d{1,19}")
_LANE_ID = re.compile(r"__mirrorspark-(.+)->([^/]+)(?:/(.+))?-\d+")


@dataclass(frozen=True, slots=True)
class MirrorWriter:
    """A lane's name in a cluster's log. Clusters never give a producer id twice, so an entry stays true for ever."""

    producer_id: int
    flow: Flow
    lane: int = -1
    epoch: int = -1  # the producer epoch under which it was first registered
    generation: int = -1  # the driver's lead in which that was
    since_ms: int = -1


def writer_entry(writer: MirrorWriter) -> tuple[bytes, bytes]:
    text = {
        "v": VERSION,
        "source": writer.flow.source,
        "target": writer.flow.target,
        **({"instance": writer.flow.instance} if writer.flow.instance else {}),
        "lane": writer.lane,
        "epoch": writer.epoch,
        "generation": writer.generation,
        "since_ms": writer.since_ms,
    }
    return str(writer.producer_id).encode(), json.dumps(text, separators=(",", ":")).encode()


def parse_writer(key: bytes, value: bytes | None) -> MirrorWriter | None:
    """None for what is no registration. A value that cannot be read still names a mirror: its key is enough to know that."""
    if value is None or _DIGITS.fullmatch(key) is None:
        return None
    producer_id = int(key)
    try:
        text = json.loads(value)
        flow = Flow(str(text["source"]), str(text["target"]), str(text.get("instance", "")))
        numbers = [int(text[name]) for name in ("lane", "epoch", "generation", "since_ms")]
    except (ValueError, KeyError, TypeError, OverflowError):
        return MirrorWriter(producer_id, UNKNOWN_FLOW)
    return MirrorWriter(producer_id, flow, *numbers)


def told_key(flow: Flow, writer: Flow) -> bytes:
    """Of the note that ``flow`` has told once that it does not forward what ``writer`` wrote."""
    return f"told/not-forwarded/{flow}/{writer}".encode()


def flow_of_transactional_id(name: str) -> Flow | None:
    """Of a lane's transactional id (``__mirrorspark-<source>-><target>[/<instance>]-<lane>``); None for anybody else's."""
    found = _LANE_ID.fullmatch(name)
    return Flow(found[1], found[2], found[3] or "") if found else None
